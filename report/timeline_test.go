package report

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// recorded is a snapshot with a record of one GPU: a block from before it, one that stays, one that is freed, and a failure.
func recorded(function string) (*snapshot.Snapshot, *snapshot.Timeline) {
	stacks := snapshot.NewStacks()
	forward := stacks.Intern([]snapshot.FrameID{stacks.Frame(snapshot.Frame{Function: function, File: "/src/model.py", Line: 31})})
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	line := &snapshot.Timeline{
		Events: 4, BinEvents: 1, Peak: 4 << 20, PeakEvent: 2,
		Lives: []snapshot.Life{{Size: 1 << 20}, {Stack: forward, Size: 2 << 20, Born: 1}, {Stack: forward, Size: 1 << 20, Born: 2, Died: 4}},
		Bins: []snapshot.TimelineBin{
			{Live: 3 << 20, Reserved: 8 << 20, Time: begin}, {Live: 4 << 20, Reserved: 8 << 20, Time: begin.Add(time.Millisecond)},
			{Live: 4 << 20, Reserved: 8 << 20, Time: begin.Add(2 * time.Millisecond)}, {Live: 4 << 20, Reserved: 8 << 20, Time: begin.Add(4 * time.Millisecond)},
		},
		Refused: []snapshot.RefusedAt{{Event: 3, Bytes: 16 << 20}},
		Steps:   []int64{2, 4},
	}
	s := &snapshot.Snapshot{Producer: "PyTorch", Stacks: stacks, Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Timelines: []*snapshot.Timeline{line}}
	return s, line
}

// dataOf is what the script of a timeline's page draws.
func dataOf(t *testing.T, page []byte) (out timelineJSON) {
	t.Helper()
	_, text, found := strings.Cut(string(page), `<script type="application/json" id="timeline">`)
	text, _, ended := strings.Cut(text, "</script>")
	if !found || !ended {
		t.Fatal("no data in the page")
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestATimelinesPageHasItsLives(t *testing.T) {
	s, line := recorded("forward")
	page := rendered(t, func(b *bytes.Buffer) error {
		return TimelinePage(b, s, line, About{Name: "dump.pickle", Version: "v1"})
	})
	for _, want := range []string{
		"<h1>out of memory on cuda:0: 16.0 MiB was asked for, 4.00 MiB live at the peak</h1>",
		"A history of 4 allocator events over 4.00 ms; recorded by PyTorch. 1.00 MiB was live before it, 3.00 MiB is live at its end. Sizes are as the program asked for them.",
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page lacks %q", want)
		}
	}
	data := dataOf(t, page)
	lives, err := base64.StdEncoding.DecodeString(data.Lives)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for len(lives) > 0 {
		v, n := binary.Uvarint(lives)
		got, lives = append(got, v), lives[n:]
	}
	want := []uint64{0, 0, 1 << 20, 1, 1, 0, 2 << 20, 0, 1, 2, 1 << 20, 0}
	if len(got) != len(want) {
		t.Fatalf("lives %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("lives %v, want %v", got, want)
		}
	}
	if data.Sites[0].Label != "/src/model.py:31 in forward" || data.Sites[1].Label != "<no stack recorded>" || data.Bins[3] != [4]int64{4 << 20, 8 << 20, 0, 4000} {
		t.Errorf("%+v", data)
	}
}

// The blocks of a leak are red: colours had no meaning.
func TestATimelinesPageMarksALeak(t *testing.T) {
	s, line := recorded("forward")
	page := func() (timelineJSON, bool) {
		text := rendered(t, func(b *bytes.Buffer) error { return TimelinePage(b, s, line, About{}) })
		return dataOf(t, text), bytes.Contains(text, []byte("Red is what leaks, or may leak, by the age of its live blocks: 1 call site."))
	}
	if data, told := page(); told || data.Sites[0].Leak+data.Sites[1].Leak != "" {
		t.Errorf("%v, %+v", told, data.Sites)
	}
	const steps = 100
	s.Mark.Step = steps
	s.Segments = []snapshot.Segment{{NumBlocks: steps}}
	for i := range steps {
		b := &s.Blocks
		b.Segment, b.Address, b.Size, b.Requested = append(b.Segment, 0), append(b.Address, uint64(i)<<10), append(b.Size, 1024), append(b.Requested, 1024)
		b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, line.Lives[1].Stack), append(b.BirthStep, int64(i))
	}
	if data, told := page(); !told || data.Sites[0].Leak != "leak" || !strings.Contains(data.Sites[0].Label, "model.py:31") || data.Sites[1].Leak != "" {
		t.Errorf("%v, %+v", told, data.Sites)
	}
	line.Lives[0].Size = 1 << 30 // what holds most comes after a leak
	if data, _ := page(); data.Sites[0].Leak != "leak" {
		t.Errorf("%+v", data.Sites)
	}
}

func TestATimelinesPageShowsHostileNamesAsText(t *testing.T) {
	s, line := recorded("</script><script>alert(1)</script>")
	page := string(rendered(t, func(b *bytes.Buffer) error {
		return TimelinePage(b, s, line, About{Name: "<img src=x onerror=alert(1)>", Version: "v1"})
	}))
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") {
		t.Error("a name is markup")
	}
}

func TestAChromeTraceIsBalanced(t *testing.T) {
	s, line := recorded("forward")
	var trace struct {
		Events []traceEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(rendered(t, func(b *bytes.Buffer) error { return ChromeTrace(b, s, line) }), &trace); err != nil {
		t.Fatal(err)
	}
	open, phases := make(map[int]float64), make(map[string]int)
	for _, e := range trace.Events {
		phases[e.Phase]++
		switch e.Phase {
		case "b":
			open[e.ID] = e.Time
		case "e":
			if begun, ok := open[e.ID]; !ok || e.Time < begun {
				t.Errorf("%+v ends what began at %v, %v", e, begun, ok)
			}
			delete(open, e.ID)
		}
	}
	if len(open) > 0 || phases["C"] != 4 || phases["b"] != 3 || phases["B"] != 2 || phases["E"] != 2 || phases["i"] != 1 {
		t.Errorf("%v, still open %v", phases, open)
	}
}
