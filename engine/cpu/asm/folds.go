package main

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	sumPromise = `sumAVX2 returns the sum of x[i] for i < n, in 32 parts that are added up at the
end. n is at least 1.`

	maxPromise = `maxAVX2 returns the largest x[i] for i < n, NaN if any is NaN. n is at least 1.`
)

// fold emits a function of a slice, or of two, to one number. Four registers take
// turns, so that none waits for the step before.
type fold struct {
	*lanes
	parts  []reg.VecPhysical // of the result
	x      []reg.VecPhysical
	second []reg.VecPhysical // of a slice y beside x, if there is one

	parameters string // after n
	before     func() // loads them; may be nil
}

func folds(ctx *build.Context) {
	y := registersY()
	f := &fold{lanes: newLanes(ctx, "foldMask"), parts: y[:4], x: y[4:8]}

	f.emit("sumAVX2", sumPromise, func(r reg.VecPhysical) { f.VXORPS(r, r, r) },
		func(x, part reg.VecPhysical, _ bool) { f.VADDPS(x, part, part) },
		func(x, part reg.VecPhysical) { f.VADDPS(x, part, part) })

	// A maximum of the processor forgets NaN in its first operand; nans remembers.
	nans, less := y[8], y[9]
	f.emit("maxAVX2", maxPromise,
		func(r reg.VecPhysical) {
			f.VMOVUPS(f.bits("lowest", math.Float32bits(float32(math.Inf(-1)))), r)
			f.VXORPS(nans, nans, nans)
		},
		func(x, part reg.VecPhysical, masked bool) {
			if masked { // lanes past the end are 0
				f.VBLENDVPS(f.simd.mask, x, part, x)
			}
			f.VCMPPS(operand.Imm(3), x, x, less) // unordered
			f.VORPS(less, nans, nans)
			f.VMAXPS(x, part, part)
		},
		func(x, part reg.VecPhysical) {
			f.VORPS(nans, x, x) // all ones are NaN
			f.VORPS(nans, part, part)
			f.VCMPPS(operand.Imm(3), x, part, less)
			f.VMAXPS(x, part, part)
			f.VORPS(less, part, part)
		})
}

// emit writes the function: begin sets a part, take adds elements to it, join
// adds a part, which it may destroy.
func (f *fold) emit(name, promise string, begin func(part reg.VecPhysical), take func(x, part reg.VecPhysical, masked bool), join func(x, part reg.VecPhysical)) {
	y := ""
	if f.second != nil {
		y = ", y *float32"
	}
	function(f.Context, name, "func(x *float32"+y+", n int"+f.parameters+") float32", promise)
	x, n := word(f.Context, "x"), word(f.Context, "n")
	var beside reg.GPVirtual
	if f.second != nil {
		beside = word(f.Context, "y")
	}
	if f.before != nil {
		f.before()
	}
	load := func(i int, masked bool) {
		f.simd.load(operand.Mem{Base: x, Disp: 32 * i}, f.x[i], masked)
		if f.second != nil {
			f.simd.load(operand.Mem{Base: beside, Disp: 32 * i}, f.second[i], masked)
		}
	}
	for _, part := range f.parts {
		begin(part)
	}
	step := func(label string, registers int) {
		count := operand.Imm(uint64(8 * registers))
		f.SUBQ(count, n)
		f.JLT(operand.LabelRef(label + "end"))
		f.Label(label)
		for i := range registers {
			load(i, false)
			take(f.x[i], f.parts[i], false)
		}
		f.ADDQ(operand.Imm(uint64(32*registers)), x)
		if f.second != nil {
			f.ADDQ(operand.Imm(uint64(32*registers)), beside)
		}
		f.SUBQ(count, n)
		f.JGE(operand.LabelRef(label))
		f.Label(label + "end")
		f.ADDQ(count, n)
	}
	step("fours", 4)
	step("ones", 1)
	f.JZ(operand.LabelRef("join"))
	f.simd.setMask(n)
	load(0, true)
	take(f.x[0], f.parts[0], true)

	f.Label("join")
	join(f.parts[1], f.parts[0])
	join(f.parts[3], f.parts[2])
	join(f.parts[2], f.parts[0])
	// The halves, the pairs, the neighbours.
	total, other := f.parts[0], f.parts[1]
	f.VPERM2F128(operand.Imm(1), total, total, other)
	join(other, total)
	f.VPERMILPS(operand.Imm(0x4e), total, other)
	join(other, total)
	f.VPERMILPS(operand.Imm(0xb1), total, other)
	join(other, total)
	result := f.XMM()
	f.VMOVAPS(total.AsX(), result)
	f.VZEROUPPER()
	f.Store(result, f.ReturnIndex(0))
	f.RET()
}
