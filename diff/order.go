package diff

import (
	"cmp"
	"slices"
)

// unknownWeight is the weight of memory without a stack in the order of findings. A reader cannot look it up, so it
// comes after findings with a line, unless it is far larger.
const unknownWeight = 0.1

// sortFindings orders findings: leaks, then inconclusive, then bounded ones. Leaks are ordered by their rate, since
// growth during warm-up is no leak; all others by their growth.
func (r *Result) sortFindings() {
	weights := make(map[*Row]float64, len(r.Findings))
	for i := range r.Findings {
		weights[r.Findings[i].Rows[0]] = r.weight(&r.Findings[i])
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(order(a.Verdict), order(b.Verdict)), cmp.Compare(weights[b.Rows[0]], weights[a.Rows[0]]))
	})
}

// weight is how many bytes a finding gathers over the run; for a leak, at its rate.
func (r *Result) weight(f *Finding) float64 {
	bytes := float64(f.Growth().Bytes)
	if a := r.Series.Axis; f.Verdict == Leak && f.Rate.Unit == a.Unit && f.Rate.Bytes.Value > 0 {
		bytes = f.Rate.Bytes.Value * a.Length()
	}
	if len(f.Rows[0].Frames) == 0 {
		bytes *= unknownWeight
	}
	return bytes
}

func order(v Verdict) int { return slices.Index([]Verdict{Leak, Inconclusive, Bounded, Clean}, v) }
