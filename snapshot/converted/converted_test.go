package converted_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/converted"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const good = `{
"schema": "memdiag snapshot",
"schema_version": 1,
"mark": {"step":8,"epoch":2,"phase":"train","rank":1,"producer":"PyTorch 2.15","batch_elements":32,"time":"2026-01-02T03:04:55Z"},
"devices": [
{"kind":"cuda","index":3,"name":"H200","limit_bytes":80000,"meters":{"requested_bytes":900,"allocated_bytes":1024,"active_bytes":1536,"reserved_bytes":4096,"driver_bytes":9000}},
{"kind":"python","index":0,"meters":{"requested_bytes":70,"allocated_bytes":70}}
],
"stacks": [
{"stack_hash":"0000000000000000","frames":[]},
{"stack_hash":"1","frames":[{"function":"f","file":"a.py","line":3},{"function":"main","file":"a.py"}]}
],
"segments": [
{"device":0,"address":"0x7f0000000000","bytes":4096,"stream":7,"pool":"small","private_pool":"p","expandable":true,"stack":1,"blocks":[{"address":"0x7f0000000000","bytes":512,"requested_bytes":500,"state":"live","stack":1,"birth_step":8,"birth_time_us":5,"birth_event":7,"owners":["user","tape"]},{"bytes":512,"requested_bytes":400,"state":"pending","stack":0,"owners":[]},{"bytes":3072,"requested_bytes":0,"state":"free","stack":0}]},
{"device":1,"bytes":70,"stream":0,"pool":"large","stack":0,"blocks":[{"bytes":70,"requested_bytes":70,"state":"live","stack":1,"blocks":5}]}
],
"holders": [
{"stack":1,"kind":"list","path":"__main__.kept","items":3,"items_at_step":5}
],
"sample_period_bytes": 512,
"history": {"events":9,"first":"2026-01-02T03:04:05Z","lost_frees":1,"process":"p"},
"later_key": [{"a": 1}],
"notes": ["a note"]
}
`

func decode(text string) (*snapshot.Snapshot, error) {
	return converted.Decode("x.json", strings.NewReader(text), int64(len(text)), totals.Options{})
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	s, err := decode(good)
	if err != nil {
		t.Fatal(err)
	}
	m := s.Mark
	if m.Step != 8 || m.Epoch != 2 || m.Phase != "train" || m.BatchElements != 32 || m.Time.Second() != 55 || s.Rank != 1 || s.Producer != "PyTorch 2.15" {
		t.Errorf("%+v, rank %d, by %s", m, s.Rank, s.Producer)
	}
	if d := s.Devices[0]; d.Kind != snapshot.CUDA || d.Index != 3 || d.Limit != 80000 || d.Meters != (snapshot.Meters{Requested: 900, Allocated: 1024, Active: 1536, Reserved: 4096, Driver: 9000}) {
		t.Errorf("%+v", d)
	}
	if d := s.Devices[1]; d.Limit != snapshot.Unknown || d.Meters != (snapshot.Meters{Requested: 70, Allocated: 70, Active: 70, Reserved: 70, Driver: snapshot.Unknown}) {
		t.Errorf("%+v", d)
	}
	seg := s.Segments[0]
	if seg.Address != 0x7f0000000000 || seg.Stream != 7 || seg.Pool != snapshot.SmallPool || seg.Private != "p" || !seg.Expandable || seg.NumBlocks != 3 || s.Segments[1].FirstBlock != 3 {
		t.Errorf("%+v", s.Segments)
	}
	b := s.Blocks
	if got := fmt.Sprintf("%d %d %d %d %d %v", b.BirthStep, b.BirthTime, b.BirthEvent, b.Owners, b.Count, b.State); got != "[8 -1 -1 -1] [5 0 0 0] [7 0 0 0] [3 0 0 0] [0 0 0 5] [live pending free live]" {
		t.Error(got)
	}
	if f := s.Stacks.Frames(b.Stack[0]); len(f) != 2 || f[0].Line != 3 || f[1] != (snapshot.Frame{Function: "main", File: "a.py", Line: -1}) {
		t.Errorf("%+v", f)
	}
	if h := s.Holders[0]; h.Path != "__main__.kept" || h.Items != 3 || h.Counted != 5 || h.Stack != b.Stack[0] {
		t.Errorf("%+v", h)
	}
	if s.History.Events != 9 || s.History.Process != "p" || s.History.First.IsZero() || s.SamplePeriod != 512 || len(s.Notes) != 1 {
		t.Errorf("%+v", s.History)
	}
}

func TestARequestForMoreThanItsBlockHasIsNoted(t *testing.T) {
	s, err := decode(strings.Replace(good, `"requested_bytes":500`, `"requested_bytes":5000`, 1))
	if err != nil {
		t.Fatal(err)
	}
	if s.Blocks.Requested[0] != 512 || !strings.HasPrefix(s.Notes[len(s.Notes)-1], "requests for more than their blocks have: 1;") {
		t.Errorf("%v; notes: %q", s.Blocks.Requested[0], s.Notes)
	}
}

func TestWhatMemdiagCannotHaveWrittenIsRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"a later version", `_version": 1`, `_version": 2`, "schema version 2"},
		{"a file that ends early", "\"notes\": [\"a note\"]\n}\n", "", "ends in the middle"},
		{"a file that goes on", "]\n}\n", "]\n}{}", "more after its end"},
		{"a key twice", `"later_key"`, `"segments"`, "twice"},
		{"segments before stacks", `"stacks": [`, `"holders": [], "stacks": [`, "stands before"},
		{"no segments", `"segments": [`, `"parts": [`, `no "segments"`},
		{"a device that is not there", `{"device":1,`, `{"device":2,`, "device 2 of 2"},
		{"a stack that is not there", `"state":"live","stack":1,"blocks":5`, `"state":"live","stack":2,"blocks":5`, "stack 2 of 2"},
		{"a holder of no stack", `{"stack":1,"kind"`, `{"stack":-1,"kind"`, "stack -1 of 2"},
		{"a negative size", `{"bytes":70`, `{"bytes":-70`, "block of -70"},
		{"more than there is", `{"bytes":70`, `{"bytes":1125899906842625`, "block of 1125899906842625"},
		{"a state of its own", `"pending"`, `"waiting"`, `"waiting"`},
		{"an owner of its own", `"tape"`, `"tap"`, "held by"},
		{"a category of its own", `"owners":[]`, `"owners":[],"category":"params"`, `the category "params"`},
		{"a pool of its own", `"small"`, `"tiny"`, `"tiny"`},
		{"a number for an address", `"address":"0x7f0000000000","bytes":512`, `"address":"7","bytes":512`, `address of "7"`},
		{"a count of less than none", `"blocks":5`, `"blocks":-5`, "-5 blocks"},
		{"a text for a number", `"step":8`, `"step":"8"`, "step"},
		{"a step that no training has", `"step":8`, `"step":9007199254740993`, "step of"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("no %s", c.old)
			}
			_, err := decode(text)
			if _, ok := errors.AsType[*snapshot.FormatError](err); !ok || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "x.json") {
				t.Errorf("%v, want %q in one line with the file", err, c.want)
			}
		})
	}
}

func TestASnapshotIsKnownByItsBeginning(t *testing.T) {
	for text, want := range map[string]bool{
		good: true, `{"schema":"memdiag snapshot"`: true, "\n{ \"schema\" :\t\"memdiag snapshot\",": true,
		`{"schema": "memdiag snapshots"`: false, `{"schema_version": 1`: false, `{"segments": []`: false, "": false,
	} {
		if converted.Detect([]byte(text)) != want {
			t.Errorf("%.40q: %v", text, !want)
		}
	}
}

func TestWhatATextMayMakeIsCharged(t *testing.T) {
	for name, piece := range map[string]string{"blocks": `{"state":"free"},`, "frames": "{},", "owners": `{"state":"free","owners":[]},`} {
		list := strings.TrimSuffix(strings.Repeat(piece, 1<<20), ",")
		text := strings.Replace(good, `"blocks":[`, `"blocks":[`+list+",", 1)
		if name == "frames" {
			text = strings.Replace(good, `"frames":[]`, `"frames":[`+list+`]`, 1)
		}
		var packed bytes.Buffer
		packed.WriteString(text)
		_, err := converted.Decode("x.json", bytes.NewReader(packed.Bytes()), int64(packed.Len()), totals.Options{MaxUnpacked: 32 << 20})
		if _, ok := errors.AsType[*snapshot.FormatError](err); !ok {
			t.Errorf("a million %s within 32 MiB: %v", name, err)
		}
	}
}

// TestWhatNoSnapshotHasIsRefusedBeforeItIsMade: 38 MB of keys took 16 s and 360 MB, and a block with
// eight million owners 520 MB.
func TestWhatNoSnapshotHasIsRefusedBeforeItIsMade(t *testing.T) {
	var keys strings.Builder
	for i := range 200 {
		fmt.Fprintf(&keys, `"key_%d": 1, `, i)
	}
	for _, c := range []struct{ name, old, with, want string }{
		{"keys", `"later_key"`, keys.String() + `"later_key"`, "more than 100 keys"},
		{"owners of one block", `["user","tape"]`, `["user"` + strings.Repeat(`,"user"`, 1000) + `]`, "by 7008 bytes of names"},
		{"notes", `["a note"]`, `[""` + strings.Repeat(`,""`, 1<<20) + `]`, "its tables take more memory"},
	} {
		text := strings.Replace(good, c.old, c.with, 1)
		if _, err := decode(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.200v, want %q", c.name, err, c.want)
		}
	}
}

// twin adds up what is live by device and frames, from all of the text at once.
func twin(t *testing.T, text []byte) map[string][3]int64 {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatalf("encoding/json does not read what is read: %v", err)
	}
	var stacks []struct {
		Frames []struct {
			Function, File string
			Line           *int
		}
	}
	var segments []struct {
		Device int
		Blocks []struct {
			Bytes, Requested int64
			Asked            int64 `json:"requested_bytes"`
			State            string
			Stack            int
			Blocks           *int64
		}
	}
	_ = json.Unmarshal(keys["stacks"], &stacks)
	_ = json.Unmarshal(keys["segments"], &segments)
	out := make(map[string][3]int64)
	for _, s := range segments {
		for _, b := range s.Blocks {
			if b.State != "live" {
				continue
			}
			key := fmt.Sprint(s.Device)
			for _, f := range stacks[b.Stack].Frames {
				line := -1
				if f.Line != nil && *f.Line >= 0 && *f.Line < 1<<31 {
					line = *f.Line
				}
				key += fmt.Sprintf("\x00%s\x00%s\x00%d", f.Function, f.File, line)
			}
			n := int64(1)
			if b.Blocks != nil && *b.Blocks > 0 {
				n = *b.Blocks
			}
			sum := out[key]
			out[key] = [3]int64{sum[0] + n, sum[1] + b.Bytes, sum[2] + b.Asked}
		}
	}
	return out
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(strings.ReplaceAll(good, "\n", "")))
	f.Add([]byte(strings.Replace(good, `,"blocks":5`, `,"blocks":0`, 1)))
	f.Add([]byte(`{"schema":"memdiag snapshot","mark":{},"devices":[{}],"stacks":[{}],"segments":[{"pool":"large","blocks":[{"state":"live"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := converted.Decode("x.json", bytes.NewReader(data), int64(len(data)), totals.Options{})
		if err != nil {
			if _, ok := errors.AsType[*snapshot.FormatError](err); !ok || strings.Contains(err.Error(), "\n") {
				t.Fatalf("an error of no file, or of lines: %v", err)
			}
			return
		}
		if data[0] == 0x1f || data[0] == 0x28 || data[0] == 0xef {
			return // compressed, or behind a mark that encoding/json does not know
		}
		got := make(map[string][3]int64) // what has no stack is of several sites
		for _, site := range s.Sites() {
			key := fmt.Sprint(site.Device)
			for _, frame := range s.Stacks.Frames(site.Stack) {
				key += fmt.Sprintf("\x00%s\x00%s\x00%d", frame.Function, frame.File, frame.Line)
			}
			sum := got[key]
			got[key] = [3]int64{sum[0] + site.Count, sum[1] + int64(site.Bytes), sum[2] + int64(site.Requested)}
		}
		if want := twin(t, data); !maps.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
