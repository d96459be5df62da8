package torch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// snapshot completes the model. The stacks of blocks and segments go into the
// given table; those of the trace do not.
func (b *builder) snapshot(stacks *snapshot.Stacks) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark:     snapshot.Mark{Step: b.step, Epoch: snapshot.NoStep},
		Rank:     b.rank,
		Producer: "PyTorch",
		Stacks:   stacks,
		Blocks:   b.blocks,
	}
	b.sort(s)
	table := newStackTable(&b.m.symbols, stacks)
	for i, list := range s.Blocks.Stack {
		s.Blocks.Stack[i] = table.stack(uint32(list))
	}
	s.Segments = make([]snapshot.Segment, len(b.segments))
	s.Blocks.Segment = make([]int32, s.Blocks.Len())
	s.Devices = b.devices()
	for i := range b.segments {
		seg := &b.segments[i]
		seg.Stack = table.stack(seg.stack)
		s.Segments[i] = seg.Segment
		if seg.Device < 0 {
			s.Segments[i].Device = len(s.Devices) - 1
		}
		m := &s.Devices[s.Segments[i].Device].Meters
		m.Reserved += seg.Size
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			s.Blocks.Segment[row] = int32(i)
			switch s.Blocks.State[row] {
			case snapshot.Live:
				m.Requested += s.Blocks.Requested[row]
				m.Allocated += s.Blocks.Size[row]
				m.Active += s.Blocks.Size[row]
			case snapshot.Pending:
				m.Active += s.Blocks.Size[row]
			}
		}
	}
	b.checkPlaces(s)
	s.Moment = b.moment(s, table)
	b.history(s, table)
	for _, device := range slices.Sorted(maps.Keys(b.lives)) {
		s.Timelines = append(s.Timelines, b.lives[device].timeline(s, device, b.record.stepEnds(), table))
	}
	for _, device := range slices.Sorted(maps.Keys(b.events)) {
		s.Records = append(s.Records, &b.events[device].Record)
	}
	s.Allocator = b.settings
	s.Notes = b.notes(s)
	return s
}

// sort puts segments by device and address (the CPU, -1, last) and the blocks of each
// by address; PyTorch writes them so.
func (b *builder) sort(s *snapshot.Snapshot) {
	order := func(x, y rawSegment) int {
		return cmp.Or(cmp.Compare(uint(x.Device), uint(y.Device)), cmp.Compare(x.Address, y.Address))
	}
	rows := make([]int32, 0)
	sorted := slices.IsSortedFunc(b.segments, order)
	if !sorted {
		slices.SortStableFunc(b.segments, order)
	}
	for i := range b.segments {
		seg := &b.segments[i]
		own := s.Blocks.Address[seg.FirstBlock : seg.FirstBlock+seg.NumBlocks]
		sorted = sorted && slices.IsSorted(own)
	}
	if sorted {
		return
	}
	for i := range b.segments {
		seg := &b.segments[i]
		first := len(rows)
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			rows = append(rows, int32(row))
		}
		slices.SortFunc(rows[first:], func(x, y int32) int { // a stable sort of a million takes twice as long
			if c := cmp.Compare(s.Blocks.Address[x], s.Blocks.Address[y]); c != 0 {
				return c
			}
			return cmp.Compare(x, y)
		})
		seg.FirstBlock = first
	}
	c := &s.Blocks
	c.Address = reorder(c.Address, rows)
	c.Size = reorder(c.Size, rows)
	c.Requested = reorder(c.Requested, rows)
	c.State = reorder(c.State, rows)
	c.Stack = reorder(c.Stack, rows)
	c.BirthStep = reorder(c.BirthStep, rows)
}

func reorder[T any](column []T, rows []int32) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = column[row]
	}
	return out
}

// devices lists the GPUs 0 … n-1, those included that hold nothing, so that a
// device has the same place in every snapshot of a run; then the CPU, if any.
func (b *builder) devices() []snapshot.Device {
	gpus, cpu := min(b.record.devices, maxDevice+1), false
	for _, seg := range b.segments {
		gpus = max(gpus, seg.Device+1)
		cpu = cpu || seg.Device < 0
	}
	devices := make([]snapshot.Device, 0, gpus+1)
	add := func(kind snapshot.DeviceKind, index int, driver, limit snapshot.Bytes) {
		devices = append(devices, snapshot.Device{
			Kind: kind, Index: index, Limit: limit, Meters: snapshot.Meters{Driver: driver},
		})
	}
	for i := range gpus {
		add(b.kind, i, figure(b.driver, i), figure(b.limit, i))
		d := &devices[i]
		d.Peak, d.Retries, d.OutOfMemory = max(0, figure(b.peak, i)), int64(max(0, figure(b.retries, i))), int64(max(0, figure(b.ooms, i)))
		d.Communicators, d.NCCL = b.groups, max(0, figure(b.nccl, i))
	}
	if cpu {
		add(snapshot.CPU, 0, snapshot.Unknown, snapshot.Unknown)
		if b.pinned {
			devices[len(devices)-1].Name = "pinned host memory"
		}
	}
	return devices
}

// history fills in births, steps and the reach of the record.
func (b *builder) history(s *snapshot.Snapshot, table *stackTable) {
	r := &b.record
	s.History = snapshot.History{Events: r.events, LostFrees: r.lostFrees}
	s.History.Refused = r.refused(table)
	if r.last > 0 {
		s.History.First, s.History.Last = time.UnixMicro(r.first).UTC(), time.UnixMicro(r.last).UTC()
	}
	ends := r.stepEnds()
	if s.Moment != nil {
		s.Mark.Step = snapshot.NoStep // the file's is of the end
		s.History.Events, s.History.Last = s.Moment.Event, s.Moment.Time
		at, _ := slices.BinarySearch(ends, max(b.moments.until, b.moments.passed(s.Moment.Device).time)+1)
		ends = ends[:at]
	}
	if s.Mark.Step == snapshot.NoStep && len(ends) > 0 {
		s.Mark.Step, s.Mark.StepCounted = int64(len(ends)), true
	}
	births, timed := make([]int64, s.Blocks.Len()), r.last > 0
	known := false
	for i, state := range s.Blocks.State {
		if state == snapshot.Free {
			continue
		}
		device := s.Segments[s.Blocks.Segment[i]].Device
		if s.Devices[device].Kind == snapshot.CPU {
			device = -1
		}
		t, ok := r.at(device, s.Blocks.Address[i])
		if b.moments.passed(device) != nil {
			t, ok = b.born[i], b.born[i].time != 0
		}
		if !ok {
			continue
		}
		b.broken.replayed++
		if t.size != uint64(s.Blocks.Requested[i]) {
			b.broken.sizes++
			continue
		}
		if !timed {
			births[i], known = -t.time, true
			continue
		}
		if t.step != snapshot.NoStep && t.step <= b.step {
			s.Blocks.BirthStep[i], b.stepped = t.step, true
		}
		if t.time <= 0 {
			continue
		}
		births[i], known = t.time, true
		if len(ends) > 0 && s.Blocks.BirthStep[i] == snapshot.NoStep {
			step, _ := slices.BinarySearch(ends, t.time)
			s.Blocks.BirthStep[i] = int64(step)
			b.stepped = true
		}
	}
	switch {
	case known && timed:
		s.Blocks.BirthTime = births
	case known && r.sources == 1: // with several devices, their common order is unknown
		s.Blocks.BirthEvent = births
	}
	if !b.stepped {
		s.Blocks.BirthStep = nil
	}
}
