package diff

import (
	"math"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

func TestPaceIsGrowthByEvent(t *testing.T) {
	weights := site{stack: "init:1 main:2"}
	for _, c := range []struct {
		name string
		p    program
		want Pace
	}{
		{"a block each step", program{weights, {stack: "keep:8 step:20", every: 1, size: 4096}}, Pace{cause.Steps, 1, 100, 1, 4096, 4096, false}},
		{"a block every seventh step", program{weights, {stack: "keep:8 step:20", every: 7, size: 4096}}, Pace{cause.Steps, 7, 15, 1, 4096, 4096, false}},
		{"two stacks in step", program{weights, {stack: "keep:8 step:20", every: 7, size: 4096}, {stack: "log:8 step:20", every: 7, size: 1024}}, Pace{cause.Steps, 7, 15, 2, 5120, 2560, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(c.p.run(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Pace == nil || *f.Pace != c.want {
				t.Errorf("got %+v, want %+v", f.Pace, c.want)
			}
		})
	}
}

func TestAnInconclusiveFindingSaysWhatDecidesIt(t *testing.T) {
	for _, c := range []struct {
		name string
		p    program
		o    func(*Options)
		want int64
	}{
		{"two births of the four that it takes", program{{stack: "keep:8", every: 45, after: 10}}, nil, 150}, // 100, and half of these 10 snapshots more
		{"blocks that a declared bound leaves", program{{stack: "keep:8", every: 1}}, func(o *Options) { o.Bounds = []snapshot.Bound{{Where: "keep", Blocks: 250}} }, 150},
		{"bytes that a declared bound leaves", program{{stack: "keep:8", every: 1, size: 1024}}, func(o *Options) { o.Bounds = []snapshot.Bound{{Where: "keep", Bytes: 200 * snapshot.KiB}} }, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DefaultOptions()
			if c.o != nil {
				c.o(&o)
			}
			r, err := o.Analyze(c.p.run(100, 10))
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != Inconclusive || f.More.Steps != c.want {
				t.Errorf("got %s, %d more steps: %v; want inconclusive, %d", f.Verdict, f.More.Steps, f.Reasons, c.want)
			}
		})
	}
}

func TestTheSmallestLeakThatARunShowsIsFound(t *testing.T) {
	p := program{{stack: "init:1 main:2", every: 100}, {stack: "keep:8 step:20", every: 25}}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if least := r.Least(); least != (Least{Every: 25, Births: true}) {
		t.Fatalf("%+v; want a block in 25 steps", least)
	}
	if f := r.Findings[0]; f.Verdict != Leak {
		t.Errorf("a block in 25 steps is called %s: %v", f.Verdict, f.Reasons)
	}
	r, err = Analyze(runOf(build(0, grown("x", 1, 512, snapshot.NoStep, 0)...), build(50, grown("x", 2, 512, snapshot.NoStep, 0)...)), ByTrend)
	if err != nil || r.Least() != (Least{}) {
		t.Errorf("two snapshots without births show no leak for certain; got %+v, %v", r.Least(), err)
	}
}

func TestForecastTellsTheTimeAsWell(t *testing.T) {
	run := program{{stack: "init:1 main:2"}, {stack: "keep:8 step:20", every: 1, size: 1024}}.run(100, 10)
	for _, s := range run.Snapshots {
		s.Mark.Time = time.Unix(1000+2*s.Mark.Step, 0)
		s.Devices[0].Limit = 1000 * snapshot.KiB
		s.Devices[0].Meters.Reserved, s.Devices[0].Meters.Allocated = 500*snapshot.KiB, 500*snapshot.KiB
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	f := r.Findings[0].RunsOut
	if f == nil || f.Step != 600 || f.After != 1000*time.Second {
		t.Errorf("got %+v; want step 600, 1000 s after the last snapshot", f)
	}
}

// A burst before a regular pace is in the rate and in no pace.
func TestAPaceThatDoesNotMakeUpTheRateIsIrregular(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks func(t int64) int64
		want   cause.Driver
	}{
		{"one a step", func(t int64) int64 { return t }, cause.Steps},
		{"one a step, and one in each fourth from half-way on", func(t int64) int64 { return min(t, 60) + max(0, t-60)/4 }, cause.Irregular},
	} {
		r, err := Analyze(countedSite(120, c.blocks, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(c.blocks(t)) }), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Pace == nil || f.Pace.Event != c.want {
			t.Errorf("%s: %s, %+v, %+v", c.name, f.Verdict, f.Pace, f.Rate.Bytes)
		}
	}
}

func TestABoundTooFarAwayHasNoForecast(t *testing.T) {
	for bound, want := range map[int64]bool{200: true, 1_000_000: false} {
		o := DefaultOptions()
		o.Bounds = []snapshot.Bound{{Where: "x", Blocks: bound}}
		line := func(t int64) int64 { return t }
		r, err := o.Analyze(countedSite(120, line, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(t) }))
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != Inconclusive || (f.More.Steps > 0) != want {
			t.Errorf("bound %d: %s, decided in %d steps", bound, f.Verdict, f.More.Steps)
		}
	}
}

// TestNothingIsForetoldBeyondAHundredTimesTheRun: of 100 steps, no step after the 10,100th is named.
func TestNothingIsForetoldBeyondAHundredTimesTheRun(t *testing.T) {
	for limit, beyond := range map[snapshot.Bytes]bool{512 * 10_000: false, 512 * 10_500: true, 80 * snapshot.GiB: true} {
		run := program{{stack: "keep:8", every: 1, size: 512}}.run(100, 10)
		for _, s := range run.Snapshots {
			s.Devices[0].Limit = limit
		}
		o := DefaultOptions()
		o.MinShare = 0
		r, err := o.Analyze(run)
		if err != nil {
			t.Fatal(err)
		}
		at := r.Findings[0].RunsOut
		if at == nil || at.Beyond != beyond || beyond && (at.Step != snapshot.NoStep || at.After != 0) || !beyond && (at.Step < 9900 || at.High > 10_100) {
			t.Errorf("a limit of %s: %+v", limit, at)
		}
	}
	run := clocked([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, func(x float64) int { return int(100 * x) })
	for _, s := range run.Snapshots {
		s.Devices[0].Limit = 512 * (1000 + 100*600)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if at := r.Findings[0].RunsOut; at == nil || at.Beyond || math.Abs(at.After.Seconds()-600) > 12 {
		t.Errorf("by the clock: %+v", at)
	}
}
