package autodiff_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/snapshot"
)

// shape is a graph, built and gone through by a script, and what must be left of
// it: the nodes that are held, by name, and how many blocks the tape has saved,
// of 4 bytes each.
//
//	leaf a b     tracked tensors
//	plain c      a tensor that is not tracked
//	d = a * b    saves each factor if the other is tracked
//	e = exp d    saves its result
//	f = detach d
//	drop a b     releases handles; what is not dropped is held to the end
//	backward e   must do, fails e must not
type shape struct {
	name   string
	script string
	owned  state // where outputs own the graph
	// On the registry: under the original rules, under those that free what has no
	// parent left, and under the latest, which keep components apart.
	original, absent, latest state
}

type state struct {
	held  string
	saved int // blocks
}

// shapes are those in which Burn's clean-up once went wrong, and a few more.
var shapes = []shape{
	{
		"a graph that nothing went through is all there",
		"leaf a b; c = a * b; d = exp c",
		state{"a b c d", 3}, state{"a b c d", 3}, state{"a b c d", 3}, state{"a b c d", 3},
	},
	{
		"a result that is dropped takes its chain with it; on the registry when a backward sweeps its component",
		"leaf a b z; c = a * b; d = exp c; drop c d; backward z",
		state{"a b z", 0}, state{"a b z", 0}, state{"a b z", 0}, state{"a b z c d", 3},
	},
	{
		"of two independent trees, backward through one leaves the other",
		"leaf a b c d e f; g = a * b; h = c * d; i = g * h; drop g h; j = e * f; k = j * e; drop j; backward i; drop i",
		state{"a b c d e f j k", 3}, state{"a b c d e f j k", 3}, state{"a b c d e f j k", 3}, state{"a b c d e f j k", 3},
	},
	{
		"of two independent trees, each can be gone through",
		"leaf a b c d; g = a * b; h = c * d; backward g; drop g; backward h; drop h",
		state{"a b c d", 0}, state{"a b c d h", 0}, state{"a b c d h", 0}, state{"a b c d g h", 0},
	},
	{
		"of two trees that cross, the second is lost with the part that they share",
		"leaf a b c d e f; g = a * b; h = c * d; i = g * h; drop h; j = e * f; k = g * j; drop g j; backward i; fails k",
		state{"a b c d e f g i j k", 4}, state{"a b c d e f", 0}, state{"a b c d e f", 0}, state{"a b c d e f", 0},
	},
	{
		"of two trees that cross, a part of the second that a tensor refers to can be used",
		"leaf a b c d e f; g = a * b; h = c * d; i = g * h; drop h; j = e * f; k = g * j; drop g; backward i; backward j",
		state{"a b c d e f g i j k", 2}, state{"a b c d e f j", 0}, state{"a b c d e f j", 0}, state{"a b c d e f j", 0},
	},
	{
		"of three trees that cross in a row, the last can be used after the first",
		"leaf a b c d e f; g = a * b; h = c * d; i = g * h; j = e * f; k = h * j; l = j * e; drop g h j; backward i; backward l; drop i l",
		state{"a b c d e f h j k", 2}, state{"a b c d e f", 0}, state{"a b c d e f", 0}, state{"a b c d e f", 0},
	},
	{
		"of three trees that cross in a row, the middle one is lost with the first",
		"leaf a b c d e f; g = a * b; h = c * d; i = g * h; j = e * f; k = h * j; l = j * e; drop g h j; backward i; fails k; drop i",
		state{"a b c d e f h j k l", 4}, state{"a b c d e f j l", 3}, state{"a b c d e f j l", 3}, state{"a b c d e f j l", 3},
	},
	{
		"a tree that refers to itself is gone through once",
		"leaf a b; c = a * b; d = exp c; e = c * d; drop c d; backward e; drop e",
		state{"a b", 0}, state{"a b", 0}, state{"a b", 0}, state{"a b", 0},
	},
	{
		"a tensor by itself twice",
		"leaf a; b = a * a; c = b * b; drop b; backward c; drop c",
		state{"a", 0}, state{"a", 0}, state{"a", 0}, state{"a", 0},
	},
	{
		"detach cuts what is before off",
		"leaf a b c; d = a * b; e = detach d; f = e * c; drop e; backward f; drop f",
		state{"a b c d", 2}, state{"a b c d f", 2}, state{"a b c d f", 2}, state{"a b c d f", 2},
	},
	{
		"a plain operand is saved, and a backward elsewhere takes nothing away",
		"leaf a z; plain p; c = a * p; d = c * p; drop c p; backward z; backward d; drop d",
		state{"a z", 0}, state{"a z", 0}, state{"a z", 0}, state{"a z", 0},
	},
	{
		"what became impossible is freed, with all that it leads to",
		"leaf a b; c = a * b; d = exp c; e = exp d; drop a b; backward c; fails d; fails e",
		state{"c d e", 2}, state{"", 0}, state{"", 0}, state{"", 0},
	},
	{
		"what became impossible stays if the registry cannot tell, and is an error all the same",
		"leaf a b; c = a * b; d = exp c; e = exp d; backward c; fails d; fails e",
		state{"a b c d e", 2}, state{"a b c d e", 2}, state{"a b c d e", 2}, state{"a b c d e", 2},
	},
	{
		"a node that is explored from one result and of no use there is kept for a deeper one",
		"leaf a b; c = exp b; d = exp a; e = d * c; drop e; f = exp c; drop c; g = exp f; h = exp g; drop f g; backward d; backward h",
		state{"a b d h", 0}, state{"a b d", 0}, state{"a b d", 0}, state{"a b d", 0},
	},
	{
		"of several results of one part, the one that is dropped goes alone",
		"leaf a b z; c = a * b; d = exp c; e = exp c; f = c * a; drop c e; backward z",
		state{"a b z c d f", 4}, state{"a b z c d f", 4}, state{"a b z c d f", 4}, state{"a b z c d e f", 5},
	},
	{
		"several results of one part are gone through as one sum of gradients",
		"leaf a b; c = a * b; d = exp c; e = exp c; f = d * e; drop c d e; backward f; drop f",
		state{"a b", 0}, state{"a b", 0}, state{"a b", 0}, state{"a b", 0},
	},
	{
		"results that are all held over backward stay on the registry until the next",
		"leaf a b; c = a * b; d = exp c; backward d; drop d c",
		state{"a b", 0}, state{"a b c d", 0}, state{"a b c d", 0}, state{"a b c d", 0},
	},
	{
		"a result that alone is held over backward stays for ever under the original rules",
		"leaf a b; c = a * b; d = exp c; e = exp d; f = exp e; drop c e; backward f; drop d f; y = exp a; backward y",
		state{"a b y", 0}, state{"a b d y", 0}, state{"a b y", 0}, state{"a b y", 0},
	},
	{
		"a result of leaves that alone is held over backward stays as long as they do, under all rules",
		"leaf a b; c = a * b; d = exp c; e = exp d; drop d; backward e; drop c e; y = exp a; backward y",
		state{"a b y", 0}, state{"a b c y", 0}, state{"a b c y", 0}, state{"a b c y", 0},
	},
	{
		"a leaf that is dropped stays with its result",
		"leaf a b; c = a * b; drop a b",
		state{"a b c", 2}, state{"a b c", 2}, state{"a b c", 2}, state{"a b c", 2},
	},
	{
		"a leaf that is dropped after its results were gone through is an orphan of the original rules",
		"leaf a b; c = a * b; d = exp c; drop c; backward d; drop a b d; leaf y; z = exp y; backward z",
		state{"y z", 0}, state{"a b y z", 0}, state{"y z", 0}, state{"y z", 0},
	},
	{
		"a component that no tensor refers to goes one layer at a backward, under the latest rules",
		"leaf a b; c = a * b; d = exp c; drop a b c d; leaf z; backward z",
		state{"z", 0}, state{"z", 0}, state{"z", 0}, state{"c d z", 3},
	},
}

func TestGraphShapes(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Run("owned", func(t *testing.T) {
				w := newWorld(t, nil)
				w.run(s.script)
				w.check(s.owned, autodiff.Held)
				w.release()
				if n := w.o.Nodes(); n != 0 {
					t.Errorf("%d nodes are left once all handles are released", n)
				}
			})
			for name, want := range map[string]struct {
				registry.Rules
				state
			}{
				"original": {registry.RulesOriginal, s.original},
				"absent":   {registry.RulesAbsentParents, s.absent},
				"latest":   {registry.RulesLatest, s.latest},
			} {
				t.Run(name, func(t *testing.T) {
					r := registry.New(registry.Options{Rules: want.Rules})
					w := newWorld(t, r)
					w.run(s.script)
					w.check(want.state, r.Registered)
					if got := r.Stats().Saved; got != snapshot.Bytes(engine.ElementSize*want.saved) {
						t.Errorf("the registry counts %d bytes saved", got)
					}
					w.release()
					for range w.named {
						r.Sweep()
					}
					if got := r.Stats(); want.Rules == registry.RulesLatest && got != (registry.Stats{}) {
						t.Errorf("%+v is left once all handles are released and swept", got)
					}
				})
			}
		})
	}
}

// world runs the scripts.
type world struct {
	t       *testing.T
	o       *autodiff.Ops
	tensors map[string]*engine.Tensor
	named   map[string]engine.History // of all that were ever made
	taped   func() int                // blocks that the tape holds
}

func newWorld(t *testing.T, tape autodiff.Tape) *world {
	inner, d := enginetest.NewEager(t)
	w := &world{t: t, o: autodiff.New(inner), tensors: make(map[string]*engine.Tensor), named: make(map[string]engine.History)}
	if tape != nil {
		w.o = autodiff.NewOn(inner, tape)
	}
	w.taped = func() (n int) {
		for owners, count := range enginetest.Owners(d) {
			if owners&snapshot.OwnedByTape != 0 {
				n += count
			}
		}
		return n
	}
	return w
}

func (w *world) run(script string) {
	w.t.Helper()
	for line := range strings.SplitSeq(script, ";") {
		f := strings.Fields(line)
		switch {
		case f[0] == "leaf":
			for _, name := range f[1:] {
				w.tensors[name] = w.o.Full(1.5, 1)
				w.o.Track(w.tensors[name])
				w.named[name] = w.tensors[name].History()
			}
		case f[0] == "plain":
			w.tensors[f[1]] = w.o.Full(1.5, 1)
		case f[0] == "drop":
			for _, name := range f[1:] {
				w.tensors[name].Release()
				delete(w.tensors, name)
			}
		case f[0] == "backward":
			if err := w.o.Backward(w.tensors[f[1]]); err != nil {
				w.t.Errorf("%s: %v", line, err)
			}
		case f[0] == "fails":
			if err := w.o.Backward(w.tensors[f[1]]); err == nil {
				w.t.Errorf("%s: it did", line)
			}
		case f[2] == "exp":
			w.result(f[0], w.o.Exp(w.tensors[f[3]]))
		case f[2] == "detach":
			w.tensors[f[0]] = w.o.Detach(w.tensors[f[3]])
		case f[3] == "*":
			w.result(f[0], w.o.Mul(w.tensors[f[2]], w.tensors[f[4]]))
		default:
			w.t.Fatalf("%q is no line of a script", line)
		}
	}
}

func (w *world) result(name string, t *engine.Tensor) {
	w.tensors[name], w.named[name] = t, t.History()
}

func (w *world) check(want state, held func(engine.History) bool) {
	w.t.Helper()
	var got []string
	for _, name := range slices.Sorted(maps.Keys(w.named)) {
		if held(w.named[name]) {
			got = append(got, name)
		}
	}
	names := strings.Fields(want.held)
	slices.Sort(names)
	if !slices.Equal(got, names) {
		w.t.Errorf("held: %v, want %v", got, names)
	}
	if n := w.o.Nodes(); n != len(names) {
		w.t.Errorf("%d nodes are counted, want %d", n, len(names))
	}
	if n := w.taped(); n != want.saved {
		w.t.Errorf("the tape holds %d blocks, want %d", n, want.saved)
	}
}

func (w *world) release() {
	for _, t := range w.tensors {
		t.Release()
	}
}
