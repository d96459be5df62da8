package diff

import (
	"slices"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAVerdictComesWhenItIsSaidTo cuts runs that leak at each of their snapshots: what may
// be a leak must be decided by the snapshot that is named then, and not much before.
func TestAVerdictComesWhenItIsSaidTo(t *testing.T) {
	const rare = "one block in thirty steps, among nine others"
	line := func(t int) int { return t }
	for name, run := range map[string]*snapshot.Run{
		"one block a step":                            noisy(1, 0, 400, 10, line),
		"one block a step, among nine others":         noisy(1, 9, 400, 10, line),
		"one block a step, among ninety others":       noisy(1, 90, 400, 10, line),
		"twelve a step at three places, among others": noisy(1, 9, 400, 10, line, func(t int) int { return t + 1 }, func(t int) int { return 10 * t }),
		"one block in seven steps, among nine others": noisy(1, 9, 400, 10, func(t int) int { return t / 7 }),
		rare:                                  noisy(1, 9, 400, 10, func(t int) int { return t / 30 }),
		"births of one block a step":          program{{stack: "init:1 main:2"}, {stack: "keep:8", every: 1}}.run(400, 10),
		"births of one block in thirty steps": program{{stack: "init:1 main:2"}, {stack: "keep:8", every: 30}}.run(400, 10),
		"births of one block in seven, by instants": program{{stack: "init:1 main:2"}, {stack: "keep:8", every: 7, micros: 5}}.run(400, 10),
	} {
		t.Run(name, func(t *testing.T) {
			said := make(map[int]int) // by the number of snapshots, how many more
			for n := 2; n <= len(run.Snapshots); n++ {
				r, err := Analyze(&snapshot.Run{Snapshots: run.Snapshots[:n]}, ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				f := findingOf(r, leaking(run))
				if f != nil && f.Verdict == Inconclusive {
					said[n] = f.More.Snapshots
					if steps := int64(10 * f.More.Snapshots); f.More.Steps != steps {
						t.Errorf("after %d: %d more snapshots are %d more steps", n, f.More.Snapshots, f.More.Steps)
					}
					continue
				}
				for before, more := range said {
					t.Logf("after %d snapshots %d more were said to decide, and %d did", before, more, n-before)
					was, late := n-before, 0
					if name == rare { // where a run is cut decides how rare a block seems
						late = more
					}
					if more+late < was || more >= 5*was {
						t.Errorf("after %d snapshots %d more were said to decide, and %d did", before, more, was)
					}
				}
				clear(said)
			}
			if len(said) > 0 {
				t.Errorf("never decided: %v", said)
			}
		})
	}
}

func findingOf(r *Result, hash snapshot.Hash) *Finding {
	for i := range r.Findings {
		if slices.ContainsFunc(r.Findings[i].Rows, func(row *Row) bool { return row.Hash == hash }) {
			return &r.Findings[i]
		}
	}
	return nil
}

// leaking is the stack of a run's last site.
func leaking(run *snapshot.Run) snapshot.Hash {
	s := run.Snapshots[len(run.Snapshots)-1]
	return s.Stacks.Hash(s.Blocks.Stack[len(s.Blocks.Stack)-1])
}

// What a hostile file, or a long one, could make expensive has a bound: the trials do again
// what was done, up to sixteen times.
func TestTrialsAreBounded(t *testing.T) {
	many := make([]func(int) int, mostTried+5)
	for i := range many {
		many[i] = func(t int) int { return t }
	}
	r, err := Analyze(noisy(1, 0, 10, 10, many...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, f := range r.Findings {
		if f.More != (More{}) {
			told++
		}
	}
	if len(r.Findings) != len(many) || told != mostTried {
		t.Errorf("%d of %d findings tell what decides them, want %d", told, len(r.Findings), mostTried)
	}
	births := program{{stack: "keep:8", every: 1, micros: 1}}.run(2*series.MostBirths, 2*series.MostBirths)
	r, err = Analyze(births, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Series.PastOf(&r.Rows[0]) != nil {
		t.Error("a site of too many births is tried")
	}
}

// TestAClockThatWasPutBackEndsTheTrials: the distance of the last two snapshots is no measure of
// how often what came before fits.
func TestAClockThatWasPutBackEndsTheTrials(t *testing.T) {
	run := program{{stack: "init:1 main:2"}, {stack: "keep:8", every: 3, micros: 5}}.run(30, 10)
	at := time.Unix(1000, 0)
	for i, behind := range []time.Duration{0, time.Minute, -200_000 * time.Hour, time.Minute + time.Microsecond} {
		run.Snapshots[i].Mark = snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: at.Add(behind)}
		run.Snapshots[i].History.Last = at.Add(behind)
	}
	r, err := Analyze(run, ByTrend) // which did not end
	if err != nil {
		t.Fatal(err)
	}
	p := r.Series.PastOf(&r.Rows[0])
	p.BornOn(series.Births{Times: []int64{p.Instants[p.Warm]}, Weights: []int64{}}, p.GoneOn(16), r.Series.Axis.Unit)
}

// TestGrowthByTheClockIsDecidedLater: real programs repeat their past less, and of a single jump at the end nothing
// tells whether it comes again.
func TestGrowthByTheClockIsDecidedLater(t *testing.T) {
	jump := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for name, c := range map[string]struct {
		at   []float64
		held func(float64) int
		want int
	}{
		"a jump in the last interval": {jump, func(x float64) int { return 4 + 100*int(x/11) }, 0},
		"a leak, after a few looks":   {jump[:4], func(x float64) int { return int(100 * x) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(clocked(c.at, c.held), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != Inconclusive || f.More.Snapshots != c.want || f.More.Steps != int64(c.want) {
				t.Errorf("%s, decided in %+v, want %d", f.Verdict, f.More, c.want)
			}
		})
	}
}
