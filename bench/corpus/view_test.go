package corpus

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// viewed records a workload with a seed in a view.
func viewed(t *testing.T, id, view string) (*Run, *snapshot.Run) {
	t.Helper()
	w, err := workload.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	v, err := FindView(view)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := Runs([]workload.Workload{w}, Plan{Seeds: 1, Views: []View{v}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := runs[0].Record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return runs[0], run
}

// TestAViewHidesWhatItSays: the blocks that are left are those of the whole.
func TestAViewHidesWhatItSays(t *testing.T) {
	heavytest.Sequential(t, "one run is done after the other")
	_, whole := viewed(t, "L13", Whole)
	for _, v := range Views() {
		t.Run(v.Name, func(t *testing.T) {
			r, run := viewed(t, "L13", v.Name)
			if (run.Series != nil) != v.Counters {
				t.Errorf("counters: %t", run.Series != nil)
			}
			if len(r.marks) != len(run.Snapshots) {
				t.Errorf("%d marks of %d snapshots", len(r.marks), len(run.Snapshots))
			}
			for i, s := range run.Snapshots {
				checkColumns(t, s)
				if s.Mark.Step != snapshot.NoStep && s.Mark.Step != r.marks[i] {
					t.Errorf("snapshot %d is of step %d, and marked %d", i, s.Mark.Step, r.marks[i])
				}
				if i > 0 && r.marks[i] <= r.marks[i-1] {
					t.Errorf("marks do not rise: %v", r.marks)
				}
			}
			last, of := run.Snapshots[len(run.Snapshots)-1], whole.Snapshots[len(whole.Snapshots)-1]
			hidden := strings.Contains(v.About, "owners")
			if v.Name != Whole && hidden != (last.Blocks.Owners == nil) && v.Name != "totals" {
				t.Errorf("owners are hidden: %t", last.Blocks.Owners == nil)
			}
			if r.marks[len(r.marks)-1] != of.Mark.Step || v.Name == "rounded" || v.Name == "noise" {
				return
			}
			if got, want := held(last), held(of); got != want {
				t.Errorf("%v is live, of the whole %v", got, want)
			}
		})
	}
}

// held is what a snapshot's live blocks add up to.
func held(s *snapshot.Snapshot) (sum [2]int64) {
	for _, site := range s.Sites() {
		sum[0], sum[1] = sum[0]+site.Count, sum[1]+int64(site.Bytes)
	}
	return sum
}

// checkColumns fails where the columns of blocks do not belong together.
func checkColumns(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	b, n, next := &s.Blocks, s.Blocks.Len(), 0
	for name, length := range map[string]int{
		"segment": len(b.Segment), "address": len(b.Address), "requested": len(b.Requested), "state": len(b.State), "stack": len(b.Stack),
		"birth step": orAll(b.BirthStep, n), "birth time": orAll(b.BirthTime, n), "owners": orAll(b.Owners, n), "count": orAll(b.Count, n),
	} {
		if length != n {
			t.Errorf("%s has %d rows of %d", name, length, n)
		}
	}
	for i, g := range s.Segments {
		if g.FirstBlock != next {
			t.Fatalf("segment %d begins with row %d, want %d", i, g.FirstBlock, next)
		}
		next += g.NumBlocks
		for row := g.FirstBlock; row < next; row++ {
			if int(b.Segment[row]) != i {
				t.Fatalf("row %d of segment %d is of segment %d", row, i, b.Segment[row])
			}
		}
	}
	if next != n {
		t.Errorf("segments have %d rows of %d", next, n)
	}
}

func orAll[T any](column []T, n int) int {
	if column == nil {
		return n
	}
	return len(column)
}

// TestAKilledRunEndsAfterItsLastSnapshot: its counters go on, and no rule sees them
// before its end.
func TestAKilledRunEndsAfterItsLastSnapshot(t *testing.T) {
	r, run := viewed(t, "L13", "killed")
	at := len(run.Snapshots) - 1
	last := func(run *snapshot.Run) int64 { return run.Series.Points[len(run.Series.Points)-1].Mark.Step }
	if last(run) < r.marks[at] || last(run) >= r.truth.Steps {
		t.Errorf("the counters end at step %d, the snapshots at %d of %d", last(run), r.marks[at], r.truth.Steps)
	}
	if got := last(r.prefix(run, at-1)); got != r.marks[at-1] {
		t.Errorf("one part earlier they end at %d, want %d", got, r.marks[at-1])
	}
}

// TestAResumedRunGoesOnFromItsLastSnapshot: what the second process has is younger.
func TestAResumedRunGoesOnFromItsLastSnapshot(t *testing.T) {
	heavytest.Sequential(t, "one run is done after the other")
	r, run := viewed(t, "L30", "resumed")
	killed := r.marks[6]
	for _, s := range run.Snapshots[7:] {
		for row, step := range s.Blocks.BirthStep {
			if s.Blocks.State[row] == snapshot.Live && step < killed {
				t.Fatalf("at step %d a block of step %d is live; the process began at %d", s.Mark.Step, step, killed)
			}
		}
	}
	if len(run.Snapshots) != 17 {
		t.Errorf("%d snapshots, want 7 and 10", len(run.Snapshots))
	}
}

// TestEachLeakSaysWhatHoldsIt, or that nothing does which has a name.
func TestEachLeakSaysWhatHoldsIt(t *testing.T) {
	nameless := []string{"L04", "L05", "L06", "L07", "L08"}
	seen := make(map[string]bool)
	for _, w := range workload.All() {
		if w.Label != workload.Leak {
			continue
		}
		for _, g := range w.Truth(0).Growth {
			seen[g.Marker] = true
			named := holders[g.Marker] != ""
			if only := strings.Join(nameless, " "); named == strings.Contains(only, g.Marker) {
				t.Errorf("%s: a holder is named: %t", g.Marker, named)
			}
		}
	}
	for marker := range holders {
		if !seen[marker] {
			t.Errorf("%s is no leak", marker)
		}
	}
}

// TestEachRuleJudgesEachView: what a view does not have, births or steps or stacks, no rule
// takes for granted.
func TestEachRuleJudgesEachView(t *testing.T) {
	heavytest.Sequential(t, "one run is done after the other")
	for _, v := range Views() {
		_, run := viewed(t, "L13", v.Name)
		for _, rule := range rules() {
			if _, err := rule.judge(run); err != nil {
				t.Errorf("view %s, rule %s: %v", v.Name, rule.name, err)
			}
		}
	}
}

// TestWhatAViewHidesIsNoAlarm: a list that is emptied every 11 steps, as sums every 12, and a
// sequence that becomes longer, by the clock.
func TestWhatAViewHidesIsNoAlarm(t *testing.T) {
	for _, c := range []struct{ id, view string }{{"D02", "totals"}, {"D10", "clock"}} {
		r, run := viewed(t, c.id, c.view)
		said, err := own("").judge(run)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.verdict(said); v.found || !v.undecided {
			t.Errorf("%s in view %s: an alarm %t, undecided %t", c.id, c.view, v.found, v.undecided)
		}
	}
}

// TestALeakOfStepsThatWereNotWatchedIsFound: until the last snapshot none of its blocks was seen to be made.
func TestALeakOfStepsThatWereNotWatchedIsFound(t *testing.T) {
	for _, id := range []string{"L13", "L18"} {
		r, run := viewed(t, id, "sampled")
		said, err := own("").judge(run)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.verdict(said); !v.found || !v.line {
			t.Errorf("%s: found %t, its line %t", id, v.found, v.line)
		}
	}
}

// TestTwoProcessesWithOneLeakAreOneFinding, of the same stack.
func TestTwoProcessesWithOneLeakAreOneFinding(t *testing.T) {
	r, _ := viewed(t, "L13", "processes")
	processes, err := r.recordAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said, err := r.ask(own(""), processes, len(processes[0].Snapshots)-1)
	if err != nil {
		t.Fatal(err)
	}
	if v := r.verdict(said); v.findings != 1 || v.strays != 0 {
		t.Errorf("%d findings, and %d strays", v.findings, v.strays)
	}
}
