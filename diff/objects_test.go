package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// A container holds tensors, which are recorded, and objects: those are seen as growth of the process in proportion to its items,
// or by lines of Python's heap.
func TestTensorsAndObjectsOfOneContainerAreOneLeak(t *testing.T) {
	for name, c := range map[string]struct {
		items string // the container whose items are counted; "" for none
		heap  string // what holds the lines of Python's heap; "" where they are not known
		leaks int
		rate  float64 // of the first
	}{
		"its items":                 {"main.cache", "", 1, 6<<10 + 1<<10},
		"items of another":          {"main.other", "", 2, 6 << 10},
		"its keys":                  {"", "main.cache", 1, 6<<10 + 1<<10},
		"objects in its elements":   {"", "main.cache[][0]", 1, 6<<10 + 1<<10},
		"objects of another":        {"", "main.other", 2, 6 << 10},
		"a container with its name": {"", "main.cache2", 2, 6 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			run := graphRun(100, func(int) int64 { return 0 }, block{"cache", 8 << 10, 0})
			if c.heap != "" {
				tell(run, func(i int) snapshot.Bytes { return 48 * snapshot.KiB * snapshot.Bytes(i) })
			}
			for i, s := range run.Snapshots {
				if i < 3 {
					continue
				}
				b := &s.Blocks
				s.Holders = append(s.Holders, snapshot.Holder{Stack: b.Stack[1], Path: "main.cache", Kind: "dict", Items: i + 1})
				if c.heap != "" {
					s.Holders = append(s.Holders, snapshot.Holder{Stack: b.Stack[len(b.Stack)-1], Path: c.heap, Kind: "dict", Items: i + 1})
				}
				if c.items != "" {
					addItems(s, 0, lengths{path: c.items}, int64(i+1))
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if r.Leaks() != c.leaks || f.Rate.Bytes.Value < 0.99*c.rate || f.Rate.Bytes.Value > 1.01*c.rate {
				t.Fatalf("%d leaks, the first by %.0f bytes a step; want %d, %.0f: %+v", r.Leaks(), f.Rate.Bytes.Value, c.leaks, c.rate, r.Findings)
			}
			if c.leaks == 1 && (f.Rows[0].Device.Kind != snapshot.CPU || len(f.Behind) != 1 || r.Unexplained() != nil) {
				t.Errorf("led by %s, %d rows behind it, unexplained %+v", f.Rows[0].Device.Kind, len(f.Behind), r.Unexplained())
			}
		})
	}
}

// TestTensorsInDoubtJoinTheItemsThatHoldThem: nodes or items of one holder leak, and of its tensors it is not known.
func TestTensorsInDoubtJoinTheItemsThatHoldThem(t *testing.T) {
	holder := &snapshot.Holder{Path: "main.cache", Kind: "dict", Items: 24}
	of := func(kind snapshot.DeviceKind, v Verdict, h *snapshot.Holder) Finding {
		row := &Row{Device: snapshot.Device{Kind: kind}, After: Tally{Blocks: 24, Bytes: 1024}}
		return Finding{Rows: []*Row{row}, Verdict: v, Holder: h, Rate: Rate{Unit: Step}, Headline: -1}
	}
	for name, c := range map[string]struct {
		findings []Finding
		left     int
	}{
		"tensors in doubt":               {[]Finding{of(snapshot.Items, Leak, holder), of(snapshot.CPU, Inconclusive, holder)}, 1},
		"objects in doubt":               {[]Finding{of(snapshot.Graph, Leak, holder), of(snapshot.PythonHeap, Inconclusive, holder)}, 1},
		"tensors that are bounded":       {[]Finding{of(snapshot.Items, Leak, holder), of(snapshot.CPU, Bounded, holder)}, 2},
		"nothing leaks":                  {[]Finding{of(snapshot.Items, Inconclusive, holder), of(snapshot.CPU, Inconclusive, holder)}, 2},
		"one that nobody has a name for": {[]Finding{of(snapshot.Items, Leak, holder), of(snapshot.CPU, Inconclusive, nil)}, 2},
		"segments of shared memory":      {[]Finding{of(snapshot.CPU, Leak, holder), of(snapshot.SharedMemory, Inconclusive, holder)}, 2},
	} {
		r := &Result{Findings: c.findings, First: &snapshot.Snapshot{}, Last: &snapshot.Snapshot{}}
		if r.joinObjects(); len(r.Findings) != c.left {
			t.Errorf("%s: %d findings, want %d", name, len(r.Findings), c.left)
		}
	}
}

// TestObjectsBesideTensorsOfOneCallAreOfTheirLeak: keys and handles of tensors have lines of their own on Python's heap.
func TestObjectsBesideTensorsOfOneCallAreOfTheirLeak(t *testing.T) {
	at := func(function string, line int) []snapshot.Frame {
		return []snapshot.Frame{{Function: function, File: "train.py", Line: line}, {Function: "main", File: "train.py", Line: 40}}
	}
	of := func(kind snapshot.DeviceKind, frames []snapshot.Frame, grown snapshot.Bytes, h *snapshot.Holder) Finding {
		row := &Row{Device: snapshot.Device{Kind: kind}, Frames: frames, After: Tally{Blocks: 24, Bytes: grown}}
		return Finding{Rows: []*Row{row}, Verdict: Leak, Holder: h, Rate: Rate{Unit: Step}}
	}
	for name, c := range map[string]struct {
		objects Finding
		left    int
	}{
		"another line of the call": {of(snapshot.PythonHeap, at("step", 9), 1000, nil), 1},
		"much":                     {of(snapshot.PythonHeap, at("step", 9), 100_000, nil), 2},
		"another function":         {of(snapshot.PythonHeap, at("log", 9), 1000, nil), 2},
		"held by another":          {of(snapshot.PythonHeap, at("step", 9), 1000, &snapshot.Holder{Path: "main.log", Kind: "list", Items: 24}), 2},
		"tensors":                  {of(snapshot.CPU, at("step", 9), 1000, nil), 2},
	} {
		tensors := of(snapshot.CPU, at("step", 10), 1_000_000, &snapshot.Holder{Path: "main.cache", Kind: "dict", Items: 24})
		r := &Result{Findings: []Finding{tensors, c.objects}, First: &snapshot.Snapshot{}, Last: &snapshot.Snapshot{}}
		if r.joinObjects(); len(r.Findings) != c.left {
			t.Errorf("%s: %d findings, want %d", name, len(r.Findings), c.left)
		}
	}
}

// What a program keeps with its graph is called so, whatever holds it: the headline says that the graph is kept.
func TestAGraphBehindTensorsIsTheirCause(t *testing.T) {
	for name, kind := range map[string]string{"losses": "list", "a cache of outputs": "dict"} {
		run := graphRun(100, func(int) int64 { return 0 }, block{name, 4, 0})
		last := run.Snapshots[len(run.Snapshots)-1]
		last.Holders = append(last.Holders,
			snapshot.Holder{Stack: last.Blocks.Stack[1], Path: "main." + name, Kind: kind, Items: 24},
			snapshot.Holder{Stack: last.Stacks.InternFrames([]snapshot.Frame{{Function: "autograd's graph"}}), Path: "main." + name, Kind: snapshot.Nodes, Items: 96})
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Nodes == nil || f.Cause == nil || f.Cause.ID != "graph-retained" {
			t.Errorf("%s: got the cause %+v of %+v", name, f.Cause, f)
		}
	}
}
