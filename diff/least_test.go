package diff

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// leakEach is a run of so many steps with a snapshot in each so many, and a leak of a
// block in each so many steps from one on.
func leakEach(length, snapshots, every, from int64, births bool) *snapshot.Run {
	run := runOf()
	for step := int64(0); step <= length; step++ {
		if step%snapshots != 0 && step != length {
			continue
		}
		var blocks []block
		for born := from; born < step; born += every {
			blocks = append(blocks, block{"keep", 512, born})
		}
		s := build(step, blocks...)
		if !births {
			s.Blocks.BirthStep = nil
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// TestTheLeastLeakOfARunIsFound makes the leak that a run is said to show at least,
// whenever it begins.
func TestTheLeastLeakOfARunIsFound(t *testing.T) {
	last := int64(200)
	if testing.Short() {
		last = 40
	}
	for length := int64(5); length <= last; length += 1 + length/25 {
		for _, snapshots := range []int64{1, 2, 10, 20, length} {
			for _, births := range []bool{true, false} {
				r, err := Analyze(leakEach(length, min(snapshots, length), 1, 0, births), ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				least := r.Least()
				if least.Births && least.Every == 0 && length >= 9 {
					t.Errorf("%d steps, a snapshot each %d: %+v shows none", length, snapshots, least)
				}
				for from := range int64(least.Every) {
					r, err := Analyze(leakEach(length, min(snapshots, length), int64(least.Every), from, births), ByTrend)
					if err != nil {
						t.Fatal(err)
					}
					if r.Leaks() == 0 {
						t.Errorf("%d steps, a snapshot each %d, births known: %v: %+v; from step %d it is %v", length, snapshots, births, least, from, r.Findings)
					}
				}
			}
		}
	}
}

// TestTheLeastLeakOfAShortRunIsFound holds what a run of a few steps is said to show
// against a leak of a block in each step.
func TestTheLeastLeakOfAShortRunIsFound(t *testing.T) {
	for length := int64(1); length <= 20; length++ {
		for _, every := range []int64{1, 2, length} {
			all := runOf()
			for step := int64(0); step <= length; step++ {
				if step%every == 0 || step == length {
					all.Snapshots = append(all.Snapshots, build(step, grown("keep", int(step), 512, 0, 1)...))
				}
			}
			r, err := Analyze(all, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if least := r.Least(); (least.Every > 0) != (r.Leaks() > 0) || least.Every > float64(length) {
				t.Errorf("%d steps, a snapshot each %d: %+v; a block in each is called %s: %v", length, every, least, r.Findings[0].Verdict, r.Findings[0].Reasons)
			}
		}
	}
}

// It took minutes, as long as the run has steps, and the forecast was anything between the
// last snapshot and the end of time.
func TestAnIntervalOfAbsurdLengthTakesNoTimeAndGivesNoForecast(t *testing.T) {
	var run []*snapshot.Snapshot
	for step := int64(0); step <= 100; step += 5 {
		s := build(step, append(grown("keep", int(step), 4096, 0, 1), block{"weights", snapshot.MiB, 0})...)
		s.Devices[0].Limit = 16 * snapshot.GiB
		if step >= 50 {
			s.Mark.Step += 1e9
		}
		run = append(run, s)
	}
	r, err := Analyze(runOf(run...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if least := r.Least(); time.Since(begun) > 20*time.Second {
		t.Errorf("%+v took %v", least, time.Since(begun))
	}
	if f := r.Findings[0]; f.Verdict != Leak || f.RunsOut != nil {
		t.Errorf("%s, runs out %+v at %+v a step", f.Verdict, f.RunsOut, f.Rate.Bytes)
	}
}

// One block whose birth is known must not speak for those of which nobody knows it.
func TestTheLeastLeakIsToldWithAndWithoutBirths(t *testing.T) {
	run := leakEach(100, 5, 1, 0, true)
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	whole := r.Least()
	for _, s := range run.Snapshots {
		for i := range s.Blocks.BirthStep {
			if i > 0 {
				s.Blocks.BirthStep[i] = snapshot.NoStep
			}
		}
	}
	if r, err = Analyze(run, ByTrend); err != nil {
		t.Fatal(err)
	}
	if l := r.Least(); whole.Mixed || !l.Mixed || l.Every != whole.Every || l.Counted == 0 || l.Counted >= l.Every {
		t.Errorf("got %+v; %+v where all births are known", l, whole)
	}
}

// TestTheLeastLeakOfASampledProfileIsShownNineTimesInTen draws leaks of small blocks as a profiler
// sees them that records one allocation in so many bytes.
func TestTheLeastLeakOfASampledProfileIsShownNineTimesInTen(t *testing.T) {
	const period, seconds, runs = 512 << 10, 90, 200
	run := func(seed uint64, every float64) *snapshot.Run {
		rng := rand.New(rand.NewPCG(seed, 1))
		out, seen := runOf(), 0
		for next, at := every*rng.ExpFloat64(), 0.0; at <= seconds; at += 5 {
			for ; next < at; next += every * rng.ExpFloat64() {
				seen++
			}
			s := build(snapshot.NoStep, grown("small", seen, period, snapshot.NoStep, 0)...)
			s.Mark.Time, s.SamplePeriod = time.UnixMicro(int64(1e12+at*1e6)), period
			out.Snapshots = append(out.Snapshots, s)
		}
		return out
	}
	r, err := Analyze(run(1, 1), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	least := r.Least()
	if least.Sample != period || least.Every < 1 || least.Every > 8 {
		t.Fatalf("got %+v", least)
	}
	if f := r.Findings[0]; !f.Estimated() {
		t.Error("the figures of a sample are told as exact")
	}
	shown := 0
	for seed := range uint64(runs) {
		r, err := Analyze(run(seed+2, least.Every), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if r.Leaks() > 0 {
			shown++
		}
	}
	t.Logf("a sample every %.2f s: %d of %d shown", least.Every, shown, runs)
	if shown < runs*8/10 {
		t.Errorf("a sample every %.2f s: %d of %d shown", least.Every, shown, runs)
	}
}

// TestATooShortRunSaysHowMuchMoreItTakes makes the runs that are as long as it says, and one
// snapshot shorter.
func TestATooShortRunSaysHowMuchMoreItTakes(t *testing.T) {
	least := func(snapshots int64) (Least, More) {
		r, err := Analyze(leakEach(60*(snapshots-1), 60, 60, 0, false), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		return r.Least(), r.LeastMore()
	}
	for n := int64(2); n <= 5; n++ {
		_, more := least(n)
		if more.Snapshots == 0 || more.Steps != 60*int64(more.Snapshots) {
			t.Fatalf("%d snapshots: %+v", n, more)
		}
		enough, none := least(n + int64(more.Snapshots))
		if less, _ := least(n + int64(more.Snapshots) - 1); enough.Every == 0 || less.Every != 0 || none != (More{}) {
			t.Errorf("%d snapshots: with %d more %+v, with one less %+v; then %+v", n, more.Snapshots, enough, less, none)
		}
	}
}
