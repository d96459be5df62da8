package optim_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

// optimizer is what all of them do beside their own business.
type optimizer interface {
	Add(parameters ...*engine.Tensor)
	Forget(parameters ...*engine.Tensor)
	State() []engine.Named
	Load(saved []engine.Named) error
	Release()
}

// kind is one optimizer, and one step of it.
type kind struct {
	name  string
	make  func(o engine.Ops, p []*engine.Tensor) optimizer
	step  func(optimizer)
	names []string // of the state of two parameters
}

var kinds = []kind{
	{"sgd with momentum",
		func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewSGD(o, p, 0.1, 0.9) },
		func(s optimizer) { s.(*optim.SGD).Step() },
		[]string{"0.velocity", "1.velocity"}},
	{"adam",
		func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewAdam(o, p, 0.1) },
		func(s optimizer) { s.(*optim.Adam).Step() },
		[]string{"0.mean", "0.square", "1.mean", "1.square", "steps"}},
	{"an average",
		func(o engine.Ops, p []*engine.Tensor) optimizer { return optim.NewEMA(o, p, 0.5) },
		func(s optimizer) { s.(*optim.EMA).Update() },
		[]string{"0.average", "1.average"}},
}

// bench trains two parameters.
type bench struct {
	*autodiff.Ops
	t      *testing.T
	kind   kind
	params []*engine.Tensor
}

func newBench(t *testing.T, k kind) (*bench, func() int64) {
	inner, d := enginetest.NewEager(t)
	b := &bench{Ops: autodiff.New(inner), t: t, kind: k}
	b.params = []*engine.Tensor{b.Full(1, 3), b.Full(-2, 2, 2)}
	b.Track(b.params...)
	t.Cleanup(func() { // before the device is closed
		for _, p := range b.params {
			p.Release()
		}
	})
	return b, func() int64 { return enginetest.Live(d) }
}

// steps trains n steps with the gradient p² of each parameter, then gives the
// gradients that an optimizer did not use back.
func (b *bench) steps(s optimizer, n int) {
	b.t.Helper()
	for range n {
		b.run(func() error {
			loss := b.Full(0)
			for _, p := range b.params {
				loss = b.Add(loss, b.Sum(b.Mul(p, b.Mul(p, p))))
			}
			if err := b.Backward(loss); err != nil {
				return err
			}
			b.kind.step(s)
			autodiff.ZeroGrad(b.params...)
			return nil
		})
	}
}

func (b *bench) run(f func() error) {
	b.t.Helper()
	if err := engine.Run(b, func(*engine.Scope) error { return f() }); err != nil {
		b.t.Fatal(err)
	}
}

// values reads tensors, the parameters and the state.
func (b *bench) values(s optimizer) map[string][]float32 {
	all := map[string][]float32{"p0": b.Floats(b.params[0]), "p1": b.Floats(b.params[1])}
	for _, n := range s.State() {
		if n.Tensor.DType() == engine.Float32 {
			all[n.Name] = b.Floats(n.Tensor)
			continue
		}
		for _, v := range b.Ints(n.Tensor) {
			all[n.Name] = append(all[n.Name], float32(v))
		}
	}
	return all
}

func TestStateIsListedByParameterAndKind(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			b, live := newBench(t, k)
			s := k.make(b, b.params)
			if got := s.State(); len(got) != 0 || live() != 2 {
				t.Errorf("before the first step the state is %v and %d blocks are live", got, live())
			}
			b.steps(s, 1)
			var names []string
			for _, n := range s.State() {
				names = append(names, n.Name)
				if n.Tensor.Owner() != snapshot.OwnedByOptim {
					t.Errorf("%s is owned by %v", n.Name, n.Tensor.Owner().Names())
				}
			}
			if diff := cmp.Diff(k.names, names); diff != "" {
				t.Error(diff)
			}
			before := live()
			b.steps(s, 3)
			s.State()
			if got := live(); got != before {
				t.Errorf("%d blocks are live, %d three steps ago", got, before)
			}
			s.Release()
			s.Release()
			if got := live(); got != 2 {
				t.Errorf("%d blocks are live after a release, want the parameters", got)
			}
		})
	}
}

// TestAResumedOptimizerGoesOnToTheBit saves after three steps, goes on for three,
// and compares with another that loads what was saved and takes the same three.
func TestAResumedOptimizerGoesOnToTheBit(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			b, _ := newBench(t, k)
			s := k.make(b, b.params)
			b.steps(s, 3)
			var saved []engine.Named
			var start []*engine.Tensor
			for _, n := range s.State() {
				saved = append(saved, engine.Named{Name: n.Name, Tensor: b.Valid().Copy(n.Tensor)})
			}
			for _, p := range b.params {
				start = append(start, b.Valid().Copy(p))
			}
			b.steps(s, 3)
			want := b.values(s)
			s.Release()

			for _, loaded := range []struct {
				name string
				used bool
			}{{"into a fresh optimizer", false}, {"over the state of one in use", true}} {
				t.Run(loaded.name, func(t *testing.T) {
					s := k.make(b, b.params)
					if loaded.used {
						b.steps(s, 2)
					}
					for i, p := range b.params {
						b.Valid().Assign(p, start[i])
					}
					if err := s.Load(saved); err != nil {
						t.Fatal(err)
					}
					b.steps(s, 3)
					if diff := cmp.Diff(want, b.values(s)); diff != "" {
						t.Error(diff)
					}
					s.Release()
				})
			}
			for _, n := range saved {
				n.Tensor.Release()
			}
			for _, p := range start {
				p.Release()
			}
		})
	}
}

func TestStateThatDoesNotFitIsRefusedWhole(t *testing.T) {
	cases := []struct {
		name   string
		change func(b *bench, saved []engine.Named) []engine.Named
		want   string
	}{
		{"a parameter of another shape", func(b *bench, s []engine.Named) []engine.Named {
			s[1].Tensor = b.Full(0, 4)
			return s
		}, "0.square is float32 [4], its parameter float32 [3]"},
		{"a tensor too many", func(b *bench, s []engine.Named) []engine.Named {
			return append(s, engine.Named{Name: "2.mean", Tensor: b.Full(0, 3)})
		}, "2.mean belongs to none of 2 parameters"},
		{"half of a parameter's state", func(_ *bench, s []engine.Named) []engine.Named { return s[1:] }, "parameter 0 has 1 of [mean square]"},
		{"no count of steps", func(_ *bench, s []engine.Named) []engine.Named { return s[:4] }, "steps, int32 [2], is needed"},
		{"a name twice", func(_ *bench, s []engine.Named) []engine.Named { return append(s, s[0]) }, "0.mean occurs twice"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, _ := newBench(t, kinds[1])
			s := b.kind.make(b, b.params)
			b.steps(s, 2)
			before := b.values(s)
			b.run(func() error {
				err := s.Load(c.change(b, s.State()))
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("the error is %v, want %q in it", err, c.want)
				}
				return nil
			})
			if diff := cmp.Diff(before, b.values(s)); diff != "" {
				t.Error("the state changed", diff)
			}
			s.Release()
		})
	}
}

func TestStateThatIsNotSavedIsReleased(t *testing.T) {
	b, live := newBench(t, kinds[1])
	s := b.kind.make(b, b.params)
	b.steps(s, 1)
	if err := s.Load(nil); err != nil {
		t.Fatal(err)
	}
	if got := s.State(); len(got) != 0 || live() != 2 {
		t.Errorf("after loading nothing the state is %v and %d blocks are live", got, live())
	}
	s.Release()
}

// TestReplacedParametersLeaveTheirStateBehindUnlessForgotten is the leak that
// Forget is there for.
func TestReplacedParametersLeaveTheirStateBehindUnlessForgotten(t *testing.T) {
	for _, forgets := range []bool{true, false} {
		b, live := newBench(t, kinds[0])
		s := b.kind.make(b, b.params)
		b.steps(s, 1)
		before := live()
		for range 3 {
			old := b.params[0]
			b.params[0] = b.Full(1, 3)
			b.Track(b.params[0])
			if forgets {
				s.Forget(old)
			}
			s.Add(b.params[0])
			old.Release()
			b.steps(s, 1)
		}
		want := before
		if !forgets {
			want += 3
		}
		if got := live(); got != want {
			t.Errorf("with forgetting %v, %d blocks are live after three replacements, want %d", forgets, got, want)
		}
		s.Release()
		if got := live(); got != 2 {
			t.Errorf("%d blocks are live after a release", got)
		}
	}
}

func TestSwapEvaluatesWithTheAverages(t *testing.T) {
	b, _ := newBench(t, kinds[2])
	e := optim.NewEMA(b, b.params, 0.5)
	e.Swap() // nothing to swap yet
	if e.Average(b.params[0]) != nil {
		t.Error("there is an average before the first update")
	}
	e.Update()
	b.run(func() error {
		b.Valid().Assign(b.params[0], b.Full(3))
		return nil
	})
	e.Update() // half of 1 and 3
	for _, want := range [][]float32{{2, 2, 2}, {3, 3, 3}} {
		e.Swap()
		if diff := cmp.Diff(want, b.Floats(b.params[0])); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff([]float32{2, 2, 2}, b.Floats(e.Average(b.params[0]))); diff != "" {
		t.Error("the average changed", diff)
	}
	e.Release()
}

// Averages of a parameter that was listed twice once moved twice.
func TestAParameterThatIsListedTwiceIsOne(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	p := o.Full(1)
	e := optim.NewEMA(o, []*engine.Tensor{p, p}, 0.5)
	e.Update()
	e.Add(p)
	if err := engine.Run(o, func(*engine.Scope) error {
		o.Assign(p, o.Full(3))
		e.Update()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got := o.Floats(e.Average(p))[0]; got != 2 {
		t.Errorf("half of 1 and half of 3 is %v", got)
	}
	if got := len(e.State()); got != 1 {
		t.Errorf("it has %d averages", got)
	}
	e.Release()
	p.Release()
}
