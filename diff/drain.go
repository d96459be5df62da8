package diff

import (
	"cmp"
	"slices"
)

// Drain is the part of what their memory has left that the leaks take in a second: of several processes that leak, the one that
// drains most is the one that ends the run. 0 without a leak. Memory without a known limit has more left than any with one.
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
		if room, _ := r.headroom(f.Rows[0]); room.limit > 0 { // also where others take from it, too
			left = float64(max(room.reservable, 1))
		}
		drain += f.Rate.Bytes.Value * pace / left
	}
	return drain
}

// Drained are the results that leak, this one's and its children's, the one first that drains its memory most.
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

// stepsASecond is by what a rate is multiplied to be one of seconds: 1 by the clock, and where no times are known.
func (r *Result) stepsASecond() float64 {
	if step := r.stepTime().Seconds(); r.Series.Axis.Unit == Step && step > 0 {
		return 1 / step
	}
	return 1
}
