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
	"github.com/memdiag/memdiag/snapshot/jsoncut"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Detect reports whether a file that unpacks to something that begins with head
// is a trace of torch.profiler.
func Detect(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head, []byte(`"schemaVersion"`)) &&
		(bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"traceEvents"`)))
}

// Decode reads one trace of size bytes. Live blocks are those that its memory events allocate and do not free. Their stacks are the
// operators and, if the trace has them, the Python functions that were running on their thread. Blocks older than the trace are not in
// it. The name is used in errors only; they are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	t := trace{in: in, names: make(map[string]int32), threads: make(map[string]int32), ends: make(map[string][]float64), devices: make(map[device]bool)}
	if err := t.read(); err != nil {
		return nil, err
	}
	if err := in.Finish(); err != nil {
		return nil, err
	}
	if len(t.memory) == 0 {
		err := in.Fail("the trace has no memory events")
		err.Offset = 0
		err.Hint = "profile with torch.profiler.profile(profile_memory=True, with_stack=True); leave out a window in which nothing was allocated"
		return nil, err
	}
	if !slices.ContainsFunc(t.memory, func(m memory) bool { return m.address != 0 }) {
		err := in.Fail("the memory events have no addresses, so that which blocks live is unknown")
		err.Offset = 0
		err.Hint = "PyTorch of 2021 wrote such traces; a newer one writes addresses"
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
	devices map[device]bool
	calls   []call
	memory  []memory
	ends    map[string][]float64 // when steps ended, by the name of their annotation
	process string               // of the first of memory
	odd     int                  // events with values of other types
}

// call is an operator or a function that ran, in microseconds.
type call struct {
	thread     int32
	name       int32
	from       int32 // place in its caller, "train.py:12"; -1 if unknown
	begin, end float64
}

// memory is a block that was allocated, or with negative bytes freed.
type memory struct {
	thread int32
	place  int32 // in the trace
	device
	time    float64
	address uint64
	bytes   int64
}

type device struct{ kind, index int32 }

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

// read reads the members of an object; it returns false if one has a wrong type.
func (e *event) read(object []byte) bool {
	*e = event{}
	return jsoncut.Members(object, func(key, v []byte) bool {
		switch string(key) {
		case "ph":
			return jsoncut.ReadText(v, &e.phase)
		case "cat":
			return jsoncut.ReadText(v, &e.category)
		case "name":
			return jsoncut.ReadText(v, &e.name)
		case "pid":
			e.process = v
		case "tid":
			e.thread = v
		case "ts":
			return jsoncut.ReadFloat(v, &e.time)
		case "dur":
			return jsoncut.ReadFloat(v, &e.duration)
		case "args":
			return jsoncut.IsNull(v) || e.readArgs(v)
		}
		return true
	})
}

func (e *event) readArgs(object []byte) bool {
	a := &e.args
	return jsoncut.Members(object, func(key, v []byte) bool {
		switch string(key) {
		case "Bytes":
			return jsoncut.ReadInt(v, &a.bytes, 64)
		case "Addr":
			return jsoncut.ReadUint(v, &a.address)
		case "Device Type":
			return jsoncut.ReadInt(v, &a.deviceType, 32)
		case "Device Id":
			return jsoncut.ReadInt(v, &a.deviceID, 32)
		case "CallFrom":
			return jsoncut.ReadText(v, &a.callFrom)
		}
		return true
	})
}

// maxEvent bounds one event in bytes: shapes and stacks of an operator take a few
// KiB.
const maxEvent = 4 << 20

// maxDevices bounds the devices of a trace: a machine has some ten.
const maxDevices = 1024

// marks are found in every event that is looked at.
var marks = [...][]byte{[]byte(`"cpu_op"`), []byte(`"python_function"`), []byte(`"[memory]"`), []byte(`"user_annotation"`)}

func (t *trace) read() error {
	s := jsoncut.Scanner{In: t.in, Max: maxEvent, What: "trace of torch.profiler"}
	return s.Object(func(key string) error {
		switch key {
		case "traceEvents":
			return t.events(&s)
		case "baseTimeNanoseconds":
			raw, err := s.Value(true)
			if err == nil && !jsoncut.ReadInt(raw, &t.base, 64) {
				t.odd++
			}
			return err
		}
		return s.Pass()
	})
}

func (t *trace) events(s *jsoncut.Scanner) error {
	var e event
	return s.List(func() error {
		raw, err := s.Value(true)
		if err != nil {
			return err
		}
		const steps = 5
		if err := t.in.Work(steps); err != nil {
			return err
		}
		matters := false
		for _, mark := range marks {
			matters = matters || bytes.Contains(raw, mark)
		}
		if !matters {
			return nil
		}
		const perStep = 4 // bytes that are read again
		if err := t.in.Work(len(raw) / perStep); err != nil {
			return err
		}
		if !e.read(raw) {
			t.odd++
			return nil
		}
		return t.add(&e)
	})
}

func (t *trace) add(e *event) error {
	if e.phase == "X" && e.category == "user_annotation" {
		return t.annotate(e)
	}
	isCall := e.phase == "X" && (e.category == "cpu_op" || e.category == "python_function")
	if !isCall && e.name != "[memory]" {
		return nil
	}
	thread, err := t.thread(string(e.process) + "/" + string(e.thread))
	if err != nil {
		return err
	}
	const entry = 144 // more than a call or a block: sorting wants one slice, which grows
	if err := t.in.Charge(entry); err != nil {
		return err
	}
	if !isCall {
		if len(t.memory) == 0 {
			t.process = string(e.process)
		}
		d := device{e.args.deviceType, e.args.deviceID}
		if t.devices[d] = true; len(t.devices) > maxDevices {
			return t.in.Fail("more than %d devices", maxDevices)
		}
		t.memory = append(t.memory, memory{thread, int32(len(t.memory)), d, e.time, e.args.address, e.args.bytes})
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

// live replays the memory events and returns those whose blocks remain, by device and address. It needs no memory beyond the events,
// but changes their order.
func (t *trace) live() (list []memory, lost int64) {
	at := func(a, b memory) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index), cmp.Compare(a.address, b.address))
	}
	slices.SortFunc(t.memory, func(a, b memory) int {
		return cmp.Or(at(a, b), cmp.Compare(a.time, b.time), cmp.Compare(a.place, b.place))
	})
	list = t.memory[:0]
	open := false // whether the last of the list has the address of the previous event
	for _, m := range t.memory {
		open = open && at(m, list[len(list)-1]) == 0
		switch {
		case m.bytes > 0 && open:
			list[len(list)-1] = m
		case m.bytes > 0:
			list, open = append(list, m), true
		case open:
			list, open = list[:len(list)-1], false
		case m.bytes < 0:
			lost++
		}
	}
	return list, lost
}
