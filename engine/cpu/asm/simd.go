package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// simd is what the kernels ask of a vector instruction set. A masked operation
// touches only the lanes that setMask named, in memory too.
type simd interface {
	lanes() int
	// maskIsFree is whether masked instructions cost what others cost.
	maskIsFree() bool
	// setMask names the first lanes, 1 to lanes(), by a count that it destroys.
	setMask(count reg.GPVirtual)
	zero(r reg.VecPhysical)
	// load leaves zeros in the lanes that the mask does not name.
	load(from operand.Mem, r reg.VecPhysical, masked bool)
	// add destroys scratch.
	add(from operand.Mem, r, scratch reg.VecPhysical, masked bool)
	store(r reg.VecPhysical, to operand.Mem, masked bool)
	// sums leaves the sums of the lanes of four registers, all destroyed, in the
	// four lanes of the register returned.
	sums(r [4]reg.VecPhysical) reg.VecPhysical
}

type avx512 struct{ *build.Context }

func (*avx512) lanes() int       { return 16 }
func (*avx512) maskIsFree() bool { return true }

func (s *avx512) setMask(count reg.GPVirtual) {
	ones := s.GP32()
	s.MOVL(operand.U32(0xffff), ones)
	s.BZHIL(count.As32(), ones, ones)
	s.KMOVW(ones, reg.K1)
}

// XOR of the low quarter clears all of a register, without a wide instruction.
func (s *avx512) zero(r reg.VecPhysical) { s.VPXORD(r, r, r) }

func (s *avx512) load(from operand.Mem, r reg.VecPhysical, masked bool) {
	if masked {
		s.VMOVUPS_Z(from, reg.K1, r)
		return
	}
	s.VMOVUPS(from, r)
}

func (s *avx512) add(from operand.Mem, r, _ reg.VecPhysical, masked bool) {
	if masked {
		s.VADDPS(from, r, reg.K1, r)
		return
	}
	s.VADDPS(from, r, r)
}

func (s *avx512) store(r reg.VecPhysical, to operand.Mem, masked bool) {
	if masked {
		s.VMOVUPS(r, reg.K1, to)
		return
	}
	s.VMOVUPS(r, to)
}

func (s *avx512) sums(r [4]reg.VecPhysical) reg.VecPhysical {
	var halves [4]reg.VecPhysical
	for i := range r {
		high := reg.Z31.AsY().(reg.VecPhysical)
		halves[i] = r[i].AsY().(reg.VecPhysical)
		s.VEXTRACTF64X4(operand.Imm(1), r[i], high)
		s.VADDPS(high, halves[i], halves[i])
	}
	return sumsOfY(s.Context, halves)
}

// avx2 keeps its mask in a vector register.
type avx2 struct {
	*build.Context
	mask  reg.VecPhysical
	table operand.Mem
}

func newAVX2(ctx *build.Context, name string, mask reg.VecPhysical) *avx2 {
	s := &avx2{Context: ctx, mask: mask}
	s.table = ctx.StaticGlobal(name)
	ctx.DataAttributes(build.RODATA | build.NOPTR)
	for lane := range 16 {
		ones := uint32(0)
		if lane < 8 {
			ones = 0xffffffff
		}
		ctx.AddDatum(4*lane, operand.U32(ones))
	}
	return s
}

func (*avx2) lanes() int { return 8 }

// Masked stores take 18 operations and more on AMD's processors.
func (*avx2) maskIsFree() bool { return false }

// The mask is the eight words of the table that end count lanes after the last
// word of ones began.
func (s *avx2) setMask(count reg.GPVirtual) {
	s.NEGQ(count)
	start := s.GP64()
	s.LEAQ(s.table.Offset(32), start)
	s.VMOVUPS(operand.Mem{Base: start, Index: count, Scale: 4}, s.mask)
}

func (s *avx2) zero(r reg.VecPhysical) { s.VXORPS(r, r, r) }

func (s *avx2) load(from operand.Mem, r reg.VecPhysical, masked bool) {
	if masked {
		s.VMASKMOVPS(from, s.mask, r)
		return
	}
	s.VMOVUPS(from, r)
}

func (s *avx2) add(from operand.Mem, r, scratch reg.VecPhysical, masked bool) {
	if masked {
		s.VMASKMOVPS(from, s.mask, scratch)
		s.VADDPS(scratch, r, r)
		return
	}
	s.VADDPS(from, r, r)
}

func (s *avx2) store(r reg.VecPhysical, to operand.Mem, masked bool) {
	if masked {
		s.VMASKMOVPS(r, s.mask, to)
		return
	}
	s.VMOVUPS(r, to)
}

func (s *avx2) sums(r [4]reg.VecPhysical) reg.VecPhysical { return sumsOfY(s.Context, r) }

func sumsOfY(ctx *build.Context, r [4]reg.VecPhysical) reg.VecPhysical {
	ctx.VHADDPS(r[1], r[0], r[0])
	ctx.VHADDPS(r[3], r[2], r[2])
	ctx.VHADDPS(r[2], r[0], r[0])
	low, high := r[0].AsX().(reg.VecPhysical), r[1].AsX().(reg.VecPhysical)
	ctx.VEXTRACTF128(operand.Imm(1), r[0], high)
	ctx.VADDPS(high, low, low)
	return low
}
