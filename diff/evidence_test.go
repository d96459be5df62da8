package diff

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// held is a block of a test's snapshot with more than build tells.
type held struct {
	function string // of train.py
	size     snapshot.Bytes
	birth    int64
	owners   snapshot.Owners
	device   int
}

// owning is a snapshot with owners, on a CPU device and the host's heap.
func owning(step int64, blocks ...held) *snapshot.Snapshot {
	var plain []block
	for _, b := range blocks {
		plain = append(plain, block{b.function, b.size, b.birth})
	}
	s := build(step, plain...)
	s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.CPU, Index: 1, Name: hostHeap})
	s.Segments = append(s.Segments, snapshot.Segment{Device: 1, Address: 0x99, FirstBlock: len(blocks)})
	for i, b := range blocks {
		s.Blocks.Requested[i] = b.size
		s.Blocks.Owners = append(s.Blocks.Owners, b.owners)
		s.Blocks.Segment[i] = int32(b.device)
	}
	return s
}

// evidenceOf is what the row with this function shows.
func evidenceOf(t *testing.T, first, last *snapshot.Snapshot, function string) *cause.Evidence {
	t.Helper()
	r, err := Analyze(runOf(first, last), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Rows {
		if f := r.Rows[i].Frames; len(f) > 1 && f[1].Function == function {
			return r.evidence(&Finding{Rows: []*Row{&r.Rows[i]}, Verdict: Leak})
		}
	}
	t.Fatalf("no row of %s", function)
	return nil
}

func TestEvidenceTellsWhatSurroundsAFinding(t *testing.T) {
	const (
		user, tape, grad, optim = snapshot.OwnedByUser, snapshot.OwnedByTape, snapshot.OwnedByGrad, snapshot.OwnedByOptim
	)
	saved := []held{{"step", 64, 3, tape, 0}, {"step", 64, 5, tape, 0}}
	with := func(more ...held) []held { return append(append([]held{}, saved...), more...) }
	for _, c := range []struct {
		name     string
		last     []held
		backward cause.Answer
		host     bool
	}{
		{"no gradient anywhere, which proves nothing", with(held{"load", 32, 0, user, 0}), cause.Unknown, false},
		{"a gradient", with(held{"load", 32, 0, grad, 0}), cause.Yes, false},
		{"state of the optimizer", with(held{"load", 64, 0, optim, 0}), cause.Yes, false},
		{"entries on the host beside a device", []held{{"step", 64, 3, tape, 1}, {"step", 64, 5, tape, 1}, {"load", 8, 0, grad, 0}}, cause.Yes, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := evidenceOf(t, owning(0), owning(10, c.last...), "step")
			if e.Backward != c.backward || e.Host != c.host {
				t.Errorf("backward %d, host %t; want %d, %t", e.Backward, e.Host, c.backward, c.host)
			}
		})
	}
	if e := evidenceOf(t, build(0), build(10, grown("x", 5, 64, 0, 1)...), "x"); e.Backward != cause.Unknown || e.Head != cause.Unknown {
		t.Errorf("without owners: backward %d, head %d", e.Backward, e.Head)
	}
}

// TestAnAttributeHoldsOneBlock: of 57 that grew it says nothing; as many attributes as
// blocks do hold them.
func TestAnAttributeHoldsOneBlock(t *testing.T) {
	for _, c := range []struct {
		name  string
		paths []string
		want  int
	}{
		{"one attribute beside five blocks", []string{"swapper.back"}, 0},
		{"attributes of as many objects", []string{"a.out", "b.out", "c.out", "d.out", "e.out"}, 5},
		{"an attribute of each element of a list", []string{"ops[].out"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			last := owning(10, []held{{"step", 64, 1, 0, 0}, {"step", 64, 3, 0, 0}, {"step", 64, 5, 0, 0}, {"step", 64, 7, 0, 0}, {"step", 64, 9, 0, 0}}...)
			for _, path := range c.paths {
				last.Holders = append(last.Holders, snapshot.Holder{Stack: last.Blocks.Stack[0], Path: path, Kind: "attribute"})
			}
			if got := evidenceOf(t, owning(0), last, "step").Sites[0].Holders; len(got) != c.want {
				t.Errorf("held by %v, want %d holders", got, c.want)
			}
			r, err := Analyze(runOf(owning(0), last), ByTrend)
			if err != nil || len(r.Findings) != 1 || (r.Findings[0].Holder != nil) != (c.want > 0) {
				t.Errorf("findings %+v, error %v", r.Findings, err)
			}
		})
	}
}

// TestOnlyWhatLivesWithinAStepDeniesABackwardPass: gradients are gone at the end of a
// step as a rule.
func TestOnlyWhatLivesWithinAStepDeniesABackwardPass(t *testing.T) {
	counters := func(functions ...string) *snapshot.Series {
		c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: snapshot.CPU}}}
		for _, function := range functions {
			c.Sites = append(c.Sites, snapshot.SeriesSite{Stack: c.Stacks.InternFrames([]snapshot.Frame{{Function: function, File: "train.py", Line: 1}})})
		}
		// The first holds something at each step.
		c.Points = []snapshot.Point{{Sites: []snapshot.SiteCount{{Site: 0, Count: 1, Bytes: 64}}}}
		return c
	}
	for _, c := range []struct {
		name string
		run  *snapshot.Series
		want cause.Answer
	}{
		{"no counters", nil, cause.Unknown},
		{"counters of what steps leave behind", counters("forward"), cause.Unknown},
		{"counters of what lives within steps, too", counters("forward", "softmax"), cause.No},
		{"a gradient that lives within its step", counters("forward", "softmax", "engine.Backward"), cause.Yes},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := seenBackward(c.run); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestTheEndOfAGraphIsFound: a running total is recreated in each step where the
// graph that it keeps is made.
func TestTheEndOfAGraphIsFound(t *testing.T) {
	const user, tape = snapshot.OwnedByUser, snapshot.OwnedByTape
	at := func(s *snapshot.Snapshot, outer ...string) *snapshot.Snapshot {
		// Frame 1 is the line; all stacks run through outer.
		for i := range s.Blocks.Stack {
			frames := s.Stacks.Frames(s.Blocks.Stack[i])
			frames = append(frames, snapshot.Frame{Function: outer[i], File: "train.py", Line: 50})
			s.Blocks.Stack[i] = s.Stacks.InternFrames(frames)
		}
		return s
	}
	for _, c := range []struct {
		name string
		last *snapshot.Snapshot
		want cause.Answer
	}{
		{"a total of the last step in the same function", at(owning(10, held{"square", 64, 3, tape, 0}, held{"square", 64, 5, tape, 0}, held{"add", 8, 9, user, 0}), "watch", "watch", "watch"), cause.Yes},
		{"a total elsewhere", at(owning(10, held{"square", 64, 3, tape, 0}, held{"square", 64, 5, tape, 0}, held{"add", 8, 9, user, 0}), "watch", "watch", "other"), cause.No},
		{"what is made there and kept of several steps is another leak", at(owning(10, held{"square", 64, 3, tape, 0}, held{"square", 64, 5, tape, 0}, held{"add", 8, 7, user, 0}, held{"add", 8, 9, user, 0}), "watch", "watch", "watch", "watch"), cause.No},
		{"blocks that the program holds itself", at(owning(10, held{"square", 64, 3, tape | user, 0}, held{"square", 64, 5, tape, 0}), "watch", "watch"), cause.Yes},
	} {
		t.Run(c.name, func(t *testing.T) {
			if e := evidenceOf(t, owning(0), c.last, "square"); e.Head != c.want {
				t.Errorf("got %d, want %d", e.Head, c.want)
			}
		})
	}
}

func TestFramesOfMostOtherStacksAreCommon(t *testing.T) {
	first, last := build(0), build(10, append(grown("x", 5, 64, 0, 1), block{"a", 64, 0}, block{"b", 64, 0}, block{"c", 64, 0})...)
	e := evidenceOf(t, first, last, "x")
	if got := e.Sites[0].Common; !got[0] || got[1] {
		t.Errorf("common %v: all stacks have the innermost frame, and x alone the next", got)
	}
	e = evidenceOf(t, first, build(10, append(grown("x", 5, 64, 0, 1), block{"a", 64, 0}, block{"b", 64, 0})...), "x")
	if got := e.Sites[0].Common; got[0] || got[1] {
		t.Errorf("common %v: two others are not most", got)
	}
}

// Six snapshots with a stack of 100,000 frames took 19 s.
func TestDeepStacksAreNoTrouble(t *testing.T) {
	rows := []*Row{{}, {}}
	for i := range 50_000 {
		f := snapshot.Frame{Function: "f", File: "train.py", Line: i}
		rows[0].Frames, rows[1].Frames = append(rows[0].Frames, f), append(rows[1].Frames, f)
	}
	s := &snapshot.Snapshot{Stacks: snapshot.NewStacks()}
	r := &Result{Rows: []Row{*rows[0], *rows[1]}, First: s, Last: s, run: &snapshot.Run{}}
	start := time.Now()
	particular := r.particular(rows)
	for _, f := range rows[0].Frames {
		if !particular(f) {
			t.Fatalf("%v is of most others, of which there are none", f)
		}
	}
	e := r.evidence(&Finding{Rows: rows, Verdict: Leak})
	if n := len(e.Sites[0].Frames); n != mostFrames || n != len(e.Sites[0].Common) {
		t.Errorf("%d frames tell of the cause", n)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestProgramsThatTrainAreToldFromOthers(t *testing.T) {
	heap := snapshot.Device{Kind: snapshot.CPU, Name: hostHeap}
	for _, c := range []struct {
		name   string
		device snapshot.Device
		frame  snapshot.Frame
		plain  bool
	}{
		{"a Go server", heap, snapshot.Frame{Function: "main.serve", File: "/src/main.go", Line: 3}, true},
		{"a C++ program that formats", heap, snapshot.Frame{Function: "std::format::write", File: "/src/main.cc", Line: 3}, true},
		{"memdiag's engine", heap, snapshot.Frame{Function: "github.com/memdiag/memdiag/engine/cpu.Gemm", File: "engine/cpu/gemm.go", Line: 3}, false},
		{"libtorch", heap, snapshot.Frame{Function: "at::_ops::add_Tensor::call", File: "??", Line: -1}, false},
		{"Python", heap, snapshot.Frame{Function: "main", File: "train.py", Line: 3}, false},
		{"a GPU", snapshot.Device{Kind: snapshot.CUDA}, snapshot.Frame{Function: "main", File: "train.cc", Line: 3}, false},
	} {
		r := &Result{run: &snapshot.Run{}, Last: &snapshot.Snapshot{}, Rows: []Row{{Device: c.device, Frames: []snapshot.Frame{c.frame}}}}
		if got := r.surroundings().plain; got != c.plain {
			t.Errorf("%s: plain %t", c.name, got)
		}
	}
}
