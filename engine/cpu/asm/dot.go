package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const dotPromise = `%s multiplies rows with rows, both contiguous over k: out[i*4+j] is the
inner product of x[i*xStep:] and y[j*yStep:], for i < rows, at most %d, and
j < cols, at most 4; what it writes for other j is of no use. Steps are in
elements; rows, cols and k are at least 1. It reads nothing outside the rows.`

// dot emits the kernel that reads b by its columns: a vector runs along k, and
// the lanes are summed at the end.
type dot struct {
	*build.Context
	simd simd

	sum   [][4]reg.VecPhysical
	left  []reg.VecPhysical // of x, a vector a row
	right reg.VecPhysical   // of y, for all of them

	x, y []reg.GPVirtual
	k    reg.GPVirtual
	out  reg.GPVirtual
}

func dotAVX512(ctx *build.Context) {
	z := registersZ()
	d := &dot{Context: ctx, simd: &avx512{ctx}, left: z[16:20], right: z[20]}
	d.emit("dotAVX512", z[:16])
}

// Two rows of four sums keep both multipliers busy for the four cycles that a
// sum takes.
func dotAVX2(ctx *build.Context) {
	y := registersY()
	d := &dot{Context: ctx, simd: newAVX2(ctx, "dotMask", reg.Y15), left: y[8:10], right: y[10]}
	d.emit("dotAVX2", y[:8])
}

func (d *dot) emit(name string, sums []reg.VecPhysical) {
	for ; len(sums) > 0; sums = sums[4:] {
		d.sum = append(d.sum, [4]reg.VecPhysical(sums))
	}
	function(d.Context, name,
		"func(rows, cols, k int, x *float32, xStep int, y *float32, yStep int, out *[16]float32)",
		fmt.Sprintf(dotPromise, name, len(d.sum)))
	d.k, d.out = word(d.Context, "k"), word(d.Context, "out")
	d.x = existingRows(d.Context, "x", "xStep", "rows", len(d.sum))
	d.y = existingRows(d.Context, "y", "yStep", "cols", 4)
	forRows(d.Context, "rows", word(d.Context, "rows"), len(d.sum), d.body)
}

func (d *dot) body(label string, rows int) {
	lanes := d.simd.lanes()
	for i := range rows {
		for j := range 4 {
			d.simd.zero(d.sum[i][j])
		}
	}
	p := d.GP64()
	d.XORQ(p, p)
	multiply := func(masked bool) {
		for i := range rows {
			d.simd.load(operand.Mem{Base: d.x[i], Index: p, Scale: 4}, d.left[i], masked)
		}
		for j := range 4 {
			d.simd.load(operand.Mem{Base: d.y[j], Index: p, Scale: 4}, d.right, masked)
			for i := range rows {
				d.VFMADD231PS(d.left[i], d.right, d.sum[i][j])
			}
		}
	}
	d.SUBQ(operand.Imm(uint64(lanes)), d.k)
	d.JLT(operand.LabelRef(label + "rest"))
	d.Label(label + "step")
	multiply(false)
	d.ADDQ(operand.Imm(uint64(lanes)), p)
	d.CMPQ(p, d.k)
	d.JLE(operand.LabelRef(label + "step"))

	d.Label(label + "rest")
	d.ADDQ(operand.Imm(uint64(lanes)), d.k)
	d.SUBQ(p, d.k)
	d.JZ(operand.LabelRef(label + "sum"))
	d.simd.setMask(d.k)
	multiply(true)

	d.Label(label + "sum")
	for i := range rows {
		d.VMOVUPS(d.simd.sums(d.sum[i]), operand.Mem{Base: d.out, Disp: 16 * i})
	}
	d.VZEROUPPER()
	d.RET()
}
