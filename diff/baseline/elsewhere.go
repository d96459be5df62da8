package baseline

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
)

// Elsewhere returns growth in a run that is at other places than a leak's and at least `least` per unit faster than
// at the same places in each of the runs before: a change that only moves a leak causes it. leak is nil for the
// process's growth. The result is nil if there is none.
func Elsewhere(leak *diff.Finding, least float64, after *diff.Result, before ...*diff.Result) *Check {
	var own []string
	if leak != nil {
		own = fingerprints(leak)
	}
	faster := func(is trend.Slope, was func(*diff.Result) trend.Slope) bool {
		for _, r := range before {
			if s := was(r); is.Value-s.Value < least || is.Low <= s.High {
				return false
			}
		}
		return is.Value >= least
	}
	gains := make(map[*diff.Result]*gains, len(before))
	for _, r := range before {
		gains[r] = gainsOf(r)
	}
	for i := range after.Findings {
		f := &after.Findings[i]
		names := fingerprints(f)
		if f.Verdict != diff.Leak || f.OfProcess() || f.Child != nil || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(own, n) }) {
			continue
		}
		if faster(f.Rate.Bytes, func(r *diff.Result) trend.Slope { return gains[r].of(names) }) {
			return &Check{Finding: f, After: f.Rate.Bytes}
		}
	}
	if e := after.ProcessGrowth(); leak != nil && e != nil {
		same := func(r *diff.Result) trend.Slope {
			if was := r.ProcessGrowth(); was != nil && was.Rate.Unit == e.Rate.Unit {
				return was.Rate.Bytes
			}
			return trend.Slope{}
		}
		if e.Rate.Unit == after.Series.Axis.Unit && faster(e.Rate.Bytes, same) {
			return &Check{Process: e, After: e.Rate.Bytes}
		}
	}
	return nil
}
