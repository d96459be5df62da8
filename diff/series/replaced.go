package series

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// Replaced reports whether larger blocks replace the site's blocks. Their number has been constant since the first
// ones, over at least two marks; or it never rises after the first part of the site's time, over so many marks that
// chance is unlikely.
func (h *History) Replaced() bool { return h.Whole.replaced() }

// Regrows is Replaced that, by the clock, also accepts marks at which the old block and the larger one exist
// together.
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

// Lasting returns, for each value, the least of it and the next two. Marks by the clock lie anywhere. Between the
// allocation of a larger block and the release of the old one, both exist.
func Lasting(y []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = slices.Min(y[i:min(i+stays, len(y))])
	}
	return out
}

// reached returns, for each value, the largest of it and the next two: the larger block together with the old one.
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
	from, n := WarmUp(before), before-stays+1 // without the last ones, which have no two later marks to correct them
	if n-from < Testable {
		return false
	}
	x, y := trend.Floors(h.Whole.X[from:n], Lasting(h.Whole.Sizes[:before])[from:n], Windows)
	t := trend.MannKendall(y)
	return t.Z > 0 && t.P <= Doubtful && y[len(y)-1] > y[middle(x)] && h.Whole.Sizes[before] < y[len(y)-1]
}
