package diff

import (
	"math"

	"github.com/memdiag/memdiag/snapshot"
)

// Least is the smallest leak that this run could have shown: a block in so many
// steps, or seconds. Less may be there unseen.
type Least struct {
	Every  float64 // of the axis' unit, from one block to the next; 0: no leak would have been sure
	Births bool    // told by the births of blocks; else by counts alone
	// Counted is Every for blocks whose births nobody recorded, in a run that has such and
	// others; Mixed is whether it has.
	Counted float64
	Mixed   bool
}

// Least is zero for a comparison by another rule or of several processes, where neither
// steps nor times are known, and for a run too short to show any. It is found by trial:
// such a leak, whenever its first block comes, is judged over the marks of this run, and
// among as many sites.
func (r *Result) Least() Least {
	if r.Rule != ByTrend || !r.Comparable || r.Series.axis.Unit == Place {
		return Least{}
	}
	b := &r.Last.Blocks
	stands := int64(0) // the most steps that one with a birth stands for; 0 for no births
	l := Least{}
	for i, state := range b.State {
		switch {
		case state != snapshot.Live:
		case b.BirthStep != nil && b.BirthStep[i] != snapshot.NoStep && r.Series.axis.Unit == Step:
			stands = max(stands, b.CountOf(i))
		default:
			l.Mixed = true
		}
	}
	if l.Births = stands > 0; !l.Births {
		l.Every, l.Mixed = r.least(false), false
		return l
	}
	if l.Every = r.least(true); l.Every > 0 {
		l.Every = max(1, math.Floor(l.Every/float64(stands)))
	}
	if l.Mixed {
		l.Counted = r.least(false)
	}
	return l
}

// least is how many steps, or seconds, lie between the blocks of the smallest leak that is shown; 0
// for none.
func (r *Result) least(births bool) float64 {
	const (
		needed = 4      // births, or rises
		tried  = 10_000 // blocks: what so many do not show, more do not
	)
	fine := r.Series.axis.fine()
	length := int64(r.Series.axis.Length() * fine)
	for every := length / needed; every > length/tried; every -= (every + 9) / 10 {
		if r.shows(every, births) {
			return float64(every) / fine
		}
	}
	return 0
}

// fine is how many parts of the unit are told apart: a run by the clock may last for a
// second.
func (a *Axis) fine() float64 {
	if a.Unit == Second {
		return 1000
	}
	return 1
}

// shows holds where a leak of one block in so many steps, or thousandths of a second, would
// be called one.
func (r *Result) shows(every int64, births bool) bool {
	const phases = 40
	for i := range min(every, phases) {
		if !r.wouldCall(int64(r.Series.axis.X[0]*r.Series.axis.fine())+i*every/min(every, phases), every, births) {
			return false
		}
	}
	return true
}

// wouldCall judges a site that gets a block at a place of the axis and each so far behind it.
func (r *Result) wouldCall(from, every int64, births bool) bool {
	const size = 512
	n := len(r.Series.Marks)
	site := SiteSeries{Blocks: make([]int64, n), Bytes: make([]snapshot.Bytes, n)}
	for i, x := range r.Series.axis.X {
		if at := int64(math.Ceil(x * r.Series.axis.fine())); at > from {
			site.Blocks[i] = (at-from-1)/every + 1
		}
		site.Bytes[i] = size * snapshot.Bytes(site.Blocks[i])
	}
	held := site.Blocks[n-1]
	all := Tally{Blocks: held, Bytes: size * snapshot.Bytes(held)}
	row := Row{Born: all, After: all}
	for k := range held {
		if births {
			row.births.steps = append(row.births.steps, from+k*every)
		}
	}
	if !births {
		row.births.unknown = int(held)
	}
	h := historyOf(r.Series, &site)
	q := h.p() * float64(max(1, len(r.Rows)))
	return judge(&row, h, q, false, r.tides, r.First, r.Last).verdict == Leak
}
