package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

const (
	addPromise = `addAVX2 sets dst[i] = a[i] + b[i] for i < n. n is at least 1.`

	mulPromise = `mulAVX2 sets dst[i] = a[i] * b[i] for i < n. n is at least 1.`

	addScaledPromise = `addScaledAVX2 sets dst[i] += factor * x[i] for i < n, with two roundings. n is
at least 1.`
)

func arithmetic(ctx *build.Context) {
	l := newLanes(ctx, "arithmeticMask")
	streams := []stream{{"dst", false, true}, {"a", true, false}, {"b", true, false}}
	l.loop("addAVX2", "", addPromise, streams, nil, func(r []reg.VecPhysical) { l.VADDPS(r[2], r[1], r[0]) })
	l.loop("mulAVX2", "", mulPromise, streams, nil, func(r []reg.VecPhysical) { l.VMULPS(r[2], r[1], r[0]) })

	streams = []stream{{"dst", true, true}, {"x", true, false}}
	l.loop("addScaledAVX2", "factor float32", addScaledPromise, streams,
		func() { l.scalar("factor", reg.Y2) },
		func(r []reg.VecPhysical) {
			l.VMULPS(reg.Y2, r[1], r[1])
			l.VADDPS(r[1], r[0], r[0])
		})
}
