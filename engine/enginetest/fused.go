package enginetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// RunFused holds a backend's fused kernels against what the operations are composed
// of, on the reference kernels: results, gradients of any of the operands, and
// gradients of gradients. fresh is called once a subtest. Backends without fused
// kernels fail.
func RunFused(t *testing.T, fresh func(t *testing.T) Backend) {
	t.Helper()
	for _, c := range fusedCases() {
		t.Run(c.name, func(t *testing.T) {
			b := fresh(t)
			if _, ok := b.Kernels.(engine.FusedKernels); !ok {
				t.Fatal("the backend has no fused kernels")
			}
			if b.Tolerance == 0 {
				b.Tolerance = 1e-5
			}
			got, want := newTrainer(t, b.Kernels, b.Driver), newTrainer(t, cpu.Reference(), mem.Host())
			rng := rand.New(rand.NewPCG(1, 2))
			for round := range c.rounds {
				problem := c.draw(rng, round)
				problem.complete(rng)
				second := c.twice && round%3 == 0
				near(t, problem, b.Tolerance, got.solve(problem, second), want.solve(problem, second))
			}
		})
	}
}

// fusedCase draws problems for one operation.
type fusedCase struct {
	name   string
	rounds int
	twice  bool // whether there are gradients of gradients
	draw   func(rng *rand.Rand, round int) *problem
}

// problem is an operation with operands.
type problem struct {
	f      func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor // the first result has a gradient
	shapes []engine.Shape
	labels []int32 // an int32 operand after the others; nil for none
	whole  bool    // operands are whole numbers, so that there are equals
	odd    bool    // NaN, infinities and zeros are among them
	// terms is how many elements are summed where most are: digits are lost with it.
	terms int

	values  [][]float32
	tracked []bool
	strided []bool
	weights []float32 // of the elements of the result, to tell them apart
}

func (p *problem) complete(rng *rand.Rand) {
	for _, s := range p.shapes {
		v := make([]float32, s.Elements())
		for i := range v {
			v[i] = 4*rng.Float32() - 2
			if p.whole {
				v[i] = float32(math.RoundToEven(float64(v[i])))
			}
			if p.odd {
				v[i] = sprinkled(rng, v[i])
			}
		}
		p.values = append(p.values, v)
		p.tracked = append(p.tracked, rng.IntN(3) > 0)
		p.strided = append(p.strided, rng.IntN(3) == 0)
	}
	p.tracked[rng.IntN(len(p.tracked))] = true
	for range 97 {
		p.weights = append(p.weights, 0.5+rng.Float32())
	}
}

// trainer is one stack of operations.
type trainer struct {
	t *testing.T
	o *autodiff.Ops
	d *mem.Device
}

func newTrainer(t *testing.T, k engine.Kernels, driver mem.Driver) *trainer {
	d := mem.NewDevice(driver, mem.Options{})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &trainer{t, autodiff.New(engine.NewEager(k, d)), d}
}

// solve returns the results, and the gradients of the tracked operands; or if
// second is set, the gradients of the sum of the squares of those instead.
func (r *trainer) solve(p *problem, second bool) (out [][]float32) {
	o := r.o
	err := engine.Run(o, func(*engine.Scope) error {
		in, leaves := r.operands(p)
		results := p.f(o, in)
		for _, t := range results {
			out = append(out, o.Floats(t))
		}
		if results[0].History() == nil {
			return nil
		}
		if err := o.BackwardWith(o.Sum(o.Mul(results[0], r.weights(p, results[0].Shape()))), autodiff.BackwardOptions{CreateGraph: second}); err != nil {
			return err
		}
		if second {
			total := o.Full(0)
			for _, leaf := range leaves {
				if g := autodiff.Grad(leaf); g != nil {
					total = o.Add(total, o.Sum(o.Mul(g, g)))
				}
			}
			autodiff.ZeroGrad(leaves...)
			if !autodiff.Tracked(total) { // the operation is linear
				return nil
			}
			if err := o.Backward(total); err != nil {
				return err
			}
		}
		for _, leaf := range leaves {
			if g := autodiff.Grad(leaf); g != nil {
				out = append(out, o.Floats(g))
			}
		}
		autodiff.ZeroGrad(leaves...)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if n := Live(r.d); n != 0 {
		r.t.Fatalf("%d blocks are left", n)
	}
	return out
}

func (r *trainer) weights(p *problem, s engine.Shape) *engine.Tensor {
	v := make([]float32, s.Elements())
	for i := range v {
		v[i] = p.weights[i%len(p.weights)]
	}
	return r.o.FromFloats(v, s.Slice()...)
}

// operands uploads; leaves are the tracked ones, as they were made.
func (r *trainer) operands(p *problem) (in, leaves []*engine.Tensor) {
	o := r.o
	for i, s := range p.shapes {
		dims := s.Slice()
		order := make([]int, len(dims))
		for axis := range order {
			order[axis] = axis
		}
		if last := len(dims) - 1; p.strided[i] && last > 0 {
			dims[last], dims[last-1] = dims[last-1], dims[last]
			order[last], order[last-1] = last-1, last
		}
		t := o.FromFloats(p.values[i], dims...)
		if p.tracked[i] {
			o.Track(t)
			leaves = append(leaves, t)
		}
		in = append(in, o.Permute(t, order...))
	}
	if p.labels != nil {
		in = append(in, o.FromInts(p.labels, len(p.labels)))
	}
	return in, leaves
}

func near(t *testing.T, p *problem, tolerance float64, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v: %d results and gradients, want %d", p.shapes, len(got), len(want))
	}
	tolerance *= math.Sqrt(float64(max(1, p.terms)))
	for i := range want {
		scale := 1.0
		for _, v := range want[i] {
			if a := math.Abs(float64(v)); a < math.Inf(1) {
				scale = max(scale, a)
			}
		}
		for j, w := range want[i] {
			g := got[i][j]
			if g == w || g != g && w != w {
				continue
			}
			if !(math.Abs(float64(g)-float64(w)) <= tolerance*scale) {
				t.Fatalf("%v, tracked %v, strided %v: result or gradient %d element %d is %g, want %g", p.shapes, p.tracked, p.strided, i, j, g, w)
			}
		}
	}
}

// single is an operation of one result.
func single(f func(o engine.Ops, in []*engine.Tensor) *engine.Tensor) func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor {
	return func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor { return []*engine.Tensor{f(o, in)} }
}

// stepped is an optimizer's step on copies of its operands.
func stepped(f func(o engine.Ops, in []*engine.Tensor)) func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor {
	return func(o engine.Ops, in []*engine.Tensor) []*engine.Tensor {
		v := o.Valid()
		var copies []*engine.Tensor
		for i, t := range in {
			if i == 1 { // the gradient may have any strides
				copies = append(copies, v.Detach(t))
				continue
			}
			c := v.Copy(t)
			if i == 3 { // a mean square is not negative
				v.Assign(c, v.Mul(c, c))
			}
			copies = append(copies, c)
		}
		writes := copies[0].Storage().Writes()
		f(v, copies)
		if copies[0].Storage().Writes() == writes {
			panic(&engine.Error{Op: "step", Reason: "the parameter was written without being marked as written"})
		}
		return copies
	}
}
