//go:build linux || darwin

package vec

import (
	"syscall"
	"testing"
	"unsafe"
)

// beforeGuard returns a page of elements; the last lies against a page
// that may not be touched: to read one further is a crash.
func beforeGuard(t *testing.T) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Munmap(memory); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Mprotect(memory[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&memory[0])), page/4)
}

func TestNothingPastTheSlicesIsTouched(t *testing.T) {
	var whole [4][]float32
	for i := range whole {
		whole[i] = beforeGuard(t)
	}
	for n := range 70 {
		var s [4][]float32
		for i := range s {
			s[i] = whole[i][len(whole[i])-n:]
		}
		for _, f := range functions {
			f.fast(s[0], s[1])
		}
		Add(s[0], s[1], s[2])
		Mul(s[0], s[1], s[2])
		Scale(s[0], s[1], 2)
		Affine(s[0], s[1], 2, 1)
		Blend(s[0], s[1], s[2], 2, 1, 3)
		AddProduct(s[0], s[1], s[2])
		Rectify(s[0], s[1])
		Gate(s[0], s[1], s[2])
		Dot(s[0], s[1], 1)
		Squares(s[0], 1)
		half := s[0][len(s[0])-n/2:]
		even := 2 * len(half)
		MaxTiles(half, s[1][n-even:], s[2][n-even:])
		MaxTilesGrad(s[1][n-even:], s[2][n-even:], half, s[3][n-even:], s[3][n-even:])
		Momentum(s[0], s[1], s[2], 0.9, 0.1)
		Adam(s[0], s[1], s[2], s[3], AdamStep{Keep: 1, Epsilon: 1})
		Sum(s[0])
		Max(s[0])
	}
}
