package kineto

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(Decode, data)
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	return totalstest.Unpacked(t, totalstest.Profile(t, name))
}

// rows are the live blocks, with names of functions from inside out.
func rows(s *snapshot.Snapshot) []string {
	var out []string
	for i := range s.Blocks.Len() {
		d := s.Devices[s.Segments[s.Blocks.Segment[i]].Device]
		line := fmt.Sprintf("%s:%d %#x %d", d.Kind, d.Index, s.Blocks.Address[i], int64(s.Blocks.Size[i]))
		for _, f := range s.Stacks.Frames(s.Blocks.Stack[i]) {
			line += " " + f.Function
		}
		out = append(out, line)
	}
	return out
}

// slowEvent is an event as encoding/json reads it.
type slowEvent struct {
	Phase    string          `json:"ph"`
	Category string          `json:"cat"`
	Name     string          `json:"name"`
	Thread   json.RawMessage `json:"tid"`
	Time     float64         `json:"ts"`
	Duration float64         `json:"dur"`
	Args     struct {
		Bytes      int64  `json:"Bytes"`
		Address    uint64 `json:"Addr"`
		DeviceType int32  `json:"Device Type"`
		DeviceID   int32  `json:"Device Id"`
	} `json:"args"`
}

// slow looks at every call for every block.
func slow(t interface{ Fatal(...any) }, data []byte) []string {
	var trace struct {
		Events []slowEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(data, &trace); err != nil {
		t.Fatal(err)
	}
	var memory []slowEvent
	for _, e := range trace.Events {
		if e.Name == "[memory]" {
			memory = append(memory, e)
		}
	}
	slices.SortStableFunc(memory, func(a, b slowEvent) int { return cmp.Compare(a.Time, b.Time) })
	live := make(map[string]slowEvent)
	for _, m := range memory {
		key := fmt.Sprintf("%20d:%20d %20d", m.Args.DeviceType, m.Args.DeviceID, m.Args.Address)
		if delete(live, key); m.Args.Bytes > 0 {
			live[key] = m
		}
	}
	var keys, out []string
	for key := range live {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		m := live[key]
		var around []slowEvent
		for _, e := range trace.Events {
			if e.Phase == "X" && (e.Category == "cpu_op" || e.Category == "python_function") && string(e.Thread) == string(m.Thread) &&
				e.Time <= m.Time && e.Time+e.Duration >= m.Time {
				around = append(around, e)
			}
		}
		slices.SortStableFunc(around, func(a, b slowEvent) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Duration, b.Duration))
		})
		line := fmt.Sprintf("%s:%d %#x %d", deviceKind(m.Args.DeviceType), max(m.Args.DeviceID, 0), m.Args.Address, m.Args.Bytes)
		for _, e := range around {
			line += " " + frameOf(e.Name).Function
		}
		out = append(out, line)
	}
	return out
}

func TestRealTracesReadAsTheSlowReaderReadsThem(t *testing.T) {
	for _, steps := range []int64{2, 6} {
		data := fixture(t, fmt.Sprintf("profiler_%d.json.gz", steps))
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(slow(t, data), rows(s)); d != "" {
			t.Errorf("-slow +fast\n%s", d)
		}
		if !Detect(data[:min(len(data), 4096)]) {
			t.Error("not detected")
		}
		found := false
		for _, site := range s.Sites() {
			frames := s.Stacks.Frames(site.Stack)
			if site.Count != steps || frames[0].Function != "aten::clamp_min" {
				continue
			}
			found = true
			at := slices.IndexFunc(frames, func(f snapshot.Frame) bool { return f.Function == "train" })
			// The line is the call's, not the one in which the function begins.
			if site.Bytes != snapshot.Bytes(steps*32*64*4) || at < 1 || frames[at-1] != (snapshot.Frame{Function: "forward", File: "leak_torch.py", Line: 18}) || frames[at].Line != 25 {
				t.Errorf("%d bytes at %v", site.Bytes, frames)
			}
		}
		if !found {
			t.Errorf("no stack holds the activations of %d steps", steps)
		}
		if year := s.Mark.Time.Year(); year < 2026 || s.History.Last.Sub(s.History.First) > time.Minute {
			t.Errorf("at %v, from %v", s.Mark.Time, s.History.First)
		}
	}
}

// made is a trace of these events.
func made(events ...string) []byte {
	return []byte(`{"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": [` + strings.Join(events, ",\n") +
		`], "baseTimeNanoseconds": 1700000000000000000, "traceName": "x"}`)
}

func ran(thread int, name string, begin, duration float64) string {
	return fmt.Sprintf(`{"ph": "X", "cat": "cpu_op", "name": %q, "pid": 1, "tid": %d, "ts": %g, "dur": %g, "args": {"External id": 1}}`, name, thread, begin, duration)
}

func took(thread int, at float64, address uint64, bytes int64) string {
	return fmt.Sprintf(`{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": %d, "ts": %g, "args": {"Bytes": %d, "Addr": %d, "Device Type": 1, "Device Id": 0}}`, thread, at, bytes, address)
}

func TestDrawnTracesReadAsTheSlowReaderReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []string
		// nest draws calls inside one another, none of equal times: those have no
		// order that anybody could tell.
		var nest func(thread, depth int, from, to float64)
		nest = func(thread, depth int, from, to float64) {
			for range rapid.IntRange(0, 2).Draw(t, "calls") {
				if depth == 0 || to-from < 4 {
					return
				}
				middle := math.Floor((from + to) / 2)
				events = append(events, ran(thread, fmt.Sprintf("op%d", len(events)), from+1, middle-from-2))
				nest(thread, depth-1, from+1, middle-1)
				from = middle
			}
		}
		for thread := range 2 {
			nest(thread, 4, 0, 1000)
		}
		for range rapid.IntRange(1, 12).Draw(t, "memory events") {
			events = append(events, took(rapid.IntRange(0, 1).Draw(t, "thread"), float64(rapid.IntRange(0, 1000).Draw(t, "time"))+0.5,
				rapid.Uint64Range(1, 4).Draw(t, "address"), rapid.SampledFrom([]int64{512, 1024, -512}).Draw(t, "bytes")))
		}
		data := made(rapid.Permutation(events).Draw(t, "order")...)
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		want, got := slow(t, data), rows(s)
		if len(want)+len(got) > 0 && gocmp.Diff(want, got) != "" {
			t.Fatalf("-slow +fast\n%s", gocmp.Diff(want, got))
		}
	})
}

func TestWhatTracesHold(t *testing.T) {
	python := `{"ph": "X", "cat": "python_function", "name": %q, "pid": 1, "tid": 1, "ts": %d, "dur": 100, "args": {"CallFrom": %q}}`
	data := made(
		fmt.Sprintf(python, "/t/train.py(3): outer", 1, "/t/train.py:90"),
		fmt.Sprintf(python, "/t/train.py(20): inner", 2, "/t/train.py:7"),
		fmt.Sprintf(python, "<built-in method zeros of type object at 0x7f0c12>", 3, "/t/train.py:25"),
		took(1, 4, 0x7000, 512), took(1, 5, 0x8000, 256), took(1, 6, 0x8000, -256), took(1, 7, 0x9000, -64),
	)
	s, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []snapshot.Frame{
		{Function: "<built-in method zeros of type object>", Line: -1},
		{Function: "inner", File: "/t/train.py", Line: 25},
		{Function: "outer", File: "/t/train.py", Line: 7},
	}
	if d := gocmp.Diff(want, s.Stacks.Frames(s.Blocks.Stack[0])); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if s.Blocks.Len() != 1 || s.History.LostFrees != 1 || s.History.Events != 4 || s.Blocks.BirthTime[0] != 1700000000000004 {
		t.Errorf("%d blocks, history %+v, births %v", s.Blocks.Len(), s.History, s.Blocks.BirthTime)
	}
	if d := s.Devices[0]; d.Kind != snapshot.CUDA || d.Meters.Allocated != 512 {
		t.Errorf("device %+v", d)
	}
}

func TestBrokenTraces(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"nothing", "", "the file ends in the middle of the snapshot"},
		{"half a trace", string(made(took(1, 1, 1, 1)))[:90], "the file ends in the middle of the snapshot"},
		{"no object", "[]", `'[' where '{' should be: no trace of torch.profiler`},
		{"no list", `{"traceEvents": {}}`, `'{' where '[' should be`},
		{"no JSON", `{"traceEvents": [zebra]}`, "byte 17: 'z' where a value should be"},
		{"no memory events", string(made(ran(1, "op", 1, 1))), "byte 0: the trace has no memory events"},
		{"memory events without addresses, of 2021", string(made(`{"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 1, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 512}}`)), "byte 0: the memory events have no addresses"},
		{"an event without end", `{"traceEvents": [{"name": "` + strings.Repeat("x", maxEvent), "a value of more than 4.00 MiB"},
		{"brackets without end", `{"x": ` + strings.Repeat("[", 1<<20), "the file ends in the middle of the snapshot"},
		{"no commas", `{"traceEvents": [1 2]}`, `byte 19: '2' where ',' should be`},
		{"a key that is a number", `{1: 2, 3}`, `"1" where a text should be`},
		{"more than all memory", string(made(took(1, 1, 1, 1<<60), took(1, 1, 2, 1<<60))), "more than 2^60 bytes are live"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestEventsOfOddTypesArePassedOver(t *testing.T) {
	s, err := decode(made(took(1, 1, 1, 8), `{"cat": "cpu_op", "ph": 7}`, `{"ph": "X", "cat": "cpu_op", "name": "op", "args": []}`, `"cpu_op"`,
		`{"name": "[memory]", "ts": "7"}`, `{"name": "[memory]", "args": {"Bytes": 1.5}}`, `{"name": "[memory]"  "ts": 7}`, `{"name": "of no interest", "ts": "7"}`, `"text"`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Blocks.Len() != 1 || len(s.Notes) != 2 || !strings.HasPrefix(s.Notes[1], "6 events have values of unexpected types") {
		t.Errorf("%d blocks, notes %q", s.Blocks.Len(), s.Notes)
	}
}

// Calls that all begin before the first block and never end are looked at again whenever
// another call has begun.
func TestCallsThatNeverEndAreBounded(t *testing.T) {
	var events []string
	for i := range 8_000 {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"f","tid":1,"ts":%d,"dur":1e9}`, i))
	}
	for i := range 8_000 {
		events = append(events,
			fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"g","tid":1,"ts":%d,"dur":0.5}`, 1_000_000+i),
			fmt.Sprintf(`{"name":"[memory]","tid":1,"ts":%d,"args":{"Bytes":1,"Addr":%d}}`, 1_000_000+i, i))
	}
	if _, err := decode(made(events...)); err == nil || !strings.Contains(err.Error(), "steps in") {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(made(ran(1, "a", 1, 9), ran(1, "b", 2, 3), took(1, 3, 0x7000, 512), took(2, 4, 0x7000, -512), took(1, 5, 0x8000, 64)))
	f.Add(made(`{"ph": "X", "cat": "python_function", "name": "a.py(3): f", "tid": 1, "ts": 1, "dur": 100, "args": {"CallFrom": "a.py:9"}}`, took(1, 3, 1, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		var sum snapshot.Bytes
		for _, size := range s.Blocks.Size {
			if size <= 0 {
				t.Fatalf("a block of %d bytes", size)
			}
			sum += size
		}
		for _, d := range s.Devices {
			sum -= d.Meters.Allocated
		}
		if sum != 0 {
			t.Fatalf("blocks and meters differ by %d bytes", sum)
		}
	})
}

func TestWhatATraceAsksForIsBounded(t *testing.T) {
	const start, end = `{"traceEvents":[`, `{}]}`
	const call = `{"ph":"X","cat":"cpu_op","name":"f","tid":1,"ts":1,"dur":1},`
	const block = `{"ph":"i","name":"[memory]","tid":%d,"ts":9e9,"args":{"Addr":%[1]d,"Bytes":8}},`
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "calls", Before: start, Piece: call, Count: 320_000, After: end, Packed: true},
		totalstest.Flood{Name: "names", Before: start, Piece: strings.Replace(call, `"f"`, `"%06d`+strings.Repeat("f", 2000)+`"`, 1), Count: 20_000, After: end, Packed: true},
		totalstest.Flood{Name: "threads", Before: start, Piece: strings.Replace(call, `"tid":1`, `"tid":"%06d`+strings.Repeat("1", 2000)+`"`, 1), Count: 20_000, After: end, Packed: true})
	nested := strings.Replace(call, `"ts":1,"dur":1`, `"ts":%d,"dur":8e9`, 1)
	several := func(piece string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, piece, i+2)
		}
		return b.String()
	}
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "keys", Before: "{", Piece: `"":0,`, Count: 2_200_000, After: `"":0}`, Packed: true},
		totalstest.Flood{Name: "events", Before: start, Piece: `{},`, Count: 4_600_000, After: end, Packed: true},
		// Calls of one thread that have ended when blocks of others are made.
		totalstest.Flood{Name: "calls of other threads", Before: start + several(nested, 12_000), Piece: block, Count: 5_000, After: end},
		totalstest.Flood{Name: "deep stacks", Before: start, Piece: strings.ReplaceAll(nested, "%d", "%[1]d") +
			`{"ph":"i","name":"[memory]","tid":1,"ts":%[1]d.5,"args":{"Addr":%[1]d,"Bytes":8}},`, Count: 5_500, After: end})
}

// Frames of a name that is called at many places are one frame, and each place has an entry.
func TestPlacesOfCallsAreCharged(t *testing.T) {
	const places = 1_100_000
	in, err := bounded.Open("f", strings.NewReader(""), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := framesOf{t: &trace{in: in, texts: []string{"f"}}, out: totals.New(in, totals.Options{}), known: make(map[[2]int32]knownFrame)}
	for from := int32(0); err == nil && from < places; from++ {
		_, err = f.newFrame(0, from)
	}
	totalstest.Refused(t, err, totalstest.TooMuchMemory)
}
