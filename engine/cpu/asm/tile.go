package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const tilePromise = `%s adds up a tile of at most %d rows by %d columns in registers:
c[i*ldc+j] = sum of a[i*aRow+p*aStep] * b[p*bStep+j] over p in order, added to
what is there if accumulate. Steps are in elements; rows, cols and k are at
least 1. It touches nothing outside these elements.`

// tile emits one micro-kernel. Every count of rows has a body of its own, with
// its accumulators in registers for the whole loop over p, of one vector of
// columns or two.
type tile struct {
	*build.Context
	simd simd

	// sum holds the tile, right a row of b, left elements of a.
	sum   [][2]reg.VecPhysical
	right [2]reg.VecPhysical
	left  []reg.VecPhysical

	cols, k         reg.GPVirtual
	a               rowPointers
	aStep, b, bStep reg.GPVirtual
	c, ldc          reg.GPVirtual
	accumulate      reg.GPVirtual
}

func tileAVX512(ctx *build.Context) {
	z := registersZ()
	t := &tile{Context: ctx, simd: &avx512{ctx}, right: [2]reg.VecPhysical{z[28], z[29]}, left: z[30:]}
	t.emit("tileAVX512", z[:28])
}

func tileAVX2(ctx *build.Context) {
	y := registersY()
	t := &tile{Context: ctx, simd: newAVX2(ctx, "tileMask", reg.Y15), right: [2]reg.VecPhysical{y[12], y[13]}, left: y[14:15]}
	t.emit("tileAVX2", y[:12])
}

func (t *tile) emit(name string, sums []reg.VecPhysical) {
	for ; len(sums) > 0; sums = sums[2:] {
		t.sum = append(t.sum, [2]reg.VecPhysical(sums))
	}
	function(t.Context, name,
		"func(rows, cols, k int, a *float32, aRow, aStep int, b *float32, bStep int, c *float32, ldc int, accumulate bool)",
		fmt.Sprintf(tilePromise, name, len(t.sum), 2*t.simd.lanes()))
	t.cols, t.k = word(t.Context, "cols"), word(t.Context, "k")
	t.a, t.aStep = newRowPointers(t.Context, "a", "aRow", len(t.sum)), bytes(t.Context, "aStep")
	t.b, t.bStep = word(t.Context, "b"), bytes(t.Context, "bStep")
	t.c, t.ldc = word(t.Context, "c"), bytes(t.Context, "ldc")
	t.accumulate = t.Load(t.Param("accumulate"), t.GP8()).(reg.GPVirtual)
	rows := word(t.Context, "rows")

	bodies := func(kind string, vectors int, masked bool) {
		forRows(t.Context, kind, rows, len(t.sum), func(label string, rows int) {
			t.body(label, rows, vectors, masked)
		})
	}
	lanes := operand.Imm(uint64(t.simd.lanes()))
	t.CMPQ(t.cols, lanes)
	t.JLE(operand.LabelRef("narrow"))
	t.SUBQ(lanes, t.cols)
	if !t.simd.maskIsFree() {
		t.CMPQ(t.cols, lanes)
		t.JLT(operand.LabelRef("partial"))
		bodies("full", 2, false)
		t.Label("partial")
	}
	t.simd.setMask(t.cols)
	bodies("wide", 2, true)
	t.Label("narrow")
	t.simd.setMask(t.cols)
	bodies("slim", 1, true)
}

func (t *tile) body(label string, rows, vectors int, masked bool) {
	// each visits the tile's vectors in c; the last of a row is masked.
	each := func(visit func(i, v int, at operand.Mem, masked bool)) {
		row := t.GP64()
		t.MOVQ(t.c, row)
		for i := range rows {
			if i > 0 {
				t.ADDQ(t.ldc, row)
			}
			for v := range vectors {
				visit(i, v, operand.Mem{Base: row, Disp: 4 * t.simd.lanes() * v}, masked && v == vectors-1)
			}
		}
	}

	for i := range rows {
		for v := range vectors {
			t.simd.zero(t.sum[i][v])
		}
	}
	// c is wanted only after the loop over p, and often lies far away: fetching it
	// now is worth 5 to 10% of a product of 1024 or 2048. After a short loop it
	// would come too late, and costs a quarter at a k of 8.
	t.CMPQ(t.k, operand.Imm(128))
	t.JLT(operand.LabelRef(label + "step"))
	each(func(_, _ int, at operand.Mem, _ bool) { t.PREFETCHT0(at) })
	t.Label(label + "step")
	for v := range vectors {
		t.simd.load(operand.Mem{Base: t.b, Disp: 4 * t.simd.lanes() * v}, t.right[v], masked && v == vectors-1)
	}
	for i := range rows {
		left := t.left[i%len(t.left)]
		t.VBROADCASTSS(t.a.at(i), left)
		for v := range vectors {
			t.VFMADD231PS(left, t.right[v], t.sum[i][v])
		}
	}
	t.a.advance(t.aStep, rows)
	t.ADDQ(t.bStep, t.b)
	t.DECQ(t.k)
	t.JNZ(operand.LabelRef(label + "step"))

	t.TESTB(t.accumulate, t.accumulate)
	t.JZ(operand.LabelRef(label + "store"))
	each(func(i, v int, at operand.Mem, masked bool) {
		t.simd.add(at, t.sum[i][v], t.right[0], masked)
	})
	t.Label(label + "store")
	each(func(i, v int, at operand.Mem, masked bool) {
		t.simd.store(t.sum[i][v], at, masked)
	})
	t.VZEROUPPER()
	t.RET()
}
