package torch

import (
	"cmp"
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// moments are those of the devices.
type moments struct {
	at      snapshot.At
	until   int64 // of AtTime, in Unix microseconds
	of      map[int]*moment
	outside int // blocks that no segment has
}

// passed is the moment of a device; nil if there was none, and the device stays as at the end.
func (m *moments) passed(device int) *moment {
	if one := m.of[device]; one != nil && one.started {
		return one
	}
	return nil
}

// any reports whether some device has a moment.
func (m *moments) any() bool {
	for device := range m.of {
		if m.passed(device) != nil {
			return true
		}
	}
	return false
}

// stretch is a range of addresses, and whether it is a segment at the moment.
type stretch struct {
	rawSegment
	from, to uint64
	there    bool
}

// smallSegment is the size of segments for small blocks, kSmallBuffer of PyTorch's CUDACachingAllocator.
const smallSegment = 2 << 20

// stretches are what determines which addresses belonged to a segment at the moment: the changes since then, in order, and then the
// segments at the end.
func (m *moment) stretches(segments []rawSegment) []stretch {
	out := make([]stretch, 0, len(m.segments)+len(segments))
	for _, c := range m.segments {
		expandable := c.action == kwSegmentMap || c.action == kwSegmentUnmap
		seg := rawSegment{Segment: snapshot.Segment{Stream: c.stream, Expandable: expandable}, stack: c.stack}
		if c.size <= smallSegment && !expandable {
			seg.Pool = snapshot.SmallPool
		}
		if to := c.address + c.size; to > c.address {
			out = append(out, stretch{seg, c.address, to, c.action == kwSegmentFree || c.action == kwSegmentUnmap})
		}
	}
	for _, seg := range segments {
		if to := seg.Address + uint64(seg.Size); to > seg.Address && seg.Address <= maxAddress {
			out = append(out, stretch{seg, seg.Address, to, true})
		}
	}
	return out
}

// segmentsOf are the segments in stretches. If several share an address the first counts: the first change after the moment shows the
// state before.
func segmentsOf(all []stretch) []rawSegment {
	order := make([]int, len(all)) // by where they begin
	edges := make([]uint64, 0, 2*len(all))
	for i, s := range all {
		order[i] = i
		edges = append(edges, s.from, s.to)
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(all[x].from, all[y].from) })
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var out []rawSegment
	var open earliest
	last := -1 // the stretch that the newest segment is of
	for i, from := range edges[:max(len(edges)-1, 0)] {
		for len(order) > 0 && all[order[0]].from == from {
			heap.Push(&open, order[0])
			order = order[1:]
		}
		for len(open) > 0 && all[open[0]].to <= from {
			heap.Pop(&open)
		}
		if len(open) == 0 || !all[open[0]].there {
			last = -1
			continue
		}
		s, size := &all[open[0]], snapshot.Bytes(edges[i+1]-from)
		if n := len(out) - 1; last >= 0 && (last == open[0] || out[n].Expandable && s.Expandable && out[n].Stream == s.Stream) {
			out[n].Size += size
		} else {
			seg := s.rawSegment
			seg.Address, seg.Size = from, size
			seg.allocated, seg.active, seg.request = -1, -1, -1
			out = append(out, seg)
		}
		last = open[0]
	}
	return out
}

// earliest is a heap of places of stretches, the first on top.
type earliest []int

func (h earliest) Len() int           { return len(h) }
func (h earliest) Less(i, j int) bool { return h[i] < h[j] }
func (h earliest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *earliest) Push(v any)        { *h = append(*h, v.(int)) }
func (h *earliest) Pop() any {
	old := *h
	v := old[len(old)-1]
	*h = old[:len(old)-1]
	return v
}

// held is a block at the moment.
type held struct {
	lease
	state snapshot.State
	given snapshot.Bytes // its size; 0 if unknown
	step  int64
}

// blocksOf are the allocated blocks at the moment, by address: those blocks of the end that already existed, and those that were freed
// since. It empties the tables.
func (m *moment) blocksOf(segments []rawSegment, old *snapshot.Blocks) []held {
	m.settle()
	out := make([]held, 0, len(m.gone)+m.live.count)
	for i := range segments {
		for row := segments[i].FirstBlock; row < segments[i].FirstBlock+segments[i].NumBlocks; row++ {
			if old.State[row] == snapshot.Free || old.Address[row] > maxAddress {
				continue
			}
			h := held{lease{address: old.Address[row], size: uint64(old.Requested[row]), stack: uint32(old.Stack[row])}, old.State[row], old.Size[row], old.BirthStep[row]}
			if at := m.live.find(h.address); m.live.keys[at] != 0 {
				l := m.live.values[at]
				m.live.remove(at)
				if l.event > m.event {
					continue
				}
				h.event, h.time, h.state = l.event, l.time, m.stateAt(l)
			}
			out = append(out, h)
		}
	}
	for i, key := range m.live.keys { // live to the end by the record alone
		if l := m.live.values[i]; key != 0 && l.event > 0 && l.event <= m.event {
			m.gone = append(m.gone, l)
		}
	}
	for _, l := range m.gone {
		out = append(out, held{l, m.stateAt(l), 0, snapshot.NoStep})
	}
	slices.SortFunc(out, func(x, y held) int {
		if c := cmp.Compare(x.address, y.address); c != 0 {
			return c
		}
		return cmp.Compare(x.event, y.event)
	})
	return withoutDisplaced(out)
}

// withoutDisplaced removes blocks that share addresses with a newer one: they were freed, and the record lacks the event, for example
// because the program stopped the recording for a while.
func withoutDisplaced(blocks []held) []held {
	kept := blocks[:0]
	for _, h := range blocks {
		for n := len(kept) - 1; n >= 0 && h.address-kept[n].address < uint64(kept[n].bytes()) && kept[n].event < h.event; n-- {
			kept = kept[:n]
		}
		if n := len(kept) - 1; n >= 0 && h.address-kept[n].address < uint64(kept[n].bytes()) && kept[n].event > h.event {
			continue
		}
		kept = append(kept, h)
	}
	return kept
}

// rewind puts the segments and blocks of each device that has a moment as they were then.
func (b *builder) rewind(name string) error {
	if !b.moments.any() {
		e := &snapshot.FormatError{File: name, Reason: "it has no history of allocations, so what was live before its end is unknown", Hint: "torch.cuda.memory._record_memory_history() records them"}
		if b.moments.at.Kind == snapshot.AtOOM && b.record.events > 0 {
			e.Reason, e.Hint = "no request for memory failed in its history", "memdiag show FILE --at peak shows the peak"
		}
		return e
	}
	own := make(map[int][]rawSegment)
	for _, seg := range b.segments {
		own[seg.Device] = append(own[seg.Device], seg)
	}
	for device := range b.moments.of {
		if _, there := own[device]; !there {
			own[device] = nil // it has no segments at the end
		}
	}
	old := b.blocks
	b.segments, b.blocks, b.total = nil, snapshot.Blocks{}, 0
	for _, device := range slices.Sorted(maps.Keys(own)) {
		segments := own[device]
		slices.SortStableFunc(segments, func(x, y rawSegment) int { return cmp.Compare(x.Address, y.Address) })
		m := b.moments.passed(device)
		if m == nil {
			b.grow(len(old.Size) / len(own))
			b.keep(segments, &old)
			continue
		}
		if err := b.lay(device, segmentsOf(m.stretches(segments)), m.blocksOf(segments, &old)); err != nil {
			return err
		}
	}
	return nil
}

// keep takes segments as they are at the end.
func (b *builder) keep(segments []rawSegment, old *snapshot.Blocks) {
	for _, seg := range segments {
		first := b.rows()
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			b.place(old.Address[row], old.Size[row], old.Requested[row], old.State[row], uint32(old.Stack[row]), old.BirthStep[row], tenancy{})
		}
		seg.FirstBlock = first
		b.segments = append(b.segments, seg)
	}
}

// alignment is what PyTorch rounds sizes up to, kMinBlockSize of its CUDACachingAllocator.
const alignment = 512

// lay puts blocks into segments. What lies between them is free. A block outside of all gets a segment of its own.
func (b *builder) lay(device int, segments []rawSegment, blocks []held) error {
	b.grow(len(blocks) + len(segments))
	for len(segments) > 0 || len(blocks) > 0 {
		var seg rawSegment
		if len(segments) == 0 || len(blocks) > 0 && blocks[0].address < segments[0].Address {
			seg = rawSegment{Segment: snapshot.Segment{Address: blocks[0].address, Size: blocks[0].bytes()}, allocated: -1, active: -1, request: -1}
			b.moments.outside++
		} else {
			seg, segments = segments[0], segments[1:]
		}
		seg.Device, seg.FirstBlock = device, b.rows()
		left := seg.Size // of it, after what was placed
		for len(blocks) > 0 && snapshot.Bytes(blocks[0].address-seg.Address) < seg.Size {
			h := blocks[0]
			blocks = blocks[1:]
			rest := seg.Size - snapshot.Bytes(h.address-seg.Address)
			if left > rest {
				b.place(seg.Address+uint64(seg.Size-left), left-rest, 0, snapshot.Free, 0, snapshot.NoStep, tenancy{})
			}
			size := min(h.bytes(), rest)
			if len(blocks) > 0 {
				size = min(size, snapshot.Bytes(blocks[0].address-h.address))
			}
			if err := b.add(int64(size)); err != nil {
				return err
			}
			b.place(h.address, size, min(snapshot.Bytes(h.size), size), h.state, h.stack, h.step, tenancy{h.time, h.size, snapshot.NoStep})
			left = rest - size
		}
		if left > 0 {
			b.place(seg.Address+uint64(seg.Size-left), left, 0, snapshot.Free, 0, snapshot.NoStep, tenancy{})
		}
		seg.NumBlocks, seg.end = b.rows()-seg.FirstBlock, b.rows()
		if err := b.add(int64(seg.Size)); err != nil {
			return err
		}
		b.segments = append(b.segments, seg)
	}
	return nil
}

// bytes is the size of the block, as the file says, or as the allocator rounds a request.
func (h held) bytes() snapshot.Bytes {
	return max(h.given, snapshot.Bytes((max(h.size, 1)+alignment-1)/alignment*alignment))
}

// place appends a row, with its birth.
func (b *builder) place(address uint64, size, requested snapshot.Bytes, state snapshot.State, stack uint32, step int64, born tenancy) {
	c := &b.blocks
	c.Address, c.Size, c.Requested = append(c.Address, address), append(c.Size, size), append(c.Requested, requested)
	c.State, c.Stack, c.BirthStep = append(c.State, state), append(c.Stack, snapshot.StackID(stack)), append(c.BirthStep, step)
	b.born = append(b.born, born)
}

// until is the time of a step's end, or of a time since the first event, in Unix microseconds.
func (r *record) until(name string, at snapshot.At) (int64, error) {
	if r.first == 0 {
		return 0, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("%s is unknown: its events have no times", at), Hint: "--at peak and --at oom need no times"}
	}
	if at.Kind == snapshot.AtTime {
		return r.first + at.Time.Microseconds(), nil
	}
	ends := r.stepEnds()
	if len(ends) == 0 {
		return 0, &snapshot.FormatError{File: name, Reason: "it does not record steps", Hint: "steps come from torch.optim, which PyTorch 2.5 and later notes in their snapshots; --at time:1.5s counts from the first event"}
	}
	if at.Step < 1 || at.Step > int64(len(ends)) {
		return 0, &snapshot.FormatError{File: name, Reason: fmt.Sprintf("it has the ends of steps 1 to %d, not of %d", len(ends), at.Step), Hint: "steps are counted from the beginning of the history, which may be long after that of the training"}
	}
	return ends[at.Step-1], nil
}

// follow gives an event to its device's moment.
func (b *builder) follow(device int, o *object) {
	r := &b.record
	m := b.moments.of[device]
	if m == nil {
		m = newMoment(b.moments.at.Kind, b.moments.until)
		m.skips = b.skips
		b.moments.of[device] = m
	}
	m.add(r.events, cmp.Or(max(int64(o.values[enTime]), 0), -r.events), o)
}

// moment is the moment that the snapshot shows, for its main device: the one whose request failed last, or the one with the highest
// peak.
func (b *builder) moment(s *snapshot.Snapshot, table *stackTable) *snapshot.Moment {
	device, best := -1, (*moment)(nil)
	for _, at := range slices.Sorted(maps.Keys(b.moments.of)) {
		m := b.moments.passed(at)
		if m == nil {
			continue
		}
		later := best != nil && b.moments.at.Kind == snapshot.AtOOM && m.time > best.time
		higher := best != nil && b.moments.at.Kind == snapshot.AtPeak && s.Devices[at].Meters.Active > s.Devices[device].Meters.Active
		if best == nil || later || higher {
			device, best = at, m
		}
	}
	if best == nil {
		return nil
	}
	for i := range s.Devices {
		s.Devices[i].Meters.Driver = snapshot.Unknown // the file's is of the end
	}
	out := &snapshot.Moment{At: b.moments.at, Device: device, Event: best.event, Of: b.record.events}
	if best.time > 0 {
		out.Time = time.UnixMicro(best.time).UTC()
	}
	if o, ok := b.record.ooms[device]; ok && b.moments.at.Kind == snapshot.AtOOM {
		out.Refused = o.of(device, table)
	}
	return out
}
