package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// model is a linear layer and a sigmoid. As in Burn, what a step computes on the
// way is dropped at once; only what the test names is held over Backward.
type model struct {
	o             *autodiff.Ops
	weight, bias  *engine.Tensor
	input, target *engine.Tensor
}

func newModel(o *autodiff.Ops) *model {
	m := &model{o: o, weight: o.Full(0.5, 4, 3), bias: o.Full(0.1, 3), input: o.Full(1, 2, 4), target: o.Full(0.25, 2, 3)}
	o.Track(m.weight, m.bias)
	return m
}

func (m *model) release() {
	for _, t := range []*engine.Tensor{m.weight, m.bias, m.input, m.target} {
		t.Release()
	}
}

// step trains once and returns the loss.
func (m *model) step(t *testing.T, replace, hold bool) float32 {
	t.Helper()
	var held *engine.Tensor
	loss := engine.Tidy(m.o, func() *engine.Tensor {
		s := m.o.Begin()
		out := m.o.Sigmoid(m.o.Add(m.o.MatMul(m.input, m.weight), m.bias))
		off := m.o.Sub(out, m.target)
		loss := m.o.Sum(m.o.Mul(off, off)).Keep()
		if hold {
			held = out.Keep()
		}
		s.End()
		return loss
	})
	if err := m.o.Backward(loss); err != nil {
		t.Fatal(err)
	}
	value := m.o.Floats(loss)[0]
	loss.Release()
	if hold {
		held.Release()
	}
	m.weight = m.update(m.weight, replace)
	m.bias = m.update(m.bias, replace)
	return value
}

// update moves a parameter: in place, or as an optimizer that makes a new leaf.
func (m *model) update(p *engine.Tensor, replace bool) *engine.Tensor {
	v := m.o.Valid()
	moved := engine.Tidy(v, func() *engine.Tensor {
		return v.Sub(p, engine.Scale(v, autodiff.Grad(p), 0.1))
	})
	if replace {
		p.Release()
		m.o.Track(moved)
		return moved
	}
	v.Assign(p, moved)
	moved.Release()
	autodiff.ZeroGrad(p)
	return p
}

func TestNodesPerStep(t *testing.T) {
	for _, c := range []struct {
		name          string
		rules         registry.Rules
		replace, hold bool
		nodes, index  float64 // per step
	}{
		{"original rules, parameters updated in place", registry.RulesOriginal, false, false, 0, 0},
		{"original rules, parameters replaced by new leaves (burn#2333)", registry.RulesOriginal, true, false, 2, 0},
		{"original rules, output held over backward", registry.RulesOriginal, false, true, 1, 0},
		{"original rules, both", registry.RulesOriginal, true, true, 3, 0},
		{"roots cleared (burn#2347), parameters replaced", registry.RulesRoots, true, false, 0, 0},
		{"roots cleared, output held over backward (burn#2487)", registry.RulesRoots, false, true, 1, 0},
		{"roots cleared, both", registry.RulesRoots, true, true, 1, 0},
		{"absent parents (burn#2488), parameters replaced", registry.RulesAbsentParents, true, false, 0, 0},
		{"absent parents, output held over backward", registry.RulesAbsentParents, false, true, 0, 0},
		{"absent parents, both", registry.RulesAbsentParents, true, true, 0, 0},
		{"components (burn#3793), parameters updated in place", registry.RulesComponents, false, true, 0, 0},
		{"components, both: each step is one, and no later backward goes through it", registry.RulesComponents, true, true, 3, 3},
		{"all graphs (burn#4039), both: the index alone grows", registry.RulesAllGraphs, true, true, 0, 3},
		{"latest rules, both", registry.RulesLatest, true, true, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			records := mem.NewDevice(mem.Host(), mem.Options{Index: 1})
			defer records.Close()
			r := registry.New(registry.Options{Rules: c.rules, Records: records})
			m := newModel(autodiff.NewOn(inner, r))
			defer m.release()
			const warm, steps = 10, 200
			for range warm {
				m.step(t, c.replace, c.hold)
			}
			nodes, blocks, live, index := r.Nodes(), enginetest.Live(records), enginetest.Live(d), r.Stats().Index
			for range steps {
				m.step(t, c.replace, c.hold)
			}
			if got := float64(r.Nodes()-nodes) / steps; got != c.nodes {
				t.Errorf("%.3f nodes per step, want %.3f", got, c.nodes)
			}
			if got := float64(r.Stats().Index-index) / steps; got != c.index {
				t.Errorf("%.3f index entries per step, want %.3f", got, c.index)
			}
			if got := float64(enginetest.Live(records)-blocks) / steps; got != c.nodes+c.index {
				t.Errorf("%.3f records per step, want %.3f", got, c.nodes+c.index)
			}
			if got := enginetest.Live(d); got != live {
				t.Errorf("%d blocks are live on the device, %d were", got, live)
			}
		})
	}
}

func TestRulesDoNotChangeWhatIsComputed(t *testing.T) {
	train := func(tape autodiff.Tape, replace, hold bool) (losses []float32) {
		inner, _ := enginetest.NewEager(t)
		o := autodiff.New(inner)
		if tape != nil {
			o = autodiff.NewOn(inner, tape)
		}
		m := newModel(o)
		defer m.release()
		for range 20 {
			losses = append(losses, m.step(t, replace, hold))
		}
		return losses
	}
	want := train(nil, false, false)
	if want[19] >= want[0] {
		t.Fatalf("the loss does not fall: %v", want)
	}
	for rules := registry.RulesOriginal; rules <= registry.RulesLatest; rules++ {
		got := train(registry.New(registry.Options{Rules: rules}), true, true)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rules %d: %s", rules, diff)
		}
	}
}

// TestForwardOnlyGrowsUnderAllRules is burn#4339: clean-up runs in Backward alone.
func TestForwardOnlyGrowsUnderAllRules(t *testing.T) {
	for rules := registry.RulesOriginal; rules <= registry.RulesLatest; rules++ {
		inner, d := enginetest.NewEager(t)
		r := registry.New(registry.Options{Rules: rules})
		o := autodiff.NewOn(inner, r)
		m := newModel(o)
		for range 2000 {
			s := o.Begin()
			o.Add(o.MatMul(m.input, m.weight), m.bias)
			s.End()
		}
		// Two leaves, and two nodes a pass. The input, which matmul saved, is one block.
		want := registry.Stats{Nodes: 4002, Pending: 4002, Graphs: 1, Saved: 2 * 4 * engine.ElementSize}
		if rules >= registry.RulesComponents {
			want.Index = 4002
		}
		if got := r.Stats(); got != want {
			t.Errorf("rules %d: %+v, want %+v", rules, got, want)
		}
		if got := enginetest.Live(d); got != 4 {
			t.Errorf("rules %d: %d blocks are live, want the model's", rules, got)
		}
		r.Sweep()
		if got := r.Nodes(); got != 2 {
			t.Errorf("rules %d: %d nodes after a sweep, want the leaves", rules, got)
		}
		m.release()
	}
}

// TestRootsThatNoBackwardReaches is burn#3976 and #4345: something that is
// tracked, or computed plainly, in every step, and never differentiated.
func TestRootsThatNoBackwardReaches(t *testing.T) {
	asked := func(o *autodiff.Ops) { o.Track(o.Full(1, 8)) }
	plain := func(o *autodiff.Ops) { o.Exp(o.Full(1, 8)) }
	for _, c := range []struct {
		name                 string
		rules                registry.Rules
		make                 func(o *autodiff.Ops)
		nodes, graphs, index int // per step
	}{
		{"one graph for all: a leaf is swept", registry.RulesAbsentParents, asked, 0, 0, 0},
		{"one graph for all: a plain result is swept", registry.RulesAbsentParents, plain, 0, 0, 0},
		{"a graph for each component: a leaf stays, with a graph of its own (burn#3976)", registry.RulesComponents, asked, 1, 1, 1},
		{"a graph for each component: a plain result stays", registry.RulesComponents, plain, 1, 1, 1},
		{"all graphs swept (burn#4039): the entry of a leaf stays in the index (burn#4345)", registry.RulesAllGraphs, asked, 0, 0, 1},
		{"all graphs swept: the entry of a plain result stays in the index", registry.RulesAllGraphs, plain, 0, 0, 1},
		{"latest rules: nothing of a leaf stays", registry.RulesLatest, asked, 0, 0, 0},
		{"latest rules: nothing of a plain result stays", registry.RulesLatest, plain, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			records := mem.NewDevice(mem.Host(), mem.Options{Index: 1})
			defer records.Close()
			r := registry.New(registry.Options{Rules: c.rules, Records: records})
			o := autodiff.NewOn(inner, r)
			m := newModel(o)
			defer m.release()
			const steps = 100
			step := func() {
				s := o.Begin()
				c.make(o)
				s.End()
				m.step(t, false, false)
			}
			step()
			before, blocks, live := r.Stats(), enginetest.Live(records), enginetest.Live(d)
			for range steps {
				step()
			}
			after := r.Stats()
			want := registry.Stats{
				Nodes: before.Nodes + c.nodes*steps, Graphs: before.Graphs + c.graphs*steps, Index: before.Index + c.index*steps,
				Pending: after.Pending, Saved: before.Saved,
			}
			if after != want {
				t.Errorf("%+v, want %+v", after, want)
			}
			if got := enginetest.Live(records) - blocks; got != int64((c.nodes+c.index)*steps) {
				t.Errorf("%d more records after %d steps", got, steps)
			}
			if got := enginetest.Live(d); got != live {
				t.Errorf("%d blocks are live on the device, %d were", got, live)
			}
		})
	}
}

func TestRecordsShowInSnapshotsWithTheCallThatMadeThem(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	records := mem.NewDevice(mem.Host(), mem.Options{Index: 1})
	defer records.Close()
	o := autodiff.NewOn(inner, registry.New(registry.Options{Records: records}))
	x := o.Full(1, 3)
	o.Track(x)
	y := double(o, x)
	s := mem.Take(snapshot.Mark{}, records)
	var stacks []string
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		if got := s.Blocks.Owners[i]; got != snapshot.OwnedByTape {
			t.Errorf("a record is owned by %v", got.Names())
		}
		var names []string
		for _, f := range s.Stacks.Frames(s.Blocks.Stack[i]) {
			names = append(names, f.Function)
		}
		stacks = append(stacks, strings.Join(names, " < "))
	}
	want := []string{
		"autodiff.(*Ops).Track < registry_test.TestRecordsShowInSnapshotsWithTheCallThatMadeThem",
		"autodiff.(*Ops).Add < registry_test.double < registry_test.TestRecordsShowInSnapshotsWithTheCallThatMadeThem",
	}
	if diff := cmp.Diff(want, stacks); diff != "" {
		t.Error(diff)
	}
	x.Release()
	y.Release()
}

//go:noinline
func double(o engine.Ops, x *engine.Tensor) *engine.Tensor { return o.Add(x, x) }

func TestMisuse(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	r := registry.New(registry.Options{})
	o, other := autodiff.NewOn(inner, r), autodiff.New(inner)
	for _, c := range []struct {
		name, want string
		body       func(x *engine.Tensor) error
	}{
		{"a graph cannot be kept", "to keep it, use autodiff.New", func(x *engine.Tensor) error {
			return o.BackwardWith(o.Sum(x), autodiff.BackwardOptions{KeepGraph: true})
		}},
		{"a second backward", "sum was gone through before", func(x *engine.Tensor) error {
			loss := o.Sum(x)
			if err := o.Backward(loss); err != nil {
				return err
			}
			return o.Backward(loss)
		}},
		{"a part that was gone through is an error, not a gradient that stops there", "exp was gone through before", func(x *engine.Tensor) error {
			y := o.Exp(x)
			loss := o.Sum(y)
			if err := o.Backward(loss); err != nil {
				return err
			}
			return o.Backward(o.Sum(o.Neg(y)))
		}},
		{"an operand of the owned tape", "tracked by another tape", func(x *engine.Tensor) error {
			y := other.Full(1, 3)
			other.Track(y)
			o.Mul(x, y)
			return nil
		}},
		{"an operand of the registry on the owned tape", "tracked by another tape", func(x *engine.Tensor) error {
			other.Exp(x)
			return nil
		}},
		{"a loss of the registry on the owned tape", "tracked by another tape", func(x *engine.Tensor) error {
			return other.Backward(o.Sum(x))
		}},
		{"a loss of the owned tape", "tracked by another tape", func(*engine.Tensor) error {
			y := other.Full(1)
			other.Track(y)
			return o.Backward(y)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := engine.Run(o, func(*engine.Scope) error {
				x := o.Full(1, 3)
				o.Track(x)
				return c.body(x)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
	r.Sweep()
	if got := r.Stats(); got.Pending != 0 || got.Saved != 0 {
		t.Errorf("%+v is left", got)
	}
}

// during is the identity, and does something else in a pass.
type during struct{ do func() }

func (*during) Name() string { return "during" }

func (*during) Forward(_ *autodiff.Context, o engine.Ops, in ...*engine.Tensor) *engine.Tensor {
	return o.Copy(in[0])
}

func (f *during) Backward(_ *autodiff.Context, _ engine.Ops, g *engine.Tensor) []*engine.Tensor {
	f.do()
	return []*engine.Tensor{g}
}

// TestComponentsMayMergeDuringAPass is for a sweep that would go through the graph
// as it was when the pass began.
func TestComponentsMayMergeDuringAPass(t *testing.T) {
	for _, larger := range []bool{false, true} {
		inner, _ := enginetest.NewEager(t)
		r := registry.New(registry.Options{Rules: registry.RulesLatest})
		o, other := autodiff.NewOn(inner, r), autodiff.NewOn(inner, r)
		a, b := o.Full(1), o.Full(1)
		o.Track(a, b)
		var chain []*engine.Tensor // makes b's component the larger one
		for range 10 {
			if larger {
				chain = append(chain, o.Exp(b))
			}
		}
		between := &during{}
		c := o.Apply(between, a)
		gone, unused := o.Exp(c), o.Exp(c)
		d := o.Exp(gone)
		gone.Release()   // the pass takes it away between c and d
		unused.Release() // the sweep finds c below it
		var joined *engine.Tensor
		between.do = func() { joined = other.Mul(a, b).Keep() }
		if err := o.Backward(d); err != nil {
			t.Fatal(err)
		}
		node := c.History()
		if !r.Registered(node) {
			t.Error("a node that a tensor refers to went with the pass")
		}
		c.Release()
		d.Release()
		if err := o.Backward(joined); err != nil {
			t.Fatal(err)
		}
		if r.Registered(node) {
			t.Errorf("larger is %v: a node that became the newest in the pass was not swept with the next", larger)
		}
		for _, t := range append(chain, a, b, joined) {
			t.Release()
		}
		r.Sweep()
	}
}
