package report

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"gonum.org/v1/plot"
	"pgregory.net/rapid"
)

// nearLimit is the pyramid run on a device that it nearly fills, the driver's
// figure being near too.
func nearLimit(t testing.TB) *diff.Result {
	r := pyramidResult(t)
	r.Series.Devices[0].Limit = 80 * snapshot.MiB
	for i := range r.Series.Meters[0] {
		r.Series.Meters[0][i].Driver = 72 * snapshot.MiB
	}
	r.Series.Meters[0][0].Driver = snapshot.Unknown
	return r
}

// onePoint has a series of a single mark.
func onePoint(t testing.TB) *diff.Result {
	r := pyramidResult(t)
	r.Series.Marks, r.Series.Meters[0] = r.Series.Marks[:1], r.Series.Meters[0][:1]
	r.Series.Axis.X = r.Series.Axis.X[:1]
	return r
}

// manyLeaks is a run of seven sites that leak, the first four of which have a
// colour of their own.
func manyLeaks(t testing.TB) *diff.Result {
	stacks := snapshot.NewStacks()
	run := &snapshot.Run{}
	for step := int64(0); step <= 40; step += 10 {
		b := newSnapshot(stacks, step, 64*snapshot.MiB)
		for site := range 7 {
			stack := stacks.InternFrames([]snapshot.Frame{{Function: "f", File: "train.py", Line: site + 1}})
			for born := range step {
				b.block(stack, snapshot.Live, snapshot.Bytes(7-site)*8*snapshot.KiB, 0, born)
			}
		}
		run.Snapshots = append(run.Snapshots, b.done())
	}
	r := analyzed(t, run)
	for i := range r.Findings {
		f := &r.Findings[i]
		f.Verdict, f.Rate.Bytes = diff.Leak, trend.Slope{Value: float64(f.Growth().Bytes) / 40}
	}
	return r
}

func TestLeaksWithoutAColourOfTheirOwnAreOneBand(t *testing.T) {
	r := manyLeaks(t)
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.bands); n != 2+len(leakColours) {
		t.Fatalf("%d bands", n)
	}
	rest, more := c.bands[0], c.bands[1]
	if want := []string{"+48.0 KiB/step"}; more.name != "3 more leaks" || !slices.Equal(more.notes, want) || !more.strong {
		t.Errorf("the band says %q %q, want %q", more.name, more.notes, want)
	}
	end := len(c.x) - 1
	if want := 40 * 48.0 * 1024; more.y[end] != want || rest.y[end] != 0 {
		t.Errorf("it ends at %v, want %v; below it are %v", more.y[end], want, rest.y[end])
	}
}

func TestTheAxisOfAFlatRunLeavesRoomAboveIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		result func(testing.TB) *diff.Result
		flat   bool
	}{
		{"what grows fills the height", pyramidResult, false},
		{"what stays does not", onePoint, true},
		{"what rises at first and stays does not", func(t testing.TB) *diff.Result {
			r := noLeak(t)
			for i := range r.Series.Meters[0] {
				r.Series.Meters[0][i].Allocated = snapshot.Bytes(min(i+1, 2)) * snapshot.GiB
			}
			return r
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			chart, err := newChart(c.result(t), PlotOptions{}, maxPoints)
			if err != nil {
				t.Fatal(err)
			}
			most := slices.Max(sumOf(chart.bands))
			if high := chart.top >= 1.6*most; high != c.flat {
				t.Errorf("the axis ends at %v, allocated are %v at most", chart.top, most)
			}
		})
	}
}

// sumOf is the height of the stacked bands at each x.
func sumOf(bands []band) []float64 {
	sum := make([]float64, len(bands[0].y))
	for _, b := range bands {
		for i, v := range b.y {
			sum[i] += v
		}
	}
	return sum
}

func noLeak(t testing.TB) *diff.Result {
	r := pyramidResult(t)
	for i := range r.Findings {
		r.Findings[i].Verdict, r.Findings[i].RunsOut = diff.Bounded, nil
	}
	return r
}

// growsAlone is a run whose reserved memory grows to many times what lives; its
// axis ends just above a tick, where the warm-up has its name.
func growsAlone(t testing.TB) *diff.Result {
	r := noLeak(t)
	meters := r.Series.Meters[0]
	for i := range meters {
		meters[i].Allocated, meters[i].Driver = snapshot.MiB, snapshot.Unknown
		meters[i].Reserved = 142 * snapshot.MiB * snapshot.Bytes(i+1) / snapshot.Bytes(len(meters))
	}
	r.Reserves = []diff.Reserve{{Device: r.Series.Devices[0], Growth: 100 * snapshot.MiB}}
	return r
}

func TestReservedMemoryIsDrawnWhereItGrowsAlone(t *testing.T) {
	r := growsAlone(t)
	for _, c := range []struct {
		name     string
		reserves []diff.Reserve
		drawn    bool
	}{
		{"where it grows alone", r.Reserves, true},
		{"not where it is only much", nil, false},
		{"nor where another device's grows", []diff.Reserve{{Device: snapshot.Device{Kind: "cuda", Index: 7}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.Reserves = c.reserves
			chart, err := newChart(r, PlotOptions{}, maxPoints)
			if err != nil {
				t.Fatal(err)
			}
			if drawn := chart.reserved != nil && chart.top > float64(142*snapshot.MiB); drawn != c.drawn {
				t.Errorf("reserved memory is drawn: %v; the axis ends at %v; %s", drawn, chart.top, chart.subtitle)
			}
		})
	}
}

// TestCountersAreDrawnBetweenSnapshots has the meters of each step, which name no sites,
// beside snapshots of each fifth: a band goes straight from one to the next.
func TestCountersAreDrawnBetweenSnapshots(t *testing.T) {
	run := pyramid()
	first, last := run.Snapshots[0], run.Snapshots[len(run.Snapshots)-1]
	c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: first.Devices}
	for step := first.Mark.Step; step <= last.Mark.Step+3; step++ {
		m := snapshot.Meters{Allocated: 100 * snapshot.MiB, Active: 100 * snapshot.MiB, Reserved: 200 * snapshot.MiB, Driver: snapshot.Unknown}
		if step == 12 {
			m.Allocated, m.Active = 150*snapshot.MiB, 150*snapshot.MiB
		}
		c.Points = append(c.Points, snapshot.Point{Mark: snapshot.Mark{Step: step}, Meters: []snapshot.Meters{m}})
	}
	run.Series = c
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Points {
		c.Points[i].Meters[0].Reserved = c.Points[i].Meters[0].Allocated
	}
	if same, err := newChart(r, PlotOptions{}, maxPoints); err != nil || same.reserved != nil {
		t.Errorf("reserved memory that equals live memory is drawn at %v, %v", same.reserved, err)
	}
	rest, leak := chart.bands[0].y, chart.bands[len(chart.bands)-1].y
	if n := len(c.Points); len(chart.x) != n || chart.x[12] != 12 || chart.reserved[12] != float64(200*snapshot.MiB) {
		t.Fatalf("%d points at %v", n, chart.x)
	}
	if sum := rest[12] + leak[12]; len(chart.bands) != 2 || math.Abs(sum-float64(150*snapshot.MiB)) > 1 {
		t.Errorf("at the peak %v of %d bands", sum, len(chart.bands))
	}
	if at := leak[10] + 0.4*(leak[15]-leak[10]); leak[10] >= leak[15] || math.Abs(leak[12]-at) > 1 {
		t.Errorf("the leak at the steps 10, 12 and 15: %v, %v, %v", leak[10], leak[12], leak[15])
	}
	if end := len(leak) - 1; leak[end] != leak[end-3] || chart.driver[end] != chart.driver[end-3] {
		t.Errorf("behind the last snapshot the leak is %v, the driver's figure %v", leak[end], chart.driver[end])
	}
}

// TestWhatCameAfterTheLastSnapshotIsNotDrawnAsOthers has counters go on where no site is known any more.
func TestWhatCameAfterTheLastSnapshotIsNotDrawnAsOthers(t *testing.T) {
	run := pyramid()
	last := run.Snapshots[len(run.Snapshots)-1]
	c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: last.Devices}
	for step := last.Mark.Step; step <= last.Mark.Step+3; step++ {
		n := snapshot.Bytes(100+10*(step-last.Mark.Step)) * snapshot.MiB
		c.Points = append(c.Points, snapshot.Point{Mark: snapshot.Mark{Step: step}, Meters: []snapshot.Meters{{Allocated: n, Active: n, Reserved: n, Driver: snapshot.Unknown}}})
	}
	run.Series = c
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	chart, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	rest, top := chart.bands[0].y, chart.bands[len(chart.bands)-1]
	if end := len(rest) - 1; top.name != "after the last snapshot" || top.y[end-3] != 0 || top.y[end] != float64(30*snapshot.MiB) || rest[end] != rest[end-3] {
		t.Errorf("%s %v above %v", top.name, top.y, rest)
	}
}

func TestPlotSVG(t *testing.T) {
	for _, c := range []struct {
		name, file string
		result     func(testing.TB) *diff.Result
		options    PlotOptions
	}{
		{"a leak is a band of its own with its name", "leak.plot.svg.golden", pyramidResult, PlotOptions{}},
		{"a limit and a driver's figure nearby are lines", "limit.plot.svg.golden", nearLimit, PlotOptions{}},
		{"one mark is a dot", "point.plot.svg.golden", onePoint, PlotOptions{Title: "one mark", Width: 800, Height: 400}},
		{"without a leak there is one band", "noleak.plot.svg.golden", noLeak, PlotOptions{Device: "cuda:0"}},
		{"reserved memory that grows alone is drawn, and no line goes through a name", "reserved.plot.svg.golden", growsAlone, PlotOptions{}},
		{"leaks beyond the colours are one band", "many.plot.svg.golden", manyLeaks, PlotOptions{}},
		{"hostile names are text", "hostile.plot.svg.golden", attacked, PlotOptions{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.result(t)
			got := rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, c.options) })
			golden(t, c.file, got)
			if n := len(elements(t, got, "script")); n != 0 {
				t.Errorf("%d scripts in a plot", n)
			}
		})
	}
}

func TestPlotRefusesWhatItCannotDraw(t *testing.T) {
	for _, c := range []struct {
		name   string
		format PlotFormat
		result func(testing.TB) *diff.Result
		device string
		want   string
	}{
		{"a series without marks", SVG, func(t testing.TB) *diff.Result {
			r := pyramidResult(t)
			r.Series.Marks = nil
			return r
		}, "", "nothing to plot"},
		{"a device without meters at some marks", SVG, func(t testing.TB) *diff.Result {
			r := pyramidResult(t)
			r.Series.Meters[0] = r.Series.Meters[0][:3]
			return r
		}, "", "cuda:0 is known at 3 of 11 points"},
		{"a run without devices", PNG, func(t testing.TB) *diff.Result { return analyzed(t, empty()) }, "", "nothing to plot"},
		{"an unknown device", PNG, pyramidResult, "cuda:7", `no device "cuda:7"; it has cuda:0`},
		{"an unknown format", "gif", pyramidResult, "", `"gif" is unknown`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Plot(io.Discard, c.format, c.result(t), PlotOptions{Device: c.device})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// The PNG is compared by pixels, not bytes: compression may change with Go, and
// anti-aliasing in the last bit with the processor.
func TestPlotPNG(t *testing.T) {
	draw := func() []byte {
		return rendered(t, func(b *bytes.Buffer) error { return Plot(b, PNG, nearLimit(t), PlotOptions{Width: 1200, Height: 675}) })
	}
	got := draw()
	if !bytes.Equal(got, draw()) {
		t.Error("two drawings of one result differ")
	}
	path := filepath.Join("testdata", "limit.golden.png")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, b := decoded(t, file), decoded(t, got)
	if a.Bounds() != b.Bounds() || a.Bounds().Size() != image.Pt(1200, 675) {
		t.Fatalf("%v, golden %v", b.Bounds(), a.Bounds())
	}
	different := 0
	for y := range 675 {
		for x := range 1200 {
			p, q := color.GrayModel.Convert(a.At(x, y)).(color.Gray), color.GrayModel.Convert(b.At(x, y)).(color.Gray)
			if math.Abs(float64(p.Y)-float64(q.Y)) > 16 {
				different++
			}
		}
	}
	if different > 1200*675/1000 {
		t.Errorf("%d pixels differ from %s; if that is wanted, run go test ./report -update", different, path)
	}
}

func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestByteTicks(t *testing.T) {
	for _, c := range []struct {
		name string
		high float64
		want string
	}{
		{"nothing", 1, "0 1 B"},
		{"mebibytes", 49 * 1 << 20, "0 10 MiB 20 MiB 30 MiB 40 MiB"},
		{"just above a unit has fractions", 1.2 * (1 << 30), "0 0.2 GiB 0.4 GiB 0.6 GiB 0.8 GiB 1 GiB 1.2 GiB"},
		{"tebibytes", 3 * (1 << 40), "0 0.5 TiB 1 TiB 1.5 TiB 2 TiB 2.5 TiB 3 TiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var labels []string
			for _, tick := range (byteTicks{}).Ticks(0, c.high) {
				labels = append(labels, tick.Label)
			}
			if got := strings.Join(labels, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// The loops over ticks used to run for ever where a step was lost in the rounding
// of the axis' figures.
func TestTicksAreFewWhateverTheAxis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(0, math.MaxInt64).Draw(t, "low")
		high := low + rapid.Float64Range(0, math.MaxInt64).Draw(t, "width")
		for name, ticker := range map[string]plot.Ticker{"steps": stepTicks{}, "bytes": byteTicks{}} {
			ticks := ticker.Ticks(low, high)
			for i, tick := range ticks {
				if tick.Value < low || tick.Value > high*(1+1e-8) || i > 0 && tick.Value <= ticks[i-1].Value {
					t.Fatalf("%s: %v is out of place in %v to %v", name, tick.Value, low, high)
				}
				if tick.Label[0] == '-' {
					t.Fatalf("%s: %v is labelled %q", name, tick.Value, tick.Label)
				}
			}
			if len(ticks) > maxTicks {
				t.Fatalf("%s: %d ticks", name, len(ticks))
			}
		}
	})
}

func TestPlotOfTheLargestSteps(t *testing.T) {
	for name, gap := range map[string]int64{"neighbours": 1, "far apart": math.MaxInt64 / 20} {
		t.Run(name, func(t *testing.T) {
			r := pyramidResult(t)
			n := len(r.Series.Marks)
			for i := range r.Series.Marks {
				r.Series.Marks[i].Step = math.MaxInt64 - int64(n-1-i)*gap
				r.Series.Axis.X[i] = float64(r.Series.Marks[i].Step)
			}
			text := string(rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }))
			if !strings.Contains(text, "to 9,223,372,036,854,775,807") || strings.Contains(text, "NaN") {
				t.Error("the picture does not span the steps to the last")
			}
		})
	}
}

func TestThinnedKeepsThePeak(t *testing.T) {
	meters := make([]snapshot.Meters, 10_000)
	meters[7777].Allocated = 5
	keep := thinned(meters, 100)
	if len(keep) != 100 {
		t.Fatalf("%d marks, want 100", len(keep))
	}
	for i, at := range keep {
		if i > 0 && at <= keep[i-1] {
			t.Fatalf("mark %d does not follow %d", at, keep[i-1])
		}
		if at == 7777 {
			return
		}
	}
	t.Error("the peak is lost")
}

func TestNamesBesideAPlotCanBeRead(t *testing.T) {
	for _, c := range append(append(append([]color.NRGBA{}, leakColours[:]...), siteColours[:]...), moreColour, restLine, driverLine) {
		if contrast := 1.05 / (luminance(darker(c)) + 0.05); contrast < 4.5 {
			t.Errorf("%v has a contrast of %.2f on white", c, contrast)
		}
	}
	if l := luminance(rgb(0xffffff)); l < 0.999 || l > 1.001 {
		t.Errorf("white has a luminance of %v", l)
	}
}

// TestASlopeCoversNothing: its interval used to be a grey area, which of a few marks was half of
// the picture.
func TestASlopeCoversNothing(t *testing.T) {
	draw := func(low, high float64) string {
		r := pyramidResult(t)
		r.Findings[0].Rate.Bytes.Low, r.Findings[0].Rate.Bytes.High = low, high
		return string(rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }))
	}
	const fitted, bounds = `stroke-dasharray:3,2"`, `stroke-dasharray:0.75,2"`
	exact, wide, zero := draw(512*1024, 512*1024), draw(1024, 1<<20), draw(-1024, 1<<20)
	if strings.Count(wide, bounds) != 2 || !strings.Contains(wide, fitted) || strings.Count(wide, "fill:#000000") > strings.Count(exact, "fill:#000000") {
		t.Errorf("a wide interval has %d lines, and fills of its own", strings.Count(wide, bounds))
	}
	if strings.Contains(zero, fitted) || strings.Contains(zero, bounds) {
		t.Error("a slope that may be zero is drawn")
	}
}

func TestALeakTooThinToBeSeenIsDrawnAboveWhatStays(t *testing.T) {
	r := pyramidResult(t)
	for i := range r.Series.Meters[0] {
		r.Series.Meters[0][i].Allocated += 20 * snapshot.GiB
		r.Series.Meters[0][i].Reserved += 20 * snapshot.GiB
	}
	c, err := newChart(r, PlotOptions{}, maxPoints)
	if err != nil {
		t.Fatal(err)
	}
	if c.top > float64(100*snapshot.MiB) || c.reserved != nil || c.bands[0].name != "all else beyond 20.0 GiB" || !strings.Contains(c.subtitle, "off the chart: 20.0 GiB that it holds all along") {
		t.Errorf("the axis ends at %v, the rest is %q: %s", c.top, c.bands[0].name, c.subtitle)
	}
	// What moves as much is drawn whole, and so is one mark.
	for name, r := range map[string]*diff.Result{"a leak that is seen": pyramidResult(t), "one mark": onePoint(t)} {
		if c, err := newChart(r, PlotOptions{}, maxPoints); err != nil || strings.Contains(c.subtitle, "all along") {
			t.Errorf("%s: %s %v", name, c.subtitle, err)
		}
	}
}

// TestTextOfAPictureIsAsWideAsItWasMeasured: in a wider font, where Liberation Sans and Arial are missing, the subtitle ran out of
// the picture and the titles of a sheet into each other.
func TestTextOfAPictureIsAsWideAsItWasMeasured(t *testing.T) {
	r := pyramidResult(t)
	got := string(rendered(t, func(b *bytes.Buffer) error { return Plot(b, SVG, r, PlotOptions{}) }))
	if texts, measured := strings.Count(got, "<text "), strings.Count(got, `<text textLength="`); texts == 0 || measured != texts {
		t.Errorf("%d of %d texts have a width", measured, texts)
	}
}
