package diff

import (
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatComesAfterTheLastStepIsJudgedByTheClock: training and service are two stretches of one process, each with its own unit.
func TestWhatComesAfterTheLastStepIsJudgedByTheClock(t *testing.T) {
	seconds := func(from, to float64) (at []float64) {
		for x := from; x <= to; x += (to - from) / 12 {
			at = append(at, x)
		}
		return at
	}
	for _, c := range []struct {
		name  string
		at    []float64
		held  func(x float64) int
		leaks int
		says  string
	}{
		{"a leak", seconds(30, 300), func(x float64) int { return int(100 * x) }, 1, ""},
		{"nothing grows", seconds(30, 300), func(float64) int { return 9 }, 0, ""},
		{"it grew in a part of the time", seconds(30, 300), func(x float64) int { return int(100 * max(x, 260)) }, 0, "memory grew after step 20, and the run ended too early to judge it"},
		{"it was not watched to the end", seconds(30, 100), func(float64) int { return 9 }, 0, "after step 20: no snapshot was taken in the last 3 minutes of a run of 5 minutes"},
		{"two snapshots show nothing", []float64{299, 300}, func(float64) int { return 9 }, 0, "no step and no snapshot came in the last 5 minutes of 5 minutes, after step 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []*snapshot.Snapshot
			for step := int64(2); step <= 20; step += 2 {
				all = append(all, build(step, grown("train", 7, 512, 0, 1)...))
			}
			run, finished, code := runOf(all...), time.Unix(1301, 0), 0
			run.Info = snapshot.Info{Command: []string{"python", "train.py"}, Steps: 20, Started: time.Unix(1000, 0), Finished: &finished, ExitCode: &code}
			child := clocked(c.at, c.held)
			child.Info, child.Role, child.AfterStep = run.Info, "train.py after step 20", 20
			for _, s := range append(run.Snapshots, child.Snapshots...) {
				s.PID = 7
			}
			run.Tree = &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: 7, Role: "train.py", Points: []snapshot.ProcessPoint{{Time: run.Info.Started}, {Time: finished}}}}}
			run.Children = []*snapshot.Run{child}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != 0 || len(r.Children) != c.leaks {
				t.Fatalf("%d leaks of the steps, %d after them; want 0 and %d", r.Leaks(), len(r.Children), c.leaks)
			}
			if c.leaks > 0 {
				if f := &r.Children[0].Result.Findings[0]; f.Rate.Unit != Second || f.Child.Role != child.Role || f.Evidence != Strong {
					t.Errorf("%s: a rate by the %s, %s", f.Child.Role, f.Rate.Unit, f.Evidence)
				}
			}
			if doubt := r.Doubt(nil); (doubt != "") != (c.says != "") || !strings.Contains(doubt, c.says) || !strings.Contains(strings.Join(r.NotSeen, "; "), c.says) {
				t.Errorf("%q, not seen %q; want %q", doubt, r.NotSeen, c.says)
			}
		})
	}
}

// TestWhatTheCommandDoesAfterAProcessIsNotItsEnd: the process ended before the next look, and the whole command was taken for it.
func TestWhatTheCommandDoesAfterAProcessIsNotItsEnd(t *testing.T) {
	var all []*snapshot.Snapshot
	for step := int64(2); step <= 20; step += 2 {
		all = append(all, build(step, grown("train", 7, 512, 0, 1)...))
	}
	run, began, code := runOf(all...), all[0].Mark.Time.Add(-2*time.Second), 0
	last := all[len(all)-1].Mark.Time
	finished := last.Add(time.Hour)
	run.Info = snapshot.Info{Command: []string{"sh", "-c", "train; evaluate"}, Steps: 20, Started: began, Finished: &finished, ExitCode: &code}
	run.Tree = &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: 7, Role: "train.py"}, {PID: 6, Role: "sh"}}}
	for at := began; at.Before(finished); at = at.Add(2 * time.Second) {
		point := snapshot.ProcessPoint{Time: at}
		run.Tree.Host = append(run.Tree.Host, snapshot.HostPoint{Time: at})
		run.Tree.Processes[1].Points = append(run.Tree.Processes[1].Points, point)
		if p := &run.Tree.Processes[0]; at.Before(last) {
			p.Points = append(p.Points, point)
		}
	}
	for _, s := range all {
		s.PID = 7
	}
	if text := ceased(run); text != "" {
		t.Error(text)
	}
}
