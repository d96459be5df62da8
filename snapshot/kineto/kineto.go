// Package kineto reads the traces that torch.profiler exports when it profiles
// memory: the blocks that are live at a trace's end.
package kineto

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	Process  json.RawMessage `json:"pid"`
	Thread   json.RawMessage `json:"tid"`
	Time     float64         `json:"ts"`
	Duration float64         `json:"dur"`
	Args     struct {
		Bytes      int64  `json:"Bytes"`
		Address    uint64 `json:"Addr"`
		DeviceType int32  `json:"Device Type"`
		DeviceID   int32  `json:"Device Id"`
		CallFrom   string `json:"CallFrom"`
	} `json:"args"`
}

// maxEvent bounds one event in bytes: shapes and stacks of an operator take a few
// KiB.
const maxEvent = 4 << 20

// rationed ends reading where one value takes more than its ration.
type rationed struct {
	in   *bounded.Input
	left int
}

func (r *rationed) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, r.in.Fail("a value of more than %s", snapshot.Bytes(maxEvent))
	}
	n, err := r.in.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

func (t *trace) read() error {
	ration := &rationed{t.in, maxEvent}
	d := json.NewDecoder(ration)
	// fault makes what the decoder says an error of the file.
	fault := func(err error) error {
		if format, ok := errors.AsType[*snapshot.FormatError](err); ok {
			return format
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return t.in.Cut()
		}
		failed := t.in.Fail("%v", err)
		failed.Offset = d.InputOffset()
		return failed
	}
	value := func(into any) error {
		ration.left = maxEvent
		err := d.Decode(into)
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			t.odd++
			return nil
		}
		if err != nil {
			return fault(err)
		}
		return nil
	}
	delim := func(want json.Delim) error {
		token, err := d.Token()
		if err != nil {
			return fault(err)
		}
		if token != want {
			failed := t.in.Fail("%v where %v should be: no trace of torch.profiler", token, want)
			failed.Offset = d.InputOffset()
			return failed
		}
		return nil
	}
	if err := delim('{'); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return fault(err)
		}
		switch key {
		case "traceEvents":
			if err := delim('['); err != nil {
				return err
			}
			for d.More() {
				var e event
				if err := value(&e); err != nil {
					return err
				}
				if err := t.add(&e); err != nil {
					return err
				}
			}
			err = delim(']')
		case "baseTimeNanoseconds":
			err = value(&t.base)
		default:
			var passed json.RawMessage
			err = value(&passed)
		}
		if err != nil {
			return err
		}
	}
	return delim('}')
}

func (t *trace) add(e *event) error {
	isCall := e.Phase == "X" && (e.Category == "cpu_op" || e.Category == "python_function")
	if !isCall && e.Name != "[memory]" {
		return nil
	}
	thread, err := t.thread(string(e.Process) + "/" + string(e.Thread))
	if err != nil {
		return err
	}
	const entry = 80
	if err := t.in.Charge(entry); err != nil {
		return err
	}
	if !isCall {
		t.memory = append(t.memory, memory{thread, e.Args.DeviceType, e.Args.DeviceID, e.Time, e.Args.Address, e.Args.Bytes})
		return nil
	}
	c := call{thread: thread, from: -1, begin: e.Time, end: e.Time + e.Duration}
	if c.name, err = t.text(e.Name); err != nil {
		return err
	}
	if e.Args.CallFrom != "" {
		if c.from, err = t.text(e.Args.CallFrom); err != nil {
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
