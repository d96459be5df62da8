package diff

import (
	"math"
	"math/rand/v2"
	"slices"

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
	// Sample, of a profile that records about one allocation in so many bytes of them, is what
	// comes in place of the block, in blocks of any size, on average: a leak of so much in
	// Every is shown nine times in ten. It is 0 where all is recorded.
	Sample snapshot.Bytes
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
	l := Least{Sample: r.samplePeriod()}
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

// shows reports whether a leak of one block in so many steps, or thousandths of a second, would
// be called one, whenever its first block comes. Samples come by chance, and are held to show
// nine of ten such leaks.
func (r *Result) shows(every int64, births bool) bool {
	const phases = 40
	most := 0 // of the leaks, that may go unseen
	if r.samplePeriod() > 0 {
		most = phases / 10
	}
	for i := range min(every, phases) {
		if !r.wouldCall(r.arrivals(i, i*every/min(every, phases), every), births) {
			if most--; most < 0 {
				return false
			}
		}
	}
	return true
}

// arrivals are the places of the axis at which a leak gets its blocks: the first so far behind
// the start and one each so far behind it, or of a sampled profile by chance, as often on average.
func (r *Result) arrivals(seed, first, every int64) []int64 {
	fine := r.Series.axis.fine()
	x := r.Series.axis.X
	at, end := int64(x[0]*fine)+first, int64(math.Ceil(x[len(x)-1]*fine))
	var out []int64
	if r.samplePeriod() == 0 {
		for ; at < end; at += every {
			out = append(out, at)
		}
		return out
	}
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(every)))
	for place := x[0]*fine + float64(every)*rng.ExpFloat64(); place < float64(end); place += float64(every) * rng.ExpFloat64() {
		out = append(out, int64(place))
	}
	return out
}

// wouldCall judges a site that gets a block at each of some places of the axis.
func (r *Result) wouldCall(at []int64, births bool) bool {
	size := max(512, r.samplePeriod())
	n := len(r.Series.Marks)
	site := SiteSeries{Blocks: make([]int64, n), Bytes: make([]snapshot.Bytes, n)}
	held := 0
	for i, x := range r.Series.axis.X {
		for mark := int64(math.Ceil(x * r.Series.axis.fine())); held < len(at) && at[held] < mark; {
			held++
		}
		site.Blocks[i] = int64(held)
		site.Bytes[i] = size * snapshot.Bytes(held)
	}
	all := Tally{Blocks: int64(held), Bytes: size * snapshot.Bytes(held)}
	row := Row{Born: all, After: all}
	if births {
		row.births.steps = at[:held]
	} else {
		row.births.unknown = held
	}
	h := historyOf(r.Series, &site)
	q := h.p() * float64(max(1, len(r.Rows)))
	return r.options.Without.judge(&row, h, q, false, r.tides, r.First, r.Last).verdict == Leak
}

// LeastMore is after how much more, with marks as far apart as the last two, a run that is too
// short could show a leak; zero for one that could, and where nothing tells. It is found by
// trial, as More is.
func (r *Result) LeastMore() More {
	n := len(r.Series.Marks)
	if r.Rule != ByTrend || !r.Comparable || r.Series.axis.Unit == Place || n < 2 {
		return More{}
	}
	if l := r.Least(); l.Every > 0 || l.Counted > 0 {
		return More{}
	}
	marks := fewest(n, func(more int) bool { return r.longer(more).least(false) > 0 })
	return r.moreMarks(marks, r.Series.axis.X[n-1]-r.Series.axis.X[n-2])
}

// longer is the result as it would be with so many marks more, for a trial.
func (r *Result) longer(marks int) *Result {
	s := *r.Series
	s.Marks, s.instants = slices.Clone(s.Marks), slices.Clone(s.instants)
	for range marks {
		n := len(s.Marks)
		m := s.Marks[n-1]
		if m.Step != snapshot.NoStep {
			m.Step += m.Step - s.Marks[n-2].Step
		}
		s.Marks, s.instants = append(s.Marks, m), append(s.instants, 2*s.instants[n-1]-s.instants[n-2])
	}
	s.seen = slices.Clone(s.seen)
	for d := range s.seen {
		s.seen[d] = append(slices.Clone(s.seen[d]), slices.Repeat([]bool{true}, marks)...)
	}
	s.axis = axisOf(s.Marks, s.instants)
	s.compared = s.alike()
	out, last := *r, *r.Last
	last.Mark = s.Marks[len(s.Marks)-1]
	out.Series, out.Last = &s, &last
	return &out
}
