package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// function begins a kernel, with its promise as the comment.
func function(ctx *build.Context, name, signature, promise string) {
	ctx.Function(name)
	ctx.Attributes(build.NOSPLIT)
	ctx.SignatureExpr(signature)
	ctx.Doc(strings.Split(promise, "\n")...)
	ctx.Pragma("noescape")
}

// word loads a parameter of 64 bits.
func word(ctx *build.Context, name string) reg.GPVirtual {
	return ctx.Load(ctx.Param(name), ctx.GP64()).(reg.GPVirtual)
}

// bytes loads a parameter that counts elements.
func bytes(ctx *build.Context, name string) reg.GPVirtual {
	r := word(ctx, name)
	ctx.SHLQ(operand.Imm(2), r)
	return r
}

// forRows emits a body for every count of rows from 1 to most, and the jump to
// the one that is asked for; most is looked for first, as it is the common one.
// A body returns.
func forRows(ctx *build.Context, kind string, rows reg.GPVirtual, most int, body func(label string, rows int)) {
	label := func(r int) string { return fmt.Sprintf("%s%d", kind, r) }
	for r := most; r > 1; r-- {
		ctx.CMPQ(rows, operand.Imm(uint64(r)))
		ctx.JEQ(operand.LabelRef(label(r)))
	}
	for r := 1; r <= most; r++ {
		ctx.Label(label(r))
		body(label(r), r)
	}
}

// rowPointers are where the current elements of up to 14 rows lie: two pointers
// and three multiples of the step reach that many through the scales of x86.
type rowPointers struct {
	ctx                *build.Context
	first, eighth      reg.GPVirtual
	step, step3, step5 reg.GPVirtual
}

func newRowPointers(ctx *build.Context, first, step string, rows int) rowPointers {
	p := rowPointers{ctx: ctx, first: word(ctx, first), step: bytes(ctx, step), step3: ctx.GP64(), step5: ctx.GP64()}
	ctx.LEAQ(operand.Mem{Base: p.step, Index: p.step, Scale: 2}, p.step3)
	ctx.LEAQ(operand.Mem{Base: p.step, Index: p.step, Scale: 4}, p.step5)
	if rows > 7 {
		p.eighth = ctx.GP64()
		ctx.LEAQ(operand.Mem{Base: p.step5, Index: p.step, Scale: 2}, p.eighth)
		ctx.ADDQ(p.first, p.eighth)
	}
	return p
}

func (p rowPointers) at(i int) operand.Mem {
	base := p.first
	if i >= 7 {
		base, i = p.eighth, i-7
	}
	if i == 0 {
		return operand.Mem{Base: base}
	}
	index := [...]reg.GPVirtual{1: p.step, 2: p.step, 3: p.step3, 4: p.step, 5: p.step5, 6: p.step3}[i]
	scale := [...]uint8{1: 1, 2: 2, 3: 1, 4: 4, 5: 1, 6: 2}[i]
	return operand.Mem{Base: base, Index: index, Scale: scale}
}

// advance moves on so many bytes in each of the rows.
func (p rowPointers) advance(by operand.Op, rows int) {
	p.ctx.ADDQ(by, p.first)
	if rows > 7 {
		p.ctx.ADDQ(by, p.eighth)
	}
}

// existingRows returns pointers to count rows; as many are there as the
// parameter named have says: one that is not is its predecessor once more.
func existingRows(ctx *build.Context, first, step, have string, count int) []reg.GPVirtual {
	at, by, rows, none := []reg.GPVirtual{word(ctx, first)}, bytes(ctx, step), word(ctx, have), ctx.GP64()
	ctx.XORQ(none, none)
	for i := 1; i < count; i++ {
		next := ctx.GP64()
		ctx.CMPQ(rows, operand.Imm(uint64(i)))
		ctx.CMOVQEQ(none, by)
		ctx.MOVQ(at[i-1], next)
		ctx.ADDQ(by, next)
		at = append(at, next)
	}
	return at
}

func registersZ() []reg.VecPhysical {
	return []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
		reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
		reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}
}

func registersY() []reg.VecPhysical {
	return []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7,
		reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}
}
