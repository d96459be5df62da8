// Package tracemalloc reads the snapshots that Python's tracemalloc dumps.
package tracemalloc

import (
	"bytes"
	"fmt"
	"io"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Detect reports whether a file, given its unpacked beginning, is such a dump: a pickle of protocol 2 to 5 whose first object is one.
func Detect(head []byte) bool {
	begin := head[:min(len(head), 64)]
	return len(begin) > 2 && begin[0] == byte(opProto) && begin[1] >= 2 && begin[1] <= 5 &&
		bytes.Contains(begin, []byte("tracemalloc")) && bytes.Contains(begin, []byte("Snapshot"))
}

// Decode reads one dump of size bytes as totals by stack. tracemalloc knows files
// and lines, not functions. The name appears in errors only; they are
// *snapshot.FormatError.
//
// A dump is a pickle, and is not run: tuples are reduced to frames, stacks and
// traces as they come, the two classes of a dump are known by name, and any other
// is an error.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m := machine{in: in, out: totals.New(in, opts)}
	if m.device, err = m.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
		return nil, err
	}
	for !m.stopped {
		if err := m.step(); err != nil {
			return nil, err
		}
	}
	if !m.isDump {
		return nil, in.Fail("the pickle holds no snapshot of tracemalloc")
	}
	if err := in.Finish(); err != nil {
		return nil, err
	}
	var notes []string
	if m.cut > 0 {
		notes = append(notes, fmt.Sprintf("%s of %s blocks have stacks that were cut at %d frames; python -X tracemalloc=25 keeps more", snapshot.Grouped(m.cut), snapshot.Grouped(m.traced), m.limit))
	}
	return m.out.Snapshot("tracemalloc", notes...), nil
}

// kind is the type of a value as far as the reader cares.
type kind uint8

const (
	kOther  kind = iota // nothing that is looked at
	kInt                // n
	kText               // strings[n]
	kFrame              // a tuple of file and line, the frame n
	kStack              // a tuple of frames, the stack n
	kEmpty              // the empty tuple: no stack
	kTrace              // traces[n]
	kList               // a list; its items are counted immediately
	kDict               // a dict
	kClass              // the class of a dump or of its traces
	kObject             // an instance of a class
)

type value struct {
	kind kind
	n    int64
}

// trace is one block.
type trace struct {
	size  int64
	stack snapshot.StackID
	cut   bool // the stack was deeper
}

// machine is pickle's stack machine for the instructions that a dump holds.
type machine struct {
	in      *bounded.Input
	out     *totals.Builder
	device  int
	stack   []value
	marks   []int // positions in stack
	memo    bounded.List[value]
	strings bounded.List[string]
	traces  bounded.List[trace]
	frames  []snapshot.FrameID // of the stack that is being made
	limit   int64              // frames per stack; 0 if the dump does not say
	traced  int64              // blocks
	cut     int64              // blocks with deeper stacks
	isDump  bool
	stopped bool
}

// Limits of the machine. Python adds a thousand items at a time, and a stack has
// at most 65,535 frames.
const (
	maxStack = 1 << 18
	maxMarks = 1 << 10
	maxText  = 64 << 10
)

func (m *machine) push(v value) error {
	if len(m.stack) >= maxStack {
		return m.in.Fail("more than %d values are pending", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

// pop removes n values, which must lie above the innermost mark.
func (m *machine) pop(n int) ([]value, error) {
	floor := 0
	if len(m.marks) > 0 {
		floor = m.marks[len(m.marks)-1]
	}
	if len(m.stack)-n < floor {
		return nil, m.in.Fail("an instruction finds no value to work on")
	}
	items := m.stack[len(m.stack)-n:]
	m.stack = m.stack[:len(m.stack)-n]
	return items, nil
}

// popMark removes the values above the innermost mark, and the mark.
func (m *machine) popMark() ([]value, error) {
	n := len(m.marks) - 1
	if n < 0 {
		return nil, m.in.Fail("an instruction finds no mark")
	}
	at := m.marks[n]
	m.marks = m.marks[:n]
	items := m.stack[at:]
	m.stack = m.stack[:at]
	return items, nil
}

// tuple is what a tuple of these items means.
func (m *machine) tuple(items []value) (value, error) {
	switch {
	case len(items) == 0:
		return value{kind: kEmpty}, nil
	case len(items) == 2 && items[0].kind == kText && items[1].kind == kInt:
		line := items[1].n
		if line <= 0 {
			line = -1
		}
		id, err := m.out.Frame(snapshot.Frame{File: m.textOf(items[0]), Line: int(line)})
		return value{kFrame, int64(id)}, err
	case items[0].kind == kFrame:
		m.frames = m.frames[:0]
		for _, v := range items {
			if v.kind != kFrame {
				return value{}, nil
			}
			m.frames = append(m.frames, snapshot.FrameID(v.n))
		}
		id, err := m.out.Stack(m.frames)
		return value{kStack, int64(id)}, err
	case len(items) == 3 || len(items) == 4:
		return m.trace(items)
	}
	return value{}, nil
}

// trace is a tuple of domain, size, stack and, since Python 3.9, the depth that the
// stack really had.
func (m *machine) trace(items []value) (value, error) {
	if items[0].kind != kInt || items[1].kind != kInt || items[2].kind != kStack && items[2].kind != kEmpty {
		return value{}, nil
	}
	t := trace{size: items[1].n, stack: snapshot.StackID(items[2].n)}
	if len(items) == 4 && items[3].kind == kInt {
		t.cut = items[3].n > int64(m.out.Depth(t.stack))
	}
	m.traces.Append(t)
	const entry = 24
	return value{kTrace, int64(m.traces.Len() - 1)}, m.in.Charge(entry)
}

// add counts the items that are added to a list.
func (m *machine) add(to value, items []value) error {
	if to.kind != kList {
		return m.in.Fail("items are added to what is no list")
	}
	for _, v := range items {
		if v.kind != kTrace {
			continue
		}
		t := m.traces.At(int(v.n))
		m.traced++
		if t.cut {
			m.cut++
		}
		if err := m.out.Add(m.device, t.stack, 1, t.size); err != nil {
			return err
		}
	}
	return nil
}

// set reads the items that are added to a dict.
func (m *machine) set(to value, items []value) error {
	if to.kind != kDict || len(items)%2 != 0 {
		return m.in.Fail("keys are set in what is no dict, or lack values")
	}
	for i := 0; i < len(items); i += 2 {
		key, v := items[i], items[i+1]
		if key.kind == kText && v.kind == kInt && m.textOf(key) == "traceback_limit" {
			m.limit = v.n
		}
	}
	return nil
}

// class knows the two classes of a dump; no other is named in one.
func (m *machine) class(module, name string) (value, error) {
	if module != "tracemalloc" || name != "Snapshot" && name != "_Traces" {
		err := m.in.Fail("asks for %.80q; memdiag does not run pickles", module+"."+name)
		err.Hint = "tracemalloc writes no such thing; find out where the file comes from"
		return value{}, err
	}
	m.isDump = m.isDump || name == "Snapshot"
	return value{kind: kClass}, nil
}
