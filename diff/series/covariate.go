package series

import (
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
)

// explains reports whether a covariate rises, and the bytes rise no faster, apart from rounding to whole blocks. With
// few marks, the covariate must rise in each interval.
func (h *History) explains(covariate []float64) bool {
	y := h.Bytes
	few := len(covariate) < Testable
	if few && Rising(covariate) < len(covariate)-1 {
		return false
	}
	if t := trend.MannKendall(covariate); !few && (t.Z <= 0 || t.P > Unlikely) {
		return false
	}
	share := make([]float64, len(y))
	for i := range y {
		if covariate[i] <= 0 {
			return false
		}
		share[i] = y[i] / covariate[i]
	}
	n := len(share)
	if few {
		return share[n-1] <= (1+AlikeRates)*share[0]
	}
	if t := trend.MannKendall(share); t.Z <= 0 || t.P > Unlikely {
		return true
	}
	// The rise of y beyond its first share of the covariate's rise.
	third := n / 3
	first, last := median(share[:third]), median(share[n-third:])
	grown := median(covariate[n-third:]) - median(covariate[:third])
	excess := (last - first) * median(covariate[n-third:])
	block := 0.0
	if blocks := h.Blocks[n-1]; blocks >= FewStairs { // the covariate does not change the number of fewer blocks
		block = y[n-1] / blocks
	}
	return grown > 0 && excess <= AlikeRates*first*grown+block
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
