package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Fidelity is how the model's replay under the recorded settings compares with the record.
type Fidelity struct {
	Allocs, Placed int64 // allocations of the record, and those that the model put at the recorded address
	Segments       int   // that the snapshot has
	Same           int   // … and the model, with the same address and size
	Extra          int   // that the model alone has
	Reserved       snapshot.Bytes
	Modelled       snapshot.Bytes // likewise, of the model
	// Why are reasons for which the model can differ.
	Why []string
}

// Exact reports whether the model ends with the recorded segments.
func (f Fidelity) Exact() bool { return f.Same == f.Segments && f.Extra == 0 }

// Check plays the record under the recorded settings, from the layout that it begins with, and compares what the model has at the end
// with the snapshot's segments. New segments get the recorded addresses, which are the driver's choice.
func (p *Player) Check(s Settings) Fidelity {
	a := newAllocator(s, int64(p.Limit))
	rows := p.rows()
	p.lay(a, rows)
	f := Fidelity{Reserved: p.end.Devices[p.device].Meters.Reserved}
	p.each(a, rows, true, func(at row, e snapshot.Event) {
		f.Allocs++
		if at != none && a.blocks[at].address == e.Address {
			f.Placed++
		}
	})
	f.Modelled = snapshot.Bytes(a.reserved)
	recorded := make(map[extent]bool)
	for _, seg := range p.end.Segments {
		if seg.Device == p.device {
			recorded[extent{seg.Address, int64(seg.Size)}] = true
			f.Segments++
		}
	}
	for _, e := range a.extents() {
		if recorded[e] {
			f.Same++
		} else {
			f.Extra++
		}
	}
	f.Why = p.unmodelled(s)
	return f
}

// unmodelled are the reasons for which the model can differ from what was recorded.
func (p *Player) unmodelled(s Settings) []string {
	var why []string
	say := func(is bool, text string) {
		if is {
			why = append(why, text)
		}
	}
	say(len(s.Unknown) > 0, "it has no rule for "+strings.Join(s.Unknown, ", "))
	say(len(p.pools) > 0, "memory of private pools (CUDA graphs, MemPool) that is gone at the end counts as of the shared pool")
	say(s.Collect > 0, "when blocks became free before the record is not known, which garbage_collection_threshold goes by")
	say(p.failed > 0, "what other processes took of the device is known only when a request failed")
	if lost := p.start.History.LostFrees; lost > 0 {
		why = append(why, fmt.Sprintf("of %d blocks that are older than the record only the requested sizes are known", lost))
	}
	if p.unfreed > 0 {
		why = append(why, fmt.Sprintf("blocks whose frees the record lacks: %d; each counts as live until its address is given out again", p.unfreed))
	}
	if p.unknown > 0 {
		why = append(why, fmt.Sprintf("frees of blocks that are not known: %d; they are passed over", p.unknown))
	}
	return why
}

// extent is a range of addresses that has memory.
type extent struct {
	address uint64
	size    int64
}

// extents are the segments, as PyTorch tells them: of an expandable one, each range that has memory.
func (a *allocator) extents() []extent {
	var out []extent
	gone := make(map[row]bool, len(a.spare))
	for _, at := range a.spare {
		gone[at] = true
	}
	for i := range a.blocks {
		b := &a.blocks[i]
		if gone[row(i)] || !b.mapped || b.prev != none && a.blocks[b.prev].mapped {
			continue
		}
		e := extent{b.address, 0}
		for at := row(i); at != none && a.blocks[at].mapped; at = a.blocks[at].next {
			e.size += a.blocks[at].size
		}
		out = append(out, e)
	}
	return out
}

// lay puts the segments and blocks of the record's beginning into an allocator that has none.
func (p *Player) lay(a *allocator, rows []row) {
	slot := int32(0)
	seen := make(map[uint64]bool)
	tails := make(map[poolKey]row) // the last block of each pool's expandable range
	for _, seg := range p.start.Segments {
		if seg.Device != p.device {
			continue
		}
		key := poolKey{p.stream(seg.Stream), seg.Private, seg.Pool == snapshot.SmallPool}
		c := chain{a: a, pool: a.poolOf(key), at: seg.Address, last: none}
		if seg.Expandable {
			if tail, there := tails[key]; there && seg.Address-a.blocks[tail].base < rangeSize {
				c.last, c.base = tail, a.blocks[tail].base
				c.at = a.blocks[tail].address + uint64(a.blocks[tail].size)
				c.gap(seg.Address, false)
			} else {
				c.base = seg.Address
			}
		}
		end := seg.Address + uint64(seg.Size)
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			b := &p.start.Blocks
			if b.State[row] == snapshot.Free || seen[b.Address[row]] {
				continue
			}
			seen[b.Address[row]] = true
			slot++
			if b.Address[row] < c.at || b.Address[row] >= end { // of a damaged file
				continue
			}
			c.gap(b.Address[row], true)
			limit := end // where the next block begins
			for after := row + 1; after < seg.FirstBlock+seg.NumBlocks; after++ {
				if b.State[after] != snapshot.Free {
					limit = b.Address[after]
					break
				}
			}
			if limit <= c.at {
				continue
			}
			size := a.given(int64(b.Requested[row]), int64(b.Size[row]), int64(limit-c.at), key.small || seg.Expandable)
			rows[slot-1] = c.add(size, true, true)
			a.active += size
		}
		c.gap(end, true)
		a.reserved += int64(seg.Size)
		if seg.Expandable && c.last != none {
			tails[key] = c.last
		}
	}
	for _, tail := range tails {
		b := a.blocks[tail]
		c := chain{a: a, pool: b.pool, at: b.address + uint64(b.size), last: tail, base: b.base}
		c.gap(b.base+rangeSize, false)
	}
	for i := range a.blocks {
		if !a.blocks[i].taken {
			a.list(row(i))
		}
	}
}

// given is the size of a block that was made for a request: the snapshot's, or for one that was freed in the record what the allocator
// makes of the request, and what it left unsplit of the room up to the next block.
func (s *Settings) given(request, size, room int64, splits bool) int64 {
	size = min(max(size, s.round(request)), room)
	rest := room - size
	if !splits && (rest <= largeRest || s.MaxSplit > 0 && s.round(request) >= s.MaxSplit) {
		return room
	}
	return size
}

// chain appends blocks to a segment.
type chain struct {
	a    *allocator
	pool *pool
	base uint64
	at   uint64 // where the next block begins
	last row
}

func (c *chain) add(size int64, taken, mapped bool) row {
	at := c.a.newRow(block{address: c.at, base: c.base, size: size, prev: c.last, next: none, pool: c.pool, taken: taken, mapped: mapped})
	if c.last != none {
		c.a.blocks[c.last].next = at
	}
	c.last, c.at = at, c.at+uint64(size)
	return at
}

// gap adds a block that is not taken, up to an address.
func (c *chain) gap(to uint64, mapped bool) {
	if to > c.at {
		c.add(int64(to-c.at), false, mapped)
	}
}

// segments taken since the last allocation of the record tell where the driver put them.
func (a *allocator) address(size int64) uint64 {
	at := slices.IndexFunc(a.fresh, func(e snapshot.Event) bool {
		if size == 0 {
			return e.Kind() == snapshot.EventSegmentMap
		}
		return e.Kind() == snapshot.EventSegmentAlloc && int64(e.Bytes()) == size
	})
	if at >= 0 {
		address := a.fresh[at].Address
		a.fresh = slices.Delete(a.fresh, at, at+1)
		return address
	}
	address := a.next
	if size == 0 {
		size = rangeSize
	}
	a.next += uint64(size) + smallSegment
	return address
}
