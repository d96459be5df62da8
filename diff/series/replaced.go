package series

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// Replaced reports whether the site has held the same number of blocks ever since it
// held any, at two marks or more; or, after the first part of its time, never more than
// at the mark before, at so many that chance does not do that.
func (h *History) Replaced() bool { return h.Whole.replaced() }

// Regrows reports whether blocks are replaced by larger ones, which at some marks by the clock lie beside them.
func (h *History) Regrows() bool {
	p := h.Whole
	if h.Unit == Second {
		p.Blocks = Lasting(p.Blocks)[:max(0, len(p.Blocks)-stays+1)]
	}
	return h.Replaced() || p.replaced()
}

func (p Points) replaced() bool {
	i := slices.IndexFunc(p.Blocks, func(n float64) bool { return n > 0 })
	if i < 0 {
		return false
	}
	held := p.Blocks[i:]
	later := held[len(held)/settling:]
	falls := slices.IsSortedFunc(later, func(a, b float64) int { return cmp.Compare(b, a) })
	return len(held) > 1 && slices.Min(held) == slices.Max(held) || len(later) >= Testable && falls && later[len(later)-1] > 0
}

// Lasting is of each value what is left of it at the next two marks: those by the clock lie
// anywhere, and between the making of a larger block and the end of the one before both are there.
func Lasting(y []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = slices.Min(y[i:min(i+stays, len(y))])
	}
	return out
}

// reached is of each value the most that it and the next two marks have: there a larger block lies beside the one before.
func reached(y []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = slices.Max(y[i:min(i+stays, len(y))])
	}
	return out
}

// RoseBefore reports whether the site rose beyond chance up to the last mark but one, and is lower at the last.
func (h *History) RoseBefore() bool {
	before := len(h.Whole.X) - 1
	from, n := WarmUp(before), before-stays+1 // without the last ones, which no two later marks correct
	if n-from < Testable {
		return false
	}
	x, y := trend.Floors(h.Whole.X[from:n], Lasting(h.Whole.Sizes[:before])[from:n], Windows)
	t := trend.MannKendall(y)
	return t.Z > 0 && t.P <= Doubtful && y[len(y)-1] > y[middle(x)] && h.Whole.Sizes[before] < y[len(y)-1]
}
