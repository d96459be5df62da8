package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const sweepPromise = `%s adds at most 8 rows: c[j] += a[p*aStep] * b[p*bStep+j] for p < rows in
order and j < cols. Steps are in elements; rows and cols are at least 1. It
touches nothing outside these elements.`

// sweep emits the kernel for a row times a matrix. Memory limits its speed,
// which comes fastest as a few streams that are read in order.
type sweep struct {
	*build.Context
	simd simd

	left       []reg.VecPhysical // elements of a
	sum, right reg.VecPhysical

	a, aStep, c, cols reg.GPVirtual
	b                 rowPointers
}

func sweepAVX512(ctx *build.Context) {
	z := registersZ()
	s := &sweep{Context: ctx, simd: &avx512{ctx}, left: z[:8], sum: z[8], right: z[9]}
	s.emit("sweepAVX512")
}

func sweepAVX2(ctx *build.Context) {
	y := registersY()
	s := &sweep{Context: ctx, simd: newAVX2(ctx, "sweepMask", reg.Y15), left: y[:8], sum: y[8], right: y[9]}
	s.emit("sweepAVX2")
}

func (s *sweep) emit(name string) {
	function(s.Context, name, "func(rows, cols int, a *float32, aStep int, b *float32, bStep int, c *float32)",
		fmt.Sprintf(sweepPromise, name))
	s.cols, s.a, s.aStep, s.c = word(s.Context, "cols"), word(s.Context, "a"), bytes(s.Context, "aStep"), word(s.Context, "c")
	s.b = newRowPointers(s.Context, "b", "bStep", len(s.left))
	forRows(s.Context, "rows", word(s.Context, "rows"), len(s.left), s.body)
}

func (s *sweep) body(label string, rows int) {
	lanes := s.simd.lanes()
	for p := range rows {
		if p > 0 {
			s.ADDQ(s.aStep, s.a)
		}
		s.VBROADCASTSS(operand.Mem{Base: s.a}, s.left[p])
	}
	s.SUBQ(operand.Imm(uint64(lanes)), s.cols)
	s.JLT(operand.LabelRef(label + "rest"))
	s.Label(label + "step")
	s.simd.load(operand.Mem{Base: s.c}, s.sum, false)
	for p := range rows {
		s.VFMADD231PS(s.b.at(p), s.left[p], s.sum)
	}
	s.simd.store(s.sum, operand.Mem{Base: s.c}, false)
	s.b.advance(operand.Imm(uint64(4*lanes)), rows)
	s.ADDQ(operand.Imm(uint64(4*lanes)), s.c)
	s.SUBQ(operand.Imm(uint64(lanes)), s.cols)
	s.JGE(operand.LabelRef(label + "step"))

	s.Label(label + "rest")
	s.ADDQ(operand.Imm(uint64(lanes)), s.cols)
	s.JZ(operand.LabelRef(label + "end"))
	s.simd.setMask(s.cols)
	s.simd.load(operand.Mem{Base: s.c}, s.sum, true)
	for p := range rows {
		s.simd.load(s.b.at(p), s.right, true)
		s.VFMADD231PS(s.right, s.left[p], s.sum)
	}
	s.simd.store(s.sum, operand.Mem{Base: s.c}, true)
	s.Label(label + "end")
	s.VZEROUPPER()
	s.RET()
}
