package cpu_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/engine"
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
