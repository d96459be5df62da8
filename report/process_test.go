package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// growingProcess is a run whose tensors stay, but for one of unknown origin, while the
// process gathers 1 MiB a step beside them.
func growingProcess(t testing.TB) *diff.Result {
	t.Helper()
	return growingAfter(t, 0)
}

// growingAfter is growingProcess, which gives back so much a third of the way.
func growingAfter(t testing.TB, given snapshot.Bytes) *diff.Result {
	t.Helper()
	stacks := snapshot.NewStacks()
	weights := stacks.InternFrames(weightFrames)
	run := &snapshot.Run{}
	for _, step := range []int64{0, 10, 20, 30, 45, 60, 75, 90, 100} {
		b := newSnapshot(stacks, step, 2*snapshot.MiB)
		b.block(weights, snapshot.Live, snapshot.MiB, snapshot.MiB, 0)
		if step >= 90 {
			b.block(snapshot.NoStack, snapshot.Live, 1024, 696, snapshot.NoStep)
		}
		s := b.done()
		s.Devices[0] = snapshot.Device{Kind: snapshot.CPU, Name: "tensor storages", Limit: snapshot.Unknown, Meters: s.Devices[0].Meters}
		heap := 50*snapshot.MiB + snapshot.Bytes(step)*snapshot.MiB
		if step < 30 {
			heap += given
		}
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Name: "process", Limit: 20 * snapshot.GiB, Meters: snapshot.Meters{
			Requested: heap, Allocated: heap, Active: heap, Reserved: heap, Driver: heap + 300*snapshot.MiB,
		}})
		s.Holders = []snapshot.Holder{{Stack: snapshot.NoStack, Path: "__main__.total_loss", Kind: snapshot.Nodes, Items: 960}}
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Unexplained() == nil || len(r.Findings) != 1 || r.Findings[0].Verdict == diff.Leak {
		t.Fatalf("the process is to grow, and one site, which is no leak: %+v", r.Findings)
	}
	r.Findings[0].Verdict = diff.Inconclusive
	return r
}

func TestTheProcessIsDrawnWhereItGrowsAndNoDeviceDoes(t *testing.T) {
	r := growingProcess(t)
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(c.subtitle, "memory of host:0 process") {
		t.Errorf("it draws %q", c.subtitle)
	}
	grown := c.bands[len(c.bands)-1]
	end, warm := len(c.x)-1, r.Series.WarmUp()
	if grown.name != "beyond recorded stacks" || grown.slope == nil || grown.y[warm] != 0 || grown.y[end] < 85*float64(snapshot.MiB) {
		t.Errorf("the band %q has %v at the end of warm-up and %v at the end, slope %v", grown.name, grown.y[warm], grown.y[end], grown.slope)
	}
	if sum := sumOf(c.bands); sum[end] != float64(150*snapshot.MiB) {
		t.Errorf("the bands end at %v in all, the process at 150 MiB", sum[end])
	}
	// The page draws it first, too.
	views, _ := chartViews(r)
	if len(views) != 2 || !strings.HasPrefix(views[0].About, "memory of host:0") {
		t.Errorf("the page's charts are %+v", views)
	}
	// A leak of a device is what the title says then.
	r.Findings[0].Verdict = diff.Leak
	if c, err = newChart(r, PlotOptions{}, maxPoints); err != nil || !strings.HasPrefix(c.subtitle, "memory of cpu:0") {
		t.Errorf("of a run with a leak it draws %q: %v", c.subtitle, err)
	}
}

// TestAGraphThatLeaksIsDrawnInTheProcess: nodes take no memory of their own device.
func TestAGraphThatLeaksIsDrawnInTheProcess(t *testing.T) {
	r := growingProcess(t)
	rate := r.Unexplained().Rate
	row := *r.Findings[0].Rows[0]
	row.Device = snapshot.Device{Kind: snapshot.Graph}
	r.Findings = []diff.Finding{{Rows: []*diff.Row{&row}, Verdict: diff.Leak, Headline: -1, Rate: rate, Nodes: r.Unexplained()}}
	r.Reserves = nil // the finding has it
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	grown := c.bands[len(c.bands)-1]
	if end := len(c.x) - 1; !strings.HasPrefix(c.subtitle, "memory of host:0") || grown.name != "autograd graph" || grown.y[end] < 85*float64(snapshot.MiB) {
		t.Errorf("%q draws %q up to %v", c.subtitle, grown.name, grown.y[end])
	}
}

// TestItemsThatLeakAreDrawnByTheirHoldersName: their band was labelled as an autograd graph.
func TestItemsThatLeakAreDrawnByTheirHoldersName(t *testing.T) {
	r := growingProcess(t)
	row := *r.Findings[0].Rows[0]
	row.Device = snapshot.Device{Kind: snapshot.Items}
	r.Findings = []diff.Finding{{Rows: []*diff.Row{&row}, Verdict: diff.Leak, Rate: r.Unexplained().Rate, Nodes: r.Unexplained(), Holder: &snapshot.Holder{Path: "threading._active", Kind: "dict"}}}
	r.Reserves = nil // the finding has it
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	if name := c.bands[len(c.bands)-1].name; name != "threading._active" {
		t.Errorf("drawn as %q", name)
	}
}

// TestTheGraphBehindALossListIsDrawnInTheProcess: the slope of 2.9 KiB a step left the picture of storages, 4 B a step, at once.
func TestTheGraphBehindALossListIsDrawnInTheProcess(t *testing.T) {
	r := growingProcess(t)
	f := &r.Findings[0]
	f.Verdict, f.Nodes, f.Rate = diff.Leak, r.Unexplained(), r.Unexplained().Rate
	r.Reserves = nil // the finding has it
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	grown := c.bands[len(c.bands)-1]
	if end := len(c.x) - 1; !strings.HasPrefix(c.subtitle, "memory of host:0") || !strings.HasPrefix(grown.name, "graph behind ") || grown.y[end] < 85*float64(snapshot.MiB) || grown.slope == nil {
		t.Errorf("%q draws %q up to %v", c.subtitle, grown.name, grown.y[end])
	}
	c, err = newChart(r, PlotOptions{Device: "cpu:0"}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range c.bands {
		if b.slope != nil {
			t.Errorf("the storages' %q has the slope of the process, %+v", b.name, b.slope)
		}
	}
}

// TestWhatTheProcessGivesBackIsNoPartOfItsGrowth: the band began at the end of warm-up, and "all else" had what grew since the dip.
func TestWhatTheProcessGivesBackIsNoPartOfItsGrowth(t *testing.T) {
	c, err := newChart(growingAfter(t, 60*snapshot.MiB), PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	grown := c.bands[len(c.bands)-1]
	if end := len(c.x) - 1; grown.name != "beyond recorded stacks" || math.Abs(grown.y[end]-70*float64(snapshot.MiB)) > 1<<16 || grown.y[0] != 0 {
		t.Errorf("%q from %v to %v; want the 70 MiB since step 30", grown.name, grown.y[0], grown.y[end])
	}
}

func TestTheProcessThatGrowsComesBeforeWhatMayLeak(t *testing.T) {
	r := growingProcess(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text":     func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) },
		"Markdown": func(b *bytes.Buffer) error { return Markdown(b, r, TextOptions{}) },
		"page":     func(b *bytes.Buffer) error { return Page(b, r, About{}) },
	} {
		got := string(rendered(t, write))
		// The title has neither.
		holder, other := strings.Index(got, "total"), strings.Index(got, "no stack recorded")
		if holder < 0 || other < 0 || holder > other {
			t.Errorf("%s names the holder at byte %d, and what has no stack at %d", name, holder, other)
		}
	}
	if v := pageView(r, About{}); v.State != "inconclusive" {
		t.Errorf("the page's colour is that of %q", v.State)
	}
}

func TestAPageSaysWhatToDoBeforeALongStack(t *testing.T) {
	page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, pyramidResult(t), About{}) }))
	fix, stack := strings.Index(page, "<dt>Fix"), strings.Index(page, `<ol class="stack"`)
	if fix < 0 || stack < 0 || fix > stack {
		t.Errorf("the fix stands at byte %d, the stack at %d", fix, stack)
	}
}

// TestTheMachinesMemoryHasNoRowsOfAGPUs: it has no streams, no blocks to split and no driver.
func TestTheMachinesMemoryHasNoRowsOfAGPUs(t *testing.T) {
	r := growingProcess(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"diff": func(b *bytes.Buffer) error { return Text(b, r, TextOptions{Width: 1000}) },
		"show": func(b *bytes.Buffer) error { return Show(b, r.Last, TextOptions{Width: 1000}) },
		"page": func(b *bytes.Buffer) error { return Page(b, r, About{}) },
	} {
		got := string(rendered(t, write))
		if at := strings.Index(got, "</style>"); at > 0 {
			got, _, _ = strings.Cut(got[at:], "<script>")
		}
		for _, gpus := range []string{"rest of blocks not split", "a stream still uses it", "libraries, context"} {
			if strings.Contains(got, gpus) {
				t.Errorf("%s says %q", name, gpus)
			}
		}
		if !strings.Contains(got, "RSS") {
			t.Errorf("%s does not name the process's own figure:\n%s", name, got)
		}
	}
	rest := []string{"rest of the process: code, libraries", "rest of the process: small Python objects, code, libraries"}
	for i, what := range rest {
		got := string(rendered(t, func(b *bytes.Buffer) error { return Show(b, r.Last, TextOptions{Width: 1000}) }))
		if !strings.Contains(got, what) {
			t.Errorf("want %q in:\n%s", what, got)
		}
		if i == 0 {
			r.Last.Devices = append(r.Last.Devices, snapshot.Device{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown})
		}
	}
	r.Last.Blocks.Count = make([]int64, r.Last.Blocks.Len())
	if page := string(rendered(t, func(b *bytes.Buffer) error { return Page(b, r, About{}) })); strings.Contains(page, "memory of the process outside") {
		t.Error("the page misses the process's figure, which it shows")
	}
	c, err := newChart(r, PlotOptions{Device: "host:0"}, maxPoints)
	if err != nil || !strings.Contains(c.subtitle, "RSS 450 MiB") {
		t.Errorf("the plot says %q", c.subtitle)
	}
}
