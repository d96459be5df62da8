package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkMultiply reports the speed of every kernel over shapes, with A or B
// transposed where the name says so: over all the time, and in the fastest of
// the samples, which other work on the machine disturbs less. bench/gemm.sh runs
// it beside OpenBLAS and knows its names.
func BenchmarkMultiply(b *testing.B) {
	for _, s := range []struct {
		count, m, n, k     int
		flippedA, flippedB bool
	}{
		{1, 128, 128, 128, false, false},
		{1, 256, 256, 256, false, false},
		{1, 512, 512, 512, false, false},
		{1, 1024, 1024, 1024, false, false},
		{1, 2048, 2048, 2048, false, false},
		{1, 1024, 1024, 1024, true, false},
		{1, 1024, 1024, 1024, false, true},
		{1, 1024, 1024, 1024, true, true},

		{1, 1, 1024, 1024, false, false},
		{1, 2, 1024, 1024, false, false},
		{1, 8, 1024, 1024, false, false},
		{1, 32, 1024, 1024, false, false},
		{1, 1, 1024, 1024, false, true},
		{1, 2, 1024, 1024, false, true},
		{1, 8, 1024, 1024, false, true},
		{1, 32, 1024, 1024, false, true},
		{1, 1024, 1, 1024, false, false},
		{1, 1024, 8, 1024, false, false},
		{1, 1024, 1, 1024, true, false},
		{1, 1024, 8, 1024, true, false},

		{1, 1024, 1024, 8, false, false},
		{1, 1024, 1024, 32, true, false},
		{1, 32, 32, 16384, false, true},
		{1, 64, 576, 4096, false, true},

		{1, 32, 32, 64, false, false},
		{64, 32, 32, 64, false, true},
		{64, 32, 64, 32, false, false},
	} {
		name := fmt.Sprintf("%dx%dx%dx%d", s.count, s.m, s.n, s.k)
		r := rand.New(rand.NewPCG(1, 2))
		left := Operand{numbers(r, s.count*s.m*s.k), s.k, 1}
		if s.flippedA {
			left.RowStride, left.ColStride = 1, s.m
			name += "-At"
		}
		right := Operand{numbers(r, s.count*s.k*s.n), s.n, 1}
		if s.flippedB {
			right.RowStride, right.ColStride = 1, s.k
			name += "-Bt"
		}
		c := make([]float32, s.count*s.m*s.n)
		for _, kern := range kernels() {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, kern.name, threads), func(b *testing.B) {
					p := newPool(threads, kern)
					defer p.Close()
					multiply := func() {
						p.MultiplyBatch(s.count, s.m, s.n, s.k, left, s.m*s.k, right, s.k*s.n, c, s.n, s.m*s.n, false)
					}
					multiply() // the buffers grow
					b.ReportAllocs()
					flops := 2 * float64(s.count*s.m*s.n*s.k)
					sample := max(1, int(2e7/flops))
					fastest := time.Duration(math.MaxInt64)
					start, done := time.Now(), 0
					for b.Loop() {
						multiply()
						if done++; done == sample {
							now := time.Now()
							fastest = min(fastest, now.Sub(start))
							start, done = now, 0
						}
					}
					b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					b.ReportMetric(flops*float64(sample)/fastest.Seconds()/1e9, "fastest-GFLOP/s")
				})
			}
		}
	}
}
