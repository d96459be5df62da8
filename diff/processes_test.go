package diff

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// lifetime is a process from one second to another, looked at each half second, with what it has at a moment.
type lifetime struct {
	role     string
	from, to float64
	mib      func(t float64) float64
}

func treeOf(lives ...lifetime) *snapshot.Tree {
	tree := &snapshot.Tree{}
	began := time.Unix(1_000_000, 0)
	for i, l := range lives {
		p := snapshot.TreeProcess{PID: 100 + i, Parent: 1000 + i, Started: int64(i), Role: l.role}
		for t := l.from; t <= l.to; t += 0.5 {
			p.Points = append(p.Points, snapshot.ProcessPoint{
				Time: began.Add(time.Duration(t * float64(time.Second))), Anonymous: snapshot.Bytes(l.mib(t) * (1 << 20)),
			})
		}
		tree.Processes = append(tree.Processes, p)
	}
	return tree
}

// flatRun is a run of one process in which nothing grows, with a tree.
func flatRun(tree *snapshot.Tree) *snapshot.Run {
	run := &snapshot.Run{Tree: tree}
	for step := range int64(8) {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: 10 * step, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}
		s.Devices = []snapshot.Device{{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: 1 << 20}}}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// spurts are the MiB that a loader's worker had each second, on two processors beside eleven other programs. It keeps
// every sample that it makes.
var spurts = []float64{
	374.7, 375.2, 375.8, 382.5, 387.3, 392.0, 396.9, 398.8, 399.1, 399.7, 399.8, 400.5, 400.7, 400.7, 401.1, 401.3, 405.8, 407.0, 413.8, 419.4, 428.3, 440.7,
}

func TestAProcessThatGrowsIsToldUnlessItLevelsOffOrIsReplaced(t *testing.T) {
	flat := func(float64) float64 { return 50 }
	rising := func(t float64) float64 { return 50 + 5*t }
	var helpers []lifetime
	for n := range 20 {
		helpers = append(helpers, lifetime{fmt.Sprint("helper ", n), 0, 20, func(t float64) float64 {
			if t < float64(n) {
				return 1
			}
			return 20
		}})
	}
	var named []lifetime
	for n := range 40 {
		named = append(named, lifetime{fmt.Sprintf("fetch-%c%c", 'a'+n%26, 'a'+n/26), float64(n), 40, flat})
	}
	brief := func(more float64) (lives []lifetime) { // looked at once or twice, the last as it begins
		for n := range 60 {
			lives = append(lives, lifetime{fmt.Sprint("job ", n), float64(n) / 2, float64(n)/2 + 0.5*float64(n%2), func(float64) float64 { return 20 + more*float64(n) - 10*float64(n%3/2) }})
		}
		return append(lives, lifetime{"train.py", 0, 30, flat})
	}
	noise := rand.New(rand.NewPCG(1, 2))
	var children []lifetime
	for n := range 40 {
		children = append(children, lifetime{fmt.Sprint("child ", n), float64(n), 40, flat})
	}
	for _, c := range []struct {
		name string
		tree []lifetime
		want string // what the sentence begins with; "" for none
	}{
		{"one that grows", []lifetime{{"train.py", 0, 30, flat}, {"loader worker 0", 1, 30, rising}},
			"loader worker 0 (process 101) grew steadily by 5.00 MiB a second"},
		{"one that grows, and is looked at when it ends", []lifetime{{"worker 0", 0, 30, func(t float64) float64 { return rising(t) * min(1, 2*(30-t)) }}}, "worker 0 (process 100) grew steadily"},
		{"one that grows, and is looked at as it exits", []lifetime{{"worker 0", 5, 30, func(t float64) float64 {
			if t == 30 {
				return 0
			}
			return rising(t)
		}}, {"worker 1", 0, 4, flat}}, "worker 0 (process 100) grew steadily"},
		{"one that grows as fast as a busy machine lets it", []lifetime{{"worker 0", 0, 30, func(t float64) float64 { return spurts[int(max(0, t-9))] }}}, "worker 0 (process 100) grew steadily"},
		{"one of four", []lifetime{{"worker 0", 0, 30, flat}, {"worker 1", 0, 30, flat}, {"worker 2", 0, 30, rising}, {"worker 3", 0, 30, flat}},
			"worker 2 (process 102) grew steadily by 5.00 MiB a second (5.00 MiB to 5.00 MiB, 95 % interval), 95.0 MiB in 19 seconds, as the only one of 4 processes of this kind"},
		{"one, and another that grew as much but not steadily", []lifetime{{"worker 0", 0, 30, rising}, {"worker 1", 0, 30, func(t float64) float64 {
			if t < 20 {
				return 50
			}
			return 150
		}}}, "worker 0 (process 100) grew steadily by 5.00 MiB a second (5.00 MiB to 5.00 MiB, 95 % interval), 95.0 MiB in 19 seconds. Source line unknown: no stacks were recorded there. If it runs Python 3.10 or later, run longer: it is recorded once it has grown for some seconds, unless it has another user, an environment of its own, or the option -I, -E or -S. If it runs an older Python, use a newer one. If it runs no Python, use a heap profiler that memdiag reads, such as heaptrack"},
		{"one without a name", []lifetime{{"", 0, 30, rising}}, "process 100 (process 100) grew steadily"},
		{"both", []lifetime{{"worker 0", 0, 30, rising}, {"worker 1", 0, 30, rising}}, "worker 0 (process 100) grew steadily"},
		{"each is small, and they become more", children, "processes of child together grew steadily"},
		{"they end together before the command does", append(helpers, lifetime{"train.py", 0, 25, flat}), "processes of helper together grew steadily"},
		{"each is small and has a name of its own", named, "processes of several roles together grew steadily"},
		{"each is brief, and larger than the one before", brief(1), "the peak of each new job grew steadily by"},
		{"each is brief, and as large as the one before", brief(0), ""},
		{"none", []lifetime{{"train.py", 0, 30, flat}}, ""},
		{"copies of pages, until all are copied", []lifetime{{"worker 0", 0, 30, func(t float64) float64 { return min(50+10*t, 200) }}}, ""},
		{"a cache of which ever less is new", []lifetime{{"worker 0", 0, 30, func(t float64) float64 { return 200 - 150/(1+t) }}}, ""},
		{"up and down", []lifetime{{"worker 0", 0, 30, func(float64) float64 { return 100 + 50*noise.Float64() }}}, ""},
		{"replaced each epoch", []lifetime{{"worker 0", 0, 10, rising}, {"worker 0", 10, 20, func(t float64) float64 { return rising(t - 10) }}, {"worker 0", 20, 30, func(t float64) float64 { return rising(t - 20) }}}, ""},
		{"replaced, and looked at a little later in its life", []lifetime{{"worker 0", 0, 10, rising}, {"worker 0", 10, 20, func(t float64) float64 { return rising(t - 10) }}, {"worker 0", 20, 30, func(t float64) float64 { return 2 + rising(t-20) }}}, ""},
		{"ended long before the end", []lifetime{{"train.py", 0, 60, flat}, {"loader worker 0", 1, 30, rising}}, ""},
		{"less than any program needs", []lifetime{{"worker 0", 0, 30, func(t float64) float64 { return 0.02 * t }}}, ""},
		{"brief, up to its end", []lifetime{{"worker 0", 0, 3, rising}}, "worker 0 (process 100) grew steadily"},
		{"brief, and ever less", []lifetime{{"worker 0", 0, 3, func(t float64) float64 { return 200 - 150/(1+4*t) }}}, ""},
		{"brief, until it had what it needs", []lifetime{{"worker 0", 0, 4, func(t float64) float64 { return min(50+10*t, 80) }}}, ""},
		{"too brief for any look", []lifetime{{"worker 0", 0, 1, rising}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(flatRun(treeOf(c.tree...)), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Unaccounted()
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("%s", got[0])
			case c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want)):
				t.Errorf("%v\nwant one: %s …", got, c.want)
			}
		})
	}
}

func TestARecordedProcessIsJudgedByItsSnapshots(t *testing.T) {
	tree := treeOf(lifetime{"train.py", 0, 30, func(t float64) float64 { return 50 + 5*t }})
	for i := range tree.Processes[0].Points {
		tree.Processes[0].Points[i].Recorded = true
	}
	r, err := Analyze(flatRun(tree), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Unaccounted(); len(got) > 0 {
		t.Errorf("%s", got[0])
	}
}

// JAX's profiles on the CPU tell of its arrays alone: what else grew in the process, such as a list of numbers, passed.
func TestAProcessOfWhichArraysAreRecordedIsJudged(t *testing.T) {
	const want = "train.py (process 100) grew steadily"
	for gained, told := range map[snapshot.Bytes]bool{0: true, 10 << 20: true, 100 << 20: false} {
		tree := treeOf(lifetime{"train.py", 0, 30, func(t float64) float64 { return 50 + 5*t }})
		for i := range tree.Processes[0].Points {
			tree.Processes[0].Points[i].Recorded = true
		}
		run := flatRun(tree)
		for i, s := range run.Snapshots {
			*s = *build(s.Mark.Step, block{"arrays", gained*snapshot.Bytes(i)/7 + 1, snapshot.NoStep})
			s.Devices[0].Kind = snapshot.CPU
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Unaccounted()
		if told != (len(got) == 1) || told && (!strings.HasPrefix(got[0].String(), want) || !strings.HasSuffix(got[0].String(), "beyond what recorded stacks explain")) {
			t.Errorf("its arrays have gained %s: %v", gained, got)
		}
	}
}

func TestSharedMemoryThatGrowsIsToldWithItsFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		others int64
		shared bool // by a control group, instead of the files
		tmpfs  bool // and no files of it are known
		want   string
	}{
		{"files in /dev/shm", 3, false, false, "shared memory grew steadily by 4.00 MiB a second (4.00 MiB to 4.00 MiB, 95 % interval), 76.0 MiB in 19 seconds, in up to 60 files. Source line unknown. Another program of this user may have created them"},
		{"of the command's own group", 0, true, false, "shared memory grew steadily"},
		{"of files elsewhere", 0, true, true, "shared memory grew steadily by 4.00 MiB a second (4.00 MiB to 4.00 MiB, 95 % interval), 76.0 MiB in 19 seconds. Source line unknown. Files in a tmpfs count, too"},
		{"of a group that others are in", 1, true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := treeOf(lifetime{"train.py", 0, 30, func(float64) float64 { return 50 }})
			for i, p := range tree.Processes[0].Points {
				h := snapshot.HostPoint{Time: p.Time, Group: snapshot.Group{Others: c.others}, Segments: int64(i + 1)}
				if c.tmpfs || i == len(tree.Processes[0].Points)-1 {
					h.Segments = 0 // the last process has ended
				}
				if size := snapshot.Bytes(i) * 2 << 20; c.shared {
					h.Group.Shared = size
				} else {
					h.SegmentBytes = size
				}
				tree.Host = append(tree.Host, h)
			}
			r, err := Analyze(flatRun(tree), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			got := r.Unaccounted()
			if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0].String(), c.want)) {
				t.Errorf("%v; want %q", got, c.want)
			}
		})
	}
}

// TestSharedMemoryWhoseStacksAreKnownIsNoneOfAnUnknownLine: of segments that were recorded, or of tensors that lie in them.
func TestSharedMemoryWhoseStacksAreKnownIsNoneOfAnUnknownLine(t *testing.T) {
	for _, c := range []struct {
		name    string
		kind    snapshot.DeviceKind
		each    snapshot.Bytes // that a block has
		private float64        // MiB that the process gains each second
		child   bool           // it is beside the one that was judged first
		known   bool
	}{
		{"segments", snapshot.SharedMemory, 4 << 20, 0, false, true},
		{"segments that are a tenth of it", snapshot.SharedMemory, 100 << 10, 0, false, false},
		{"tensors in shared memory", snapshot.CPU, 4 << 20, 0, false, true},
		{"tensors elsewhere", snapshot.CPU, 4 << 20, 4, false, false},
		{"tensors of which this process has read little", snapshot.CPU, 40 << 20, 1, false, true},
		{"tensors of a child", snapshot.CPU, 4 << 20, 0, true, true},
		{"tensors elsewhere in a child", snapshot.CPU, 4 << 20, 4, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := treeOf(lifetime{"train.py", 0, 30, func(s float64) float64 { return 50 + c.private*s }})
			p := &tree.Processes[0]
			for i := range p.Points {
				p.Points[i].Recorded, p.Points[i].Shared = !c.child, snapshot.Bytes(i)<<19 // a look each half second
			}
			run := flatRun(tree)
			of := run
			if c.child {
				of = flatRun(nil)
				of.Role, of.PID, run.Children = "worker 1", p.PID, []*snapshot.Run{of}
			}
			for i, s := range of.Snapshots {
				s.PID, s.Mark.Time = p.PID, p.Points[7*i].Time
				s.Stacks = snapshot.NewStacks()
				stack := s.Stacks.InternFrames([]snapshot.Frame{{Function: "publish", File: "train.py", Line: 5}})
				held := c.each * snapshot.Bytes(i)
				s.Devices = append(s.Devices, snapshot.Device{Kind: c.kind, Limit: snapshot.Unknown, Meters: snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: held, Driver: snapshot.Unknown}})
				s.Segments = append(s.Segments, snapshot.Segment{Device: len(s.Devices) - 1, Size: max(held, 1), FirstBlock: s.Blocks.Len(), NumBlocks: i})
				b := &s.Blocks
				for n := range i {
					b.Segment, b.Address = append(b.Segment, int32(len(s.Segments)-1)), append(b.Address, uint64(n)<<30)
					b.Size, b.Requested = append(b.Size, c.each), append(b.Requested, c.each)
					b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, stack)
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			leaking := r
			if c.child && len(r.Children) == 1 {
				leaking = r.Children[0].Result
			}
			if leaking.Leaks() != 1 {
				t.Fatalf("%d leaks", leaking.Leaks())
			}
			shared := func(e *Reserve) bool { return e.Processes != nil && e.Processes.Shared }
			if got := r.Unaccounted(); slices.ContainsFunc(got, shared) == c.known {
				t.Errorf("%v", got)
			}
			if tensors := c.known && c.kind == snapshot.CPU; slices.Contains(leaking.Findings[0].Reasons, "it is shared memory") != tensors {
				t.Errorf("%q", leaking.Findings[0].Reasons)
			}
		})
	}
}

func TestManyProcessesAreJudgedSoon(t *testing.T) {
	for _, role := range []func(int) string{
		func(int) string { return "worker" },
		func(i int) string {
			return "role " + strings.Map(func(r rune) rune { return r + 'a' - '0' }, fmt.Sprintf("%05d", i))
		},
	} {
		manyProcesses(t, role)
	}
}

func manyProcesses(t *testing.T, role func(int) string) {
	t.Helper()
	heavytest.NearlyLinear(t, 80_000, func(n int) {
		tree := &snapshot.Tree{}
		for i := range n {
			at := snapshot.ProcessPoint{Time: time.Unix(1_000_000, int64(i)*1e6), Anonymous: snapshot.Bytes(100 * i)}
			tree.Processes = append(tree.Processes, snapshot.TreeProcess{PID: i + 1, Role: role(i), Points: []snapshot.ProcessPoint{at}})
		}
		r, err := Analyze(flatRun(tree), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		r.Roles(12)
	})
}

func TestWhatForksHaveInCommonIsNoGrowth(t *testing.T) {
	const all = 300 << 20
	const copied = 8 << 20                // of a fork, as it begins to run
	for _, own := range []float64{0, 6} { // MiB that each fork adds
		lives := []lifetime{{"train.py", 0, 30, func(float64) float64 { return 300 }}}
		for n := range 15 {
			lives = append(lives, lifetime{"helper", float64(2 * n), 30, func(float64) float64 { return 300 + own }})
		}
		tree := treeOf(lives...)
		began := tree.Processes[0].Points[0].Time
		for i := range tree.Processes {
			p := &tree.Processes[i]
			p.Parent = 100
			for k := range p.Points {
				p.Points[k].OfOthers = snapshot.Unknown
				if s := p.Points[k].Time.Sub(began).Seconds(); s > 0 && int(2*s)%8 == 0 { // the kernel is asked at times
					forks := snapshot.Bytes(s/2) + 1
					p.Points[k].OfOthers = (all - copied) * forks / (forks + 1)
				}
			}
		}
		r, err := Analyze(flatRun(tree), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Unaccounted(); len(got) > 0 != (own > 0) {
			t.Errorf("forks with %g MiB each: %v", own, got)
		}
	}
}

// TestAChildThatGrewLateIsInDoubt: it grew up to the end of the program, whether memdiag recorded it by then or not.
func TestAChildThatGrewLateIsInDoubt(t *testing.T) {
	late := func(most float64) func(float64) float64 {
		return func(t float64) float64 { return 390 + max(0, min(4.5*(t-11), most)) }
	}
	for _, c := range []struct {
		name     string
		mib      func(float64) float64
		recorded bool
		want     int
	}{
		{"to the end", late(100), true, 1},
		{"until a cache was full", late(9), true, 0},
		{"no one recorded it", late(100), false, 1},
		{"no one recorded it, until a cache was full", late(9), false, 0},
	} {
		tree := treeOf(lifetime{"train.py", 0, 16, func(float64) float64 { return 390 }}, lifetime{"job", 0, 16, c.mib})
		run := flatRun(tree)
		if c.recorded {
			run.Children = []*snapshot.Run{{Role: "job", PID: 101, Snapshots: run.Snapshots[:4]}}
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Unaccounted(); len(got) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestAProcessWithoutAnAgentThatFreesItsMemoryAtItsEndGrew: its last snapshot shows little, and its looks until then all.
func TestAProcessWithoutAnAgentThatFreesItsMemoryAtItsEndGrew(t *testing.T) {
	run := flatRun(treeOf(lifetime{"sh", 0, 15, func(float64) float64 { return 2 }}, lifetime{"keep 1", 0, 14, func(t float64) float64 { return 20 + 30*t }}))
	for _, s := range run.Snapshots {
		s.Producer = hostProducer
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Unaccounted(); len(got) != 1 || got[0].Processes.Role != "keep 1" {
		t.Errorf("%v", got)
	}
}

// TestWhatLateWorkersTakeAtTheirBeginningIsNoGrowth: they began after a third of the run, and what they needed was counted as growth.
func TestWhatLateWorkersTakeAtTheirBeginningIsNoGrowth(t *testing.T) {
	grows := func(t float64) float64 { return 40 + 2*min(t-10, 6) + 0.6*(t-10) }
	run := flatRun(treeOf(lifetime{"train.py", 0, 30, func(float64) float64 { return 390 }}, lifetime{"loader worker 0", 10, 30, grows}, lifetime{"loader worker 1", 10, 30, grows}))
	run.Children = []*snapshot.Run{workerRun("loader worker 0", 101, false), workerRun("loader worker 1", 102, false)}
	for _, child := range run.Children {
		for _, s := range child.Snapshots {
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown})
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Unaccounted(); len(got) > 0 {
		t.Errorf("%s", got[0])
	}
}

// TestWhatTheAgentTakesInAWorkerIsNoGrowth: the workers of a program that leaks nothing were said to grow, by 4.4 MiB in six
// seconds alone, and by 12 MiB in nine together. Neither is what malloc has free there: 14 of 20 MiB in a worker that handed
// tensors over in files.
func TestWhatTheAgentTakesInAWorkerIsNoGrowth(t *testing.T) {
	for _, c := range []struct {
		name     string
		mib      float64 // a second
		recorded bool
		free     float64 // the share of it that malloc has free
		by       float64 // the part of the time in which that came
		has      float64 // MiB that the program has from malloc
		want     int
	}{
		{"as the agent does", 0.5, true, 0, 1, 1, 0},
		{"more than the agent takes", 3, true, 0, 1, 1, 1},
		{"as the agent does, and malloc's free memory", 3, true, 0.7, 0.5, 1, 0},
		{"free memory that goes on growing", 3, true, 0.7, 1, 1, 1},
		{"free memory that goes on growing, little beside what is in use", 3, true, 0.7, 1, 400, 0},
		{"more than both", 6, true, 0.7, 0.5, 1, 1},
		{"without an agent", 0.5, false, 0, 1, 1, 1},
	} {
		grows := func(t float64) float64 { return 40 + c.mib*t }
		run := flatRun(treeOf(lifetime{"train.py", 0, 15, func(float64) float64 { return 390 }}, lifetime{"loader worker 0", 0, 15, grows}, lifetime{"loader worker 1", 0, 15, grows}))
		if c.recorded {
			run.Children = []*snapshot.Run{workerRun("loader worker 0", 101, false), workerRun("loader worker 1", 102, false)}
			for _, child := range run.Children {
				for n, s := range child.Snapshots {
					end := float64(len(child.Snapshots) - 1)
					has := c.mib * (1 << 20) * float64(n)
					free := c.free * c.mib * (1 << 20) * min(float64(n)/c.by, end)
					m := snapshot.Meters{Driver: snapshot.Bytes(has), Allocated: snapshot.Bytes(c.has * (1 << 20)), Reserved: snapshot.Bytes(c.has*(1<<20) + free)}
					s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: m})
				}
			}
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Unaccounted(); len(got) != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestAnUndecidedChildWhoseProcessGrowsUnevenlyIsInDoubt: a worker leaked 78 KiB a batch, and on a busy machine its batches became slower.
// Its growth was no straight line then, and the gate passed.
func TestAnUndecidedChildWhoseProcessGrowsUnevenlyIsInDoubt(t *testing.T) {
	uneven := func(t float64) float64 { return 393 + 0.5*min(t, 10) + 3.8*max(0, min(t, 15)-10) + 1.2*max(0, t-15) }
	levels := func(t float64) float64 { return 393 + 4*min(t, 18) }
	for name, c := range map[string]struct {
		memory  func(t float64) float64
		decided bool
		want    int
	}{
		"undecided":             {uneven, false, 1},
		"no finding":            {uneven, true, 0},
		"its process stopped":   {levels, false, 0},
		"its process is steady": {func(float64) float64 { return 393 }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := flatRun(treeOf(lifetime{"train.py", 0, 30, func(float64) float64 { return 50 }}, lifetime{"loader worker 0", 0, 30, c.memory}, lifetime{"loader worker 1", 0, 30, c.memory}))
			worker := workerRun("loader worker 0", 101, !c.decided)
			worker.Snapshots = worker.Snapshots[:6]
			for _, s := range worker.Snapshots[1:3] { // it began to grow late
				s.Devices, s.Segments, s.Blocks = worker.Snapshots[0].Devices, worker.Snapshots[0].Segments, worker.Snapshots[0].Blocks
			}
			run.Children = []*snapshot.Run{worker}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Unaccounted(); len(got) != c.want {
				t.Errorf("%v, want %d", got, c.want)
			}
		})
	}
}
