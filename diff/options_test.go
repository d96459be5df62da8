package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/snapshot"
)

// filling is a program that keeps a block of 4 KiB each step in a list.
func filling() *snapshot.Run {
	run := program{{stack: "init:1 main:2"}, {stack: "[stack:1] replay.Buffer.push:84 step:20 main:3", every: 1, size: 4096, owners: snapshot.OwnedByUser, holder: "Agent.replay.items"}}.run(100, 10)
	for _, s := range run.Snapshots {
		s.Devices[0].Limit = 2 * snapshot.GiB
	}
	return run
}

func TestADeclaredBoundDecides(t *testing.T) {
	for _, c := range []struct {
		name    string
		bound   snapshot.Bound
		verdict Verdict
		note    bool
	}{
		{"a function below its bound is undecided", snapshot.Bound{Where: "push", Blocks: 200}, Inconclusive, false},
		{"a method with its type is that function", snapshot.Bound{Where: "Buffer.push", Blocks: 200}, Inconclusive, false},
		{"a file and a function are", snapshot.Bound{Where: "train.py:push", Blocks: 200}, Inconclusive, false},
		{"a file and a line are", snapshot.Bound{Where: "train.py:84", Blocks: 200}, Inconclusive, false},
		{"what holds the blocks is", snapshot.Bound{Where: "Agent.replay", Blocks: 200}, Inconclusive, false},
		{"a bound that is just reached is not broken", snapshot.Bound{Where: "push", Blocks: 100}, Inconclusive, false},
		{"a bound in bytes that is not reached", snapshot.Bound{Where: "push", Bytes: snapshot.MiB}, Inconclusive, false},
		{"more blocks than declared leak", snapshot.Bound{Where: "push", Blocks: 99}, Leak, false},
		{"more bytes than declared leak", snapshot.Bound{Where: "push", Bytes: 100 * snapshot.KiB}, Leak, false},
		{"another function says nothing, and is missed", snapshot.Bound{Where: "pus", Blocks: 200}, Leak, true},
		{"another file says nothing, and is missed", snapshot.Bound{Where: "rain.py:push", Blocks: 200}, Leak, true},
		{"another list says nothing, and is missed", snapshot.Bound{Where: "Agent.rep", Blocks: 200}, Leak, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, declared := range []string{"option", "run"} {
				run, o := filling(), DefaultOptions()
				if declared == "run" {
					run.Info.Bounds = []snapshot.Bound{c.bound}
				} else {
					o.Bounds = []snapshot.Bound{c.bound}
				}
				r, err := o.Analyze(run)
				if err != nil {
					t.Fatal(err)
				}
				if got := r.Findings[0].Verdict; got != c.verdict {
					t.Errorf("by %s: got %s: %v; want %s", declared, got, r.Findings[0].Reasons, c.verdict)
				}
				if note := strings.Contains(strings.Join(r.Notes, "\n"), "a bound is declared for"); note != c.note || note != (len(r.Idle) == 1) {
					t.Errorf("by %s: notes %q, %d idle bounds", declared, r.Notes, len(r.Idle))
				}
				if b := r.Findings[0].Bound; (b != nil) != (c.verdict == Inconclusive) || b != nil && *b != c.bound {
					t.Errorf("by %s: it gathers up to %v", declared, b)
				}
			}
		})
	}
}

func TestOneBoundThatIsBrokenIsEnough(t *testing.T) {
	for _, blocks := range [][2]int64{{99, 200}, {200, 99}} {
		o := DefaultOptions()
		o.Bounds = []snapshot.Bound{{Where: "push", Blocks: blocks[0]}, {Where: "Agent.replay", Blocks: blocks[1]}}
		r, err := o.Analyze(filling())
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != Leak || f.Bound != nil {
			t.Errorf("bounds of %v: got %s: %v", blocks, f.Verdict, f.Reasons)
		}
	}
}

// TestABoundHoldsAllOfAFinding: a finding of two lines once passed by the bound of the smaller one, which is its head.
func TestABoundHoldsAllOfAFinding(t *testing.T) {
	for bytes, want := range map[snapshot.Bytes]Verdict{2000: Leak, 20_000: Inconclusive} {
		rows := []Row{
			{Frames: []snapshot.Frame{{Function: "head", File: "a.py", Line: 1}}, After: Tally{Blocks: 1, Bytes: 1000, Requested: 1000}},
			{Frames: []snapshot.Frame{{Function: "more", File: "a.py", Line: 2}}, After: Tally{Blocks: 9, Bytes: 9000, Requested: 9000}},
		}
		r := &Result{Rows: rows, Last: &snapshot.Snapshot{}, run: &snapshot.Run{}}
		r.options.Bounds = []snapshot.Bound{{Where: "a.py:1", Bytes: bytes}}
		grown := []cluster{{rows: []*Row{&rows[0], &rows[1]}, j: judge.Judgement{Verdict: Leak}}}
		r.holdToBounds(grown)
		if got := grown[0].j; got.Verdict != want || !strings.Contains(strings.Join(got.Reasons, " "), "in 10 blocks") {
			t.Errorf("a bound of %d: %s, %q", bytes, got.Verdict, got.Reasons)
		}
	}
}

// The calls of what settled are in no tree of what leaks, and were looked for there.
func TestABrokenBoundMakesALeakOfWhatSettled(t *testing.T) {
	run := program{{stack: "init:1 main:2"}, {stack: "[stack:1] cache.fill:9 step:20 main:3", every: 100, size: 4096}}.run(100, 10)
	o := DefaultOptions()
	r, err := o.Analyze(run)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Bounded {
		t.Fatalf("without a bound: got %s: %v", f.Verdict, f.Reasons)
	}
	o.Bounds = []snapshot.Bound{{Where: "fill", Bytes: snapshot.KiB}}
	if r, err = o.Analyze(run); err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak || f.Headline < 0 || f.Rows[0].Frames[f.Headline].Function != "cache.fill" {
		t.Errorf("got %s at frame %d: %v", f.Verdict, f.Headline, f.Reasons)
	} else if len(f.Reasons) != 1 || !strings.Contains(f.Reasons[0], "which is more, but it stopped growing (") || f.Pace != nil || f.RunsOut != nil {
		t.Errorf("it has settled: %v, at a pace of %v, runs out %v", f.Reasons, f.Pace, f.RunsOut)
	}
}

func TestGrowthThatComesToNothingIsNoLeak(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     func(*Options)
		verdict Verdict
	}{
		{"4 KiB a step matter after a million steps", func(*Options) {}, Leak},
		{"and not after a hundred", func(o *Options) { o.Horizon = 100 }, Bounded},
		{"less than the least rate does not matter", func(o *Options) { o.MinRate = Growth{Bytes: 4097, Unit: Step} }, Bounded},
		{"the least rate does", func(o *Options) { o.MinRate = Growth{Bytes: 4096, Unit: Step} }, Leak},
		{"a least rate goes before the horizon", func(o *Options) { o.MinRate, o.Horizon = Growth{Bytes: 1, Unit: Step}, 100 }, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DefaultOptions()
			c.set(&o)
			r, err := o.Analyze(filling())
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Findings[0].Verdict; got != c.verdict {
				t.Errorf("got %s: %v; want %s", got, r.Findings[0].Reasons, c.verdict)
			}
		})
	}
	run := filling()
	for _, s := range run.Snapshots {
		s.Devices[0].Limit = snapshot.Unknown
	}
	o := DefaultOptions()
	o.Horizon = 1
	if r, _ := o.Analyze(run); r.Findings[0].Verdict != Leak {
		t.Error("nothing is too little for a device whose limit is unknown")
	}
}

// The usual horizon is a million steps, and some count their steps by the environment's.
func TestARunBeyondTheHorizonIsJudgedByItsOwnLength(t *testing.T) {
	run := filling()
	for _, s := range run.Snapshots {
		s.Mark.Step *= 1e6
		for i := range s.Blocks.BirthStep {
			s.Blocks.BirthStep[i] *= 1e6
		}
		s.Devices[0].Limit = 100 * snapshot.MiB
	}
	o := DefaultOptions()
	if r, _ := o.Analyze(run); r.Findings[0].Verdict != Leak {
		t.Errorf("4 KiB each million steps, over %d steps: %s, %v", r.Last.Mark.Step, r.Findings[0].Verdict, r.Findings[0].Reasons)
	}
}

// TestWhatAProcessMayTakeIsForecast has 301 KiB of room beside what the process has.
func TestWhatAProcessMayTakeIsForecast(t *testing.T) {
	const has, may = 500 * snapshot.MiB, 500*snapshot.MiB + 301*snapshot.KiB
	leak := func(kind snapshot.DeviceKind, limit snapshot.Bytes) *snapshot.Run {
		var snapshots []*snapshot.Snapshot
		for step := int64(0); step <= 100; step += 10 {
			s := build(step, grown("x", int(step)+1, 1024, 0, 1)...)
			s.Devices[0].Kind = kind
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: limit, Meters: snapshot.Meters{Active: 1, Reserved: 100<<10 + 1, Driver: has}})
			snapshots = append(snapshots, s)
		}
		return runOf(snapshots...)
	}
	for _, c := range []struct {
		name  string
		kind  snapshot.DeviceKind
		limit snapshot.Bytes
		ranks []int
		want  int64 // the step; NoStep for no forecast
	}{
		{"tensors on the CPU", snapshot.CPU, may, nil, 401},
		{"Python's heap", snapshot.PythonHeap, may, []int{3}, 401},
		{"nothing is left", snapshot.PythonHeap, has, nil, 100},
		{"nobody told", snapshot.CPU, snapshot.Unknown, nil, snapshot.NoStep},
		{"a GPU has memory of its own", snapshot.CUDA, may, nil, snapshot.NoStep},
		{"of two ranks each takes what the other counts on", snapshot.CPU, may, []int{0, 1}, snapshot.NoStep},
	} {
		run := leak(c.kind, c.limit)
		run.Ranks = c.ranks
		o := DefaultOptions()
		o.Horizon = 1 // a share of what is left would be no floor for a leak
		r, err := o.Analyze(run)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != 1 || r.Findings[0].Verdict != Leak {
			t.Fatalf("%s: %+v", c.name, r.Findings)
		}
		f := r.Findings[0].RunsOut
		if f == nil {
			f = &Forecast{Step: snapshot.NoStep}
		}
		if f.Step != c.want || f.OfProcess != (c.want != snapshot.NoStep) {
			t.Errorf("%s: full at step %d, of the process %t; want step %d", c.name, f.Step, f.OfProcess, c.want)
		}
		if c.want == 401 && f.High < 500 {
			t.Errorf("%s: at the latest at step %d, though malloc has 100 KiB to reuse", c.name, f.High)
		}
	}
}

func TestAGPUWhoseMemoryIsToldIsForecast(t *testing.T) {
	leak := func(kind snapshot.DeviceKind, limit snapshot.Bytes) *snapshot.Run {
		var snapshots []*snapshot.Snapshot
		for step := int64(0); step <= 100; step += 10 {
			s := build(step, grown("x", int(step)+1, 1024, 0, 1)...)
			s.Devices[0].Kind, s.Devices[0].Limit = kind, limit
			snapshots = append(snapshots, s)
		}
		return runOf(snapshots...)
	}
	o := DefaultOptions()
	o.DeviceMemory = 201 * 1024
	for _, c := range []struct {
		name  string
		kind  snapshot.DeviceKind
		limit snapshot.Bytes
		want  int64 // the step; NoStep for no forecast
	}{
		{"a GPU of which nothing is known", snapshot.CUDA, snapshot.Unknown, 200},
		{"a GPU that tells its own", snapshot.CUDA, 301 * 1024, 300},
		{"the CPU", snapshot.CPU, snapshot.Unknown, snapshot.NoStep},
	} {
		r, err := o.Analyze(leak(c.kind, c.limit))
		if err != nil {
			t.Fatal(err)
		}
		got := snapshot.NoStep
		if f := r.Findings[0].RunsOut; f != nil {
			got = f.Step
		}
		if got != c.want {
			t.Errorf("%s: full at step %d, want %d", c.name, got, c.want)
		}
	}
}
