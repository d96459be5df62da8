// Package kineto reads the traces that torch.profiler exports when it profiles
// memory: the blocks that are live at a trace's end.
package kineto

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Detect reports whether a file that unpacks to something that begins with head
// is a trace of torch.profiler.
func Detect(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head, []byte(`"schemaVersion"`)) &&
		(bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"traceEvents"`)))
}

// Decode reads one trace of size bytes. Live are the blocks that its memory events
// allocate and do not free; their stacks are the operators and, where the trace
// has them, the Python functions that were running on their thread. Blocks that
// are older than the trace are not in it. The name appears in errors only; they
// are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t := trace{in: in, names: make(map[string]int32), threads: make(map[string]int32)}
	if err := t.read(); err != nil {
		return nil, err
	}
	if len(t.memory) == 0 {
		err := in.Fail("the trace has no memory events")
		err.Offset = 0
		err.Hint = "profile with torch.profiler.profile(profile_memory=True, with_stack=True)"
		return nil, err
	}
	if opts.Stacks == nil {
		opts.Stacks = snapshot.NewStacks()
	}
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank,
		Producer: "torch.profiler", Stacks: opts.Stacks,
	}
	if err := t.fill(s, totals.New(in, opts)); err != nil {
		return nil, err
	}
	return s, nil
}

// trace is what of the events is kept.
type trace struct {
	in      *bounded.Input
	base    int64 // of times, in Unix nanoseconds
	names   map[string]int32
	texts   []string
	threads map[string]int32
	calls   []call
	memory  []memory
	odd     int // events with values of other types
}

// call is an operator or a function that ran, in microseconds.
type call struct {
	thread     int32
	name       int32
	from       int32 // place in its caller, "train.py:12"; -1 where unknown
	begin, end float64
}

// memory is a block that was allocated, or with negative bytes freed.
type memory struct {
	thread  int32
	kind    int32
	index   int32
	time    float64
	address uint64
	bytes   int64
}

type event struct {
	phase, category, name string
	process, thread       []byte // as they are written
	time, duration        float64
	args                  struct {
		bytes                int64
		address              uint64
		deviceType, deviceID int32
		callFrom             string
	}
}

// read takes the members of an object; false where one has another type.
func (e *event) read(object []byte) bool {
	*e = event{}
	return members(object, func(key, v []byte) bool {
		switch string(key) {
		case "ph":
			return readText(v, &e.phase)
		case "cat":
			return readText(v, &e.category)
		case "name":
			return readText(v, &e.name)
		case "pid":
			e.process = v
		case "tid":
			e.thread = v
		case "ts":
			return readFloat(v, &e.time)
		case "dur":
			return readFloat(v, &e.duration)
		case "args":
			return isNull(v) || e.readArgs(v)
		}
		return true
	})
}

func (e *event) readArgs(object []byte) bool {
	a := &e.args
	return members(object, func(key, v []byte) bool {
		switch string(key) {
		case "Bytes":
			return readInt(v, &a.bytes, 64)
		case "Addr":
			return readUint(v, &a.address)
		case "Device Type":
			return readInt(v, &a.deviceType, 32)
		case "Device Id":
			return readInt(v, &a.deviceID, 32)
		case "CallFrom":
			return readText(v, &a.callFrom)
		}
		return true
	})
}

// maxEvent bounds one event in bytes: shapes and stacks of an operator take a few
// KiB.
const maxEvent = 4 << 20

// marks are found in every event that is looked at.
var marks = [...][]byte{[]byte(`"cpu_op"`), []byte(`"python_function"`), []byte(`"[memory]"`)}

func (t *trace) read() error {
	s := scanner{in: t.in}
	if err := s.take('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := s.more(first, '}'); err != nil || !more {
			return err
		}
		raw, err := s.value(true)
		if err != nil {
			return err
		}
		key := string(raw)
		if err := s.take(':'); err != nil {
			return err
		}
		switch key {
		case `"traceEvents"`:
			err = t.events(&s)
		case `"baseTimeNanoseconds"`:
			if raw, err = s.value(true); err == nil && !readInt(raw, &t.base, 64) {
				t.odd++
			}
		default:
			_, err = s.value(false)
		}
		if err != nil {
			return err
		}
	}
}

func (t *trace) events(s *scanner) error {
	if err := s.take('['); err != nil {
		return err
	}
	var e event
	for first := true; ; first = false {
		if more, err := s.more(first, ']'); err != nil || !more {
			return err
		}
		raw, err := s.value(true)
		if err != nil {
			return err
		}
		const steps = 8
		if err := t.in.Work(steps); err != nil {
			return err
		}
		matters := false
		for _, mark := range marks {
			matters = matters || bytes.Contains(raw, mark)
		}
		if !matters {
			continue
		}
		if !e.read(raw) {
			t.odd++
			continue
		}
		if err := t.add(&e); err != nil {
			return err
		}
	}
}

func (t *trace) add(e *event) error {
	isCall := e.phase == "X" && (e.category == "cpu_op" || e.category == "python_function")
	if !isCall && e.name != "[memory]" {
		return nil
	}
	thread, err := t.thread(string(e.process) + "/" + string(e.thread))
	if err != nil {
		return err
	}
	const entry = 112 // more than a call or a block: sorting wants one slice, which grows
	if err := t.in.Charge(entry); err != nil {
		return err
	}
	if !isCall {
		t.memory = append(t.memory, memory{thread, e.args.deviceType, e.args.deviceID, e.time, e.args.address, e.args.bytes})
		return nil
	}
	c := call{thread: thread, from: -1, begin: e.time, end: e.time + e.duration}
	if c.name, err = t.text(e.name); err != nil {
		return err
	}
	if e.args.callFrom != "" {
		if c.from, err = t.text(e.args.callFrom); err != nil {
			return err
		}
	}
	t.calls = append(t.calls, c)
	return nil
}

func (t *trace) text(s string) (int32, error) {
	id, ok := t.names[s]
	if ok {
		return id, nil
	}
	id = int32(len(t.texts))
	t.texts = append(t.texts, s)
	t.names[s] = id
	return id, t.in.Charge(96 + len(s))
}

func (t *trace) thread(key string) (int32, error) {
	id, ok := t.threads[key]
	if ok {
		return id, nil
	}
	id = int32(len(t.threads))
	t.threads[key] = id
	return id, t.in.Charge(96 + len(key))
}

// tenant is where a block lies.
type tenant struct {
	kind, index int32
	address     uint64
}

// live replays the memory events and returns those whose blocks stay, in order of
// their devices and addresses.
func (t *trace) live() (list []memory, lost int64) {
	slices.SortStableFunc(t.memory, func(a, b memory) int { return cmp.Compare(a.time, b.time) })
	open := make(map[tenant]memory)
	for _, m := range t.memory {
		key := tenant{m.kind, m.index, m.address}
		switch _, ok := open[key]; {
		case m.bytes > 0:
			open[key] = m
		case ok:
			delete(open, key)
		case m.bytes < 0:
			lost++
		}
	}
	for _, m := range open {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b memory) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index), cmp.Compare(a.address, b.address))
	})
	return list, lost
}
