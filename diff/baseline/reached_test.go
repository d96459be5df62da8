package baseline_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// told is what a test says of a run that was recorded.
type told struct {
	command string
	code    int
	killed  bool
	seconds int64    // by the clock, a mark each; 0 for 100 steps, a mark each tenth
	leaks   string   // the function that keeps 3 blocks at each step or second
	process int64    // bytes that the process grows by, beside
	native  string   // the function in which malloc's memory grows, if that is known
	at      []string // where the thread is at each mark, innermost first; the last function for good
	holds   string   // a function that holds a block all along
	steps   int64    // in place of 100
	file    string   // of the program, in place of train.py
	size    int64    // of a block, in place of 1024
	edited  string   // the functions whose code differs
	ran     string   // the functions of which line 1 was seen to run, in each of 10 looks; "-" for none
	python  string   // in place of 3.11
}

// code is the program's own as a run tells it: nothing where no line was watched, nor code edited.
func (c told) functions() snapshot.Code {
	if c.edited == "" && c.ran == "" {
		return snapshot.Code{}
	}
	var text []string
	for _, f := range []string{"keep", "step", "main", "<module>", "init", "log", "load", "push"} {
		digest, ran := "1", ""
		if slices.Contains(strings.Fields(c.edited), f) {
			digest = "2"
		}
		if slices.Contains(strings.Fields(c.ran), f) {
			ran = "0x10"
		}
		text = append(text, f+":1:"+digest+":"+ran)
	}
	return snapshot.Code{Python: cmp.Or(c.python, "3.11"), Looks: 10, Files: map[string]string{"train.py": strings.Join(text, " ")}}
}

func (c told) analysis(t *testing.T) *diff.Result {
	t.Helper()
	start := time.Unix(1_700_000_000, 0)
	unit, length, every := time.Second, c.seconds, int64(1)
	if c.seconds == 0 {
		length, every = max(c.steps, 100), 10
		if c.steps > 0 {
			length, every = c.steps, max(1, c.steps/10)
		}
		unit = 10 * time.Millisecond
	}
	finished := start.Add(time.Duration(length) * unit)
	run := &snapshot.Run{Info: snapshot.Info{Command: strings.Fields(c.command), Started: start, Finished: &finished, ExitCode: &c.code}}
	run.Info.Code = c.functions()
	if c.killed {
		run.Info.Finished, run.Info.ExitCode = nil, nil
	}
	stacks := snapshot.NewStacks()
	stack := func(functions string) snapshot.StackID {
		var frames []snapshot.Frame
		for f := range strings.FieldsSeq(functions) {
			frames = append(frames, snapshot.Frame{Function: f, File: cmp.Or(c.file, "train.py"), Line: 1})
		}
		return stacks.InternFrames(frames)
	}
	for x := int64(0); x <= length; x += every {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: x, Epoch: snapshot.NoStep, Time: start.Add(time.Duration(x) * unit)}, Rank: snapshot.NoRank, Stacks: stacks,
			Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}, {Kind: snapshot.Process, Limit: snapshot.Unknown}},
		}
		if c.seconds > 0 {
			s.Mark.Step = snapshot.NoStep
		} else {
			run.Info.Steps = x
		}
		if len(c.at) > 0 {
			s.At = []snapshot.StackID{stack(c.at[min(len(c.at)-1, len(run.Snapshots))])}
		}
		if c.native != "" {
			s.Native = []snapshot.StackID{stack(c.native)}
		}
		b := &s.Blocks
		add := func(functions string, n int64) {
			id := stack(functions)
			for i := range n {
				b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(id)<<32+uint64(i)*4096)
				size := snapshot.Bytes(cmp.Or(c.size, 1024))
				b.Size, b.Requested = append(b.Size, size), append(b.Requested, size)
				b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, id)
			}
		}
		if c.holds != "" {
			add(c.holds, 1)
		}
		if c.leaks != "" {
			add(c.leaks, 3*x)
		}
		held := snapshot.Bytes(b.Len()) * 1024
		s.Devices[0].Meters = snapshot.Meters{Requested: held, Allocated: held, Active: held, Reserved: 64 << 20}
		own := 10<<20 + held + snapshot.Bytes(c.process*x)
		s.Devices[1].Meters = snapshot.Meters{Requested: own, Allocated: own, Active: own, Reserved: own, Driver: own}
		s.Segments = []snapshot.Segment{{Size: 64 << 20, NumBlocks: b.Len()}}
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWhatProvesThatALeakIsFixed: a run proves it if it would have shown the leak.
func TestWhatProvesThatALeakIsFixed(t *testing.T) {
	const leak, work, load = "keep step main <module>", "step main <module>", "load main <module>"
	const weights = "init main <module>"
	leaks := told{command: "python train.py", leaks: leak, holds: weights, ran: leak}
	clocked := told{command: "python train.py", seconds: 60, leaks: leak, at: []string{load, work}, ran: leak}
	grows := told{command: "python train.py", process: 67 << 10, holds: weights, ran: weights}
	for _, c := range []struct {
		name          string
		before, after told
		want          baseline.Answer
		because       string // within why or the evidence of the first check
	}{
		{"another checkout, more steps, the line is gone", leaks, told{command: "/env/bin/python3 /new/train.py --steps 200", holds: weights, steps: 200, edited: "main"}, baseline.Gone, "main was changed, and it took 200 steps of the same program"},
		{"the function that leaked was changed, and allocates", leaks, told{command: "python train.py", holds: leak, edited: "keep"}, baseline.Gone, "keep was changed, and keep still allocates (seen at 11 of 11 recorded points)"},
		{"its caller does", leaks, told{command: "python train.py", holds: "log step main <module>", edited: "step"}, baseline.Gone, "step was changed, and its caller step still allocates"},
		{"a switch that is not in the code, the line ran", leaks, told{command: "python train.py", holds: weights, ran: leak}, baseline.Gone, "train.py:1 ran in 10 of 10 watched steps"},
		{"a switch that is not in the code, the line still allocates", leaks, told{command: "python train.py", holds: leak, ran: "main"}, baseline.Gone, "train.py:1 still allocates (seen at 11 of 11 recorded points)"},
		{"a switch that is not in the code, and the line did not run", leaks, told{command: "python train.py", holds: "log step main <module>", ran: "step main <module>"}, baseline.CannotTell, "not reached: its code is the same, and train.py:1 ran in none of 10 watched steps"},
		{"the line ran, from elsewhere", leaks, told{command: "python train.py", holds: weights, ran: "keep main <module>"}, baseline.CannotTell, "not reached"},
		{"what changed is elsewhere", leaks, told{command: "python train.py", holds: weights, ran: work, edited: "init"}, baseline.CannotTell, "not reached"},
		{"another Python, of which no digest says anything", leaks, told{command: "python train.py", holds: "log step main <module>", edited: leak, python: "3.12"}, baseline.CannotTell, "or that the code was changed"},
		{"no code was recorded, and its caller allocates", leaks, told{command: "python train.py", holds: "log step main <module>"}, baseline.CannotTell, "or that the code was changed"},
		{"no code was recorded, and the function itself allocates", leaks, told{command: "python train.py", holds: leak}, baseline.Gone, "keep still allocates"},
		{"another script", leaks, told{command: "python other.py", holds: weights}, baseline.CannotTell, "another program: other.py, not train.py"},
		{"another script that leaks", leaks, told{command: "python other.py", leaks: leak}, baseline.CannotTell, "another program"},
		{"it crashed", leaks, told{command: "python train.py", code: 1, holds: weights}, baseline.CannotTell, "ended with code 1"},
		{"it crashed and leaks", leaks, told{command: "python train.py", code: 1, leaks: leak}, baseline.Remains, "it still leaks"},
		{"it was killed", leaks, told{command: "python train.py", killed: true, holds: weights}, baseline.CannotTell, "was killed"},
		{"too few steps", leaks, told{command: "python train.py", holds: weights, steps: 3, edited: "step"}, baseline.CannotTell, "too short"},
		{"steps before and none after", leaks, told{command: "python train.py", holds: weights, seconds: 100}, baseline.CannotTell, "it counted no steps"},
		{"seconds before and steps after", clocked, told{command: "python train.py", holds: weights}, baseline.CannotTell, "growth is per step, and before per second"},
		{"by the clock, in the function that called it", clocked, told{command: "python train.py", seconds: 60, at: []string{load, work}, holds: weights, edited: "step"}, baseline.Gone, "in step at 60 of 61 recorded points"},
		{"in the function that called it, other arguments", clocked, told{command: "python train.py --fast", seconds: 60, at: []string{load, work}, holds: weights, edited: "step"}, baseline.CannotTell, "other arguments"},
		{"its caller allocates, other arguments", leaks, told{command: "python train.py quiet", holds: "log step main <module>", edited: "step"}, baseline.CannotTell, "other arguments"},
		{"the function itself, other arguments", leaks, told{command: "python train.py quiet", holds: leak, edited: "step"}, baseline.Gone, "keep still allocates"},
		{"zero switches off", leaks, told{command: "python train.py --log-images 0", holds: "log step main <module>", edited: "main"}, baseline.CannotTell, "other arguments"},
		{"the line ran, other arguments", leaks, told{command: "python train.py quiet", holds: weights, ran: leak}, baseline.Gone, "train.py:1 ran"},
		{"another program of that name", leaks, told{command: "python train.py", holds: "build main <module>", file: "/other/train.py", size: 96}, baseline.CannotTell, "it is the same program"},
		{"the same parameters in another folder", leaks, told{command: "python train.py", holds: "build main <module>", file: "/other/train.py", edited: "step"}, baseline.Gone, "100 steps of the same program"},
		{"text that was given to python", told{command: "python -c …", leaks: leak, holds: weights, file: "<string>"}, told{command: "python -c …", holds: "other <module>", file: "<string>", size: 96}, baseline.CannotTell, "it is the same program"},
		{"its command was left out", leaks, told{holds: weights, edited: "step"}, baseline.Gone, "100 steps of the same program"},
		{"both commands were left out", told{leaks: leak, holds: weights, ran: leak}, told{holds: weights, edited: "step"}, baseline.Gone, "100 steps of the same program"},
		{"its command was left out, another script", leaks, told{holds: "load <module>", file: "other.py"}, baseline.CannotTell, "names no command"},
		{"the command before was left out, another script that uses the same file", told{leaks: leak, holds: weights}, told{command: "python other.py", holds: "init"}, baseline.CannotTell, "names no command"},
		{"by the clock, it still loads", clocked, told{command: "python train.py", seconds: 60, at: []string{load}, holds: weights, edited: "step"}, baseline.CannotTell, "nothing shows that it reached the code"},
		{"by the clock, it had just begun", clocked, told{command: "python train.py", seconds: 60, at: append(slicesOf(load, 59), work), holds: weights, edited: "step"}, baseline.CannotTell, "too few"},
		{"by the clock, nobody looked, other arguments", clocked, told{command: "python train.py --fast", seconds: 60, holds: weights, edited: "step"}, baseline.CannotTell, "nothing shows"},
		{"by the clock, nobody looked, the same command", clocked, told{command: "python train.py", seconds: 60, holds: weights, edited: "step"}, baseline.Gone, "the same command ended"},
		{"a new leak", leaks, told{command: "python train.py", holds: weights, leaks: "push main <module>"}, baseline.Remains, ""},
		{"growth of the process is gone", grows, told{command: "python train.py", holds: weights, edited: "main"}, baseline.Gone, "100 steps"},
		{"growth of the process is gone from the same code", grows, told{command: "python train.py", holds: weights, ran: weights}, baseline.CannotTell, "code is the same"},
		{"growth of the process is gone, and no code was recorded", grows, told{command: "python train.py", holds: weights}, baseline.CannotTell, "nothing shows"},
		{"growth of the process remains", grows, grows, baseline.Remains, "it still grows"},
		{"growth of the process, half of it", grows, told{command: "python train.py", process: 33 << 10, holds: weights}, baseline.Remains, "it grows less, but still grows"},
		{"growth of the process, and it crashed", grows, told{command: "python train.py", code: 139, holds: weights}, baseline.CannotTell, "ended with code 139"},
		{"growth of the process, in too few steps", grows, told{command: "python train.py", holds: weights, steps: 6, edited: "main"}, baseline.CannotTell, "too few to show growth"},
		{"the process grows where it did not", leaks, told{command: "python train.py", holds: weights, process: 67 << 10}, baseline.Remains, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := baseline.Verify(c.before.analysis(t), c.after.analysis(t))
			if len(v.Checks) == 0 {
				t.Fatal("nothing was checked: the first run does not leak")
			}
			if said := v.Checks[0].Why + "; " + v.Checks[0].Reached; v.Overall() != c.want || !strings.Contains(said, c.because) {
				t.Errorf("%s: %s; want %s: …%s…", v.Overall(), said, c.want, c.because)
			}
		})
	}
}

// TestNewGrowthOfTheProcessMayHaveALine: "source line unknown" stood beside a known line.
func TestNewGrowthOfTheProcessMayHaveALine(t *testing.T) {
	before := told{command: "python train.py", holds: "build main <module>"}
	after := before
	after.process = 67 << 10
	for native, want := range map[string]string{"": "it is new; source line unknown", "step main <module>": "it is new"} {
		after.native = native
		if v := baseline.Verify(before.analysis(t), after.analysis(t)); len(v.Checks) != 1 || v.Checks[0].Why != want {
			t.Errorf("malloc grows at %q: %+v, want %q", native, v.Checks, want)
		}
	}
}

func slicesOf(text string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = text
	}
	return out
}

// TestWhatIsTheSameProgram compares commands alone.
func TestWhatIsTheSameProgram(t *testing.T) {
	for _, c := range []struct {
		before, after string
		same          bool
	}{
		{"python train.py", "python3.12 /other/train.py --steps 9", true},
		{"python train.py", "torchrun --nproc 2 train.py", true},
		{"python -m pkg.train", "python pkg/train.py", true},
		{"python -m pkg.train", "python -um pkg.train", true},
		{"python -mpkg.train", "python -u -m pkg.train", true},
		{"python -um pkg.train", "python -um pkg.evaluate", false},
		{"python bin/train -model=a", "python bin/train -model=b", true},
		{"torchrun --nproc 2 -m pkg.train", "python -X dev -m pkg.train", true},
		{"python -m pytest tests/a.py::one", "pytest tests/a.py", true},
		{"pytest tests/a.py", "pytest tests/b.py", false},
		{"python -c x=1", "/bin/python3 -c y=2.py", true},
		{"python -m pkg.train", "python -m pkg.evaluate", false},
		{"python -m pkg.train --config a.py", "python -m pkg.evaluate --config a.py", false},
		{"./server -m x", "/opt/server", true},
		{"./server", "./client", false},
		{"python train.py", "./server", false},
	} {
		run := func(command string) *diff.Result {
			return told{command: command, leaks: "keep step", holds: "init"}.analysis(t)
		}
		if v := baseline.Verify(run(c.before), run(c.after)); (v.Why == "") != c.same {
			t.Errorf("%s, and then %s: %q", c.before, c.after, v.Why)
		}
	}
}

// TestOtherProcessesThatGrewAreCompared: by role, and as seen from outside, since one that is mended is not recorded.
func TestOtherProcessesThatGrewAreCompared(t *testing.T) {
	program := told{command: "python train.py", holds: "init main <module>", ran: "main"}
	fixed := program
	fixed.edited = "load"
	grows := diff.Reserve{
		Meter: cause.Host, Processes: &diff.Processes{Role: "pool worker 3", PID: 7},
		Rate: diff.Rate{Unit: diff.Second, Bytes: trend.Slope{Value: 5 << 20, Low: 4 << 20, High: 6 << 20}},
	}
	slower := grows
	slower.Rate.Bytes = trend.Slope{Value: 2 << 20, Low: 1 << 20, High: 3 << 20}
	for _, c := range []struct {
		name          string
		before, after []diff.Reserve
		seconds       int // that a worker runs after the fix
		want          baseline.Answer
		why           string
		same          bool // the code of both runs
		spoil         func(after *snapshot.Run)
	}{
		{name: "it is gone from the same code", before: []diff.Reserve{grows}, seconds: 40, want: baseline.CannotTell, why: "its code is the same, and nothing shows that it did the work in which the process grew", same: true},
		{name: "it is gone from another program of that name", before: []diff.Reserve{grows}, seconds: 40, want: baseline.CannotTell, why: "nothing shows that it is the same program: the runs share no file, few functions, and few tensor sizes", spoil: func(after *snapshot.Run) {
			after.Info.Code.Files = map[string]string{"train.py": "walk:1:9:"}
			after.Snapshots = nil
		}},
		{name: "it is gone, and memory was not recorded", before: []diff.Reserve{grows}, seconds: 40, want: baseline.CannotTell, why: "recording stopped", spoil: func(after *snapshot.Run) {
			after.Info.Unseen = []snapshot.Unseen{{What: "recording stopped"}}
		}},
		{name: "it is gone", before: []diff.Reserve{grows}, seconds: 40, want: baseline.Gone, why: "it no longer grows"},
		{"it did not run for long enough", []diff.Reserve{grows}, nil, 3, baseline.CannotTell, "no process of that role ran long enough to show growth of this rate", false, nil},
		{"it did not run", []diff.Reserve{grows}, nil, 0, baseline.CannotTell, "no process of that role ran long enough to show growth of this rate", false, nil},
		{"it still grows", []diff.Reserve{grows}, []diff.Reserve{grows}, 40, baseline.Remains, "it still grows", false, nil},
		{"it grows less", []diff.Reserve{grows}, []diff.Reserve{slower}, 40, baseline.Remains, "it grows less, but still grows", false, nil},
		{"it is new", nil, []diff.Reserve{grows}, 40, baseline.CannotTell, "it is new; source line unknown", false, nil},
	} {
		before, after := program.analysis(t), fixed.analysis(t)
		if c.same {
			after = program.analysis(t)
		}
		before.Reserves, after.Reserves = append(before.Reserves, c.before...), append(after.Reserves, c.after...)
		tree := &snapshot.Tree{}
		for pid, seconds := range []int{40, c.seconds} {
			p := snapshot.TreeProcess{PID: pid, Role: []string{"train.py", "pool worker 1"}[pid]}
			for s := range seconds {
				p.Points = append(p.Points, snapshot.ProcessPoint{Time: time.Unix(int64(40-seconds+s), 0), Recorded: pid == 0, Anonymous: 100 << 20})
			}
			if len(p.Points) > 0 {
				tree.Processes = append(tree.Processes, p)
			}
		}
		after.Run().Tree = tree
		if c.spoil != nil {
			c.spoil(after.Run())
		}
		v := baseline.Verify(before, after)
		if len(v.Checks) != 1 || v.Overall() != c.want || v.Checks[0].Why != c.why || (v.Checks[0].Reached != "") != (c.want == baseline.Gone) {
			t.Errorf("%s: %s, %+v", c.name, v.Overall(), v.Checks)
		}
	}
}
