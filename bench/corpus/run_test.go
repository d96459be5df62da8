package corpus

import (
	"math"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

func TestAVerdictIsHeldAgainstTheTruth(t *testing.T) {
	guilty := snapshot.Frame{Function: "workload.(*memo).step", File: "engine/workload/caches.go", Line: 7}
	other := snapshot.Frame{Function: "workload.(*trainer).Step", File: "engine/workload/trainer.go", Line: 7}
	leak := Run{Workload: workload.Workload{Label: workload.Leak, Cause: "cache"}, guilty: []snapshot.Frame{guilty}, held: []string{"answers"}}
	repaired, bounded := leak, leak
	repaired.Fixed = true
	bounded.Workload.Label = workload.Bounded
	named := func(cause string, headline *snapshot.Frame, frames ...snapshot.Frame) flag {
		return flag{stacks: [][]snapshot.Frame{frames}, named: headline, cause: cause}
	}
	right, elsewhere := named("cache", &guilty, guilty, other), named("", &other, other)
	for _, c := range []struct {
		name string
		run  Run
		said opinion
		want verdict
	}{
		{"nothing flagged is nothing found", leak, opinion{}, verdict{}},
		{"the line and its cause", leak, opinion{leaks: []flag{right}}, verdict{found: true, findings: 1, line: true, cause: true, lines: 1}},
		{"and what holds it", leak, opinion{leaks: []flag{{stacks: right.stacks, holder: "memo.answers[].value"}}}, verdict{found: true, findings: 1, holder: true}},
		{"another holder", leak, opinion{leaks: []flag{{stacks: right.stacks, holder: "memo.answersOf[].value"}}}, verdict{found: true, findings: 1}},
		{"the line with another cause", leak, opinion{leaks: []flag{named("hook", &guilty, guilty, other)}}, verdict{found: true, findings: 1, line: true, lines: 1}},
		{"a stack through the line whose headline is another", leak, opinion{leaks: []flag{named("cache", &other, other, guilty)}}, verdict{found: true, findings: 1}},
		{"the line behind another finding is found, and not named first", leak, opinion{leaks: []flag{elsewhere, right}}, verdict{found: true, findings: 1, lines: 1, strays: 1}},
		{"the line of the second stack of a cluster", leak, opinion{leaks: []flag{{stacks: [][]snapshot.Frame{{other}, {guilty}}, named: &other}}}, verdict{found: true, findings: 1}},
		{"another stack alone is no find", leak, opinion{leaks: []flag{elsewhere}}, verdict{strays: 1}},
		{"a stack without a line of the user's", leak, opinion{leaks: []flag{named("", nil, guilty)}}, verdict{found: true, findings: 1}},
		{"a total names no line", leak, opinion{leaks: []flag{{}}}, verdict{found: true, findings: 1}},
		{"undecided of the line is no find", leak, opinion{undecided: []flag{right}}, verdict{undecided: true}},
		{"undecided of another line says nothing of the leak", leak, opinion{undecided: []flag{elsewhere}}, verdict{}},
		{"undecided besides does not take from a find", leak, opinion{leaks: []flag{right}, undecided: []flag{right}}, verdict{found: true, findings: 1, line: true, cause: true, lines: 1}},
		{"any flag on a repaired run is a false alarm", repaired, opinion{leaks: []flag{elsewhere}}, verdict{found: true}},
		{"and on a bounded one, its line included", bounded, opinion{leaks: []flag{right}}, verdict{found: true}},
		{"undecided of a bounded one is no alarm", bounded, opinion{undecided: []flag{right}}, verdict{undecided: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.run.verdict(c.said); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestEachLineOfALeakCounts: L11 leaks on three.
func TestEachLineOfALeakCounts(t *testing.T) {
	lines := []snapshot.Frame{{File: "metrics.go", Line: 1}, {File: "metrics.go", Line: 2}, {File: "metrics.go", Line: 3}}
	run := Run{Workload: workload.Workload{Label: workload.Leak, Cause: "copies"}, guilty: lines}
	var said opinion
	for i := range lines[:2] {
		said.leaks = append(said.leaks, flag{stacks: [][]snapshot.Frame{{lines[i]}}, named: &lines[i], cause: "copies"})
	}
	want := verdict{found: true, line: true, cause: true, lines: 2, findings: 2}
	if got := run.verdict(said); got != want {
		t.Errorf("two of three lines are flagged: %+v, want %+v", got, want)
	}
}

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
		want float64
	}{
		{"a rising line", []float64{1, 2, 3, 4}, []float64{10, 12, 14, 16}, 1},
		{"a falling line", []float64{1, 2, 3, 4}, []float64{8, 6, 4, 2}, -1},
		{"a peak in the middle", []float64{1, 2, 3}, []float64{0, 5, 0}, 0},
		{"nothing that varies", []float64{1, 2, 3}, []float64{5, 5, 5}, 0},
		{"one point off the line", []float64{0, 1, 2, 3}, []float64{0, 1, 2, 1}, 2 / math.Sqrt(10)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := correlation(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
				t.Errorf("got %g, want %g", got, c.want)
			}
		})
	}
}

// TestEveryRuleSeesTheRunUntilNow: what comes behind a part must not help a rule
// at its end.
func TestEveryRuleSeesTheRunUntilNow(t *testing.T) {
	const parts = 10
	w, err := workload.Find("L13")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Runs([]workload.Workload{w}, Plan{Seeds: 1, Views: Views()[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 || runs[0].Fixed || !runs[1].Fixed {
		t.Fatalf("%d runs of a leak; want it, and it repaired", len(runs))
	}
	whole, err := runs[0].Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Snapshots) != parts+1 {
		t.Fatalf("%d snapshots", len(whole.Snapshots))
	}
	for part := 1; part <= parts; part++ {
		until := runs[0].prefix(whole, part)
		last := whole.Snapshots[part].Mark
		points := until.Series.Points
		if got := points[len(points)-1].Mark; got != last || until.Snapshots[len(until.Snapshots)-1].Mark != last {
			t.Errorf("part %d ends with the counters of %+v and the blocks of %+v, want %+v", part, got, until.Snapshots[len(until.Snapshots)-1].Mark, last)
		}
	}
}

// TestAMetricCopiedInThreePlacesIsThreeFindings: each names its own call.
func TestAMetricCopiedInThreePlacesIsThreeFindings(t *testing.T) {
	w, err := workload.Find("L11")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(2) {
		runs, err := Runs([]workload.Workload{w}, Plan{Seeds: seed + 1, Views: Views()[:1]})
		if err != nil {
			t.Fatal(err)
		}
		leak := runs[2*seed]
		whole, err := leak.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		said, err := analyzed(diff.DefaultOptions(), whole)
		if err != nil {
			t.Fatal(err)
		}
		if v := leak.verdict(said); len(said.leaks) != 3 || v.lines != 3 || v.strays != 0 {
			t.Errorf("seed %d: %d findings, which name %d of the three calls", seed, len(said.leaks), v.lines)
		}
	}
}
