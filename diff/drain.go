package diff

import (
	"cmp"
	"slices"
)

// Drain is the share of the remaining memory that the leaks take per second: of several leaking processes, the one
// with the largest share ends the run. It is 0 without a leak. Memory without a known limit counts as having more
// left than any with one.
func (r *Result) Drain() float64 {
	const unlimited = 1 << 60
	if r.Leaks() == 0 {
		return 0
	}
	drain, pace := 0., r.stepsASecond()
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak {
			continue
		}
		left := float64(unlimited)
		if room, _ := r.headroom(f.Rows[0]); room.limit > 0 { // even if others take from it
			left = float64(max(room.reservable, 1))
		}
		drain += f.Rate.Bytes.Value * pace / left
	}
	return drain
}

// Drained returns the results that leak, this one and its children's, largest Drain first.
func (r *Result) Drained() (out []*Result) {
	if r.Leaks() > 0 {
		out = append(out, r)
	}
	for _, c := range r.Children {
		out = append(out, c.Result)
	}
	slices.SortStableFunc(out, func(a, b *Result) int { return cmp.Compare(b.Drain(), a.Drain()) })
	return out
}

// stepsASecond is the factor from a rate to one per second: 1 for rates by the clock, and if no times are known.
func (r *Result) stepsASecond() float64 {
	if step := r.stepTime().Seconds(); r.Series.Axis.Unit == Step && step > 0 {
		return 1 / step
	}
	return 1
}
