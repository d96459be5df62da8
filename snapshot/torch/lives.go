package torch

import (
	"cmp"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

const (
	// mostLives is how many lives of a device are kept one by one; a page with that many has 3 MB.
	mostLives = 120_000
	// mostBins is how many stretches a record is cut into at most: more than a screen has columns.
	mostBins = 4096
	// mostRefused is how many failed requests are kept.
	mostRefused = 100
)

// lives follows the events of one device and stores when each block was allocated and freed. Its memory depends on the blocks that are
// live at the same time. From a long record, only the lives with the most bytes × events are kept, and the rest is summed by bins.
//
// Sizes are those of the events, and a block lives until its free_completed, as in PyTorch's own viewer (_memory_viz.py).
type lives struct {
	events     int64
	grown      int64 // bytes live now, minus those live where the record begins
	reserved   int64 // the same for reserved bytes
	best       int64 // of grown
	bestAt     int64
	open       table[life]
	closed     []life
	least      float64 // of the area of a life that is kept
	folded     int64   // lives that are not
	foldedBase int64   // their bytes that were live where the record begins
	before     int64   // bytes of blocks that are live where the record begins and freed in it
	bins       []bin
	width      int64 // events a bin
	refused    []snapshot.RefusedAt
}

// life is a snapshot.Life before its stack is known.
type life struct {
	address    uint64
	size       uint64
	stack      uint32 // a list in symbols or, if known from the end only, a stack in the snapshot's table
	atEnd      bool   // whether it is live at the end without an event in the record
	born, died int64
}

// bin is a stretch of the record.
type bin struct {
	live, reserved int64 // at most, of grown and of reserved
	folded         int64 // by how much that grows in it
	time           int64 // of its first event
}

// lifeCost is the memory of an open life in bytes, including the garbage of growing.
const lifeCost = 2 * 48

func newLives() *lives {
	return &lives{open: newTable[life](), width: 1}
}

func (l *lives) bytes() int64 { return lifeCost * int64(len(l.open.keys)) }

// add follows one event.
func (l *lives) add(t int64, o *object) {
	l.events++
	b := l.binOf(l.events)
	if b.time == 0 {
		b.time = t
	}
	if !o.has(enAction) {
		return
	}
	address, size := o.values[enAddr], o.values[enSize]
	known := o.has(enAddr) && address <= maxAddress && size <= maxBytes
	switch keyword(o.values[enAction]) {
	case kwAlloc:
		if known && l.grown < maxTotal {
			l.alloc(life{address: address, size: size, stack: uint32(o.values[enStack]), born: l.events})
		}
	case kwFreeCompleted:
		if known {
			l.free(address, size)
		}
	case kwSegmentAlloc, kwSegmentMap:
		if known && l.reserved < maxTotal {
			l.reserved += int64(size)
		}
	case kwSegmentFree, kwSegmentUnmap:
		if known && l.reserved > -maxTotal {
			l.reserved -= int64(size)
		}
	case kwOOM:
		if len(l.refused) < mostRefused {
			l.refused = append(l.refused, snapshot.RefusedAt{Event: l.events, Bytes: snapshot.Bytes(min(size, maxBytes))})
		}
	}
	b.live, b.reserved = max(b.live, l.grown), max(b.reserved, l.reserved)
}

func (l *lives) alloc(n life) {
	at := l.open.put(n.address)
	if at.born != 0 { // its free was not recorded
		l.grown -= int64(at.size)
		l.end(*at)
	}
	*at = n
	if l.grown += int64(n.size); l.grown > l.best {
		l.best, l.bestAt = l.grown, l.events
	}
}

func (l *lives) free(address, size uint64) {
	n := life{address: address, size: size}
	if i := l.open.find(address); l.open.keys[i] != 0 {
		n = l.open.values[i]
		l.open.remove(i)
	} else if l.before > maxTotal {
		return
	} else {
		l.before += int64(size)
	}
	l.grown -= int64(n.size)
	l.end(n)
}

// end takes a life whose block is free from this event on.
func (l *lives) end(n life) {
	n.died = l.events
	if n.area(l.events) < l.least {
		l.fold(n)
		return
	}
	l.closed = append(l.closed, n)
	if len(l.closed) >= 2*mostLives {
		l.closed = l.keep(l.closed, mostLives)
	}
}

// area is how many bytes a life holds for how many events.
func (n life) area(events int64) float64 {
	died := n.died
	if died == 0 {
		died = events + 1
	}
	return float64(n.size) * float64(died-n.born)
}

// keep returns the most lives of the largest areas, and folds the rest.
func (l *lives) keep(all []life, most int) []life {
	if len(all) <= most {
		return all
	}
	slices.SortFunc(all, func(x, y life) int { return cmp.Compare(y.area(l.events), x.area(l.events)) })
	l.least = max(l.least, all[most-1].area(l.events))
	for _, n := range all[most:] {
		l.fold(n)
	}
	return all[:most]
}

// fold adds a life to the bins alone.
func (l *lives) fold(n life) {
	l.folded++
	if n.born == 0 {
		l.foldedBase += int64(n.size)
	} else {
		l.binOf(n.born).folded += int64(n.size)
	}
	if n.died != 0 {
		l.binOf(n.died).folded -= int64(n.size)
	}
}

// binOf is the bin of an event, which is at most the newest.
func (l *lives) binOf(event int64) *bin {
	for (event-1)/l.width >= mostBins {
		l.widen()
	}
	i := int((event - 1) / l.width)
	for len(l.bins) <= i {
		l.bins = append(l.bins, bin{live: l.grown, reserved: l.reserved})
	}
	return &l.bins[i]
}

// widen makes a bin of each two.
func (l *lives) widen() {
	half := l.bins[:0]
	for i := 0; i < len(l.bins); i += 2 {
		b := l.bins[i]
		if i+1 < len(l.bins) {
			next := l.bins[i+1]
			b.live, b.reserved, b.folded, b.time = max(b.live, next.live), max(b.reserved, next.reserved), b.folded+next.folded, cmp.Or(b.time, next.time)
		}
		half = append(half, b)
	}
	l.bins, l.width = half, 2*l.width
}

// timeline ends the record with the blocks that are live at its end, rows of s on one device.
func (l *lives) timeline(s *snapshot.Snapshot, device int, ends []int64, table *stackTable) *snapshot.Timeline {
	out := &snapshot.Timeline{Device: device, Events: l.events, BinEvents: l.width, PeakEvent: l.bestAt, Refused: l.refused}
	base := l.before
	all := l.closed
	for _, seg := range s.Segments {
		if seg.Device != device {
			continue
		}
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			if s.Blocks.State[row] == snapshot.Free {
				continue
			}
			address := s.Blocks.Address[row]
			if address <= maxAddress && l.open.keys[l.open.find(address)] != 0 {
				continue // it is in the record
			}
			base += int64(s.Blocks.Requested[row])
			all = append(all, life{size: uint64(s.Blocks.Requested[row]), stack: uint32(s.Blocks.Stack[row]), atEnd: true})
		}
	}
	for i, key := range l.open.keys {
		if key != 0 {
			all = append(all, l.open.values[i])
		}
	}
	l.open = newTable[life]()
	all = l.keep(all, mostLives)
	slices.SortStableFunc(all, func(x, y life) int { return cmp.Compare(x.born, y.born) })
	out.Lives = make([]snapshot.Life, len(all))
	for i, n := range all {
		stack := snapshot.StackID(n.stack)
		if !n.atEnd {
			stack = table.stack(n.stack)
		}
		out.Lives[i] = snapshot.Life{Stack: stack, Size: snapshot.Bytes(n.size), Born: n.born, Died: n.died}
	}
	out.Folded = l.folded
	out.Peak = snapshot.Bytes(base + l.best)
	reserved := int64(s.Devices[device].Meters.Reserved) - l.reserved
	folded := l.foldedBase
	out.Bins = make([]snapshot.TimelineBin, len(l.bins))
	for i, b := range l.bins {
		folded += b.folded
		out.Bins[i] = snapshot.TimelineBin{Live: snapshot.Bytes(base + b.live), Reserved: snapshot.Bytes(max(reserved+b.reserved, 0)), Folded: snapshot.Bytes(max(folded, 0))}
		if b.time > 0 {
			out.Bins[i].Time = time.UnixMicro(b.time).UTC()
		}
	}
	out.Steps = l.placesOf(ends)
	return out
}

// placesOf are the last events of steps that ended at these times. Times are known to a bin; within it events are taken to be evenly
// spread.
func (l *lives) placesOf(ends []int64) []int64 {
	var out []int64
	for _, end := range ends {
		i, _ := slices.BinarySearchFunc(l.bins, end+1, func(b bin, t int64) int { return cmp.Compare(b.time, t) })
		if i == 0 {
			continue // before the record
		}
		b := l.bins[i-1]
		place := int64(i) * l.width
		if i < len(l.bins) && l.bins[i].time > b.time {
			share := float64(end-b.time) / float64(l.bins[i].time-b.time)
			place = int64(i-1)*l.width + int64(share*float64(l.width)) + 1
		}
		out = append(out, min(place, l.events))
	}
	return out
}
