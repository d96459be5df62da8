package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

const (
	addPromise = `addAVX2 sets dst[i] = a[i] + b[i] for i < n. n is at least 1.`

	mulPromise = `mulAVX2 sets dst[i] = a[i] * b[i] for i < n. n is at least 1.`
)

func arithmetic(ctx *build.Context) {
	l := newLanes(ctx, "arithmeticMask")
	streams := []stream{{"dst", false, true}, {"a", true, false}, {"b", true, false}}
	l.loop("addAVX2", "", addPromise, streams, nil, func(r []reg.VecPhysical) { l.VADDPS(r[2], r[1], r[0]) })
	l.loop("mulAVX2", "", mulPromise, streams, nil, func(r []reg.VecPhysical) { l.VMULPS(r[2], r[1], r[0]) })
}
