package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestWhatALeakingListHoldsBesidesIsOneLeakWithIt(t *testing.T) {
	for _, c := range []struct {
		name, other string
		every       int64
		joined      int
		want        int // findings
		blocks      int64
	}{
		{"one list", "mem.memory", 41, 1, 1, 103},
		{"two lists", "mem.other", 41, 0, 2, 100},
		{"one list, in step", "mem.memory", 1, 0, 1, 200},
		{"two lists, in step", "mem.other", 1, 0, 2, 100},
		{"one list, each by its own pace", "mem.memory", 3, 0, 2, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program{
				{stack: "init:1 main:2"},
				{stack: "step:31 main:45", every: 1, size: 4096, holder: "mem.memory"},
				{stack: "reset:24 main:47", every: c.every, size: 1024, holder: c.other},
			}
			r, err := Analyze(p.run(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != c.want {
				t.Fatalf("%d findings, want %d: %+v", len(r.Findings), c.want, r.Findings)
			}
			leak := &r.Findings[0]
			if leak.Verdict != Leak || leak.Rows[0].Frames[leak.Headline].Function != "step" || leak.Joined != c.joined {
				t.Errorf("%s at %v, %d joined", leak.Verdict, leak.Rows[0].Frames, leak.Joined)
			}
			if got := leak.Growth().Blocks; got != c.blocks {
				t.Errorf("%d blocks, want %d", got, c.blocks)
			}
		})
	}
}

func TestLeaksOfOneCauseInOneObjectAreOne(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		every               int64
		want                int
	}{
		{"scores and labels of a metric", "__main__.auroc.preds", "__main__.auroc.target", 1, 1},
		{"two metrics", "__main__.auroc.preds", "__main__.recall.preds", 1, 2},
		{"each by its own pace", "__main__.auroc.preds", "__main__.auroc.target", 3, 2},
		{"lists that one call to a library makes longer", "__main__.accelerator._models", "__main__.accelerator._optimizers", 1, 1},
		{"a list whose name tells, and one whose name does not", "__main__.metrics.ap.preds", "__main__.metrics.ap.target", 1, 1},
		{"the name of the smaller tells", "__main__.ap.target", "__main__.ap.preds", 1, 1},
		{"two lists of a script, of which one's name tells", "__main__.preds", "__main__.target", 1, 2},
		{"lists of which nothing tells more than that they grow", "__main__.mem.memory", "__main__.mem.other", 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := program{
				{stack: "init:1 main:2"},
				{stack: "[update:9] step:31 main:45", every: 1, size: 4096, holder: c.first},
				{stack: "label:24 main:40", every: c.every, size: 2048, holder: c.second},
			}
			r, err := Analyze(p.run(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != c.want || r.Findings[0].Verdict != Leak {
				t.Errorf("%d findings, want %d", len(r.Findings), c.want)
			}
		})
	}
}

// Of a list or dict of objects with several tensors a walk may have met one object, and its fields by themselves.
func TestFieldsOfOneObjectInAContainerAreOneLeak(t *testing.T) {
	for _, c := range []struct {
		name, first, second, line string
		want                      int
	}{
		{"keys and values", "__main__.chats[0].layers[…].keys", "__main__.chats[0].layers[…].values", "step:31", 1},
		{"of two objects", "__main__.chats[0].layers[…].keys", "__main__.turns[0].layers[…].values", "step:31", 2},
		{"which two lines make", "__main__.chats[0].layers[…].keys", "__main__.chats[0].layers[…].values", "step:32", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "[keys:8] step:31 main:45", every: 1, size: 4096, holder: c.first, kind: "attribute"},
				{stack: "[values:9] " + c.line + " main:45", every: 1, size: 2048, holder: c.second, kind: "attribute"},
			}.run(100, 10)
			for _, s := range run.Snapshots {
				for i := range s.Holders {
					s.Holders[i].Items = 0
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.want {
				t.Errorf("%d leaks, want %d", r.Leaks(), c.want)
			}
		})
	}
}

// What a loop makes beside each job, as its number, is of the jobs.
func TestWhatComesInStepBesideALargeLeakIsCountedWithIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   snapshot.Bytes
		every  int64
		holder string
		want   int
	}{
		{"numbers of jobs", 32, 1, "", 1},
		{"numbers that another list holds", 32, 1, "__main__.numbers", 2},
		{"as large", 32 * snapshot.KiB, 1, "", 2},
		{"each by its own pace", 32, 3, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Analyze(program{
				{stack: "init:1 main:2"},
				{stack: "job:31 main:45", every: 1, size: 64 * snapshot.KiB, holder: "__main__.jobs"},
				{stack: "main:44", every: c.every, size: c.size, holder: c.holder},
			}.onHeap(100, 10), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != c.want || r.Findings[0].Verdict != Leak {
				t.Errorf("%d findings, want %d", len(r.Findings), c.want)
			}
		})
	}
}

// A model that a study keeps has weights, made when it is, and gradients, made in other steps.
func TestWhatEachItemOfAListHoldsIsOneLeak(t *testing.T) {
	run := program{
		{stack: "init:1 main:2"},
		{stack: "model:31 main:45", every: 3, size: 4096, holder: "study.trials"},
		{stack: "[backward:9] fit:24 main:47", every: 2, size: 4096, holder: "study.trials"},
	}.run(100, 10)
	for _, s := range run.Snapshots {
		for i := range s.Holders {
			s.Holders[i].Items = int(s.Mark.Step) / 10
			if s.Mark.Step <= 10 {
				s.Holders[i].Items = 3 // of a short list the step that runs has much beside it
			}
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || len(r.Findings[0].Rows) != 2 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	if c := r.Findings[0].Cause; c == nil || c.ID != "container-grows" {
		t.Errorf("the cause is %v", c)
	}
}

// What is certain of the list may be the least of it, such as the keys of its entries. What has no stack shows no line.
func TestALeakIsNamedAfterTheMostOfWhatItsListHolds(t *testing.T) {
	for stack, want := range map[string]string{"add:16 main:47": "add", "": "key"} {
		p := program{
			{stack: "init:1 main:2"},
			{stack: "key:37 main:45", every: 1, size: 32, holder: "mem.borders"},
			{stack: stack, every: 41, size: 1 << 20, holder: "mem.borders"},
		}
		r, err := Analyze(p.run(100, 10), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		leak := &r.Findings[0]
		if at := leak.Rows[0].Frames[leak.Headline]; len(r.Findings) != 1 || leak.Joined != 1 || at.Function != want || leak.Cause.ID == "before-recording" {
			t.Errorf("%d findings, %d joined, named after %s:%d, cause %s", len(r.Findings), leak.Joined, at.Function, at.Line, leak.Cause.ID)
		}
	}
}

func TestALineOfAGraphIsToldFromAllOfIt(t *testing.T) {
	p := program{
		{stack: "init:1 main:2"},
		{stack: "main:44", every: 1, size: 64, holder: "hidden", kind: "graph"},
		{stack: "[linear:1] step:31 main:45", every: 41, size: 1 << 20, holder: "hidden", kind: "graph"},
		{stack: "[gelu:1] step:32 main:45", every: 41, size: 1 << 20, holder: "hidden", kind: "graph"},
	}
	r, err := Analyze(p.run(100, 10), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	leak := &r.Findings[0]
	if at := leak.Rows[0].Frames[leak.Headline]; leak.Verdict != Leak || leak.Joined != 2 || at.Function != "step" {
		t.Errorf("%s at %s:%d, %d joined", leak.Verdict, at.Function, at.Line, leak.Joined)
	}
}

// TestTensorsOfOneCycleAreOneLeak: the tree of each parse had three tensors, which were three leaks of one cause.
func TestTensorsOfOneCycleAreOneLeak(t *testing.T) {
	for _, c := range []struct {
		name, second, holder string
		every                int64
		collector            bool // is off
		want                 int
	}{
		{"of one function in step", "parse:30 main:3", "", 1, true, 1},
		{"of another function", "other:30 main:3", "", 1, true, 2},
		{"at other steps", "parse:30 main:3", "", 7, true, 2},
		{"a list holds one", "parse:30 main:3", "trees", 1, true, 2},
		{"the collector is on", "parse:30 main:3", "", 1, false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "parse:29 main:3", every: 1, size: 16384},
				{stack: c.second, every: c.every, size: 256, holder: c.holder},
				{stack: "forward:8 main:3"},
			}.run(100, 5)
			for _, s := range run.Snapshots {
				if c.collector {
					s.Notes = []string{collectorOff + " (gc.disable)"}
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.want {
				t.Errorf("%d leaks, want %d; the first by %v", r.Leaks(), c.want, r.Findings[0].Cause)
			}
		})
	}
}

// TestALineOfTheProgramsLeadsWhatAListHolds: a pool's thread receives results that the program's list keeps, and its line, in the
// standard library, was the leak's.
func TestALineOfTheProgramsLeadsWhatAListHolds(t *testing.T) {
	run := program{
		{stack: "[recv:251]", every: 1, size: 4096, holder: "main.pending", kind: "list"},
		{stack: "jobs:23 main:45", every: 2, size: 512, holder: "main.pending", kind: "list"},
	}.run(100, 10)
	for _, s := range run.Snapshots {
		s.Devices[0].Kind = snapshot.PythonHeap
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	f := r.Findings[0]
	if r.Leaks() != 1 || len(f.Rows) != 2 || f.Headline < 0 || f.Rows[0].Frames[0].Line != 23 {
		t.Errorf("%d leaks, %d rows, line %d of %+v", r.Leaks(), len(f.Rows), f.Headline, f.Rows[0].Frames)
	}
}

// TestWhatALineInDoubtMakesWithALeakIsAPartOfIt: a table that pd.concat makes anew in each step was a leak, of its strings, and beside it
// in doubt, of its columns.
func TestWhatALineInDoubtMakesWithALeakIsAPartOfIt(t *testing.T) {
	frame := func(function, file string, line int) snapshot.Frame {
		return snapshot.Frame{Function: function, File: file, Line: line}
	}
	const library = "/x/site-packages/pandas/concat.py"
	for name, c := range map[string]struct {
		line     int // of the program's that makes the columns
		findings int
	}{"the same call": {4, 1}, "another": {5, 2}} {
		t.Run(name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i, held := range []snapshot.Bytes{0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 9, 9, 9, 9, 9, 15, 15, 15, 15, 15} {
				s := build(int64(10*i), block{"weights", snapshot.MiB, -1})
				addStack(s, 20*i, snapshot.Bytes(i)*2*snapshot.MiB, frame("to_numpy", library, 9), frame("record", "train.py", 4), frame("main", "train.py", 8))
				if held > 0 {
					addStack(s, 1, held*snapshot.MiB, frame("concat_compat", library, 7), frame("record", "train.py", c.line), frame("main", "train.py", 8))
				}
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != c.findings || r.Leaks() != 1 || r.Findings[0].Rows[0].Frames[0].Function != "to_numpy" {
				t.Errorf("%d findings, %d leaks: %+v", len(r.Findings), r.Leaks(), r.Findings)
			}
		})
	}
}
