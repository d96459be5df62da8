//go:build linux || darwin

package gemm

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"unsafe"

	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// guarded is memory between two pages that may not be touched: one element
// further is a crash.
type guarded []float32

// take returns n elements that end, or begin, at such a page.
func (g guarded) take(n int, atEnd bool) []float32 {
	if atEnd {
		return g[len(g)-n:]
	}
	return g[:n:n]
}

func newGuarded(t *testing.T) guarded {
	t.Helper()
	page := syscall.Getpagesize()
	const pages = 64
	room := pages * page
	memory, err := syscall.Mmap(-1, 0, room+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	for _, guard := range [][]byte{memory[:page], memory[page+room:]} {
		if err := syscall.Mprotect(guard, syscall.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&memory[page])), room/4)
}

func TestNothingOutsideTheOperandsIsTouched(t *testing.T) {
	heavytest.Sequential(t, "it looks for writes outside of the operands")
	r := rand.New(rand.NewPCG(1, 2))
	a, b, c := newGuarded(t), newGuarded(t), newGuarded(t)
	eachKernel(t, 1, func(t *testing.T, p *Pool) {
		for _, atEnd := range []bool{true, false} {
			for _, m := range []int{1, 2, 3, 5, 6, 7, 8, 13, 14, 15, 29, 131} {
				for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 259} {
					for _, k := range []int{1, 2, 7, 8, 9, 15, 17, 33, 70} {
						f := &fig{count: 1, m: m, n: n, k: k, ldc: n, cStep: m * n, accumulate: r.IntN(2) == 0}
						f.a, f.b = Operand{a.take(m*k, atEnd), k, 1}, Operand{b.take(k*n, atEnd), n, 1}
						if r.IntN(2) == 0 {
							f.a.RowStride, f.a.ColStride = 1, m
						}
						if r.IntN(2) == 0 {
							f.b.RowStride, f.b.ColStride = 1, k
						}
						copy(f.a.Data, numbers(r, m*k))
						copy(f.b.Data, numbers(r, k*n))
						f.fill(r)
						f.c = append(c.take(m*n, atEnd)[:0], f.c[:m*n]...)
						f.multiply(p)
						if fault := f.fault(); fault != "" {
							t.Fatalf("%v: %s", f, fault)
						}
					}
				}
			}
		}
	})
}
