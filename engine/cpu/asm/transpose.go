package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

const transposePromise = `transposeAVX2 interleaves up to 8 rows: dst[p*dstStep+i] = src[i*srcStep+p] for
i < rows and p < 8*blocks. It writes 8 elements at each p, in ascending order of
p, whatever rows is; those past rows are of no use. Steps are in elements; rows
and blocks are at least 1. It reads nothing outside the rows.`

// transpose emits the kernel that packs rows which are contiguous along k.
func transpose(ctx *build.Context) {
	function(ctx, "transposeAVX2", "func(rows, blocks int, src *float32, srcStep int, dst *float32, dstStep int)", transposePromise)
	blocks, dst, dstStep := word(ctx, "blocks"), word(ctx, "dst"), bytes(ctx, "dstStep")
	row := existingRows(ctx, "src", "srcStep", "rows", 8)

	y := registersY()
	in, tmp := y[:8], y[8:]
	p := ctx.GP64()
	ctx.XORQ(p, p)
	ctx.Label("block")
	for i := range 8 {
		ctx.VMOVUPS(operand.Mem{Base: row[i], Index: p, Scale: 1}, in[i])
	}
	// Pairs of rows, then fours, then halves: the letters are rows, the figures
	// elements.
	for i := 0; i < 8; i += 2 {
		ctx.VUNPCKLPS(in[i+1], in[i], tmp[i])   // a0 b0 a1 b1 | a4 b4 a5 b5
		ctx.VUNPCKHPS(in[i+1], in[i], tmp[i+1]) // a2 b2 a3 b3 | a6 b6 a7 b7
	}
	for i := 0; i < 8; i += 4 {
		ctx.VSHUFPS(operand.Imm(0x44), tmp[i+2], tmp[i], in[i])     // a0 b0 c0 d0 | a4 …
		ctx.VSHUFPS(operand.Imm(0xee), tmp[i+2], tmp[i], in[i+1])   // a1 …        | a5 …
		ctx.VSHUFPS(operand.Imm(0x44), tmp[i+3], tmp[i+1], in[i+2]) // a2 …        | a6 …
		ctx.VSHUFPS(operand.Imm(0xee), tmp[i+3], tmp[i+1], in[i+3]) // a3 …        | a7 …
	}
	for i := range 4 {
		ctx.VPERM2F128(operand.Imm(0x20), in[i+4], in[i], tmp[i])
		ctx.VPERM2F128(operand.Imm(0x31), in[i+4], in[i], tmp[i+4])
	}
	for i := range 8 {
		ctx.VMOVUPS(tmp[i], operand.Mem{Base: dst})
		ctx.ADDQ(dstStep, dst)
	}
	ctx.ADDQ(operand.Imm(32), p)
	ctx.DECQ(blocks)
	ctx.JNZ(operand.LabelRef("block"))
	ctx.VZEROUPPER()
	ctx.RET()
}
