package autodiff_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

// input is one operand of a gradient check: its shape, and the range that its
// elements are drawn from.
type input struct {
	dims      []int
	low, high float32
}

func in(low, high float32, dims ...int) input { return input{dims, low, high} }

type list = []*engine.Tensor

// gradientCase is a function and the operands that it is differentiated at.
type gradientCase struct {
	name   string
	inputs []input
	f      func(o engine.Ops, x list) *engine.Tensor
}

// gradientCases has every operation, alone and as models use it.
func gradientCases() []gradientCase {
	w := engine.Window{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 1}}
	return []gradientCase{
		{"neg", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Neg(x[0]) }},
		{"exp", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Exp(x[0]) }},
		{"log", []input{in(0.5, 2, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Log(x[0]) }},
		{"sqrt", []input{in(0.5, 2, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Sqrt(x[0]) }},
		{"recip", []input{in(0.5, 2, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Recip(x[0]) }},
		{"abs away from 0", []input{in(-2, -0.1, 3), in(0.1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Add(o.Abs(x[0]), o.Abs(x[1]))
		}},
		{"relu away from 0", []input{in(-2, -0.1, 3), in(0.1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Add(o.ReLU(x[0]), o.ReLU(x[1]))
		}},
		{"tanh", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Tanh(x[0]) }},
		{"sigmoid", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Sigmoid(x[0]) }},
		{"add with a stretched row", []input{in(-1, 1, 2, 3), in(-1, 1, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Add(x[0], x[1]) }},
		{"sub with a stretched column", []input{in(-1, 1, 2, 1), in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Sub(x[0], x[1]) }},
		{"mul", []input{in(-1, 1, 2, 3), in(-1, 1, 1, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Mul(x[0], x[1]) }},
		{"mul with itself", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Mul(x[0], x[0]) }},
		{"div", []input{in(-1, 1, 2, 3), in(0.5, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Div(x[0], x[1]) }},
		{"max", []input{in(-2, 0, 4), in(0.1, 1, 4)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Add(o.Max(x[0], x[1]), engine.Scale(o, o.Max(x[1], x[0]), 3))
		}},
		{"pow", []input{in(0.5, 2, 2, 3), in(-1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Pow(x[0], x[1]) }},
		{"where", []input{in(-1, 1, 4), in(-1, 1, 1)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Where(o.FromFloats([]float32{1, 0, 0, 1}, 4), x[0], x[1])
		}},
		{"sum of all", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Sum(x[0]) }},
		{"sum over axes", []input{in(-1, 1, 2, 3, 2)}, func(o engine.Ops, x list) *engine.Tensor { return o.Sum(x[0], 0, -1) }},
		{"max over an axis", []input{in(-1, 1, 3, 4, 2)}, func(o engine.Ops, x list) *engine.Tensor { return o.MaxOver(x[0], 1) }},
		{"matmul", []input{in(-1, 1, 3, 4), in(-1, 1, 4, 2)}, func(o engine.Ops, x list) *engine.Tensor { return o.MatMul(x[0], x[1]) }},
		{"matmul of a matrix and a batch", []input{in(-1, 1, 3, 4), in(-1, 1, 2, 4, 2)}, func(o engine.Ops, x list) *engine.Tensor { return o.MatMul(x[0], x[1]) }},
		{"matmul of transposes", []input{in(-1, 1, 2, 4, 3), in(-1, 1, 2, 5, 4)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.MatMul(o.Permute(x[0], 0, 2, 1), o.Permute(x[1], 0, 2, 1))
		}},
		{"copy", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Copy(x[0]) }},
		{"reshape", []input{in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Reshape(x[0], 3, 2) }},
		{"permute", []input{in(-1, 1, 2, 3, 4)}, func(o engine.Ops, x list) *engine.Tensor { return o.Permute(x[0], 2, -3, 1) }},
		{"slice of a beginning", []input{in(-1, 1, 4, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Slice(x[0], -1, 0, 1) }},
		{"slice of nothing", []input{in(-1, 1, 4, 3)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Concat(0, o.Slice(x[0], 0, 2, 2), o.Slice(x[0], 0, 3, 4))
		}},
		{"slice", []input{in(-1, 1, 4, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Slice(x[0], 0, 1, 3) }},
		{"expand", []input{in(-1, 1, 3, 1)}, func(o engine.Ops, x list) *engine.Tensor { return o.Expand(x[0], 2, 3, 4) }},
		{"concat", []input{in(-1, 1, 2, 2), in(-1, 1, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return o.Concat(-1, x[0], x[1], x[0]) }},
		{"gather", []input{in(-1, 1, 4, 2)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Gather(x[0], o.FromInts([]int32{3, 0, 3}, 3))
		}},
		{"scatter-add", []input{in(-1, 1, 3, 2)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.ScatterAdd(x[0], o.FromInts([]int32{3, 0, 3}, 3), 4)
		}},
		{"unfold", []input{in(-1, 1, 2, 2, 5, 4)}, func(o engine.Ops, x list) *engine.Tensor { return o.Unfold(x[0], w) }},
		{"fold", []input{in(-1, 1, 1, 12, 15)}, func(o engine.Ops, x list) *engine.Tensor { return o.Fold(x[0], w, 2, 5, 4) }},
		{"conv2d", []input{in(-1, 1, 2, 2, 5, 4), in(-1, 1, 3, 2, 3, 2)}, func(o engine.Ops, x list) *engine.Tensor { return o.Conv2d(x[0], x[1], w) }},
		{"conv2d of single pixels", []input{in(-1, 1, 2, 2, 3, 3), in(-1, 1, 3, 2, 1, 1)}, func(o engine.Ops, x list) *engine.Tensor {
			return o.Conv2d(x[0], x[1], engine.Square(1, 1, 0))
		}},
		{"log-softmax", []input{in(-1, 1, 2, 4)}, func(o engine.Ops, x list) *engine.Tensor { return o.LogSoftmax(x[0]) }},
		{"softmax", []input{in(-1, 1, 2, 4)}, func(o engine.Ops, x list) *engine.Tensor { return engine.Softmax(o, x[0]) }},
		{"cross entropy", []input{in(-1, 1, 3, 4)}, func(o engine.Ops, x list) *engine.Tensor {
			return engine.CrossEntropy(o, x[0], o.FromInts([]int32{3, 0, 1}, 3), o.FromFloats([]float32{1, 2, 0.5}, 3))
		}},
		{"layer norm", []input{in(-1, 1, 3, 4), in(0.5, 1, 4), in(-1, 1, 4)}, func(o engine.Ops, x list) *engine.Tensor {
			return engine.LayerNorm(o, x[0], x[1], x[2], 1e-3)
		}},
		{"batch norm", []input{in(-1, 1, 2, 2, 2, 3), in(0.5, 1, 2), in(-1, 1, 2)}, func(o engine.Ops, x list) *engine.Tensor {
			mean, variance := engine.Moments(o, x[0], 0, 2, 3)
			return engine.BatchNorm(o, x[0], mean, variance, x[1], x[2], 1e-3)
		}},
		{"dropout", []input{in(-1, 1, 4, 4)}, func(o engine.Ops, x list) *engine.Tensor {
			return engine.Dropout(o, x[0], 0.5, engine.Draw{Key: 5})
		}},
		{"max pool", []input{in(-1, 1, 1, 2, 4, 4)}, func(o engine.Ops, x list) *engine.Tensor { return engine.MaxPool2d(o, x[0], engine.Square(2, 2, 0)) }},
		{"upsample", []input{in(-1, 1, 1, 2, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return engine.Upsample2x(o, x[0]) }},
		{"a value used along two paths", []input{in(-1, 1, 3)}, func(o engine.Ops, x list) *engine.Tensor {
			y := o.Tanh(x[0])
			return o.Add(o.Mul(y, o.Exp(y)), o.Sub(y, x[0]))
		}},
	}
}

// probe is a case's function made a number of: Σ weight·f, where the weights tell
// elements apart.
type probe struct {
	gradientCase
	host    [][]float32 // operands
	weights []float32
}

func newProbe(c gradientCase) *probe {
	p := &probe{gradientCase: c}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, in := range c.inputs {
		data := make([]float32, engine.ShapeOf(in.dims...).Elements())
		for i := range data {
			data[i] = in.low + (in.high-in.low)*rng.Float32()
		}
		p.host = append(p.host, data)
	}
	for range 512 { // more than any result has
		p.weights = append(p.weights, 0.5+rng.Float32())
	}
	return p
}

func (p *probe) upload(o engine.Ops) list {
	x := make(list, len(p.host))
	for i, in := range p.inputs {
		x[i] = o.FromFloats(p.host[i], in.dims...)
	}
	return x
}

// value computes the number on the host, in float64.
func (p *probe) value(o engine.Ops) (sum float64) {
	for i, v := range o.Floats(p.f(o, p.upload(o))) {
		sum += float64(p.weights[i]) * float64(v)
	}
	return sum
}

// loss computes the number with o.
func (p *probe) loss(o engine.Ops, x list) *engine.Tensor {
	out := p.f(o, x)
	return o.Sum(o.Mul(out, o.FromFloats(p.weights[:out.Shape().Elements()], out.Shape().Slice()...)))
}

// gradients are those of the number by backward.
func (p *probe) gradients(t *testing.T, o *autodiff.Ops) (gradients [][]float32) {
	run(t, o, func() error {
		x := p.upload(o)
		o.Track(x...)
		if err := o.Backward(p.loss(o, x)); err != nil {
			return err
		}
		gradients = p.download(t, o, x)
		return nil
	})
	return gradients
}

// download reads the gradients gathered in the operands.
func (p *probe) download(t *testing.T, o engine.Ops, x list) (gradients [][]float32) {
	for i := range x {
		g := autodiff.Grad(x[i])
		if g == nil || g.Shape() != x[i].Shape() {
			t.Fatalf("operand %d has the gradient %v", i, g)
		}
		gradients = append(gradients, o.Floats(g))
	}
	return gradients
}

// differences checks gradients of f against its central differences.
func (p *probe) differences(t *testing.T, gradients [][]float32, tolerance float64, f func() float64) {
	t.Helper()
	const step = 1e-2
	for i := range p.host {
		for j, x := range p.host[i] {
			p.host[i][j] = x + step
			above := f()
			p.host[i][j] = x - step
			want := (above - f()) / float64((x+step)-(x-step))
			p.host[i][j] = x
			if got := float64(gradients[i][j]); math.Abs(got-want) > tolerance*max(1, math.Abs(want)) {
				t.Errorf("operand %d element %d: gradient %g, central difference %g", i, j, got, want)
			}
		}
	}
}

// TestGradients holds every operation's backward against central differences,
// for each operand that has a gradient.
func TestGradients(t *testing.T) {
	for _, c := range gradientCases() {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			p := newProbe(c)
			p.differences(t, p.gradients(t, o), 2e-3, func() (v float64) {
				run(t, o, func() error { v = p.value(o.Valid()); return nil })
				return v
			})
			left(t, o, d, 0, 0)
		})
	}
}

// TestGradientsOfGradients does the same with the gradients: their own gradient,
// by a pass that was recorded, against central differences of the first.
func TestGradientsOfGradients(t *testing.T) {
	for _, c := range gradientCases() {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			p := newProbe(c)
			p.differences(t, p.second(t, o), 5e-3, func() (sum float64) {
				for i, g := range p.gradients(t, o) {
					for j, v := range g {
						sum += float64(p.weights[i+j]) * float64(v)
					}
				}
				return sum
			})
			left(t, o, d, 0, 0)
		})
	}
}

// second are the gradients of Σ weight·gradient.
func (p *probe) second(t *testing.T, o *autodiff.Ops) (gradients [][]float32) {
	run(t, o, func() error {
		x := p.upload(o)
		o.Track(x...)
		defer autodiff.ZeroGrad(x...)
		if err := o.BackwardWith(p.loss(o, x), autodiff.BackwardOptions{CreateGraph: true}); err != nil {
			return err
		}
		sum := o.Full(0)
		for i := range x {
			first := autodiff.Grad(x[i])
			n := first.Shape().Elements()
			weights := o.FromFloats(p.weights[i:][:n], first.Shape().Slice()...)
			sum = o.Add(sum, o.Sum(o.Mul(first, weights)))
			autodiff.ZeroGrad(x[i])
		}
		if autodiff.Tracked(sum) { // else f is linear
			if err := o.Backward(sum); err != nil {
				return err
			}
		}
		for i := range x {
			g := make([]float32, x[i].Shape().Elements())
			if t := autodiff.Grad(x[i]); t != nil {
				g = o.Floats(t)
			}
			gradients = append(gradients, g)
		}
		return nil
	})
	return gradients
}

// TestGradientsAreTheSameToTheBit on another tape, and where what backward reads
// is computed again.
func TestGradientsAreTheSameToTheBit(t *testing.T) {
	for _, c := range gradientCases() {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			want := newProbe(c).gradients(t, o)

			burn := autodiff.NewOn(inner, registry.New(registry.Options{Rules: registry.RulesLatest}))
			if diff := cmp.Diff(want, newProbe(c).gradients(t, burn)); diff != "" {
				t.Errorf("on the registry tape: %s", diff)
			}
			for _, o := range []*autodiff.Ops{o, burn} {
				again := newProbe(c)
				again.f = func(_ engine.Ops, x list) *engine.Tensor {
					return o.Checkpoint(func(x ...*engine.Tensor) *engine.Tensor { return c.f(o, x) }, x...)
				}
				if diff := cmp.Diff(want, again.gradients(t, o)); diff != "" {
					t.Errorf("with a checkpoint: %s", diff)
				}
			}
			left(t, o, d, 0, 0)
		})
	}
}

// run is a step that must not fail.
func run(t *testing.T, o engine.Ops, f func() error) {
	t.Helper()
	if err := engine.Run(o, func(*engine.Scope) error { return f() }); err != nil {
		t.Fatal(err)
	}
}

// left checks what is there after a test's steps.
func left(t *testing.T, o *autodiff.Ops, d *mem.Device, blocks int64, nodes int) {
	t.Helper()
	if gotBlocks, gotNodes := enginetest.Live(d), o.Nodes(); gotBlocks != blocks || gotNodes != nodes {
		t.Errorf("%d blocks and %d nodes are left, want %d and %d", gotBlocks, gotNodes, blocks, nodes)
	}
}
