package engine_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// count is 1, 2, 3 … in a shape.
func count(o engine.Ops, dims ...int) *engine.Tensor {
	data := make([]float32, engine.ShapeOf(dims...).Elements())
	for i := range data {
		data[i] = float32(i + 1)
	}
	return o.FromFloats(data, dims...)
}

func TestOps(t *testing.T) {
	ints := func(o engine.Ops, v ...int32) *engine.Tensor { return o.FromInts(v, len(v)) }
	row := func(o engine.Ops, v ...float32) *engine.Tensor { return o.FromFloats(v, len(v)) }
	cases := []struct {
		name  string
		shape []int
		want  []float32
		body  func(o engine.Ops) *engine.Tensor
	}{
		{"a row is added to every row", []int{2, 3}, []float32{11, 22, 33, 14, 25, 36}, func(o engine.Ops) *engine.Tensor {
			return o.Add(count(o, 2, 3), row(o, 10, 20, 30))
		}},
		{"a column meets a row", []int{2, 2}, []float32{1, 2, 2, 4}, func(o engine.Ops) *engine.Tensor {
			return o.Mul(count(o, 2, 1), count(o, 2))
		}},
		{"where takes the first where the condition holds", []int{3}, []float32{1, -2, 3}, func(o engine.Ops) *engine.Tensor {
			a := count(o, 3)
			return o.Where(o.Equal(a, o.Full(2)), o.Neg(a), a)
		}},
		{"sum folds every axis", nil, []float32{21}, func(o engine.Ops) *engine.Tensor { return o.Sum(count(o, 2, 3)) }},
		{"sum folds the axes named", []int{2}, []float32{1 + 2 + 5 + 6, 3 + 4 + 7 + 8}, func(o engine.Ops) *engine.Tensor {
			return o.Sum(count(o, 2, 2, 2), 0, -1)
		}},
		{"mean", []int{2}, []float32{2, 5}, func(o engine.Ops) *engine.Tensor { return engine.Mean(o, count(o, 2, 3), 1) }},
		{"the largest of each column", []int{3}, []float32{4, 5, 6}, func(o engine.Ops) *engine.Tensor { return o.MaxOver(count(o, 2, 3), 0) }},
		{"a product with a transpose", []int{2, 2}, []float32{14, 32, 32, 77}, func(o engine.Ops) *engine.Tensor {
			a := count(o, 2, 3)
			return o.MatMul(a, o.Permute(a, 1, 0))
		}},
		{"a matrix meets a batch", []int{2, 1, 1}, []float32{1*1 + 1*2, 3 + 4}, func(o engine.Ops) *engine.Tensor {
			return o.MatMul(o.Full(1, 1, 2), count(o, 2, 2, 1))
		}},
		{"batches that lie unevenly are copied", []int{2, 2, 1, 1}, []float32{1, 3, 2, 4}, func(o engine.Ops) *engine.Tensor {
			return o.MatMul(o.Full(1, 1, 1), o.Permute(count(o, 2, 2, 1, 1), 1, 0, 2, 3))
		}},
		{"a permuted tensor reshapes in its new order", []int{6}, []float32{1, 4, 2, 5, 3, 6}, func(o engine.Ops) *engine.Tensor {
			return o.Reshape(o.Permute(count(o, 2, 3), 1, 0), 6)
		}},
		{"a slice of a slice", []int{1, 2}, []float32{5, 6}, func(o engine.Ops) *engine.Tensor {
			return o.Slice(o.Slice(count(o, 2, 3), 0, 1, 2), 1, 1, 3)
		}},
		{"concat along the inner axis", []int{2, 3}, []float32{1, 2, 1, 3, 4, 2}, func(o engine.Ops) *engine.Tensor {
			return o.Concat(1, count(o, 2, 2), count(o, 2, 1))
		}},
		{"gather picks rows, twice if asked", []int{3, 2}, []float32{3, 4, 1, 2, 3, 4}, func(o engine.Ops) *engine.Tensor {
			return o.Gather(count(o, 2, 2), ints(o, 1, 0, 1))
		}},
		{"scatter-add adds rows up", []int{2, 2}, []float32{3, 4, 1 + 5, 2 + 6}, func(o engine.Ops) *engine.Tensor {
			return o.ScatterAdd(count(o, 3, 2), ints(o, 1, 0, 1), 2)
		}},
		{"a convolution of ones counts neighbours", []int{1, 1, 2, 2}, []float32{10, 10, 10, 10}, func(o engine.Ops) *engine.Tensor {
			return o.Conv2d(count(o, 1, 1, 2, 2), o.Full(1, 1, 1, 3, 3), engine.Square(3, 1, 1))
		}},
		{"max pool", []int{1, 1, 1, 2}, []float32{6, 8}, func(o engine.Ops) *engine.Tensor {
			return engine.MaxPool2d(o, count(o, 1, 1, 2, 4), engine.Square(2, 2, 0))
		}},
		{"upsample repeats in squares", []int{1, 1, 2, 4}, []float32{1, 1, 2, 2, 1, 1, 2, 2}, func(o engine.Ops) *engine.Tensor {
			return engine.Upsample2x(o, count(o, 1, 1, 1, 2))
		}},
		{"softmax of large logits does not overflow", []int{2}, []float32{0.5, 0.5}, func(o engine.Ops) *engine.Tensor {
			return engine.Softmax(o, o.Full(1000, 2))
		}},
		{"cross entropy of even logits is log classes", nil, []float32{float32(math.Log(4))}, func(o engine.Ops) *engine.Tensor {
			return engine.CrossEntropy(o, o.Full(3, 2, 4), ints(o, 0, 3), nil)
		}},
		{"cross entropy weighs rows", nil, []float32{float32(math.Log(1 + math.Exp(-1)))}, func(o engine.Ops) *engine.Tensor {
			logits := o.FromFloats([]float32{1, 0, 9, 9}, 2, 2)
			return engine.CrossEntropy(o, logits, ints(o, 0, 1), row(o, 2, 0))
		}},
		{"layer norm has no mean and unit variance", []int{1, 2}, []float32{-1, 1}, func(o engine.Ops) *engine.Tensor {
			return engine.LayerNorm(o, count(o, 1, 2), o.Full(1, 2), o.Full(0, 2), 1e-9)
		}},
		{"batch norm of one channel", []int{1, 1, 1, 2}, []float32{4, 6}, func(o engine.Ops) *engine.Tensor {
			x := count(o, 1, 1, 1, 2)
			mean, variance := engine.Moments(o, x, 0, 2, 3)
			return engine.BatchNorm(o, x, mean, variance, o.Full(1, 1), o.Full(5, 1), 1e-9)
		}},
		{"assign stretches the source", []int{2, 2}, []float32{1, 2, 1, 2}, func(o engine.Ops) *engine.Tensor {
			a := o.Full(0, 2, 2)
			o.Assign(a, count(o, 2))
			return a
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, _ := enginetest.NewEager(t)
			if err := engine.Run(o, func(*engine.Scope) error {
				out := c.body(o)
				if got := out.Shape(); got != engine.ShapeOf(c.shape...) {
					t.Errorf("shape %v, want %v", got, c.shape)
				}
				if diff := cmp.Diff(c.want, o.Floats(out), cmpopts.EquateApprox(1e-5, 1e-6)); diff != "" {
					t.Error(diff)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestArgMaxIsTheFirstOfEquals(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	_ = engine.Run(o, func(*engine.Scope) error {
		a := o.FromFloats([]float32{1, 3, 3, 0, 0, -1}, 2, 3)
		if diff := cmp.Diff([]int32{1, 0}, o.Ints(o.ArgMax(a, -1))); diff != "" {
			t.Error(diff)
		}
		return nil
	})
}

func TestDropoutKeepsTheMean(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	_ = engine.Run(o, func(*engine.Scope) error {
		out := o.Floats(engine.Dropout(o, o.Full(1, 100, 100), 0.25, engine.NewRandom(3).Draw()))
		zeros, sum := 0, float32(0)
		for _, x := range out {
			sum += x
			if x == 0 {
				zeros++
			}
		}
		if math.Abs(float64(zeros)/1e4-0.25) > 0.02 || math.Abs(float64(sum)/1e4-1) > 0.03 {
			t.Errorf("%d of 10000 were dropped, the mean is %g", zeros, sum/1e4)
		}
		return nil
	})
}

// The known answer of Random123 for philox4x32-10 with counter 0 and key 0.
func TestDrawsArePhilox(t *testing.T) {
	for i, word := range []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} {
		if got, want := engine.DrawFloat(engine.Draw{}, i), float32(word>>8)/(1<<24); got != want {
			t.Errorf("word %d: got %v, want %v", i, got, want)
		}
	}
}

func TestDrawsOfOneSourceDiffer(t *testing.T) {
	r := engine.NewRandom(7)
	a, b := r.Draw(), r.Draw()
	if engine.DrawFloat(a, 0) == engine.DrawFloat(b, 0) {
		t.Error("two draws begin with the same number")
	}
	if again := engine.NewRandom(7).Draw(); again != a {
		t.Error("a second source of one seed begins elsewhere")
	}
}

func TestBroadcastMeetsInTheSameShapeEitherWay(t *testing.T) {
	shape := rapid.Custom(func(t *rapid.T) engine.Shape {
		return engine.ShapeOf(rapid.SliceOfN(rapid.IntRange(1, 3), 0, 4).Draw(t, "dims")...)
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := shape.Draw(t, "a"), shape.Draw(t, "b")
		ab, ok := engine.Broadcast(a, b)
		ba, alsoOK := engine.Broadcast(b, a)
		if ok != alsoOK || ab != ba {
			t.Fatalf("%v, %v and %v, %v", ab, ok, ba, alsoOK)
		}
		if !ok {
			return
		}
		if again, ok := engine.Broadcast(ab, a); !ok || again != ab {
			t.Fatalf("%v does not absorb %v", ab, a)
		}
	})
}
