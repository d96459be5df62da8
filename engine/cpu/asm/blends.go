package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	scalePromise = `scaleAVX2 sets dst[i] = factor * x[i] for i < n. n is at least 1.`

	affinePromise = `affineAVX2 sets dst[i] = factor * x[i] + shift for i < n, with two roundings. n
is at least 1.`

	blendPromise = `blendAVX2 sets dst[i] = a * x[i] + b * y[i] + c for i < n, every operation
rounded. n is at least 1.`

	addProductPromise = `addProductAVX2 sets dst[i] += x[i] * y[i] for i < n, with two roundings. n is at
least 1.`

	rectifyPromise = `rectifyAVX2 sets dst[i] = x[i], or 0 where that is below 0, for i < n. n is at
least 1.`

	gatePromise = `gateAVX2 sets dst[i] = x[i] where y[i] is above 0 or NaN, else 0, for i < n. n is
at least 1.`
)

func blends(ctx *build.Context) {
	l := newLanes(ctx, "blendMask")
	dst, x, y := stream{"dst", false, true}, stream{"x", true, false}, stream{"y", true, false}
	l.loop("scaleAVX2", "factor float32", scalePromise, []stream{dst, x},
		func() { l.scalar("factor", reg.Y2) },
		func(r []reg.VecPhysical) { l.VMULPS(reg.Y2, r[1], r[0]) })
	l.loop("affineAVX2", "factor, shift float32", affinePromise, []stream{dst, x},
		func() {
			l.scalar("factor", reg.Y2)
			l.scalar("shift", reg.Y3)
		},
		func(r []reg.VecPhysical) {
			l.VMULPS(reg.Y2, r[1], r[0])
			l.VADDPS(reg.Y3, r[0], r[0])
		})
	l.loop("blendAVX2", "a, b, c float32", blendPromise, []stream{dst, x, y},
		func() {
			l.scalar("a", reg.Y3)
			l.scalar("b", reg.Y4)
			l.scalar("c", reg.Y5)
		},
		func(r []reg.VecPhysical) {
			l.VMULPS(reg.Y3, r[1], r[0])
			l.VMULPS(reg.Y4, r[2], r[2])
			l.VADDPS(r[2], r[0], r[0])
			l.VADDPS(reg.Y5, r[0], r[0])
		})
	l.loop("addProductAVX2", "", addProductPromise, []stream{{"dst", true, true}, x, y}, nil,
		func(r []reg.VecPhysical) {
			l.VMULPS(r[1], r[2], r[2])
			l.VADDPS(r[2], r[0], r[0])
		})
	zero := func() { l.VXORPS(reg.Y3, reg.Y3, reg.Y3) }
	// Of NaN and of two zeros, the processor's maximum is its last operand: x.
	l.loop("rectifyAVX2", "", rectifyPromise, []stream{dst, x}, zero,
		func(r []reg.VecPhysical) { l.VMAXPS(r[1], reg.Y3, r[0]) })
	l.loop("gateAVX2", "", gatePromise, []stream{dst, x, y}, zero,
		func(r []reg.VecPhysical) {
			l.VCMPPS(operand.Imm(9), r[2], reg.Y3, r[0]) // not 0 >= y
			l.VANDPS(r[1], r[0], r[0])
		})
}

const (
	productsPromise = `dotAVX2 returns the sum of x[i] * (y[i] - off) for i < n, in 32 parts that are
added up at the end. n is at least 1.`

	squaresPromise = `squaresAVX2 returns the sum of the squares of x[i] - off for i < n, in 32 parts
that are added up at the end. n is at least 1.`
)

// products emits folds of products.
func products(ctx *build.Context) {
	y := registersY()
	f := &fold{lanes: newLanes(ctx, "productMask"), parts: y[:4], x: y[4:8]}
	zero := func(r reg.VecPhysical) { f.VXORPS(r, r, r) }
	join := func(x, part reg.VecPhysical) { f.VADDPS(x, part, part) }

	off := y[12]
	f.before, f.parameters = func() { f.scalar("off", off) }, ", off float32"
	f.second = y[8:12]
	f.emit("dotAVX2", productsPromise, zero, func(x, part reg.VecPhysical, _ bool) {
		y := f.second[slot(f.x, x)]
		f.VSUBPS(off, y, y)
		f.VFMADD231PS(y, x, part)
	}, join)

	f.second = nil
	f.emit("squaresAVX2", squaresPromise, zero, func(x, part reg.VecPhysical, masked bool) {
		f.VSUBPS(off, x, x)
		if masked { // lanes past the end were 0
			f.VANDPS(f.simd.mask, x, x)
		}
		f.VFMADD231PS(x, x, part)
	}, join)
}

func slot(list []reg.VecPhysical, r reg.VecPhysical) int {
	for i := range list {
		if list[i] == r {
			return i
		}
	}
	panic("the register is none of these")
}
