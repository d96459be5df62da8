package gemm

import (
	"sync/atomic"
	"testing"
)

func TestDoCallsEveryPieceOnceAndThreadsOneAtATime(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		p := NewPool(threads)
		for _, pieces := range []int{0, 1, 2, 100} {
			done := make([]atomic.Int32, pieces)
			busy := make([]atomic.Bool, threads)
			p.Do(pieces, func(piece, thread int) {
				if !busy[thread].CompareAndSwap(false, true) {
					t.Errorf("%d threads: two calls at once have the number %d", threads, thread)
				}
				done[piece].Add(1)
				busy[thread].Store(false)
			})
			for i := range done {
				if n := done[i].Load(); n != 1 {
					t.Errorf("%d threads, %d pieces: piece %d was done %d times", threads, pieces, i, n)
				}
			}
		}
		p.Close()
	}
}

func TestDoAndProductsTakeTurns(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	a, c := []float32{1, 2, 3, 4}, make([]float32, 4)
	for range 200 {
		sum := [2]int{}
		p.Do(2, func(piece, _ int) { sum[piece] = piece + 1 })
		p.Multiply(2, 2, 2, Operand{a, 2, 1}, Operand{a, 2, 1}, c, 2, false)
		if sum != [2]int{1, 2} || c[0] != 7 || c[3] != 22 {
			t.Fatalf("pieces gave %v, the product %v", sum, c)
		}
	}
}
