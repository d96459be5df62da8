package cpu_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

func TestKernelsAgreeWithTheReference(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("%d threads", threads), func(t *testing.T) {
			enginetest.RunKernels(t, func(*testing.T) enginetest.Backend {
				return enginetest.Backend{Kernels: cpu.New(threads), Driver: mem.Host()}
			})
		})
	}
}

func TestFusedKernelsAgreeWithTheirCompositions(t *testing.T) {
	for _, threads := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d threads", threads), func(t *testing.T) {
			enginetest.RunFused(t, func(*testing.T) enginetest.Backend {
				return enginetest.Backend{Kernels: cpu.New(threads), Driver: mem.Host()}
			})
		})
	}
}

func TestTheReferencePassesItsOwnSuite(t *testing.T) {
	enginetest.RunKernels(t, func(*testing.T) enginetest.Backend {
		return enginetest.Backend{Kernels: cpu.Reference(), Driver: mem.Host()}
	})
}

func TestResultsDoNotDependOnTheNumberOfThreads(t *testing.T) {
	compute := func(threads int) []byte {
		k := cpu.New(threads)
		x, y, z := dense(t, 1, 90, 700), dense(t, 1, 700, 300), dense(t, 1, 90, 300)
		k.Rand(x, engine.Draw{Stream: 1})
		k.Rand(y, engine.Draw{Stream: 2})
		k.MatMul(z, x, y)
		rows, columns := dense(t, 1, 90, 1), dense(t, 1, 1, 300)
		k.Reduce(engine.ReduceSum, rows, z)
		k.Reduce(engine.ReduceSum, columns, z)
		var all []byte
		for _, v := range []engine.View{z, rows, columns} {
			host := make([]byte, v.Shape.Elements()*engine.ElementSize)
			k.Download(host, v)
			all = append(all, host...)
		}
		return all
	}
	one := compute(1)
	for _, threads := range []int{2, 3, 7} {
		if !bytes.Equal(one, compute(threads)) {
			t.Errorf("%d threads compute other bits than one", threads)
		}
	}
}

// TestTrainingDoesNotDependOnTheNumberOfThreads is about the fused kernels, each
// large enough to be cut in pieces.
func TestTrainingDoesNotDependOnTheNumberOfThreads(t *testing.T) {
	train := func(threads int) [][]float32 {
		d := mem.NewDevice(mem.Host(), mem.Options{})
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		o := autodiff.New(engine.NewEager(cpu.New(threads), d))
		var all [][]float32
		err := engine.Run(o, func(*engine.Scope) error {
			draws := uint64(0)
			leaf := func(dims ...int) *engine.Tensor {
				draws++
				x := o.Rand(engine.Draw{Key: 7, Stream: draws}, dims...)
				o.Track(x)
				return x
			}
			image, filters, bias := leaf(19, 8, 28, 28), leaf(16, 8, 3, 3), leaf(16)
			gain, shift, weight := leaf(16), leaf(16), leaf(7*7, 64)
			width, level := leaf(64), leaf(64)
			leaves := []*engine.Tensor{image, filters, bias, gain, shift, weight, width, level}
			x := engine.Convolve(o, image, filters, bias, engine.Square(3, 1, 1))
			x, _, _ = engine.BatchNormTraining(o, x, gain, shift, 1e-5)
			x = engine.MaxPool2d(o, o.ReLU(x), engine.Square(4, 4, 0))
			x = o.MatMul(o.Reshape(x, 19*16, 7*7), weight)
			x = engine.LayerNorm(o, x, width, level, 1e-5)
			heads := o.Permute(o.Reshape(x, 1, 19*16, 4, 16), 0, 2, 1, 3)
			x = o.Reshape(o.Permute(engine.Attention(o, heads, heads, heads, 0.25, true), 0, 2, 1, 3), 19*16, 64)
			labels := make([]int32, 19*16)
			for i := range labels {
				labels[i] = int32(i % 64)
			}
			loss := engine.CrossEntropy(o, x, o.FromInts(labels, len(labels)), nil)
			if err := o.Backward(loss); err != nil {
				return err
			}
			all = append(all, o.Floats(loss))
			for _, x := range leaves {
				all = append(all, o.Floats(autodiff.Grad(x)))
			}
			autodiff.ZeroGrad(leaves...)
			return o.Sync()
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	one := train(1)
	for _, threads := range []int{2, 3, 7} {
		for i, got := range train(threads) {
			if !slices.EqualFunc(got, one[i], func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
				t.Errorf("%d threads compute other bits than one: the loss, or gradient %d of the leaves", threads, i)
			}
		}
	}
}

func TestALabelOutsideItsRowIsAnErrorUntilSyncReturnsIt(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	s := o.Begin()
	defer s.End()
	engine.CrossEntropy(o, o.Full(1, 3, 4), o.FromInts([]int32{0, 4, 1}, 3), nil)
	if err := o.Sync(); err == nil || !strings.Contains(err.Error(), "index 1 is 4, outside a table of 4 rows") {
		t.Errorf("label 4 of 4 classes gave the error %v", err)
	}
	if err := o.Sync(); err != nil {
		t.Errorf("a second sync still gives %v", err)
	}
}

func dense(tb testing.TB, dims ...int) engine.View {
	shape := engine.ShapeOf(dims...)
	m, err := mem.Host().Allocate(int64(shape.Elements() * engine.ElementSize))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = mem.Host().Free(m) })
	return engine.View{Buffer: mem.Buffer{Memory: m, Size: m.Size()}, Shape: shape, Strides: shape.RowMajor()}
}

func BenchmarkMatMul(b *testing.B) {
	for _, n := range []int{128, 512} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("n=%d/threads=%d", n, threads), func(b *testing.B) {
				k := cpu.New(threads)
				x, y, z := dense(b, 1, n, n), dense(b, 1, n, n), dense(b, 1, n, n)
				k.Rand(x, engine.Draw{Stream: 1})
				k.Rand(y, engine.Draw{Stream: 2})
				b.ReportAllocs()
				for b.Loop() {
					k.MatMul(z, x, y)
				}
				b.ReportMetric(2*float64(n*n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
