package cpu

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

// Reduce walks the kept axes outside and the folded ones inside, so that each
// result is made by one thread, in one order.
func (k *kernels) Reduce(op engine.ReduceOp, dst, a engine.View) {
	kept, folded := a.Shape, a.Shape
	for axis := range a.Shape.Rank {
		if dst.Shape.Dims[axis] == a.Shape.Dims[axis] {
			folded.Dims[axis] = 1
		} else {
			kept.Dims[axis] = 1
		}
	}
	if folded.Elements() == 0 && op == engine.ReduceSum {
		k.Fill(dst, 0)
		return
	}
	over, fold := nest(kept, dst.Strides, a.Strides), nest(folded, a.Strides)
	x := words[float32](a)
	if op == engine.ReduceArgMax {
		d := words[int32](dst)
		k.results(over, folded.Elements(), func(to, from int) { d[to] = argMax(x[from:], fold) })
		return
	}
	d := words[float32](dst)
	if n, step := over.inner(); step[0] == 1 && step[1] == 1 && n > 1 {
		// The kept axis is the dense one: fold whole rows into the row of results.
		k.foldRows(op, d, x, over, fold)
		return
	}
	each := sum
	if op == engine.ReduceMax {
		each = largest
	}
	k.results(over, folded.Elements(), func(to, from int) { d[to] = each(x[from:], fold) })
}

// results calls f once for each result, with its offset and the offset of its first
// operand. cost is the operands of one.
func (k *kernels) results(over loops, cost int, f func(to, from int)) {
	n, step := over.inner()
	k.split(over.outer()*n, cost, func(from, to int) {
		// Pieces may start inside a row: rows are walked whole and clipped.
		row := from / n * n
		over.rows(from/n, (to+n-1)/n, func(at [operands]int) {
			for i := max(from-row, 0); i < min(n, to-row); i++ {
				f(at[0]+i*step[0], at[1]+i*step[1])
			}
			row += n
		})
	})
}

// foldRows folds into rows of n results that lie side by side.
func (k *kernels) foldRows(op engine.ReduceOp, d, x []float32, over, fold loops) {
	n, _ := over.inner()
	terms, _ := fold.inner()
	// A row is cut so that there is work for all threads where there are few rows.
	r := rowFold{op, d, x, over, fold, (n + foldWidth - 1) / foldWidth}
	units, cost := over.outer()*r.pieces, min(n, foldWidth)*terms*fold.outer()
	if k.pieces(units, cost) == 1 {
		r.fold(0, units)
		return
	}
	shared := r // on the heap, for several threads
	k.split(units, cost, shared.fold)
}

// rowFold is a fold into rows of results, each cut in pieces.
type rowFold struct {
	op         engine.ReduceOp
	d, x       []float32
	over, term loops
	pieces     int
}

// fold makes the pieces [from, to) of all rows.
func (r *rowFold) fold(from, to int) {
	n, _ := r.over.inner()
	terms, step := r.term.inner()
	start := float32(0)
	if r.op == engine.ReduceMax {
		start = float32(math.Inf(-1))
	}
	for unit := from; unit < to; unit++ {
		first := unit % r.pieces * foldWidth
		width := min(foldWidth, n-first)
		r.over.rows(unit/r.pieces, unit/r.pieces+1, func(at [operands]int) {
			row := r.d[at[0]+first:][:width]
			for i := range row {
				row[i] = start
			}
			r.term.rows(0, r.term.outer(), func(in [operands]int) {
				for t := range terms {
					term := r.x[at[1]+in[0]+t*step[0]+first:][:width]
					if r.op == engine.ReduceSum {
						vec.Add(row, row, term)
						continue
					}
					for i := range row {
						row[i] = max(row[i], term[i])
					}
				}
			})
		})
	}
}

// foldWidth is how many results are made side by side: 2 KiB.
const foldWidth = 512

// sum adds rows as vec does and collects them in float64: float32 alone would lose
// digits over the long axes of a bias gradient.
func sum(x []float32, fold loops) float32 {
	n, step := fold.inner()
	total := 0.0
	fold.rows(0, fold.outer(), func(at [operands]int) {
		if step[0] == 1 {
			total += float64(vec.Sum(x[at[0]:][:n]))
			return
		}
		for i := range n {
			total += float64(x[at[0]+i*step[0]])
		}
	})
	return float32(total)
}

func largest(x []float32, fold loops) float32 {
	n, step := fold.inner()
	best := float32(math.Inf(-1))
	fold.rows(0, fold.outer(), func(at [operands]int) {
		if step[0] == 1 {
			best = max(best, vec.Max(x[at[0]:][:n]))
			return
		}
		for i := range n {
			best = max(best, x[at[0]+i*step[0]])
		}
	})
	return best
}

// argMax folds one axis, so fold is a single loop.
func argMax(x []float32, fold loops) int32 {
	n, step := fold.inner()
	best, where := float32(math.Inf(-1)), int32(0)
	for i := range n {
		switch v := x[i*step[0]]; {
		case v != v:
			return int32(i)
		case v > best:
			best, where = v, int32(i)
		}
	}
	return where
}
