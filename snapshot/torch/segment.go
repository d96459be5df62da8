package torch

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

type rawSegment struct {
	snapshot.Segment
	stack                      uint32
	end                        int   // row after the last block
	allocated, active, request int64 // the file's sums; -1 if it has none
}

// addHost adds a segment of pinned memory, whatever device it names.
func (b *builder) addHost(o *object) error {
	if !o.has(sgTotal) && !o.has(sgBlocks) {
		b.odd++
		return nil
	}
	cpu := int64(-1)
	o.put(sgDevice, uint64(cpu))
	b.pinned = true
	return b.addSegment(o)
}

func (b *builder) addSegment(o *object) error {
	if len(b.segments) >= b.mostSegs {
		err := b.m.fail("more than %d segments, which take more memory than a file of its size may ask for", b.mostSegs)
		err.Hint = liftHint
		return err
	}
	if b.record.only && int64(o.values[sgDevice]) >= 0 {
		return b.m.fail("a segment lies in an unexpected place: the trace has begun")
	}
	seg := rawSegment{
		Segment: snapshot.Segment{
			Device:     int(int64(o.values[sgDevice])),
			Address:    o.values[sgAddress],
			Stream:     o.values[sgStream],
			Expandable: o.values[sgExpandable] != 0,
			FirstBlock: int(o.values[sgFirst]),
		},
		stack: uint32(o.values[sgStack]),
		end:   int(o.values[sgEnd]),
	}
	if d := int64(o.values[sgDevice]); d < -1 || d > maxDevice {
		return b.m.fail("device %s is out of range", written(o.values[sgDevice]))
	}
	if !o.has(sgTotal) && !o.has(sgBlocks) {
		err := b.m.fail("an item of the list of segments has neither total_size nor blocks")
		err.Hint = "memdiag reads what torch.cuda.memory._dump_snapshot() writes"
		return err
	}
	if keyword(o.values[sgType]) == kwSmall {
		seg.Pool = snapshot.SmallPool
	}
	if o.has(sgPool) {
		seg.Private = privatePool(b.m.pairs[o.values[sgPool]])
	}
	total, err := b.size(o, sgTotal, "a segment")
	if err != nil {
		return err
	}
	if err := b.add(total); err != nil {
		return err
	}
	seg.Size = snapshot.Bytes(total)
	sums := [...]struct {
		at uint8
		to *int64
	}{{sgAllocated, &seg.allocated}, {sgActive, &seg.active}, {sgRequested, &seg.request}}
	for _, s := range sums {
		*s.to = -1
		if o.has(s.at) {
			if *s.to, err = b.size(o, s.at, "a sum"); err != nil {
				return err
			}
		}
	}
	if !o.has(sgBlocks) {
		if err := b.flatSegment(&seg); err != nil {
			return err
		}
	}
	b.settle(&seg, o.has(sgTotal))
	if n := len(b.segments); n == cap(b.segments) {
		b.segments = slices.Grow(b.segments, max(64, min(n, 1<<14)))
	}
	b.segments = append(b.segments, seg)
	return nil
}

// flatSegment makes the blocks of a record that has sums only: one block live
// with the segment's stack, one pending, one free.
func (b *builder) flatSegment(seg *rawSegment) error {
	seg.FirstBlock = b.rows()
	allocated := max(seg.allocated, 0)
	active := max(seg.active, allocated)
	requested := seg.request
	if requested > allocated {
		b.broken.requests++
	}
	if requested < 0 || requested > allocated {
		requested = allocated
	}
	address := seg.Address
	for _, part := range [...]struct {
		size, requested int64
		state           snapshot.State
		stack           uint32
	}{
		{allocated, requested, snapshot.Live, seg.stack},
		{active - allocated, active - allocated, snapshot.Pending, seg.stack},
		{int64(seg.Size) - active, 0, snapshot.Free, 0},
	} {
		if part.size > 0 {
			if err := b.row(address, part.size, part.requested, part.state, part.stack, snapshot.NoStep); err != nil {
				return err
			}
			address += uint64(part.size)
		}
	}
	seg.end = b.rows()
	seg.request = -1
	return nil
}

// settle gives blocks their addresses if the file has none (before PyTorch 2.1), and compares a segment's own sums with those of its
// blocks.
func (b *builder) settle(seg *rawSegment, sized bool) {
	seg.NumBlocks = seg.end - seg.FirstBlock
	var all, allocated, active, requested int64
	at := seg.Address
	for i := seg.FirstBlock; i < seg.end; i++ {
		if b.blocks.Address[i] == 0 {
			b.blocks.Address[i] = at
		}
		size := b.blocks.Size[i]
		at += uint64(size)
		all += int64(size)
		if b.blocks.State[i] != snapshot.Free {
			active += int64(size)
			requested += int64(b.blocks.Requested[i])
		}
		if b.blocks.State[i] == snapshot.Live {
			allocated += int64(size)
		}
	}
	if !sized {
		seg.Size = snapshot.Bytes(all)
	}
	b.broken.check(seg, all, allocated, active, requested)
}

// checkPlaces looks for segments that share addresses, and for blocks that do or leave
// some of their segment out. All are sorted.
func (b *builder) checkPlaces(s *snapshot.Snapshot) {
	var end uint64 // of the segments so far
	for i := range s.Segments {
		seg := &s.Segments[i]
		if i == 0 || seg.Device != s.Segments[i-1].Device {
			end = 0
		}
		if seg.Address != 0 && seg.Address < end { // 0 is what a file without addresses has
			b.broken.shared++
		}
		end = max(end, seg.Address+uint64(seg.Size))
		var gap, overlap bool
		at := seg.Address
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			start := s.Blocks.Address[row]
			gap = gap || start > at
			overlap = overlap || start < at
			at = max(at, start+uint64(s.Blocks.Size[row]))
		}
		switch {
		case overlap:
			b.broken.overlaps++
		case gap:
			b.broken.gaps++
		}
	}
}

// privatePool names a pool; the shared one is (0, 0).
func privatePool(id [2]uint64) string {
	if id == [2]uint64{} {
		return ""
	}
	return snapshotPoolName(id)
}
