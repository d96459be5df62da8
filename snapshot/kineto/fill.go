package kineto

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// fill makes rows of the blocks that are live at the trace's end. A trace does not show segments, so there is one per device.
func (t *trace) fill(s *snapshot.Snapshot, out *totals.Builder) error {
	first, last := t.memory[0].time, t.memory[0].time
	for _, m := range t.memory {
		first, last = min(first, m.time), max(last, m.time)
	}
	s.Mark.Time = time.UnixMicro(t.micros(last))
	events := int64(len(t.memory))
	live, lost := t.live()
	s.History = snapshot.History{Events: events, First: time.UnixMicro(t.micros(first)), Last: s.Mark.Time, LostFrees: lost, Process: t.process}
	ends := t.stepEnds()
	if done, _ := slices.BinarySearch(ends, last); len(ends) > 0 {
		s.Mark.Step, s.Mark.StepCounted = int64(done), true
		s.Blocks.BirthStep = make([]int64, 0, len(live))
	}
	stacks, err := t.stacksOf(live, out)
	if err != nil {
		return err
	}
	b := &s.Blocks
	n := len(live)
	b.Segment, b.Address, b.State, b.Stack = make([]int32, 0, n), make([]uint64, 0, n), make([]snapshot.State, 0, n), stacks
	b.Size, b.BirthTime = make([]snapshot.Bytes, 0, n), make([]int64, 0, n)
	var sum snapshot.Bytes
	for i, m := range live {
		if i == 0 || m.device != live[i-1].device {
			s.Devices = append(s.Devices, snapshot.Device{
				Kind: deviceKind(m.kind), Index: int(max(m.index, 0)), Limit: snapshot.Unknown, Meters: snapshot.Meters{Driver: snapshot.Unknown},
			})
			s.Segments = append(s.Segments, snapshot.Segment{Device: len(s.Devices) - 1, FirstBlock: i})
		}
		segment := len(s.Segments) - 1
		size := snapshot.Bytes(m.bytes)
		if sum += size; size > 1<<60 || sum > 1<<60 {
			return t.in.Fail("more than 2^60 bytes are live")
		}
		s.Segments[segment].NumBlocks++
		s.Segments[segment].Size += size
		b.Segment = append(b.Segment, int32(segment))
		b.Address = append(b.Address, m.address)
		b.Size = append(b.Size, size)
		b.State = append(b.State, snapshot.Live)
		b.BirthTime = append(b.BirthTime, t.micros(m.time))
		if len(ends) > 0 {
			step, _ := slices.BinarySearch(ends, m.time)
			b.BirthStep = append(b.BirthStep, int64(step))
		}
	}
	b.Requested = slices.Clone(b.Size)
	for i := range s.Segments {
		size := s.Segments[i].Size
		s.Devices[i].Meters = snapshot.Meters{Requested: size, Allocated: size, Active: size, Reserved: size, Driver: snapshot.Unknown}
	}
	s.Notes = append(s.Notes, "blocks that were allocated before the trace began are not in it")
	if t.odd > 0 {
		s.Notes = append(s.Notes, passedOver(t.odd))
	}
	return nil
}

func passedOver(events int) string {
	if events == 1 {
		return "1 event has values of unexpected types and was passed over"
	}
	return fmt.Sprintf("%d events have values of unexpected types and were passed over", events)
}

// micros is a time of the trace in Unix microseconds.
func (t *trace) micros(at float64) int64 { return t.base/1000 + int64(at) }

// deviceKind names the types of device that PyTorch numbers (c10::DeviceType).
func deviceKind(n int32) snapshot.DeviceKind {
	switch n {
	case 0:
		return snapshot.CPU
	case 1:
		return snapshot.CUDA
	case 6:
		return "hip"
	case 12:
		return "xpu"
	case 13:
		return "mps"
	}
	return snapshot.DeviceKind("device type " + strconv.Itoa(int(n)))
}

// stacksOf finds what ran on each block's thread when it was allocated.
func (t *trace) stacksOf(live []memory, out *totals.Builder) ([]snapshot.StackID, error) {
	slices.SortFunc(t.calls, func(a, b call) int {
		// Of calls that begin together, the longer one is outside.
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end))
	})
	order := make([]int, len(live))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(live[a].thread, live[b].thread), cmp.Compare(live[a].time, live[b].time))
	})
	stacks := make([]snapshot.StackID, len(live))
	next := 0
	var running []runningCall // outermost first
	begun := true             // a call has, since the last block
	frames := framesOf{t: t, out: out, known: make(map[[2]int32]knownFrame)}
	for _, i := range order {
		m := &live[i]
		for ; next < len(t.calls); next++ {
			c := &t.calls[next]
			if c.thread > m.thread || c.thread == m.thread && c.begin > m.time {
				break
			}
			for len(running) > 0 && (running[len(running)-1].thread != c.thread || running[len(running)-1].end <= c.begin) {
				running = running[:len(running)-1]
			}
			running, begun = append(running, runningCall{call: c, calledAt: unknown}), true
		}
		if begun || m.thread != frames.thread || m.time > frames.until {
			if err := t.in.Work(len(running)); err != nil {
				return nil, err
			}
			if err := frames.stackAt(m, running); err != nil {
				return nil, err
			}
		}
		stacks[i], begun = frames.stack, false
	}
	return stacks, nil
}

// framesOf makes frames of calls. Many blocks are allocated below the same calls: each
// call is looked up by numbers.
type framesOf struct {
	t     *trace
	out   *totals.Builder
	known map[[2]int32]knownFrame // by a call's name and the place that it was at, or -1
	ids   []snapshot.FrameID

	// The last stack is the stack of its thread's blocks until one of its calls ends or
	// another begins.
	stack  snapshot.StackID
	thread int32
	until  float64
}

// runningCall is a call with its frame, which depends on the line in it that called the next function inwards.
type runningCall struct {
	*call
	frame    knownFrame
	calledAt int32 // -1 for no such place, unknown for no frame yet
}

const unknown = -2

type knownFrame struct {
	id     snapshot.FrameID
	placed bool // whether it is a Python function, which calls from a line
}

// stackAt makes a stack of the running calls that have not ended at that time, as frames, innermost first.
func (f *framesOf) stackAt(m *memory, running []runningCall) error {
	f.ids, f.thread, f.until = f.ids[:0], m.thread, math.Inf(1)
	from := int32(-1) // the line that called the next function inwards
	for i := len(running) - 1; i >= 0; i-- {
		c := &running[i]
		if c.thread != m.thread || c.end < m.time {
			continue
		}
		f.until = min(f.until, c.end)
		if c.calledAt != from {
			frame, ok := f.known[[2]int32{c.name, from}]
			if !ok {
				var err error
				if frame, err = f.newFrame(c.name, from); err != nil {
					return err
				}
			}
			c.frame, c.calledAt = frame, from
		}
		if c.frame.placed {
			from = -1
		}
		if c.from >= 0 {
			from = c.from
		}
		f.ids = append(f.ids, c.frame.id)
	}
	const lookup = 2 // steps
	if err := f.t.in.Work(lookup * len(f.ids)); err != nil {
		return err
	}
	var err error
	f.stack, err = f.out.Stack(f.ids)
	return err
}

// newFrame is the frame for a name, if the next call inwards was made from that line.
func (f *framesOf) newFrame(name, from int32) (knownFrame, error) {
	frame := frameOf(f.t.texts[name])
	placed := frame.Line > 0
	if placed && from >= 0 {
		if file, line, ok := placeOf(f.t.texts[from]); ok && file == frame.File {
			frame.Line = line
		}
	}
	id, err := f.out.Frame(frame)
	if err != nil {
		return knownFrame{}, err
	}
	k := knownFrame{id, placed}
	f.known[[2]int32{name, from}] = k
	const entry = 40
	return k, f.t.in.Charge(entry)
}

// frameOf parses "train.py(12): step", a Python function with its first line. Any other name, such as "aten::relu", is the function as
// it is.
func frameOf(name string) snapshot.Frame {
	if open := strings.LastIndex(name, "): "); open >= 0 {
		head, function := name[:open], name[open+3:]
		if at := strings.LastIndexByte(head, '('); at >= 0 {
			if line, err := strconv.ParseUint(head[at+1:], 10, 31); err == nil && line > 0 {
				return snapshot.Frame{Function: function, File: head[:at], Line: int(line)}
			}
		}
	}
	// "<built-in method tanh of type object at 0x7f0c…>": the address differs from
	// process to process.
	if at := strings.Index(name, " at 0x"); at >= 0 && strings.HasSuffix(name, ">") {
		name = name[:at] + ">"
	}
	return snapshot.Frame{Function: name, Line: -1}
}

// placeOf reads "train.py:12".
func placeOf(from string) (file string, line int, ok bool) {
	at := strings.LastIndexByte(from, ':')
	if at < 0 {
		return "", 0, false
	}
	n, err := strconv.ParseUint(from[at+1:], 10, 31)
	return from[:at], int(n), err == nil && n > 0
}
