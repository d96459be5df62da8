package main

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	maxTilesPromise = `maxTilesAVX2 sets dst[i] to the largest of a[2i], a[2i+1], b[2i] and b[2i+1] for
i < n, NaN if any is NaN. n is a multiple of 8, and not 0.`

	maxTilesGradPromise = `maxTilesGradAVX2 shares grad[i] among da[2i], da[2i+1], db[2i] and db[2i+1] for i < n:
among the largest columns of a and b, and in each among its equals. Where a tile
has NaN all parts are NaN. n is a multiple of 4, and not 0.`
)

// tiles emits functions of two rows of tiles of two by two.
func tiles(ctx *build.Context) {
	l := newLanes(ctx, "tileMask")
	y := registersY()

	function(ctx, "maxTilesAVX2", "func(dst, a, b *float32, n int)", maxTilesPromise)
	dst, a, b, n := word(ctx, "dst"), word(ctx, "a"), word(ctx, "b"), word(ctx, "n")
	// larger remembers NaN, which the processor's maximum forgets in an operand.
	larger := func(x, y, to, nans reg.VecPhysical) {
		l.VCMPPS(operand.Imm(3), x, y, nans) // unordered
		l.VMAXPS(x, y, to)
		l.VORPS(nans, to, to)
	}
	l.Label("step")
	for i := range 2 {
		l.VMOVUPS(operand.Mem{Base: a, Disp: 32 * i}, y[2*i])
		l.VMOVUPS(operand.Mem{Base: b, Disp: 32 * i}, y[2*i+1])
		larger(y[2*i], y[2*i+1], y[4+i], y[6])
	}
	l.VSHUFPS(operand.Imm(0x88), y[5], y[4], y[0]) // the left columns
	l.VSHUFPS(operand.Imm(0xdd), y[5], y[4], y[1]) // the right ones
	larger(y[0], y[1], y[2], y[6])
	l.VPERMPD(operand.Imm(0xd8), y[2], y[2]) // halves of registers were mixed
	l.VMOVUPS(y[2], operand.Mem{Base: dst})
	l.ADDQ(operand.Imm(64), a)
	l.ADDQ(operand.Imm(64), b)
	l.ADDQ(operand.Imm(32), dst)
	l.SUBQ(operand.Imm(8), n)
	l.JNZ(operand.LabelRef("step"))
	l.VZEROUPPER()
	l.RET()

	twice := l.StaticGlobal("tileTwice")
	l.DataAttributes(build.RODATA | build.NOPTR)
	for i := range 8 {
		l.AddDatum(4*i, operand.U32(i/2))
	}
	one := l.bits("tileOne", math.Float32bits(1))
	half := l.bits("tileHalf", math.Float32bits(0.5))
	function(ctx, "maxTilesGradAVX2", "func(da, db, grad, a, b *float32, n int)", maxTilesGradPromise)
	da, db, g := word(ctx, "da"), word(ctx, "db"), word(ctx, "grad")
	a, b, n = word(ctx, "a"), word(ctx, "b"), word(ctx, "n")
	left, right, column, other, best, share, equal, ones, nans := y[0], y[1], y[2], y[3], y[4], y[5], y[6], y[7], y[10]
	l.VMOVUPS(one, ones)
	l.VMOVUPS(half, y[8])
	l.VMOVUPS(twice, y[9])
	same := func(x, y reg.VecPhysical) { l.VCMPPS(operand.Imm(0), x, y, equal) }
	halve := func() { // where equal
		l.VBLENDVPS(equal, y[8], ones, equal)
		l.VMULPS(equal, share, share)
	}
	l.Label("step")
	l.VMOVUPS(operand.Mem{Base: a}, left)
	l.VMOVUPS(operand.Mem{Base: b}, right)
	l.VCMPPS(operand.Imm(3), left, right, nans) // unordered
	l.VPERMILPS(operand.Imm(0xb1), nans, other)
	l.VORPS(other, nans, nans)
	l.VMAXPS(left, right, column)
	l.VPERMILPS(operand.Imm(0xb1), column, other) // neighbours change places
	l.VMAXPS(column, other, best)
	l.VMOVUPS(operand.Mem{Base: g}, share.AsX())
	l.VPERMPS(share, y[9], share)
	same(column, other)
	halve()
	same(column, best)
	l.VANDPS(equal, share, share)
	same(left, right)
	halve()
	same(left, column)
	l.VANDPS(equal, share, left)
	same(right, column)
	l.VANDPS(equal, share, right)
	l.VORPS(nans, left, left)
	l.VORPS(nans, right, right)
	l.VMOVUPS(left, operand.Mem{Base: da})
	l.VMOVUPS(right, operand.Mem{Base: db})
	for _, p := range []reg.GPVirtual{a, b, da, db} {
		l.ADDQ(operand.Imm(32), p)
	}
	l.ADDQ(operand.Imm(16), g)
	l.SUBQ(operand.Imm(4), n)
	l.JNZ(operand.LabelRef("step"))
	l.VZEROUPPER()
	l.RET()
}
