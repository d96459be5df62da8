package diff

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// workerRun is a recorded child that keeps a block of 1 MiB at each look, or none.
func workerRun(role string, pid int, leaks bool) *snapshot.Run {
	run := &snapshot.Run{Role: role, PID: pid}
	stacks := snapshot.NewStacks()
	line := stacks.InternFrames([]snapshot.Frame{{Function: "__getitem__", File: "data.py", Line: 7}})
	for n := range 20 {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: time.Unix(1_000_000+int64(n), 0)},
			Rank: snapshot.NoRank, Producer: "Python", Role: role, PID: pid, Stacks: stacks,
		}
		many := int64(1)
		if leaks {
			many += int64(n)
		}
		size := snapshot.Bytes(many) << 20
		s.Devices = []snapshot.Device{{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: size}}}
		s.Segments = []snapshot.Segment{{Size: size, NumBlocks: 1}}
		s.Blocks = snapshot.Blocks{
			Segment: []int32{0}, Address: []uint64{0}, Size: []snapshot.Bytes{size}, Requested: []snapshot.Bytes{size},
			State: []snapshot.State{snapshot.Live}, Stack: []snapshot.StackID{line}, Count: []int64{many},
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

// TestAGrainBesideALeakOfAChildIsNoLeak: a grain of the largest, in a library alone.
func TestAGrainBesideALeakOfAChildIsNoLeak(t *testing.T) {
	finding := func(file string, rate float64, v Verdict) Finding {
		row := &Row{Frames: []snapshot.Frame{{Function: "f", File: file, Line: 51}}}
		return Finding{Rows: []*Row{row}, Verdict: v, Rate: Rate{Unit: Step, Bytes: trend.Slope{Value: rate}}}
	}
	const library = "/usr/lib/python3.11/multiprocessing/reduction.py"
	r := &Result{Findings: []Finding{
		finding("data.py", 800_000, Leak), finding(library, 62, Leak), finding(library, 8000, Leak), finding("data.py", 62, Leak), finding(library, 62, Inconclusive),
	}}
	r.withoutGrains()
	var left []float64
	for _, f := range r.Findings {
		left = append(left, f.Rate.Bytes.Value)
	}
	if want := []float64{800_000, 8000, 62, 62}; !slices.Equal(left, want) || r.Findings[2].Rows[0].Frames[0].File != "data.py" {
		t.Errorf("%v; want %v", left, want)
	}
}

func TestALeakInAChildIsNamedByRoleAndExplainsHowItGrows(t *testing.T) {
	flat, rising := func(float64) float64 { return 50 }, func(t float64) float64 { return 50 + t }
	steep := func(t float64) float64 { return 50 + 10*t }
	for _, c := range []struct {
		name         string
		tree         func(float64) float64
		leaks        bool
		child, grows string
	}{
		{"it is all that grows", rising, true, "loader worker 1", ""},
		{"it is the least of what grows", steep, true, "loader worker 1", "beyond what recorded stacks explain"},
		{"none was found", rising, false, "", "beyond what recorded stacks explain"},
		{"nothing grows", flat, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := flatRun(treeOf(lifetime{"train.py", 0, 30, flat}, lifetime{"loader worker 1", 0, 30, c.tree}))
			run.Children = []*snapshot.Run{workerRun("loader worker 0", 100, false), workerRun("loader worker 1", 101, c.leaks)}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if c.child == "" && len(r.Children) > 0 || c.child != "" && (len(r.Children) != 1 || r.Children[0].Role != c.child || r.Children[0].Of != 2) {
				t.Errorf("children %+v; want %q", r.Children, c.child)
			}
			for _, child := range r.Children {
				if f := &child.Result.Findings[0]; f.Verdict != Leak || f.Child != child || f.Rows[0].Frames[0].Line != 7 {
					t.Errorf("%+v", f)
				}
			}
			got := r.Unaccounted()
			if c.grows == "" && len(got) > 0 || c.grows != "" && (len(got) != 1 || !strings.HasSuffix(got[0].String(), c.grows)) {
				t.Errorf("%v; want %q", got, c.grows)
			}
		})
	}
}

// TestLeaksOfAllAlikeAccountForHowTheyGrowTogether: two workers of four leaked, and what all gained was said to be unexplained.
func TestLeaksOfAllAlikeAccountForHowTheyGrowTogether(t *testing.T) {
	worker, err := Analyze(workerRun("loader worker 0 of rank 1", 100, true), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{Role: "loader worker 0 of rank 1", Alike: 2, Of: 4, Result: worker}
	rate, _ := c.Leaked()
	for pid, want := range map[int]bool{0: true, 100: false} {
		e := &Reserve{Processes: &Processes{Role: "loader worker", PID: pid}, Rate: Rate{Unit: Second, Bytes: trend.Rate([]float64{0, 1, 2, 3}, []float64{0, 3 * rate, 6 * rate, 9 * rate})}}
		if got := accounts([]*Child{c}, e); rate <= 0 || got != want {
			t.Errorf("process %d, %g B/s each: %v", pid, rate, got)
		}
	}
}

func TestAWorkersStepsAreBatches(t *testing.T) {
	grows := lifetime{"loader worker 1", 0, 30, func(t float64) float64 { return 50 + t }}
	run := flatRun(treeOf(grows))
	worker := workerRun("loader worker 1", 100, true)
	for n, s := range worker.Snapshots {
		s.Mark.Step = int64(4 * n) // batches, four a second
	}
	run.Children = []*snapshot.Run{worker}
	r, err := Analyze(run, ByTrend)
	if err != nil || len(r.Children) != 1 {
		t.Fatalf("%+v, %v", r.Children, err)
	}
	if f := r.Children[0].Result.Findings[0]; f.Rate.Unit != Batch || f.Rate.Bytes.Value != 256<<10 {
		t.Errorf("%+v", f.Rate)
	}
	if got := r.Unaccounted(); len(got) > 0 {
		t.Errorf("its leak explains how it grows, and yet: %s", got[0])
	}
}

func TestAKindIsARoleWithoutItsNumber(t *testing.T) {
	for role, want := range map[string]string{
		"loader worker 3": "loader worker", "loader worker 3 of rank 1": "loader worker", "rank 12": "rank", "keep 1:2": "keep", "VLLM::EngineCore_0": "VLLM::EngineCore",
		"ray::Trainer 2": "ray::Trainer", "fork 2 of train.py": "fork of train.py", "fork 2 of a.py of rank 0": "fork of a.py", "spawned python3.12": "spawned python3.12",
		"python3.12": "python3.12", "train.py": "train.py", "train.py after step 40": "train.py after its last step", "train.py after step 4 of rank 1": "train.py after its last step", "worker-7": "worker", "7": "7", "": "",
	} {
		if got := KindOf(role); got != want {
			t.Errorf("%q: %q, want %q", role, got, want)
		}
	}
}

// TestAWorkerOfWhichAHolderIsKnownStandsForItsLike: of two workers that leaked the same the one was shown whose holder nobody had found.
func TestAWorkerOfWhichAHolderIsKnownStandsForItsLike(t *testing.T) {
	for _, c := range []struct {
		name   string
		heldIn int
		size   snapshot.Bytes // of the other's blocks, to those of the one that has a holder
		want   string
	}{
		{"it leaks as much", 0, 1, "loader worker 0"},
		{"it leaks a tenth less", 1, 1, "loader worker 1"},
		{"it leaks a third", 0, 3, "loader worker 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := flatRun(treeOf(lifetime{"train.py", 0, 30, func(float64) float64 { return 50 }}))
			run.Children = []*snapshot.Run{workerRun("loader worker 0", 100, true), workerRun("loader worker 1", 101, true)}
			for _, s := range run.Children[1-c.heldIn].Snapshots {
				s.Blocks.Size[0] *= c.size
				s.Blocks.Requested[0], s.Segments[0].Size = s.Blocks.Size[0], s.Blocks.Size[0]
			}
			for _, s := range run.Children[c.heldIn].Snapshots {
				s.Holders = []snapshot.Holder{{Stack: s.Blocks.Stack[0], Path: "__main__.computed", Kind: "dict", Items: int(s.Blocks.Count[0])}}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil || len(r.Children) != 1 {
				t.Fatalf("%+v, %v", r.Children, err)
			}
			if got := r.Children[0]; got.Role != c.want || got.Alike != 2 {
				t.Errorf("got %s of %d alike, want %s", got.Role, got.Alike, c.want)
			}
		})
	}
}

// TestAProcessIsNamedWhereSnapshotsAreOfAllTogether: no agent took them.
func TestAProcessIsNamedWhereSnapshotsAreOfAllTogether(t *testing.T) {
	flat, rising := func(float64) float64 { return 50 }, func(t float64) float64 { return 50 + 5*t }
	for want, lives := range map[string][]lifetime{
		"perl": {{"sh", 0, 30, flat}, {"perl", 0, 30, rising}, {"sort", 0, 30, flat}},
		"":     {{"server", 0, 30, rising}, {"perl", 0, 30, flat}},
	} {
		run := program{{stack: "heap:0", every: 1, size: 4096}}.run(100, 10)
		run.Tree = treeOf(lives...)
		run.Snapshots[len(run.Snapshots)-1].Producer = hostProducer
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Findings[0].Among; got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// TestTheJudgedProcessIsNamedIfItIsOneOfSeveral: of three trainers without ranks any may be the one that is judged first.
func TestTheJudgedProcessIsNamedIfItIsOneOfSeveral(t *testing.T) {
	flat := func(float64) float64 { return 50 }
	for _, c := range []struct {
		role, system string
		pid          int
		want         string
	}{
		{"train 2", "train 2", 102, "train 2"},
		{"train.py", "fork 2 of train.py", 102, "fork 2 of train.py"},
		{"train.py", "train.py", 101, ""}, // below a shell
		{"train.py", "sh", 100, ""},
		{"train.py of rank 1", "rank 1", 102, ""},
		{"train 1 of rank 0", "train 1 of rank 0", 102, ""}, // its rank names it
		{"train 2", "train 2", 0, ""},                       // not known
	} {
		run := program{{stack: "step:31 main:45", every: 1, size: 4096}}.run(100, 10)
		run.Tree = treeOf(lifetime{"sh", 0, 10, flat}, lifetime{c.system, 0, 10, flat}, lifetime{c.system, 0, 10, flat})
		last := run.Snapshots[len(run.Snapshots)-1]
		last.Role, last.PID = c.role, c.pid
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Findings[0].Among; got != c.want {
			t.Errorf("%s, %s, %d: %q; want %q", c.role, c.system, c.pid, got, c.want)
		}
	}
}
