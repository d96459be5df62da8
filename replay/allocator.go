package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// row names a row of allocator.blocks; none is no row.
type row int32

const none row = -1

// block is a piece of a segment. Those of a segment, or of an expandable one's range of addresses, are chained by address.
type block struct {
	address    uint64
	base       uint64 // where the range of an expandable segment begins; 0 for another segment's block
	size       int64
	prev, next row
	pool       *pool
	taken      bool  // live, or freed by the program and still used by a stream
	mapped     bool  // has memory; false for what an expandable segment may grow into
	since      int64 // pool.asked when it became free
}

// pool holds the free blocks of one stream that are all small or all large.
type pool struct {
	small    bool
	free     []place // by size, then address
	unmapped []place // by address; sizes are 0
	asked    int64   // how often a free block was looked for
}

type place struct {
	size    int64
	address uint64
	row     row
}

func (a place) compare(b place) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.address, b.address), cmp.Compare(a.row, b.row)) // a damaged file has an address twice
}

func insert(list []place, p place) []place {
	at, _ := slices.BinarySearchFunc(list, p, place.compare)
	return slices.Insert(list, at, p)
}

func remove(list []place, p place) []place {
	at, _ := slices.BinarySearchFunc(list, p, place.compare)
	return slices.Delete(list, at, at+1)
}

// poolKey tells pools apart.
type poolKey struct {
	stream  int
	private string
	small   bool
}

// allocator is the model of PyTorch's caching allocator: one device's.
type allocator struct {
	Settings
	// limit is what may be reserved.
	limit  int64
	blocks []block
	spare  []row
	pools  map[poolKey]*pool
	order  []*pool          // as they were made
	keys   []poolKey        // … and theirs
	fresh  []snapshot.Event // segments that the record takes since its last allocation
	next   uint64           // the address of a segment that the record does not have

	reserved, active int64
	givable          int64 // free memory that emptying the cache would give back
	calls            int64 // of the driver: memory taken, given back, mapped, unmapped
	retries          int64 // how often the cache was emptied because memory ran out
	bound            bool  // max_split_size_mb kept a block from being split or used, or gave one back
	collected        bool  // garbage_collection_threshold was reached
}

// farAddress is above those of real devices: where segments go that the record has none for.
const farAddress = 1 << 56

// rangeSize is the range of addresses of an expandable segment, more than any device has memory.
const rangeSize = 1 << 44

// mostReserved is more than any device has: sums of what a damaged file asks for stay within 64 bits.
const mostReserved = 1 << 58

// newAllocator makes an allocator; limit 0 is none.
func newAllocator(s Settings, limit int64) *allocator {
	if limit <= 0 || limit > mostReserved {
		limit = mostReserved
	}
	return &allocator{Settings: s, limit: limit, pools: make(map[poolKey]*pool), next: farAddress}
}

// unmet are the bounds that nothing met, which the settings then might as well not have.
func (a *allocator) unmet(limit snapshot.Bytes) (out []string) {
	if a.Collect > 0 && !a.collected {
		if limit > 0 {
			out = append(out, fmt.Sprintf("garbage_collection_threshold: reserved memory stayed below %v of the limit", a.Collect))
		} else {
			out = append(out, "garbage_collection_threshold: it is a share of a limit, and none is known (--limit)")
		}
	}
	if a.MaxSplit > 0 && !a.bound {
		out = append(out, "max_split_size_mb: it made no difference to any block")
	}
	return out
}

func (a *allocator) poolOf(key poolKey) *pool {
	p := a.pools[key]
	if p == nil {
		p = &pool{small: key.small}
		a.pools[key] = p
		a.order, a.keys = append(a.order, p), append(a.keys, key)
	}
	return p
}

func (a *allocator) newRow(b block) row {
	if n := len(a.spare); n > 0 {
		at := a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.blocks[at] = b
		return at
	}
	a.blocks = append(a.blocks, b)
	return row(len(a.blocks) - 1)
}

// list puts a block that is not taken among the free or the unmapped ones of its pool.
func (a *allocator) list(at row) {
	b := &a.blocks[at]
	if !b.mapped {
		b.pool.unmapped = insert(b.pool.unmapped, place{0, b.address, at})
		return
	}
	b.since = b.pool.asked
	b.pool.free = insert(b.pool.free, place{b.size, b.address, at})
	a.givable += a.gives(at)
}

func (a *allocator) unlist(at row) {
	b := &a.blocks[at]
	if !b.mapped {
		b.pool.unmapped = remove(b.pool.unmapped, place{0, b.address, at})
		return
	}
	b.pool.free = remove(b.pool.free, place{b.size, b.address, at})
	a.givable -= a.gives(at)
}

// whole reports whether a block is all of a segment that is not expandable.
func (b *block) whole() bool { return b.prev == none && b.next == none && b.base == 0 }

// gives is what emptying the cache would give back of a free block.
func (a *allocator) gives(at row) int64 {
	b := &a.blocks[at]
	switch {
	case b.whole():
		return b.size
	case b.base != 0:
		from, to := b.pages()
		return max(int64(to-from), 0)
	}
	return 0
}

// pages is the range of the whole pages in a block of an expandable segment.
func (b *block) pages() (from, to uint64) {
	page := b.pool.page()
	from = b.base + (b.address-b.base+page-1)/page*page
	to = b.base + (b.address+uint64(b.size)-b.base)/page*page
	return from, to
}

func (p *pool) page() uint64 {
	if p.small {
		return smallPage
	}
	return largePage
}

// take makes a block for a request; none where there is no memory for it.
func (a *allocator) take(request int64, key poolKey) row {
	size := a.round(request)
	key.small = size <= smallLimit
	p := a.poolOf(key)
	at := a.fit(p, size)
	if at == none {
		a.collect()
		if at = a.grow(p, size); at == none {
			a.retries++
			if a.releaseSome(p, size) {
				at = a.grow(p, size)
			}
			if at == none {
				a.empty()
				at = a.grow(p, size)
			}
		}
	}
	if at == none {
		return none
	}
	b := &a.blocks[at]
	rest := b.size - size
	split := rest > largeRest
	if p.small || a.Expandable {
		split = rest >= granule
	} else if split && a.MaxSplit > 0 && size >= a.MaxSplit {
		split, a.bound = false, true
	}
	if split {
		a.split(at, size)
	}
	b = &a.blocks[at]
	b.taken = true
	a.active += b.size
	return at
}

// split cuts a block that is in no list, and lists what it leaves.
func (a *allocator) split(at row, size int64) {
	b := a.blocks[at]
	rest := a.newRow(block{address: b.address + uint64(size), size: b.size - size, prev: at, next: b.next, pool: b.pool, mapped: b.mapped, base: b.base})
	if b.next != none {
		a.blocks[b.next].prev = rest
	}
	a.blocks[at].size, a.blocks[at].next = size, rest
	a.list(rest)
}

// fit takes the smallest free block that suffices from its list, by the rules of max_split_size_mb and of expandable segments.
func (a *allocator) fit(p *pool, size int64) row {
	p.asked++
	at, _ := slices.BinarySearchFunc(p.free, place{size: size, row: none}, place.compare)
	if at == len(p.free) {
		return none
	}
	if b := &a.blocks[p.free[at].row]; b.base != 0 && a.Expandable {
		// A block that can grow counts as large as it can become.
		for a.isSplit(p.free[at].row) && at+1 < len(p.free) && a.expandedSize(p.free[at+1].row) < a.expandedSize(p.free[at].row) {
			at++
		}
	} else {
		for at < len(p.free) && a.blocks[p.free[at].row].base != 0 {
			at++
		}
		if at == len(p.free) {
			return none
		}
	}
	found := p.free[at]
	if a.MaxSplit > 0 {
		given := a.blocks[found.row].size
		if size < a.MaxSplit && given >= a.MaxSplit || size >= a.MaxSplit && given >= size+nonSplitRound {
			a.bound = true
			return none
		}
	}
	a.unlist(found.row)
	return found.row
}

func (a *allocator) isSplit(at row) bool {
	b := &a.blocks[at]
	return b.prev != none || b.next != none
}

func (a *allocator) expandedSize(at row) int64 {
	b := &a.blocks[at]
	if b.next != none && !a.blocks[b.next].mapped {
		return b.size + a.blocks[b.next].size
	}
	return b.size
}

// grow takes memory from the driver for a block, which is in no list; none where the limit forbids it.
func (a *allocator) grow(p *pool, size int64) row {
	if a.Expandable {
		return a.expand(p, size)
	}
	segment := segmentFor(size)
	if a.reserved+segment > a.limit {
		return none
	}
	address := a.address(segment)
	a.reserved += segment
	a.calls++
	return a.newRow(block{address: address, size: segment, prev: none, next: none, pool: p, mapped: true})
}

// free ends a block, and joins it with free neighbours.
func (a *allocator) free(at row) {
	b := &a.blocks[at]
	b.taken = false
	a.active -= b.size
	a.list(a.join(at))
}

// join merges a block that is in no list with its neighbours of the same kind that are not taken, and returns its row.
func (a *allocator) join(at row) row {
	b := &a.blocks[at]
	if next := b.next; next != none && !a.blocks[next].taken && a.blocks[next].mapped == b.mapped {
		a.unlist(next)
		a.absorb(at)
	}
	if prev := a.blocks[at].prev; prev != none && !a.blocks[prev].taken && a.blocks[prev].mapped == a.blocks[at].mapped {
		a.unlist(prev)
		a.absorb(prev)
		return prev
	}
	return at
}

// absorb joins a block with the one after it.
func (a *allocator) absorb(at row) {
	b := &a.blocks[at]
	gone := b.next
	b.size += a.blocks[gone].size
	b.next = a.blocks[gone].next
	if b.next != none {
		a.blocks[b.next].prev = at
	}
	a.spare = append(a.spare, gone)
}

// release gives a free block that is all of its segment back to the driver.
func (a *allocator) release(at row) {
	a.unlist(at)
	a.reserved -= a.blocks[at].size
	a.calls++
	a.spare = append(a.spare, at)
}

// empty gives back all that is free and can be.
func (a *allocator) empty() {
	for _, p := range a.order {
		for _, f := range slices.Clone(p.free) {
			switch b := &a.blocks[f.row]; {
			case b.base != 0:
				a.unmap(f.row)
			case b.whole():
				a.release(f.row)
			}
		}
	}
}

// releaseSome gives back blocks that max_split_size_mb keeps from being split, until there is room for a request.
func (a *allocator) releaseSome(p *pool, size int64) bool {
	if a.MaxSplit == 0 {
		return false
	}
	want := max(size, a.MaxSplit)
	at, _ := slices.BinarySearchFunc(p.free, place{size: want, row: none}, place.compare)
	if at < len(p.free) && a.blocks[p.free[at].row].whole() {
		a.bound = true
		a.release(p.free[at].row)
		return true
	}
	released := int64(0)
	for at--; at >= 0 && released < want && p.free[at].size >= a.MaxSplit; at-- {
		if a.blocks[p.free[at].row].whole() {
			a.bound = true
			released += p.free[at].size
			a.release(p.free[at].row)
		}
	}
	return released >= want
}
