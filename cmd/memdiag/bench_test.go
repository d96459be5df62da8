package main

import (
	"math"
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

func TestAVerdictIsHeldAgainstTheTruth(t *testing.T) {
	guilty := snapshot.Frame{Function: "workload.(*memo).step", File: "engine/workload/caches.go", Line: 7}
	other := snapshot.Frame{Function: "workload.(*trainer).Step", File: "engine/workload/trainer.go", Line: 7}
	leak := benchRun{workload: workload.Workload{Label: workload.Leak, Cause: "cache"}, guilty: []snapshot.Frame{guilty}}
	repaired, bounded := leak, leak
	repaired.fixed = true
	bounded.workload.Label = workload.Bounded
	for _, c := range []struct {
		name  string
		run   benchRun
		flags []flag
		want  benchVerdict
	}{
		{"nothing flagged is nothing found", leak, nil, benchVerdict{}},
		{"the line and its cause", leak, []flag{{[]snapshot.Frame{guilty, other}, 0, "cache"}}, benchVerdict{found: true, line: true, cause: true}},
		{"the line with another cause", leak, []flag{{[]snapshot.Frame{guilty, other}, 0, "hook"}}, benchVerdict{found: true, line: true}},
		{"a stack through the line whose headline is another", leak, []flag{{[]snapshot.Frame{other, guilty}, 0, "cache"}}, benchVerdict{found: true}},
		{"the line behind another finding is found, and not named first", leak, []flag{{[]snapshot.Frame{other}, 0, ""}, {[]snapshot.Frame{guilty}, 0, "cache"}}, benchVerdict{found: true}},
		{"another stack alone is no find", leak, []flag{{[]snapshot.Frame{other}, 0, "cache"}}, benchVerdict{}},
		{"a stack without a line of the user's", leak, []flag{{[]snapshot.Frame{guilty}, -1, ""}}, benchVerdict{found: true}},
		{"a total names no line", leak, []flag{{headline: -1}}, benchVerdict{found: true}},
		{"any flag on a repaired run is a false alarm", repaired, []flag{{[]snapshot.Frame{other}, 0, ""}}, benchVerdict{found: true}},
		{"and on a bounded one, its line included", bounded, []flag{{[]snapshot.Frame{guilty}, 0, "cache"}}, benchVerdict{found: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.run.verdict(c.flags); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
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
	w, err := workload.Find("L13")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := benchRuns([]workload.Workload{w}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 2 || runs[0].fixed || !runs[1].fixed {
		t.Fatalf("%d runs of a leak; want it, and it repaired", len(runs))
	}
	whole, err := runs[0].record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Snapshots) != benchParts+1 {
		t.Fatalf("%d snapshots", len(whole.Snapshots))
	}
	for part := 1; part <= benchParts; part++ {
		until := prefix(whole, part)
		last := whole.Snapshots[part].Mark
		points := until.Series.Points
		if got := points[len(points)-1].Mark; got != last || until.Snapshots[len(until.Snapshots)-1].Mark != last {
			t.Errorf("part %d ends with the counters of %+v and the blocks of %+v, want %+v", part, got, until.Snapshots[len(until.Snapshots)-1].Mark, last)
		}
	}
}
