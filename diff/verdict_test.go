package diff

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// countedSite is a run of one site's counters alone: how many blocks it holds after
// each step, and how large they are together. Its two snapshots know no births.
func countedSite(steps int64, blocks func(t int64) int64, size func(t int64) snapshot.Bytes) *snapshot.Run {
	stacks := snapshot.NewStacks()
	id := stacks.InternFrames([]snapshot.Frame{{Function: "x", File: "train.py", Line: 1}})
	series := &snapshot.Series{Stacks: stacks, Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}}, Sites: []snapshot.SeriesSite{{Stack: id}}}
	run := &snapshot.Run{Series: series}
	for t := range steps + 1 {
		mark := snapshot.Mark{Step: t}
		series.Points = append(series.Points, snapshot.Point{Mark: mark, Meters: make([]snapshot.Meters, 1), Sites: []snapshot.SiteCount{{Count: blocks(t), Bytes: size(t)}}})
		if t != 0 && t != steps {
			continue
		}
		s := &snapshot.Snapshot{Mark: mark, Stacks: stacks, Devices: series.Devices, Segments: []snapshot.Segment{{}}}
		for k := range blocks(t) {
			b := &s.Blocks
			each := size(t) / snapshot.Bytes(blocks(t))
			b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(t)<<40+uint64(k)*8)
			b.Size, b.Requested = append(b.Size, each), append(b.Requested, each)
			b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, id)
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

func TestShapesOfGrowthAreToldApart(t *testing.T) {
	one := func(t int64) int64 { return min(t, 1) }
	each := func(f func(t int64) int64) func(t int64) snapshot.Bytes {
		return func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(f(t)) }
	}
	line := func(t int64) int64 { return t }
	for _, c := range []struct {
		name    string
		blocks  func(t int64) int64
		bytes   func(t int64) snapshot.Bytes // nil: 512 a block
		verdict Verdict
		shape   Shape
		says    string
	}{
		{"one block a step", line, nil, Leak, Steady, ""},
		{"one block in twenty steps", func(t int64) int64 { return t / 20 }, nil, Leak, Steady, ""},
		{"a block that is replaced by a larger one", one, each(line), Leak, BytesOnly, "replaced by larger ones"},
		{"a block replaced by a larger one every seventh step", one, each(func(t int64) int64 { return (t + 6) / 7 }), Leak, BytesOnly, "replaced by larger ones"},
		{"a block that is replaced by a larger one, beside which at first the one before was seen", func(t int64) int64 { return min(t, 2-t/61) }, each(line), Leak, BytesOnly, "replaced by larger ones"},
		{"a buffer that is doubled when it is full", one, each(func(t int64) int64 { return 1 << bits.Len64(uint64(t)) }), Leak, Doubling, "constant factor"},
		{"a block that was replaced by a larger one three times", one, each(func(t int64) int64 { return 1 + min(t/30, 3) }), Inconclusive, BytesOnly, ""},
		{"a buffer that was doubled until it was large enough", one, each(func(t int64) int64 { return 1 << bits.Len64(uint64(min(t, 15))) }), Bounded, Steady, ""},
		{"a block of changing size", one, each(func(t int64) int64 { return 50 + t*7919%31 }), Bounded, Steady, ""},
		{"a block that grew and stopped", one, each(func(t int64) int64 { return min(t, 40) }), Bounded, Steady, ""},
		{"what each step adds to grows by each step", func(t int64) int64 { return t * (t + 1) / 20 }, nil, Leak, Quadratic, "more blocks than the last"},
		{"a leak that begins in the middle", func(t int64) int64 { return max(0, t-60) }, nil, Leak, Steady, "flat until step 6"},
		{"a leak that begins above a level", func(t int64) int64 { return 7 + max(0, t-60) }, nil, Leak, Steady, "flat until step 6"},
		{"one stair in the middle", func(t int64) int64 { return 5 + 9*min(1, t/60) }, nil, Bounded, Steady, ""},
		{"a ramp in the middle that ends", func(t int64) int64 { return max(0, min(t, 90)-60) }, nil, Bounded, Steady, ""},
		{"the second of two ramps", func(t int64) int64 { return t % 61 }, nil, Inconclusive, Steady, ""},
		{"the third of three ramps", func(t int64) int64 { return t % 41 }, nil, Bounded, Steady, ""},
		{"a saw-tooth", func(t int64) int64 { return t % 9 }, nil, Bounded, Steady, ""},
		{"a leak below a saw-tooth", func(t int64) int64 { return t + 2*(t%5) }, nil, Leak, Steady, ""},
		{"three stairs", func(t int64) int64 { return min(t/30, 3) }, nil, Inconclusive, Steady, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			bytes := c.bytes
			if bytes == nil {
				bytes = each(c.blocks)
			}
			r, err := Analyze(countedSite(120, c.blocks, bytes), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			got := Finding{Verdict: Bounded}
			if len(r.Findings) > 0 {
				got = r.Findings[0]
			}
			if got.Verdict != c.verdict || got.Shape != c.shape || !strings.Contains(strings.Join(got.Reasons, "; "), c.says) {
				t.Errorf("got %s, %q: %v; want %s, %q, saying %q", got.Verdict, got.Shape, got.Reasons, c.verdict, c.shape, c.says)
			}
		})
	}
}

func TestTheRateOfALateLeakIsThatSinceItBegan(t *testing.T) {
	late := func(t int64) int64 { return max(0, 2*(t-60)) }
	r, err := Analyze(countedSite(120, late, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(late(t)) }), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if rate := r.Findings[0].Rate; rate.Blocks.Value != 2 || rate.Bytes.Value != 1024 {
		t.Errorf("rate %+v; want 2 blocks and 1024 bytes a step", rate)
	}
}

func TestGrowthWithItsInputIsUndecidedAlsoOverFewMarks(t *testing.T) {
	for _, c := range []struct {
		name     string
		elements func(step int64) int64
		want     Verdict
	}{
		{"input that grows as fast explains it", func(step int64) int64 { return 5 * step }, Inconclusive},
		{"input that stays explains nothing", func(int64) int64 { return 500 }, Leak},
		{"input that grows more slowly explains too little", func(step int64) int64 { return 500 + step }, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{{stack: "init:1 main:2"}, {stack: "keep:8 step:20", every: 1}}.run(100, 20)
			for _, s := range run.Snapshots {
				s.Mark.BatchElements = c.elements(s.Mark.Step)
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("got %s: %v; want %s", f.Verdict, f.Reasons, c.want)
			}
		})
	}
}

// TestTheMomentsOfGrowthTell looks at sites that never fall: when they rose tells
// whether they go on.
func TestTheMomentsOfGrowthTell(t *testing.T) {
	at := func(moments ...int64) func(int64) int64 {
		return func(t int64) int64 {
			n := int64(0)
			for _, m := range moments {
				if m <= t {
					n++
				}
			}
			return n
		}
	}
	var coupons []int64 // a cache over keys that are met more and more rarely
	for m := 1.0; m < 400; m *= 1.25 {
		coupons = append(coupons, int64(m)+1)
	}
	cold := []int64{2, 3, 4, 6, 7, 9, 10, 13, 14, 17, 20, 21, 25, 29, 34, 38, 44, 49, 57, 63, 75, 90, 111}
	for _, c := range []struct {
		name  string
		steps int64
		count func(int64) int64
		want  Verdict
		says  string
	}{
		{"a cache that was filled by one entry a step, shortly before the end", 60, func(t int64) int64 { return min(t, 54) }, Bounded, "for the last 6 steps"},
		{"layers that were unfrozen at regular distances, and no more", 400, at(60, 140, 220, 300), Inconclusive, "overdue"},
		{"a leak in eighty steps each, of which the next is not yet due", 400, at(60, 140, 220, 300, 380), Leak, ""},
		{"entries of keys that come ever more rarely", 400, at(coupons...), Inconclusive, "more and more rarely"},
		{"the same in a shorter run", 120, at(cold...), Bounded, "flattens"},
		{"a leak in about twenty steps each", 120, at(19, 41, 58, 82, 97, 118), Leak, ""},
		{"two rises of which the third is not yet due", 60, at(25, 50), Inconclusive, ""},
		{"two rises soon after the start", 60, at(3, 9), Bounded, ""},
		{"bursts of which the last is at the very end", 40, func(t int64) int64 { return 30 * (t / 20) }, Inconclusive, "may be chance"},
		{"many bursts of which the last is at the very end", 200, func(t int64) int64 { return 30 * (t / 20) }, Leak, ""},
		{"one a step, and one in each fourth from half-way on", 120, func(t int64) int64 { return min(t, 60) + max(0, t-60)/4 }, Leak, ""},
		{"what was made in many steps, and then one in each twenty", 240, func(t int64) int64 { return min(t, 10) + t/20 }, Leak, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(countedSite(c.steps, c.count, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(c.count(t)) }), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want || !strings.Contains(strings.Join(f.Reasons, "; "), c.says) {
				t.Errorf("got %s: %v; want %s, saying %q", f.Verdict, f.Reasons, c.want, c.says)
			}
		})
	}
}

func TestEvenBirthsBetweenTwoSnapshotsAreALeak(t *testing.T) {
	var rarer, each []block
	for m := 25.0; m < 119; m = m*1.06 + 0.5 {
		rarer = append(rarer, block{"keep", 512, int64(m)})
	}
	for step := int64(24); step < 120; step++ {
		each = append(each, block{"keep", 512, step})
	}
	for _, c := range []struct {
		name   string
		blocks []block
		before []block
	}{
		{"one in each step", each, nil},
		{"one in each step, beside that of the step under way", each, []block{{"keep", 512, 23}}},
		{"a little more rarely", rarer, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(runOf(build(24, c.before...), build(120, c.blocks...)), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != Leak {
				t.Errorf("got %s: %v; want a leak", f.Verdict, f.Reasons)
			}
		})
	}
}

// TestABlockOfTheMarksOwnStepIsAliveThere: a program that keeps something behind its
// optimizer's call, and then takes a snapshot, has blocks of the mark's own step in it.
func TestABlockOfTheMarksOwnStepIsAliveThere(t *testing.T) {
	var snapshots []*snapshot.Snapshot
	for step := int64(0); step <= 400; step += 10 {
		snapshots = append(snapshots, build(step, grown("keep", int(step+50)/100, 512, 50, 100)...))
	}
	r, err := Analyze(runOf(snapshots...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak {
		t.Errorf("got %s: %v; want a leak", f.Verdict, f.Reasons)
	}
}

// TestGrowthWithItsInputIsUndecided draws lengths that rise under noise, and rounds
// what follows them to whole blocks.
func TestGrowthWithItsInputIsUndecided(t *testing.T) {
	for _, c := range []struct {
		name   string
		count  func(t, length int64) int64 // of 512 bytes
		want   Verdict                     // of every draw
		blocks func(t, length int64) int64 // nil: as many
	}{
		{"a block for each eight tokens", func(_, length int64) int64 { return (length + 7) / 8 }, Inconclusive, nil},
		{"a block for each seven tokens, and twenty besides", func(_, length int64) int64 { return 20 + length/7 }, Inconclusive, nil},
		{"a block for each thirty tokens", func(_, length int64) int64 { return (length + 15) / 30 }, Inconclusive, nil},
		{"a block each step", func(t, _ int64) int64 { return t }, Leak, nil},
		{"a block for each eight tokens, and a leak above", func(t, length int64) int64 { return length/8 + 2*t }, Leak, nil},
		{"a block that is replaced by a larger one", func(t, _ int64) int64 { return t / 15 }, Leak, func(t, _ int64) int64 { return min(t/15, 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(50) {
				if c.blocks == nil {
					c.blocks = c.count
				}
				rng := rand.New(rand.NewPCG(seed, 5))
				lengths := make([]int64, 121)
				for t := range lengths {
					lengths[t] = 64 + int64(t) + rng.Int64N(16)
				}
				blocks := func(t int64) int64 { return c.blocks(t, lengths[t]) }
				run := countedSite(120, blocks, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(c.count(t, lengths[t])) })
				for i := range run.Series.Points {
					run.Series.Points[i].Mark.SequenceLength = lengths[i]
				}
				r, err := Analyze(run, ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				if f := r.Findings[0]; f.Verdict != c.want {
					t.Fatalf("seed %d: got %s: %v; want %s", seed, f.Verdict, f.Reasons, c.want)
				}
			}
		})
	}
}

// TestWhatIsAsLongAsTheInputIsUndecided: the ids of ever longer sentences were called a cache.
func TestWhatIsAsLongAsTheInputIsUndecided(t *testing.T) {
	for anew, want := range map[bool]Verdict{true: Inconclusive, false: Leak} {
		run := countedSite(120, func(t int64) int64 { return min(t, 1) }, func(t int64) snapshot.Bytes { return 512 * snapshot.Bytes(t) })
		if last := run.Snapshots[1]; anew {
			last.Anew = last.Blocks.Stack
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want || anew != strings.Contains(strings.Join(f.Reasons, " "), "with new content") {
			t.Errorf("made anew %v: got %s: %v; want %s", anew, f.Verdict, f.Reasons, want)
		}
	}
}

func TestALongIntervalIsNoJump(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want bool
	}{
		{"half of the steps lie between two marks, and half of the growth", []float64{0, 10, 20, 30, 40, 90, 100}, []float64{0, 10, 20, 30, 40, 92, 100}, true},
		{"one of many intervals carries most", []float64{0, 10, 20, 30, 40, 50, 60}, []float64{0, 4, 8, 12, 52, 56, 60}, false},
		{"a long interval carries nearly all", []float64{0, 10, 20, 30, 40, 90, 100}, []float64{0, 1, 2, 3, 4, 98, 100}, false},
	} {
		if ok, why := Without(nil).KeepsRising(c.x, c.y); ok != c.want {
			t.Errorf("%s: %v, %s", c.name, ok, why)
		}
	}
}

func TestWhatLevelsOffIsNoLeak(t *testing.T) {
	for _, c := range []struct {
		name string
		x    []float64
		held []int
	}{
		{
			"spaCy's cache of words, KiB by seconds",
			[]float64{0.26, 0.68, 0.87, 0.93, 0.99, 1.05, 1.11, 1.16, 1.22, 1.27, 1.33, 1.38, 1.44, 1.49, 1.55, 1.60, 1.66, 1.71, 1.77},
			[]int{0, 369, 533, 966, 1601, 2566, 2877, 3017, 3055, 3106, 3149, 3208, 3244, 3264, 3277, 3281, 3285, 3286, 3288},
		},
		{
			"a sequence up to its full length, and snapshots ever farther apart",
			[]float64{8, 80, 147, 257, 339, 442, 579, 754, 989, 1304, 2149, 2965, 3867},
			[]int{72, 648, 1184, 2064, 2720, 3536, 4632, 6032, 7912, 10432, 17192, 23720, 24008},
		},
	} {
		run := clocked(c.x, func(x float64) int { return c.held[slices.Index(c.x, x)] })
		if verdict, why := verdictOf(t, run); verdict == Leak {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

// TestOrderAloneTellsNoJump: files 1, 2, 3, 10, 11 and 12 of a run whose names tell no steps.
func TestOrderAloneTellsNoJump(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   Verdict
	}{
		{[]int{1, 2, 3, 10, 11, 12}, Inconclusive},
		{[]int{1, 1, 1, 10, 10, 10}, Bounded},
	} {
		var snapshots []*snapshot.Snapshot
		for _, n := range c.counts {
			s := build(0, grown("keep", n, 512, snapshot.NoStep, 0)...)
			s.Mark = snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}
			snapshots = append(snapshots, s)
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != c.want {
			t.Errorf("%v: %s, %v; want %s", c.counts, f.Verdict, f.Reasons, c.want)
		}
	}
}

// TestALineThatIsSeenEverMoreRarelyIsALeak: the marks of a recorder that looked at each step, then waited long, and
// looked again, as it does on a busy machine.
func TestALineThatIsSeenEverMoreRarelyIsALeak(t *testing.T) {
	run := countedSite(200, func(t int64) int64 { return t }, func(t int64) snapshot.Bytes { return 4 * snapshot.Bytes(t) })
	seen := []int64{0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 53, 107, 109, 113, 116, 121, 124, 129, 133, 161, 200}
	run.Series.Points = slices.DeleteFunc(run.Series.Points, func(p snapshot.Point) bool { return !slices.Contains(seen, p.Mark.Step) })
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak {
		t.Errorf("%s: %v", f.Verdict, f.Reasons)
	}
}

func TestBlocksThatTakeNothingAreNoLeak(t *testing.T) {
	all := func(n int) []block { return append(grown("empty", n, 0, 0, 1), block{"weights", 4096, 0}) }
	var many []*snapshot.Snapshot
	for i := range 11 {
		many = append(many, build(int64(10*i), all(10*i)...))
	}
	for name, run := range map[string]*snapshot.Run{
		"over two snapshots": runOf(build(0, all(0)...), build(100, all(100)...)),
		"over a run":         runOf(many...),
	} {
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Verdict != Clean || !strings.Contains(r.Findings[0].Reasons[0], "have no size") {
			t.Errorf("%s: got %+v", name, r.Findings)
		}
	}
	for _, site := range Inspect(build(100, all(100)...)).Sites {
		if site.Verdict == Leak {
			t.Errorf("in one snapshot: got %+v", site)
		}
	}
}

// What a compiled program takes is not reported by each backend of JAX, as on the CPU.
func TestCompiledProgramsAreCountedWhereNothingTellsWhatTheyTake(t *testing.T) {
	programs := func(step int64, n int) *snapshot.Snapshot {
		s := build(step, append(grown("compile", n, 0, 0, 1), grown("weights", 1, 0, 0, 1)...)...)
		for i := range s.Devices {
			s.Devices[i] = snapshot.Device{Kind: snapshot.Executable, Name: "compiled programs"}
		}
		s.Blocks.BirthStep = nil
		return s
	}
	for name, c := range map[string]struct {
		at   func(i int) int
		want Verdict
	}{
		"one for each length":       {func(i int) int { return 1 + i }, Leak},
		"for a few kinds at first":  {func(i int) int { return min(1+i, 4) }, Bounded},
		"in two snapshots, no more": {nil, Inconclusive},
	} {
		run := runOf(programs(0, 1), programs(10, 9))
		if c.at != nil {
			var all []*snapshot.Snapshot
			for i := range 13 {
				all = append(all, programs(int64(10*i), c.at(i)))
			}
			run = runOf(all...)
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Verdict != c.want {
			t.Errorf("%s: got %+v", name, r.Findings)
			continue
		}
		f := r.Findings[0]
		if c.want == Leak && (f.Rate.Blocks.Value != 0.1 || f.Rate.Bytes.Value != 0 || f.Cause == nil || f.Cause.ID != "compiled-anew" || !strings.HasPrefix(f.Reasons[0], "their number rose")) {
			t.Errorf("%s: %v, %v, %v", name, f.Rate, f.Cause, f.Reasons)
		}
	}
}

// What is held at one mark alone has not been replaced.
func TestALeakThatIsSeenAtTheLastMarkAloneIsNoBlockThatGrows(t *testing.T) {
	weights := block{"weights", 4096, 0}
	r, err := Analyze(runOf(build(0, weights), build(50, weights), build(100, append(grown("keep", 25, 512, 0, 4), weights)...)), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Shape != Steady || strings.Contains(strings.Join(f.Reasons, "; "), "replaced") {
		t.Errorf("got %q: %v", f.Shape, f.Reasons)
	}
}

// What gathers until an epoch ends is born as evenly as a leak.
func TestTwoSnapshotsOfOneEpochSayThatItsEndMayFree(t *testing.T) {
	for _, c := range []struct {
		epochs [2]int64
		says   string // "" for nothing
	}{{[2]int64{3, 3}, "all growth is in one epoch"}, {[2]int64{3, 4}, ""}, {[2]int64{snapshot.NoStep, snapshot.NoStep}, "epochs are unknown"}} {
		run := runOf(build(0, block{"weights", 4096, 0}), build(100, append(grown("keep", 25, 512, 0, 4), block{"weights", 4096, 0})...))
		for i, s := range run.Snapshots {
			s.Mark.Epoch = c.epochs[i]
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		why := strings.Join(r.Findings[0].Reasons, "; ")
		if !strings.Contains(why, c.says) || strings.Contains(why, "an epoch's end") != (c.says != "") {
			t.Errorf("epochs %v: %s; want %q", c.epochs, why, c.says)
		}
	}
}

func TestHowOftenItRoseIsToldAsItWasSeen(t *testing.T) {
	for _, c := range []struct {
		r    series.Rises
		want string
	}{
		{series.Rises{At: []float64{3, 5}, Wait: 1, Unit: Step}, "2 times"},
		{series.Rises{At: []float64{3}, Wait: 40, Unit: Step}, "once"},
		{series.Rises{At: []float64{3, 80, 130}, Wait: 40, Unit: Step}, "in 3 stretches of 40 steps"},
		{series.Rises{At: []float64{3, 80, 600}, Wait: 240, Unit: Second}, "in 3 stretches of 4 minutes"},
	} {
		if got := c.r.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// A shuffle buffer is full early, and the recorder's or the program's end takes some memory at the last snapshot.
func TestWhatGoesOnAtTheLastSnapshotAloneIsUndecided(t *testing.T) {
	at := []int64{116, 190, 228, 261, 288, 297, 305, 313, 408, 535, 697, 911, 1190, 1551, 2025, 2639, 3454, 4511, 5879, 7647}
	kib := []int{0, 146, 256, 306, 323, 334, 335, 338, 339, 341, 342, 348, 349, 352, 354, 357, 360, 362, 365, 426}
	for _, c := range []struct {
		without Without
		want    Verdict
	}{{nil, Inconclusive}, {Without{"last-alone", "slows"}, Leak}} {
		var snapshots []*snapshot.Snapshot
		for i, step := range at {
			snapshots = append(snapshots, build(step, append(grown("w", 1, 512, snapshot.NoStep, 0), grown("buffer", kib[i], snapshot.KiB, snapshot.NoStep, 0)...)...))
		}
		if f := firstWithout(t, c.without, snapshots); f.Verdict != c.want {
			t.Errorf("without %v: %s, want %s: %q", c.without, f.Verdict, c.want, f.Reasons)
		}
	}
}

// A dictionary of at most 500 tensors was full for the last sixth of a run, in which its recorder takes one snapshot, and was called a leak.
func TestABufferThatIsFullAtTheEndIsUndecided(t *testing.T) {
	at := []int{252, 328, 434, 568}
	for step := 193; step > 0; step -= 8 {
		at = slices.Insert(at, 0, step)
	}
	for _, c := range []struct {
		name    string
		most    int
		without Without
		want    Verdict
	}{
		{"full for the last sixth", 500, nil, Inconclusive},
		{"without the rule", 500, Without{"tapers"}, Leak},
		{"without a bound", 1000, nil, Leak},
		{"one short", 567, nil, Leak},
	} {
		var snapshots []*snapshot.Snapshot
		for _, step := range at {
			n := min(step, c.most)
			snapshots = append(snapshots, build(int64(step), grown("q", n, 4000, int64(step-n), 1)...))
		}
		if f := firstWithout(t, c.without, snapshots); f.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %q", c.name, f.Verdict, c.want, f.Reasons)
		}
	}
}

// firstWithout is the first finding in these snapshots if parts of the judge are left out.
func firstWithout(t *testing.T, without Without, snapshots []*snapshot.Snapshot) *Finding {
	t.Helper()
	options := DefaultOptions()
	options.Without = without
	r, err := options.Analyze(runOf(snapshots...))
	if err != nil {
		t.Fatal(err)
	}
	return &r.Findings[0]
}
