package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const gatherPromise = `gatherAVX2 lays rows of up to 32 lanes closer together: dst[p*dstStep+i] =
src[p*srcStep+i] for i < lanes and p < depth. It writes a multiple of 8 elements
at each p, in ascending order of p; those past lanes are of no use. Steps are in
elements; lanes and depth are at least 1. It reads nothing outside the rows.`

// gather emits the kernel that packs rows which are contiguous across k.
func gather(ctx *build.Context) {
	const most = 4 // vectors a row
	y := registersY()
	simd := newAVX2(ctx, "gatherMask", reg.Y15)
	function(ctx, "gatherAVX2", "func(lanes, depth int, src *float32, srcStep int, dst *float32, dstStep int)", gatherPromise)
	depth := word(ctx, "depth")
	src, srcStep, dst, dstStep := word(ctx, "src"), bytes(ctx, "srcStep"), word(ctx, "dst"), bytes(ctx, "dstStep")

	lanes := word(ctx, "lanes")
	for vectors := 1; vectors <= most; vectors++ {
		ctx.CMPQ(lanes, operand.Imm(uint64(8*vectors)))
		ctx.JLE(operand.LabelRef(fmt.Sprintf("vectors%d", vectors)))
	}
	for vectors := 1; vectors <= most; vectors++ {
		label := fmt.Sprintf("vectors%d", vectors)
		ctx.Label(label)
		ctx.SUBQ(operand.Imm(uint64(8*(vectors-1))), lanes)
		simd.setMask(lanes)
		ctx.Label(label + "step")
		for v := range vectors {
			simd.load(operand.Mem{Base: src, Disp: 32 * v}, y[v], v == vectors-1)
		}
		for v := range vectors {
			simd.store(y[v], operand.Mem{Base: dst, Disp: 32 * v}, false)
		}
		ctx.ADDQ(srcStep, src)
		ctx.ADDQ(dstStep, dst)
		ctx.DECQ(depth)
		ctx.JNZ(operand.LabelRef(label + "step"))
		ctx.VZEROUPPER()
		ctx.RET()
	}
}
