package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestKeysAreEqualForTheSameCodeElsewhere(t *testing.T) {
	base := []snapshot.Frame{{Function: "linear", File: "/usr/lib/python3/site-packages/torch/nn.py", Line: 5}, {Function: "Net.forward", File: "/home/a/proj/net.py", Line: 8}, {Function: "main", File: "/home/a/proj/train.py", Line: 3}}
	change := func(edit func([]snapshot.Frame) []snapshot.Frame) []snapshot.Frame {
		return edit(append([]snapshot.Frame{}, base...))
	}
	native := func(names ...string) []snapshot.Frame {
		var out []snapshot.Frame
		for _, n := range names {
			out = append(out, snapshot.Frame{Function: n, File: "??"})
		}
		return out
	}
	for _, c := range []struct {
		name string
		a, b []snapshot.Frame
		want Match // "" for none
	}{
		{"the same stack", base, base, Exact},
		{"other native frames", append(native("at::empty"), base...), append(native("at::detail::empty"), base...), Lines},
		{"another folder and another environment", base, change(func(f []snapshot.Frame) []snapshot.Frame {
			f[0].File, f[1].File, f[2].File = "/opt/venv/lib/python3.12/site-packages/torch/nn.py", "/ci/build/net.py", "/ci/build/train.py"
			return f
		}), Lines},
		{"lines that moved", base, change(func(f []snapshot.Frame) []snapshot.Frame { f[1].Line = 80; return f }), Functions},
		{"a file that was renamed", base, change(func(f []snapshot.Frame) []snapshot.Frame { f[1].File = "/home/a/proj/model.py"; return f }), Names},
		{"a call that came between", base, change(func(f []snapshot.Frame) []snapshot.Frame {
			return append(f, snapshot.Frame{Function: "<module>", File: "/home/a/proj/train.py", Line: 90})
		}), Innermost},
		{"a function that was renamed", base, change(func(f []snapshot.Frame) []snapshot.Frame { f[1].Function = "Net.run"; return f }), ""},
		{
			"native symbols of another build",
			native("unwind::unwind()", "at::native::add<float>(at::Tensor const&)", "torch::autograd::AddBackward0::apply(std::vector<int>&&)", "PyObject_Call.localalias"),
			native("at::native::add<double>(at::Tensor)", "torch::autograd::AddBackward0::apply(std::vector<long>&&)", "method_vectorcall.llvm.122"),
			Symbols,
		},
		{"other native symbols", native("at::native::add(at::Tensor)"), native("at::native::mul(at::Tensor)"), ""},
		{"operators keep their brackets", native("at::operator<(a)"), native("at::operator>(a)"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := func(frames []snapshot.Frame) []Row {
				stacks := snapshot.NewStacks()
				return []Row{{Frames: frames, Hash: stacks.Hash(stacks.InternFrames(frames))}}
			}
			a, b := row(c.a), row(c.b)
			got := Match("")
			for _, level := range levels {
				x, ok := newKeyer(a).key(&a[0], level)
				y, also := newKeyer(b).key(&b[0], level)
				if ok && also && x == y {
					got = level
					break
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAGoodRunSaysWhatGrowthIsWanted(t *testing.T) {
	weights := site{stack: "init:1 main:2"}
	leak := func(stack string, every int64) site { return site{stack: stack, every: every, size: 4096} }
	now := program{weights, leak("keep:8 step:20 main:3", 1)}
	for _, c := range []struct {
		name    string
		good    program
		verdict Verdict
		match   Match
		excess  float64
	}{
		{"what grows as fast there is wanted", now, Bounded, Exact, 0},
		{"also where lines have moved", program{weights, leak("keep:9 step:31 main:3", 1)}, Bounded, Functions, 0},
		{"what grows faster here leaks", program{weights, leak("keep:8 step:20 main:3", 4)}, Leak, Exact, 3072},
		{"what is there and does not grow leaks", program{weights, {stack: "keep:8 step:20 main:3", every: 100, size: 4096}}, Leak, Exact, 4096},
		{"what is not there leaks", program{weights}, Leak, "", 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := DefaultOptions()
			o.Against = c.good.run(100, 10)
			r, err := o.Analyze(now.run(100, 10))
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.Verdict != c.verdict || f.Against == nil || f.Against.Match != c.match || f.Against.Excess.Value < c.excess-200 || f.Against.Excess.Value > c.excess+200 {
				t.Errorf("got %s, %+v: %v; want %s, %q, %v", f.Verdict, f.Against, f.Reasons, c.verdict, c.match, c.excess)
			}
		})
	}
}

func TestStacksThatALevelCannotTellApartAreComparedTogether(t *testing.T) {
	// Two lines of one function; in the good run they stood elsewhere.
	at := func(a, b string) program {
		return program{{stack: "init:1 main:2"}, {stack: a + " main:3", every: 1, size: 4096}, {stack: b + " main:3", every: 2, size: 4096}}
	}
	o := DefaultOptions()
	o.Against = at("step:30", "step:31").run(100, 10)
	r, err := o.Analyze(at("step:20", "step:21").run(100, 10))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Verdict != Bounded || f.Against.Match != Functions {
			t.Errorf("got %s, %+v: %v; want bounded, by functions", f.Verdict, f.Against, f.Reasons)
		}
	}
}

func TestAMatchIsSaidInWords(t *testing.T) {
	for m, want := range map[Match]string{
		Innermost: "the innermost function of the program", Exact: "matched exactly", Lines: "scripts' lines", Functions: "files and functions", Names: "names alone", Symbols: "native symbols",
	} {
		if got := m.matched(); !strings.Contains(got, want) {
			t.Errorf("%s: %q; want %q", m, got, want)
		}
	}
}

func TestARunThatCannotBeComparedWithIsRefused(t *testing.T) {
	now := program{{stack: "init:1 main:2"}, {stack: "keep:8 step:20 main:3", every: 1, size: 4096}}
	one := now.run(100, 10)
	one.Snapshots = one.Snapshots[:1]
	resumed := now.run(100, 10)
	for _, s := range resumed.Snapshots[5:] {
		for i := range s.Segments {
			s.Segments[i].Address += 1 << 40
		}
	}
	stepless := now.run(100, 10)
	for _, s := range stepless.Snapshots {
		s.Mark.Step = snapshot.NoStep
	}
	for want, good := range map[string]*snapshot.Run{
		"fewer than two snapshots":             one,
		"another program, or of other devices": program{{stack: "build:1 start:2"}, {stack: "loop:9 start:3", every: 1, size: 4096}}.run(100, 10),
		"seem to be of different":              resumed,
		"is per second":                        stepless,
	} {
		o := DefaultOptions()
		o.Against = good
		if _, err := o.Analyze(now.run(100, 10)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestAGoodRunMayBeOfAnotherDeviceOfItsKind(t *testing.T) {
	now := program{{stack: "init:1 main:2"}, {stack: "keep:8 step:20 main:3", every: 1, size: 4096}}
	o := DefaultOptions()
	o.Against = now.run(100, 10)
	o.Against.Path = "good-run"
	for _, s := range o.Against.Snapshots {
		s.Devices[0].Index = 3
	}
	r, err := o.Analyze(now.run(100, 10))
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Bounded {
		t.Errorf("got %s: %v", f.Verdict, f.Reasons)
	}
	if !slices.Contains(r.Notes, "compared with good-run: a site that grows as fast there is no leak") {
		t.Errorf("notes %q do not say what the run was held against", r.Notes)
	}
}

// Of two lines of a function one grew, and is wanted; an edit has moved them.
func TestLinesThatMovedAreNotTakenForOneAnother(t *testing.T) {
	at := func(grows, stays string, more ...site) *snapshot.Run {
		return append(program{{stack: "init:1 main:2"}, {stack: grows + " main:3", every: 1, size: 4096}, {stack: stays + " main:3", every: 50, size: 512}}, more...).run(100, 10)
	}
	for _, c := range []struct {
		name  string
		here  *snapshot.Run
		leaks int
	}{
		{"by one line, to where the other stood", at("step:21", "step:22"), 0},
		{"beside a new leak", at("step:21", "step:23", site{stack: "step:22 main:3", every: 1, size: 8192}), 1},
		{"into a function that is called by another", at("step:21 run:9", "step:22 run:9"), 0},
	} {
		o := DefaultOptions()
		o.Against = at("step:20", "step:21")
		r, err := o.Analyze(c.here)
		if err != nil {
			t.Fatal(err)
		}
		if r.Leaks() != c.leaks || c.leaks == 1 && r.Findings[0].Growth().Bytes < 90*8192 {
			t.Errorf("%s: %d leaks: %v", c.name, r.Leaks(), r.Findings[0].Reasons)
		}
	}
}
