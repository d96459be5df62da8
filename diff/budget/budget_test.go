package budget_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/snapshot"
)

const mib = snapshot.MiB

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// gpuRun has one GPU whose live memory is live[i] MiB at step 10·i, and a process of 100 MiB.
func gpuRun(limit snapshot.Bytes, live ...snapshot.Bytes) *snapshot.Run {
	run := new(snapshot.Run)
	for i, n := range live {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: 10 * int64(i), Time: start.Add(time.Duration(i) * time.Second)}}
		s.Devices = []snapshot.Device{
			{Kind: snapshot.CUDA, Limit: limit, Meters: snapshot.Meters{Allocated: n * mib, Reserved: 2 * n * mib, Driver: snapshot.Unknown}},
			{Kind: snapshot.Process, Limit: 1000 * mib, Meters: snapshot.Meters{Allocated: 50 * mib, Reserved: 60 * mib, Driver: 100 * mib}},
			{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: mib, Reserved: mib, Driver: snapshot.Unknown}},
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// hostRun has a process alone.
func hostRun() *snapshot.Run {
	run := gpuRun(0, 1, 2, 3)
	for _, s := range run.Snapshots {
		s.Devices = s.Devices[1:]
		s.Mark.Step = snapshot.NoStep
	}
	return run
}

// treeRun has two loader workers beside the process, of 10 and 20 MiB at first; the first gains 5 MiB a look.
func treeRun() *snapshot.Run {
	run := hostRun()
	tree := &snapshot.Tree{Processes: []snapshot.TreeProcess{{PID: 1, Role: "train.py"}, {PID: 2, Parent: 1, Role: "loader worker 0"}, {PID: 3, Parent: 1, Role: "loader worker 1"}}}
	for i := range 7 {
		at := start.Add(time.Duration(i) * time.Second)
		for p, n := range []snapshot.Bytes{100, 10 + 5*snapshot.Bytes(i), 20} {
			tree.Processes[p].Points = append(tree.Processes[p].Points, snapshot.ProcessPoint{Time: at, Anonymous: n * mib, PSS: snapshot.Unknown, OfOthers: snapshot.Unknown})
		}
		tree.Host = append(tree.Host, snapshot.HostPoint{Time: at, SegmentBytes: mib * snapshot.Bytes(i), Group: snapshot.Group{Limit: 400 * mib, Current: 390 * mib, Anonymous: 150 * mib, Shared: 10 * mib}})
	}
	run.Tree = tree
	return run
}

func TestBudgetsAreHeldAgainstTheirFigure(t *testing.T) {
	for _, c := range []struct {
		name  string
		run   *snapshot.Run
		meter budget.Meter
		text  string
		want  string // state, and what the sentence has
	}{
		{"live memory is that of the last snapshot", gpuRun(0, 1, 9, 5), budget.Live, "cuda:0=5MiB", "kept: cuda:0 has 5.00 MiB"},
		{"a peak is the most of all", gpuRun(0, 1, 9, 5), budget.Peak, "cuda=8MiB", "broken: cuda:0 had a peak of 9.00 MiB at step 10, 1.00 MiB too much (--max-peak cuda=8MiB)"},
		{"reserved memory is the allocator's", gpuRun(0, 1, 9, 5), budget.Reserved, "17MiB", "broken: cuda:0 reserved 18.0 MiB at step 10"},
		{"growth leaves warm-up out", gpuRun(0, 1, 9, 10), budget.Growth, "1MiB", "kept: cuda:0 grew after warm-up by 1.00 MiB"},
		{"growth beyond its budget", gpuRun(0, 1, 9, 11), budget.Growth, "1MiB", "broken: cuda:0 grew after warm-up by 2.00 MiB, 1.00 MiB too much"},
		{"what shrank has not grown", gpuRun(0, 1, 9, 3), budget.Growth, "0", "kept: cuda:0 grew after warm-up by 0 B"},
		{"a share is of the limit", gpuRun(10*mib, 1, 9), budget.Peak, "80%", "broken: cuda:0 had a peak of 9.00 MiB at step 10, 1.00 MiB too much (--max-peak 80%, which is 8.00 MiB)"},
		{"a budget above the limit", gpuRun(10*mib, 1, 9), budget.Peak, "80TiB", "kept: cuda:0 had a peak of 9.00 MiB at step 10 (--max-peak 80TiB, which is more than the limit of 10.0 MiB)"},
		{"a share of a limit that nobody knows", gpuRun(snapshot.Unknown, 1, 9), budget.Peak, "80%", "unchecked: the limit of cuda:0 is not known; give --device-memory, or a size"},
		{"without a place it is for the GPU, not the process", gpuRun(0, 1, 2), budget.Live, "50MiB", "kept: cuda:0"},
		{"without a GPU it is for the process as it is resident", hostRun(), budget.Live, "99MiB", "broken: the process has 100 MiB, 1.00 MiB too much"},
		{"by the clock a peak has its time", hostRun(), budget.Peak, "process=0", "broken: the process had a peak of 100 MiB after 0 s"},
		{"a device that is none", gpuRun(0, 1, 2), budget.Live, "cuda:1=1MiB", `unchecked: the run has no device, process or role "cuda:1"; it has cuda:0, process, python:0`},
		{"nothing at all", new(snapshot.Run), budget.Live, "1MiB", "unchecked: the run has no device, and no process"},
		{"a role is its processes together", treeRun(), budget.Live, "loader worker=59MiB", "broken: loader worker (2 processes) has 60.0 MiB, 1.00 MiB too much"},
		{"one process of a role", treeRun(), budget.Peak, "loader worker 1=20MiB", "kept: loader worker 1 had a peak of 20.0 MiB"},
		{"growth of a role leaves its beginning out", treeRun(), budget.Growth, "loader worker=20MiB", "kept: loader worker (2 processes) grew after warm-up by 20.0 MiB"},
		{"shared memory", treeRun(), budget.Live, "shared memory=5MiB", "broken: shared memory has 6.00 MiB"},
		{"page cache does not count against a control group", treeRun(), budget.Peak, "cgroup=40%", "kept: the control group had a peak of 160 MiB"},
		{"roles reserve nothing", treeRun(), budget.Reserved, "loader worker=1MiB", "unchecked: reserved memory of loader worker was not recorded"},
		{"growth needs a mark after warm-up", gpuRun(0, 1, 2), budget.Growth, "1MiB", "unchecked: growth of cuda:0 is not known"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := budget.Parse(c.meter, c.text)
			if err != nil {
				t.Fatal(err)
			}
			all := budget.Check(c.run, []budget.Budget{b}, 0)
			if len(all) != 1 {
				t.Fatalf("%d outcomes: %v", len(all), all)
			}
			state, says, _ := strings.Cut(c.want, ": ")
			if o := &all[0]; o.State() != state || !strings.Contains(o.String(), says) {
				t.Errorf("%s: %s", o.State(), o)
			}
		})
	}
}

func TestOneBudgetIsForEachGPU(t *testing.T) {
	run := gpuRun(0, 1, 2, 3)
	for _, s := range run.Snapshots {
		second := s.Devices[0]
		second.Index, second.Meters.Allocated = 1, 7*mib
		s.Devices = append(s.Devices, second)
	}
	b, err := budget.Parse(budget.Live, "5MiB")
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, o := range budget.Check(run, []budget.Budget{b}, 0) {
		states = append(states, o.Of+" "+o.State())
	}
	if want := []string{"cuda:0 kept", "cuda:1 broken"}; !slices.Equal(states, want) {
		t.Errorf("%q, not %q", states, want)
	}
}

func TestCountersTellPeaksBetweenSnapshots(t *testing.T) {
	run := gpuRun(0, 1, 2, 3)
	run.Series = &snapshot.Series{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}}
	for i, n := range []snapshot.Bytes{1, 50, 2, 3} {
		run.Series.Points = append(run.Series.Points, snapshot.Point{Mark: snapshot.Mark{Step: int64(i)}, Meters: []snapshot.Meters{{Allocated: n * mib}}})
	}
	b, err := budget.Parse(budget.Peak, "cuda:0=49MiB")
	if err != nil {
		t.Fatal(err)
	}
	if o := budget.Check(run, []budget.Budget{b}, 0)[0]; !o.Broken() || o.At != "at step 1" {
		t.Errorf("%s", &o)
	}
}

func TestAPeakAfterTheClockWasSetBackHasNoTime(t *testing.T) {
	run := hostRun()
	run.Snapshots[2].Devices[0].Meters.Driver = 200 * mib
	run.Snapshots[2].Mark.Time = start.Add(-time.Hour)
	b, err := budget.Parse(budget.Peak, "150MiB")
	if err != nil {
		t.Fatal(err)
	}
	if o := budget.Check(run, []budget.Budget{b}, 0)[0]; !o.Broken() || o.At != "" {
		t.Errorf("%s", &o)
	}
}

func TestAPeakThatTheAllocatorKeepsCounts(t *testing.T) {
	run := gpuRun(0, 1, 2, 3)
	run.Snapshots[1].Devices[0].Peak = 40 * mib
	b, err := budget.Parse(budget.Peak, "39MiB")
	if err != nil {
		t.Fatal(err)
	}
	if o := budget.Check(run, []budget.Budget{b}, 0)[0]; !o.Broken() || o.Used != 40*mib || o.At != "between two recorded points" {
		t.Errorf("%s", &o)
	}
}

func TestDeviceMemoryIsTheLimitThatIsMissing(t *testing.T) {
	b, err := budget.Parse(budget.Live, "50%")
	if err != nil {
		t.Fatal(err)
	}
	if o := budget.Check(gpuRun(snapshot.Unknown, 1, 9), []budget.Budget{b}, 16*mib)[0]; !o.Broken() || o.Allowed != 8*mib {
		t.Errorf("%s", &o)
	}
}

func TestABrokenFileOfManyDevicesIsNotChecked(t *testing.T) {
	s := new(snapshot.Snapshot)
	for i := range 100_000 {
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.CUDA, Index: i})
	}
	b, err := budget.Parse(budget.Live, "cuda=1MiB")
	if err != nil {
		t.Fatal(err)
	}
	all := budget.Check(&snapshot.Run{Snapshots: []*snapshot.Snapshot{s, s, s}}, []budget.Budget{b}, 0)
	if last := all[len(all)-1]; last.State() != "unchecked" || len(all) > 1000 {
		t.Errorf("%d outcomes, the last: %s", len(all), &last)
	}
}

func TestWhatAnotherRankHasIsNotMissed(t *testing.T) {
	var budgets []budget.Budget
	for _, text := range []string{"loader worker=1MiB", "cuda:0=1MiB", "nowhere=1MiB"} {
		b, err := budget.Parse(budget.Live, text)
		if err != nil {
			t.Fatal(err)
		}
		budgets = append(budgets, b)
	}
	var said [2][]string
	for i, all := range budget.Across([][]budget.Outcome{budget.Check(treeRun(), budgets, 0), budget.Check(gpuRun(0, 1, 2, 3), budgets, 0)}) {
		for _, o := range all {
			said[i] = append(said[i], o.State()+" "+o.Of)
		}
	}
	if want := []string{"broken loader worker", "unchecked "}; !slices.Equal(said[0], want) {
		t.Errorf("the first rank: %q", said[0])
	}
	if want := []string{"broken cuda:0"}; !slices.Equal(said[1], want) {
		t.Errorf("the second rank: %q", said[1])
	}
}

func TestWhatIsNoBudgetIsRefused(t *testing.T) {
	for _, text := range []string{"", "x", "=1MiB", "cuda:0=", "-1", "0%", "101%", "NaN%", "-5%", "cuda:0=1MiB/step", "90 percent"} {
		if b, err := budget.Parse(budget.Live, text); err == nil {
			t.Errorf("%q is read as %+v", text, b)
		}
	}
	for text, want := range map[string]budget.Budget{
		"12GiB":         {Bytes: 12 << 30},
		"a=b=200MB":     {Where: "a=b", Bytes: 200e6},
		"cuda:0 = 90 %": {Where: "cuda:0", Share: 0.9},
		"0":             {},
	} {
		b, err := budget.Parse(budget.Peak, text)
		if err != nil || b.Where != want.Where || b.Bytes != want.Bytes || b.Share != want.Share {
			t.Errorf("%q is read as %+v, %v", text, b, err)
		}
	}
}
