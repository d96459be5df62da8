package diff

import (
	"cmp"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// onHeap is a run of the program whose blocks are objects of Python's.
func (p program) onHeap(steps, every int64) *snapshot.Run {
	run := p.run(steps, every)
	for _, s := range run.Snapshots {
		s.Devices[0].Kind = snapshot.PythonHeap
	}
	return run
}

func TestObjectsLeakAtTheLineThatHoldsTheirBytes(t *testing.T) {
	for _, c := range []struct {
		name    string
		program program
		want    string
	}{
		{
			"a cache's values, with keys that its caller made",
			program{
				{stack: "Cache.get:16 main:28", every: 1, size: 64 * snapshot.KiB},
				{stack: "Cache.get:15 main:28", every: 1, size: 1024},
				{stack: "main:28", every: 1},
			},
			"Cache.get",
		}, {
			"what a forward pass of NumPy keeps, which has no graph",
			program{
				{stack: "Layer.backward:19 main:33", every: 1},
				{stack: "Layer.forward:12 main:30", every: 1, size: 64 * snapshot.KiB},
				{stack: "Layer.forward:13 main:30", every: 1, size: 1024},
				{stack: "main:30", every: 1},
			},
			"Layer.forward",
		}, {
			"halves of two functions, at the call of both",
			program{
				{stack: "left:8 step:20 main:3", every: 1, size: 4096},
				{stack: "right:9 step:20 main:3", every: 1, size: 4096},
			},
			"step",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.program = append(c.program, site{stack: "init:1 main:2"})
			r, err := Analyze(c.program.onHeap(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != 1 {
				t.Fatalf("%d findings, want 1", len(r.Findings))
			}
			f := &r.Findings[0]
			if got := f.Rows[0].Frames[f.Headline].Function; got != c.want {
				t.Errorf("at %s, want %s", got, c.want)
			}
			for i := 1; i < len(f.Rows); i++ {
				if f.Rows[i].Growth().Bytes > f.Rows[i-1].Growth().Bytes {
					t.Errorf("stack %d grew more than the one before", i)
				}
			}
		})
	}
}

// TestWhatGrowsByTheSameIsNoDoubling is of a tensor that each step makes longer by
// torch.cat, at the marks of a recorder that looks more and more rarely.
func TestWhatGrowsByTheSameIsNoDoubling(t *testing.T) {
	var snapshots []*snapshot.Snapshot
	for _, step := range []int64{8, 16, 24, 32, 40, 50, 63, 79, 99, 124, 155, 194, 243, 304, 380, 475, 594} {
		snapshots = append(snapshots, build(step, block{"cat", 512 * snapshot.Bytes(step), step}))
	}
	r, err := Analyze(runOf(snapshots...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Verdict != Leak || r.Findings[0].Shape != BytesOnly {
		t.Errorf("%+v; want one leak, in bytes only", r.Findings)
	}
}

// A line that makes a tensor which lives on is no helper of the one that makes objects.
func TestTensorsAreNoWitnessAgainstTheLineOfObjects(t *testing.T) {
	leaking := program{{stack: "main:18 <module>:21", every: 1, size: 1024}, {stack: "init:1 setup:2"}}.onHeap(100, 10)
	healthy := program{{stack: "main:18 <module>:21", size: 4096}, {stack: "init:1 setup:2"}}.run(100, 10)
	for i, s := range leaking.Snapshots {
		other := healthy.Snapshots[i]
		s.Devices = append(s.Devices, other.Devices[0])
		segment := other.Segments[0]
		segment.Device, segment.FirstBlock = 1, s.Blocks.Len()
		s.Segments = append(s.Segments, segment)
		for at := range other.Blocks.Size {
			s.Blocks.Segment = append(s.Blocks.Segment, int32(len(s.Segments)-1))
			s.Blocks.Address = append(s.Blocks.Address, other.Blocks.Address[at])
			s.Blocks.Size = append(s.Blocks.Size, other.Blocks.Size[at])
			s.Blocks.Requested = append(s.Blocks.Requested, other.Blocks.Requested[at])
			s.Blocks.State = append(s.Blocks.State, other.Blocks.State[at])
			s.Blocks.Stack = append(s.Blocks.Stack, s.Stacks.InternFrames(other.Stacks.Frames(other.Blocks.Stack[at])))
			s.Blocks.BirthStep = append(s.Blocks.BirthStep, other.Blocks.BirthStep[at])
		}
		s.Blocks.BirthTime, s.Blocks.Owners = nil, nil
	}
	r, err := Analyze(leaking, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; r.Leaks() != 1 || f.Rows[0].Frames[f.Headline].Function != "main" {
		t.Errorf("%d leaks, at frame %d of %v; want one, in main", r.Leaks(), f.Headline, f.Rows[0].Frames)
	}
}

// Below one line a library makes objects by many stacks, of which none need be the largest: the line that holds the most is
// named, with the container that a recorder found for any of its stacks.
func TestObjectsOfALineCountTogether(t *testing.T) {
	p := program{
		{stack: "init:1 main:2"},
		{stack: "[isEnabledFor:1749] run:25 main:35", every: 1, size: 2100},
		{stack: "[getLogger:1353] run:24 main:35", every: 1, size: 2000, holder: "root.manager.loggerDict", kind: "dict"},
		{stack: "[Logger:1458] run:24 main:35", every: 1, size: 850},
	}
	r, err := Analyze(p.onHeap(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	f := &r.Findings[0]
	if len(r.Findings) != 1 || len(f.Rows) != 3 || f.Rows[0].Frames[f.Headline].Line != 24 || f.Holder == nil || f.Holder.Path != "root.manager.loggerDict" {
		t.Errorf("%d findings; the first of %d stacks at %v, held by %v", len(r.Findings), len(f.Rows), f.Rows[0].Frames[f.Headline], f.Holder)
	}
}

func TestWhatALibraryMakesForOneLineIsOneLeak(t *testing.T) {
	for _, c := range []struct {
		name          string
		second        string
		holder, other string
		kind          snapshot.DeviceKind
		want          int
	}{
		{"objects", "[tick:9] draw:27 main:39", "", "", snapshot.PythonHeap, 1},
		{"objects of which one holder is known", "[tick:9] draw:27 main:39", "Gcf.figs", "", snapshot.PythonHeap, 1},
		{"objects of two holders", "[tick:9] draw:27 main:39", "Gcf.figs", "fonts.cache", snapshot.PythonHeap, 2},
		{"objects of two lines", "[tick:9] draw:28 main:39", "", "", snapshot.PythonHeap, 2},
		{"objects of the line's own", "draw:27 main:39", "", "", snapshot.PythonHeap, 2},
		{"tensors of one holder", "[tick:9] draw:27 main:39", "samples", "samples", snapshot.CPU, 1},
		{"tensors of which no holder is known", "[tick:9] draw:27 main:39", "", "", snapshot.CPU, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "[axes:8] draw:27 main:39", every: 1, size: 4096, holder: c.holder},
				{stack: c.second, every: 3, size: 1024, holder: c.other},
			}.run(100, 10)
			for _, s := range run.Snapshots {
				s.Devices[0].Kind = c.kind
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.want || len(r.Findings) != c.want {
				t.Errorf("%d leaks of %d findings, want %d", r.Leaks(), len(r.Findings), c.want)
			}
		})
	}
}

// A walk met a few of the lines in their axes, and of what each of them has the newest only.
func TestWhatHoldsOtherObjectsOfTheLineHoldsItsLeak(t *testing.T) {
	for _, c := range []struct {
		name   string
		other  string // of what is held
		items  func(step int64) int
		holder string
	}{
		{"in proportion", "[add:8] draw:27 main:39", func(step int64) int { return int(step) }, "axes.lines"},
		{"of another line", "[add:8] draw:28 main:39", func(step int64) int { return int(step) }, ""},
		{"as long all along", "[add:8] draw:27 main:39", func(int64) int { return 90 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "[cache:9] draw:27 main:39", every: 1, size: 4096},
				{stack: c.other, size: 64, holder: "axes.lines"},
			}.onHeap(100, 10)
			for _, s := range run.Snapshots {
				for i := range s.Holders {
					s.Holders[i].Items = c.items(s.Mark.Step)
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if h := r.Findings[0].Holder; h != nil {
				got = h.Path
			}
			if r.Leaks() != 1 || got != c.holder {
				t.Errorf("%d leaks, held by %q; want %q", r.Leaks(), got, c.holder)
			}
		})
	}
}

// Keys and results of a cache on a method come from several lines, and its bound is of them all.
func TestABoundIsOfMostObjectsOfALeak(t *testing.T) {
	for _, c := range []struct {
		name   string
		unheld snapshot.Bytes
		want   Verdict
	}{{"numbers beside it", 64, Bounded}, {"as much beside it", 4096, Leak}} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "vector:18 main:25", every: 1, size: 4096, holder: "vector_of", kind: "cache"},
				{stack: "main:25", every: 1, size: c.unheld},
			}.onHeap(100, 10)
			for _, s := range run.Snapshots {
				for i := range s.Holders {
					s.Holders[i].Bound = 1000
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != 1 || r.Findings[0].Verdict != c.want {
				t.Errorf("%d findings, the first %s; want 1, %s", len(r.Findings), r.Findings[0].Verdict, c.want)
			}
		})
	}
}

// What windows see of a line may begin late, or seem to grow faster: what one container holds is one leak all the same.
func TestObjectsThatOneContainerHoldsAreOneLeak(t *testing.T) {
	for _, c := range []struct {
		holder, other string
		want          int
	}{
		{"bus.listeners", "bus.listeners", 1},
		{"graph._adj", "graph._adj['account-7']", 1},
		{"graph._adj", "graph._adjacent", 2},
		{"bus.listeners", "bus.topics", 2},
	} {
		run := program{
			{stack: "init:1 main:2"},
			{stack: "session:30 main:41", every: 1, size: 4096, holder: c.holder},
			{stack: "main:40", every: 3, size: 1024, holder: c.other},
		}.onHeap(100, 10)
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if r.Leaks() != c.want || len(r.Findings) != c.want || r.Findings[0].Holder.Path != c.holder {
			t.Errorf("%s and %s: %d leaks of %d findings, the first held by %s, want %d", c.holder, c.other, r.Leaks(), len(r.Findings), r.Findings[0].Holder.Path, c.want)
		}
	}
}

// A window keeps so many frames of a stack: of the one that is deeper in a library it lacks the outermost callers.
func TestADeeperStackOfALineLacksCallers(t *testing.T) {
	r, err := Analyze(program{
		{stack: "init:1 main:2"},
		{stack: "[axes:8] draw:27 main:39 begin:50", every: 1, size: 4096},
		{stack: "[tick:9] [axes:8] draw:27 main:39", every: 3, size: 1024},
		{stack: "[tick:9] [axes:8] draw:27 other:44", every: 3, size: 1024},
	}.onHeap(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Leaks() != 2 {
		t.Errorf("%d leaks, want 2: of draw below main, and of draw below other", r.Leaks())
	}
}

// TestTheLineThatRunsAnEventLoopIsNotNamed: all of a server's requests run below it, and most of what a library makes for one
// has no line of the program's.
func TestTheLineThatRunsAnEventLoopIsNotNamed(t *testing.T) {
	for name, c := range map[string]struct {
		loop string
		want int64
	}{
		"an event loop":            {"/usr/lib/python3.12/asyncio/base_events.py", 21},
		"a library's own function": {"/site-packages/server/base_events.py", 37},
	} {
		t.Run(name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "[data_received:377] [_run_once:1922] main:37", every: 1, size: 8000},
				{stack: "[headers:448] [_run_once:1922] main:37", every: 1, size: 1500},
				{stack: "[resolve:951] answer:21 [handle:559] [_run_once:1922] main:37", every: 1, size: 1000},
				{stack: "[_request:631] ask:31 [_run_once:1922] main:37", every: 1, size: 400},
			}.onHeap(100, 10)
			renamed := make(map[*snapshot.Stacks]bool)
			for _, s := range run.Snapshots {
				if renamed[s.Stacks] {
					continue
				}
				renamed[s.Stacks] = true
				s.Stacks.RenameFiles(func(f snapshot.Frame) string {
					if f.Function == "_run_once" {
						return c.loop
					}
					return f.File
				})
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			if r.Leaks() != 1 || len(f.Rows) != 4 {
				t.Fatalf("%d leaks, the first of %d stacks", r.Leaks(), len(f.Rows))
			}
			if line := f.Rows[0].Frames[f.Headline].Line; int64(line) != c.want {
				t.Errorf("named line %d, want %d", line, c.want)
			}
		})
	}
}

// TestTheHolderOfAnObjectHoldsItsParts: the array in each object holds nearly all bytes, and a search finds the objects.
func TestTheHolderOfAnObjectHoldsItsParts(t *testing.T) {
	for name, c := range map[string]struct {
		percent int // of the objects that the search found
		want    string
	}{
		"an item for each":    {100, "atexit"},
		"a few of them":       {8, ""},
		"an item for every 3": {33, ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "Job.__init__:17 main:31", every: 1, size: 16384},
				{stack: "Job.__init__:16 main:31", every: 1, size: 1024, holder: "atexit", kind: "list"},
			}.onHeap(100, 10)
			for _, s := range run.Snapshots {
				for i := range s.Holders {
					s.Holders[i].Items = s.Holders[i].Items * c.percent / 100
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := &r.Findings[0]
			got := ""
			if f.Holder != nil {
				got = f.Holder.Path
			}
			if r.Leaks() != 1 || len(f.Rows) != 2 || got != c.want {
				t.Errorf("%d leaks, the first of %d stacks, held by %q; want %q", r.Leaks(), len(f.Rows), got, c.want)
			}
			if c.want != "" && (f.Cause == nil || f.Cause.ID != "container-grows") {
				t.Errorf("got the cause %+v", f.Cause)
			}
		})
	}
}

// TestLinesOfOneObjectAreOneLeakWhereAWindowSawOneLate: of objects that atexit held the lines were four leaks. The walk found the field
// of the newest object for one of them, and a window saw another late.
func TestLinesOfOneObjectAreOneLeakWhereAWindowSawOneLate(t *testing.T) {
	for _, c := range []struct {
		name    string
		late    int64
		field   string
		want    int
		tensors bool
	}{
		{"seen from the first step", 0, "job.buffer", 1, false},
		{"one is seen late", 45, "job.buffer", 1, false},
		{"another container holds one", 0, "", 2, false},
		{"tensors are made late", 45, "job.buffer", 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "init:17 main:31", every: 1, size: 16384, holder: cmp.Or(c.field, "buffers")},
				{stack: "init:19 main:31", every: 1, size: 512, holder: "atexit", after: c.late},
			}.run(100, 5)
			for _, s := range run.Snapshots {
				s.Blocks.BirthStep = nil
				if !c.tensors {
					s.Devices[0].Kind = snapshot.PythonHeap
				}
				for i := range s.Holders {
					if h := &s.Holders[i]; h.Path == c.field {
						h.Kind, h.Items = "attribute", 0
					}
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.want {
				t.Fatalf("%d leaks, want %d", r.Leaks(), c.want)
			}
			if h := r.Findings[0].Holder; c.want == 1 && (h == nil || h.Path != "atexit") {
				t.Errorf("held by %+v", h)
			}
		})
	}
}

// TestWhatOneCallMakesIsOneLeakWhoeverHoldsThePart: a walk met a task's newest objects in the event loop's queue of what is ready.
func TestWhatOneCallMakesIsOneLeakWhoeverHoldsThePart(t *testing.T) {
	run := program{
		{stack: "init:1 main:2"},
		{stack: "[call_soon:781] handle:20 main:43", every: 1, size: 512, holder: "loop._ready", kind: "deque"},
		{stack: "[create_task:436] handle:20 main:43", every: 1, size: 4096, holder: "background", kind: "list"},
	}.onHeap(200, 20)
	for _, s := range run.Snapshots {
		for i := range s.Holders {
			if h := &s.Holders[i]; h.Path == "loop._ready" {
				h.Items = 1
			}
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if h := r.Findings[0].Holder; r.Leaks() != 1 || h == nil || h.Path != "background" {
		t.Errorf("%d leaks, the first is held by %+v", r.Leaks(), h)
	}
}
