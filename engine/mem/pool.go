package mem

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// PyTorch's constants (c10/cuda/CUDACachingAllocator.cpp, 1.13 to 2.6), so that
// people recognise what they see.
const (
	granule      = 512      // every block is a multiple
	smallLimit   = 1 << 20  // the largest block of the small pool
	smallSegment = 2 << 20  // a segment of the small pool
	largeSegment = 20 << 20 // a segment of the large pool, up to hugeLimit
	hugeLimit    = 10 << 20 // from here on a segment serves one request …
	hugeRounding = 2 << 20  // … rounded up to this
	largeRest    = 1 << 20  // what a large block must exceed by to be split
)

// maxRequest bounds one request, so that rounding cannot overflow. No device
// has 64 TiB.
const maxRequest = 1 << 46

// blockID names a row of pool.blocks.
type blockID int32

const noBlock blockID = -1

// block is one row of the slab: a piece of a segment. Rows of a segment are
// chained by address.
type block struct {
	offset    int64 // in its segment
	size      int64
	requested int64 // 0 while free
	birth     int64 // steps completed when it was allocated
	segment   int32
	prev      blockID
	next      blockID
	site      SiteID
	refs      [owners]int32
	live      bool
	lost      bool   // a handle was collected while it held a reference
	ticket    uint64 // of the work that may still use it, though it was freed; 0 else
}

// free says whether a request may have the block.
func (b *block) free() bool { return !b.live && b.ticket == 0 }

// owners is the number of owner classes that the snapshot model has.
const owners = 6

// segment is memory that the driver gave in one piece.
type segment struct {
	memory Memory // nil marks a row that is free for reuse
	base   uint64 // address of its first byte
	size   int64
	pool   snapshot.Pool
	first  blockID // at offset 0
	site   SiteID  // of the request that it was taken for
}

// pool keeps the segments and blocks of one device. It knows neither drivers
// nor locks. Blocks live in a slab, not behind pointers, so that a snapshot of
// 100,000 blocks is a walk over one array, and so that allocating in a steady
// state makes no garbage.
type pool struct {
	blocks   []block
	spare    []blockID // rows of blocks that are out of use
	segments []segment
	unused   []int32 // rows of segments that are out of use
	free     [2]freeList

	// waiting are the blocks that were freed and may still be in use, oldest first.
	waiting []blockID

	requested, allocated, pending, reserved int64
}

// round is the size of the block that serves a request.
func round(request int64) int64 {
	return max(granule, (request+granule-1)/granule*granule)
}

// classOf is the pool that serves blocks of this size.
func classOf(size int64) snapshot.Pool {
	if size <= smallLimit {
		return snapshot.SmallPool
	}
	return snapshot.LargePool
}

// segmentFor is the size of the segment to take for a block that found no room.
func segmentFor(size int64) int64 {
	switch {
	case size <= smallLimit:
		return smallSegment
	case size < hugeLimit:
		return largeSegment
	}
	return leastSegmentFor(size)
}

// leastSegmentFor is the smallest segment that has room for a block.
func leastSegmentFor(size int64) int64 {
	return (size + hugeRounding - 1) / hugeRounding * hugeRounding
}

// take makes a block of the rounded size live: best fit, which is the smallest
// free block that suffices and of these the one at the lowest address. It
// returns noBlock where no free block suffices. The caller fills in site, birth
// and references.
func (p *pool) take(request, size int64) blockID {
	class := classOf(size)
	id, ok := p.free[class].takeFit(size)
	if !ok {
		return noBlock
	}
	if rest := p.blocks[id].size - size; class == snapshot.SmallPool && rest >= granule || rest > largeRest {
		p.split(id, size)
	}
	b := &p.blocks[id]
	b.live = true
	b.requested = request
	p.requested += request
	p.allocated += b.size
	return id
}

// split cuts a block that is in no free list down to size; what it leaves
// becomes a free block after it.
func (p *pool) split(id blockID, size int64) {
	rest := p.newRow()
	b := &p.blocks[id]
	p.blocks[rest] = block{offset: b.offset + size, size: b.size - size, segment: b.segment, prev: id, next: b.next}
	if b.next != noBlock {
		p.blocks[b.next].prev = rest
	}
	b.size, b.next = size, rest
	p.list(rest)
}

// put ends a live block: it is free at once if the ticket is 0, and else waits until
// the ticket's work has finished. Tickets never descend.
func (p *pool) put(id blockID, ticket uint64) {
	b := &p.blocks[id]
	p.requested -= b.requested
	p.allocated -= b.size
	if ticket == 0 {
		p.clear(id)
		return
	}
	b.live, b.refs, b.ticket = false, [owners]int32{}, ticket
	p.pending += b.size
	p.waiting = append(p.waiting, id)
}

// reclaim frees what waited for tickets up to this one.
func (p *pool) reclaim(finished uint64) {
	n := 0
	for ; n < len(p.waiting) && p.blocks[p.waiting[n]].ticket <= finished; n++ {
		id := p.waiting[n]
		p.pending -= p.blocks[id].size
		p.clear(id)
	}
	p.waiting = slices.Delete(p.waiting, 0, n)
}

// clear makes a block free and merges it with free neighbours.
func (p *pool) clear(id blockID) {
	b := &p.blocks[id]
	*b = block{offset: b.offset, size: b.size, segment: b.segment, prev: b.prev, next: b.next}
	if next := b.next; next != noBlock && p.blocks[next].free() {
		p.unlist(next)
		p.absorbNext(id)
	}
	if prev := b.prev; prev != noBlock && p.blocks[prev].free() {
		p.unlist(prev)
		p.absorbNext(prev)
		id = prev
	}
	p.list(id)
}

// absorbNext joins a block with the one after it, whose row becomes spare.
func (p *pool) absorbNext(id blockID) {
	b := &p.blocks[id]
	gone := b.next
	b.size += p.blocks[gone].size
	b.next = p.blocks[gone].next
	if b.next != noBlock {
		p.blocks[b.next].prev = id
	}
	p.spare = append(p.spare, gone)
}

func (p *pool) newRow() blockID {
	if n := len(p.spare); n > 0 {
		id := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return id
	}
	p.blocks = append(p.blocks, block{})
	return blockID(len(p.blocks) - 1)
}

// addSegment makes the driver's memory one free block.
func (p *pool) addSegment(m Memory, base uint64, class snapshot.Pool, site SiteID) {
	at := int32(len(p.segments))
	if n := len(p.unused); n > 0 {
		at = p.unused[n-1]
		p.unused = p.unused[:n-1]
	} else {
		p.segments = append(p.segments, segment{})
	}
	id := p.newRow()
	p.blocks[id] = block{size: m.Size(), segment: at, prev: noBlock, next: noBlock}
	p.segments[at] = segment{memory: m, base: base, size: m.Size(), pool: class, first: id, site: site}
	p.reserved += m.Size()
	p.list(id)
}

// trim forgets every segment that is one free block and returns their memory.
func (p *pool) trim() []Memory {
	var gone []Memory
	for i := range p.segments {
		s := &p.segments[i]
		if s.memory == nil {
			continue
		}
		if b := &p.blocks[s.first]; !b.free() || b.next != noBlock {
			continue
		}
		gone = append(gone, s.memory)
		p.unlist(s.first)
		p.spare = append(p.spare, s.first)
		p.reserved -= s.size
		*s = segment{}
		p.unused = append(p.unused, int32(i))
	}
	return gone
}

func (p *pool) address(id blockID) uint64 {
	b := &p.blocks[id]
	return p.segments[b.segment].base + uint64(b.offset)
}

func (p *pool) list(id blockID) {
	b := &p.blocks[id]
	p.free[p.segments[b.segment].pool].add(freeBlock{b.size, p.address(id), id})
}

func (p *pool) unlist(id blockID) {
	b := &p.blocks[id]
	p.free[p.segments[b.segment].pool].remove(freeBlock{b.size, p.address(id), id})
}

// freeBlock is a free block's place in the order of best fit.
type freeBlock struct {
	size    int64
	address uint64
	id      blockID
}

func (a freeBlock) compare(b freeBlock) int {
	switch {
	case a.size < b.size:
		return -1
	case a.size > b.size:
		return 1
	case a.address < b.address:
		return -1
	case a.address > b.address:
		return 1
	}
	return 0
}

// freeList holds the free blocks of one pool by size, then address.
type freeList struct{ blocks []freeBlock }

func (l *freeList) find(b freeBlock) (int, bool) {
	return slices.BinarySearchFunc(l.blocks, b, freeBlock.compare)
}

func (l *freeList) add(b freeBlock) {
	at, _ := l.find(b)
	l.blocks = slices.Insert(l.blocks, at, b)
}

func (l *freeList) remove(b freeBlock) {
	at, _ := l.find(b)
	l.blocks = slices.Delete(l.blocks, at, at+1)
}

// takeFit removes and returns the best fit.
func (l *freeList) takeFit(size int64) (blockID, bool) {
	at, _ := l.find(freeBlock{size: size})
	if at == len(l.blocks) {
		return noBlock, false
	}
	id := l.blocks[at].id
	l.blocks = slices.Delete(l.blocks, at, at+1)
	return id, true
}
