package autodiff_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// input is one operand of a gradient check: its shape, and the range that its
// elements are drawn from.
type input struct {
	dims      []int
	low, high float32
}

func in(low, high float32, dims ...int) input { return input{dims, low, high} }

// TestGradients holds every operation's backward against central differences,
// for each operand that has a gradient.
func TestGradients(t *testing.T) {
	w := engine.Window{Kernel: [2]int{3, 2}, Stride: [2]int{2, 1}, Pad: [2]int{1, 1}}
	type list = []*engine.Tensor
	cases := []struct {
		name   string
		inputs []input
		f      func(o engine.Ops, x list) *engine.Tensor
	}{
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
		{"average pool", []input{in(-1, 1, 1, 2, 4, 4)}, func(o engine.Ops, x list) *engine.Tensor { return engine.AvgPool2d(o, x[0], engine.Square(2, 2, 0)) }},
		{"upsample", []input{in(-1, 1, 1, 2, 2, 3)}, func(o engine.Ops, x list) *engine.Tensor { return engine.Upsample2x(o, x[0]) }},
		{"a value used along two paths", []input{in(-1, 1, 3)}, func(o engine.Ops, x list) *engine.Tensor {
			y := o.Tanh(x[0])
			return o.Add(o.Mul(y, o.Exp(y)), o.Sub(y, x[0]))
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			rng := rand.New(rand.NewPCG(3, 4))
			host := make([][]float32, len(c.inputs))
			for i, in := range c.inputs {
				host[i] = make([]float32, engine.ShapeOf(in.dims...).Elements())
				for j := range host[i] {
					host[i][j] = in.low + (in.high-in.low)*rng.Float32()
				}
			}
			// value is Σ weight·f, summed in float64; the weights tell elements apart.
			weights := []float32{}
			value := func(o engine.Ops, x list) (out *engine.Tensor, sum float64) {
				out = c.f(o, x)
				for len(weights) < out.Shape().Elements() {
					weights = append(weights, 0.5+rng.Float32())
				}
				for i, v := range o.Floats(out) {
					sum += float64(weights[i]) * float64(v)
				}
				return out, sum
			}
			upload := func() list {
				x := make(list, len(host))
				for i, in := range c.inputs {
					x[i] = o.FromFloats(host[i], in.dims...)
				}
				return x
			}
			gradients := make([][]float32, len(host))
			run(t, o, func() error {
				x := upload()
				o.Track(x...)
				out, _ := value(o, x)
				n := out.Shape().Elements()
				loss := o.Sum(o.Mul(out, o.FromFloats(weights[:n], out.Shape().Slice()...)))
				if err := o.Backward(loss); err != nil {
					return err
				}
				for i := range x {
					g := autodiff.Grad(x[i])
					if g == nil || g.Shape() != x[i].Shape() {
						t.Fatalf("operand %d has the gradient %v", i, g)
					}
					gradients[i] = o.Floats(g)
				}
				return nil
			})
			for i := range host {
				for j, x := range host[i] {
					const step = 1e-2
					at := func(v float32) (sum float64) {
						host[i][j] = v
						run(t, o, func() error {
							_, sum = value(o.Valid(), upload())
							return nil
						})
						host[i][j] = x
						return sum
					}
					want := (at(x+step) - at(x-step)) / float64((x+step)-(x-step))
					if got := float64(gradients[i][j]); math.Abs(got-want) > 2e-3*max(1, math.Abs(want)) {
						t.Errorf("operand %d element %d: gradient %g, central difference %g", i, j, got, want)
					}
				}
			}
			if live, nodes := enginetest.Live(d), o.Nodes(); live != 0 || nodes != 0 {
				t.Errorf("%d blocks and %d nodes are left", live, nodes)
			}
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
