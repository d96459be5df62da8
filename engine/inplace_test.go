package engine_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

// window draws a view of [h w] elements over a square: somewhere, and transposed or
// not.
func window(t *rapid.T, o engine.Ops, x *engine.Tensor, h, w int, label string) *engine.Tensor {
	if rapid.Bool().Draw(t, label+" transposed") {
		x = o.Permute(x, 1, 0)
	}
	top := rapid.IntRange(0, x.Dim(0)-h).Draw(t, label+" top")
	left := rapid.IntRange(0, x.Dim(1)-w).Draw(t, label+" left")
	return o.Slice(o.Slice(x, 0, top, top+h), 1, left, left+w)
}

// Assign between overlapping views once read what it had written.
func TestAssignBetweenOverlappingViewsCopiesFirst(t *testing.T) {
	const n = 9
	for name, k := range map[string]engine.Kernels{"cpu": cpu.New(2), "reference": cpu.Reference()} {
		t.Run(name, func(t *testing.T) {
			d := mem.NewDevice(mem.Host(), mem.Options{})
			o := engine.NewEager(k, d)
			numbers := make([]float32, n*n)
			for i := range numbers {
				numbers[i] = float32(i)
			}
			rapid.Check(t, func(t *rapid.T) {
				defer o.Begin().End()
				x := o.FromFloats(numbers, n, n)
				h, w := rapid.IntRange(0, n).Draw(t, "h"), rapid.IntRange(0, n).Draw(t, "w")
				dst, src := window(t, o, x, h, w, "dst"), window(t, o, x, h, w, "src")
				want := o.Floats(src)
				o.Assign(dst, src)
				if got := o.Floats(dst); !slices.Equal(got, want) {
					t.Fatalf("%v, want %v", got, want)
				}
			})
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAStepOfTensorsThatOverlapIsTheComposedOne(t *testing.T) {
	var want []float32
	for _, k := range []engine.Kernels{cpu.Reference(), cpu.New(1)} {
		d := mem.NewDevice(mem.Host(), mem.Options{})
		o := engine.NewEager(k, d)
		run(t, o, func() error {
			both := o.FromFloats([]float32{1, 2, 3, 4, 5, 6}, 6)
			p, v := o.Slice(both, 0, 0, 4), o.Slice(both, 0, 2, 6)
			engine.Momentum(o, p, o.Full(1, 4), v, 0.5, 0.25)
			if want == nil {
				want = o.Floats(both)
			} else if got := o.Floats(both); !slices.Equal(got, want) {
				t.Errorf("fused %v, composed %v", got, want)
			}
			return nil
		})
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWritingInPlaceIsWhatItIsComposedOf(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	rapid.Check(t, func(t *rapid.T) {
		defer o.Begin().End()
		draw := func(label string, n int) []float32 {
			return rapid.SliceOfN(rapid.Float32Range(-2, 2), n, n).Draw(t, label)
		}
		x, to := o.FromFloats(draw("x", 12), 3, 4), o.FromFloats(draw("to", 12), 4, 3)
		keep := o.FromFloats(draw("keep", 1))
		view := o.Permute(x, 1, 0)
		want := o.Floats(o.Add(o.Mul(o.Sub(view, to), keep), to))
		writes := x.Storage().Writes()
		engine.Approach(o, view, to, keep)
		if got := o.Floats(o.Permute(x, 1, 0)); !slices.Equal(got, want) {
			t.Fatalf("approach gives %v, want %v", got, want)
		}
		if x.Storage().Writes() != writes+1 {
			t.Fatal("the block was not marked as written")
		}
	})
}
