package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

func TestWhatWasNotSeenIsSaidInOnePlace(t *testing.T) {
	flat := func(float64) float64 { return 50 }
	workers := []lifetime{{"train.py", 0, 30, flat}}
	for n := range 4 {
		workers = append(workers, lifetime{fmt.Sprint("loader worker ", n), 1, 30, flat})
	}
	several := append(slices.Clone(workers), lifetime{"perl", 1, 30, flat}, lifetime{"logger", 1, 30, flat}, lifetime{"watchdog", 1, 30, flat}, lifetime{"fork of train.py", 3, 3, flat}, lifetime{"sh", 3, 3, func(float64) float64 { return 1 }})
	grows := append(slices.Clone(workers[:1]),
		lifetime{"loader worker 0", 1, 30, func(t float64) float64 { return 50 + 10*t }}, lifetime{"loader worker 1", 28, 29, flat})
	ended := time.Now()
	for _, c := range []struct {
		name  string
		tree  []lifetime
		info  snapshot.Info
		child int // its number
		want  []string
	}{
		{"one process, which was recorded", workers[:1], snapshot.Info{}, 0, nil},
		{"workers", workers, snapshot.Info{}, 0, []string{"allocations in 4 processes (loader worker × 4), whose total memory alone was recorded"}},
		{"one of them was recorded", workers, snapshot.Info{}, 103, []string{"allocations in 1 process (loader worker), recorded too briefly to judge", "allocations in 3 processes (loader worker × 3), whose total memory alone was recorded"}},
		{"several roles, and one that was brief", several, snapshot.Info{}, 0, []string{
			"allocations in 7 processes (loader worker × 4, logger, perl, 1 more), whose total memory alone was recorded",
			"growth of 1 process that ended too soon to measure",
		}},
		{"of a role that grows, one that was brief", grows, snapshot.Info{}, 0, []string{"allocations in 1 process (loader worker), whose total memory alone was recorded"}},
		{"the agent stopped, and the end was not watched", workers[:1], snapshot.Info{Unseen: []snapshot.Unseen{{What: "recording stopped"}}, Steps: 1000, Command: []string{"a"}}, 0, []string{
			"recording stopped", "no snapshot was taken after step 70 of 1000",
		}},
		{"/proc is hidden", nil, snapshot.Info{Command: []string{"a"}, Finished: &ended, Steps: 70}, 0, []string{"other processes of the command: the system gave no information"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := flatRun(treeOf(c.tree...))
			run.Info = c.info
			if c.tree == nil {
				run.Tree = nil
			} else {
				for i := range run.Tree.Processes[0].Points {
					run.Tree.Processes[0].Points[i].Recorded = true
				}
			}
			if c.child > 0 {
				run.Children = []*snapshot.Run{{Role: "loader worker 2", PID: c.child, Snapshots: run.Snapshots[:1]}}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.NotSeen, c.want) {
				t.Errorf("%q, want %q", r.NotSeen, c.want)
			}
		})
	}
}

// TestAnUndecidedChildIsNotSeen: a worker leaked 78 KiB a batch on a busy machine, its 6 snapshots left that undecided, and the gate passed
// without a word of it.
func TestAnUndecidedChildIsNotSeen(t *testing.T) {
	for _, c := range []struct {
		snapshots int
		leaks     bool
		want      []string
	}{
		{6, true, []string{"allocations in 1 process (loader worker), recorded too briefly to judge"}},
		{6, false, nil},
		{20, true, nil}, // its leak is reported
	} {
		worker := workerRun("loader worker 0", 101, c.leaks)
		worker.Snapshots = worker.Snapshots[:c.snapshots]
		for _, s := range worker.Snapshots[1:3] { // it began to grow late
			s.Devices, s.Segments, s.Blocks = worker.Snapshots[0].Devices, worker.Snapshots[0].Segments, worker.Snapshots[0].Blocks
		}
		run := flatRun(treeOf(lifetime{"train.py", 0, 30, func(float64) float64 { return 50 }}))
		run.Children = []*snapshot.Run{worker}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		seen := slices.DeleteFunc(slices.Clone(r.NotSeen), func(s string) bool { return !strings.Contains(s, "briefly") })
		if !slices.Equal(seen, c.want) {
			t.Errorf("%d snapshots, leaks: %v: %q, want %q", c.snapshots, c.leaks, r.NotSeen, c.want)
		}
	}
}

// TestLooksAtACrowdOfProcessesMayBeTooFew: a look at 1,500 takes so long that few fit into a short run.
func TestLooksAtACrowdOfProcessesMayBeTooFew(t *testing.T) {
	flat := func(float64) float64 { return 50 }
	for _, c := range []struct {
		processes, looks int
		want             bool
	}{{1500, 5, true}, {1500, 30, false}, {3, 5, false}} {
		run := flatRun(treeOf(lifetime{"train.py", 0, 30, flat}))
		began := run.Tree.Processes[0].Points[0].Time
		for n := range c.looks {
			run.Tree.Host = append(run.Tree.Host, snapshot.HostPoint{Time: began.Add(time.Duration(n) * 30 * time.Second / time.Duration(c.looks)), Processes: c.processes})
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.seldom(); strings.Contains(got, "1500 processes") != c.want || slices.Contains(r.NotSeen, got) != c.want {
			t.Errorf("%d processes, %d looks: %q, not seen %q", c.processes, c.looks, got, r.NotSeen)
		}
	}
}
