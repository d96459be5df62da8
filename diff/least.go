package diff

import (
	"math"
	"math/rand/v2"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Least is the smallest leak that this run could have shown: a block every so many steps or seconds. Smaller leaks
// may have been missed.
type Least struct {
	Every  float64 // in the axis's unit, from one block to the next; 0: no leak would have been certain
	Births bool    // from the births of blocks; else only from counts
	// Counted is Every for blocks without a recorded birth, in a run with both kinds; Mixed is whether it has both.
	Counted float64
	Mixed   bool
	// Sample, for a profile that records about one allocation per so many bytes, replaces the block: that many bytes
	// on average, in blocks of any size. A leak of Sample every Every is shown nine times in ten. It is 0 if all is
	// recorded.
	Sample snapshot.Bytes
}

// Least is zero for a comparison by another rule or of several processes, if neither steps nor times are known, and
// for a run too short to show any leak. It is found by trial: such a leak, whenever its first block comes, is judged
// over the marks of this run, among as many sites.
func (r *Result) Least() Least {
	if r.Rule != ByTrend || !r.Comparable || r.Series.Axis.Unit == Place {
		return Least{}
	}
	b := &r.Last.Blocks
	stands := int64(0) // the most steps that one block with a birth stands for; 0 for no births
	l := Least{Sample: r.samplePeriod()}
	for i, state := range b.State {
		switch {
		case state != snapshot.Live:
		case b.BirthStep != nil && b.BirthStep[i] != snapshot.NoStep && r.Series.Axis.Unit == Step:
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

// least is the distance, in steps or seconds, between the blocks of the smallest leak that is shown; 0 for none.
func (r *Result) least(births bool) float64 {
	const (
		needed = 4      // births, or rises
		tried  = 10_000 // most blocks: if so many show no leak, more do not
	)
	fine := r.Series.Axis.Fine()
	length := int64(r.Series.Axis.Length() * fine)
	for every := length / needed; every > length/tried; every -= (every + 9) / 10 {
		if r.shows(every, births) {
			return float64(every) / fine
		}
	}
	return 0
}

// shows reports whether a leak of one block every so many steps, or thousandths of a second, would be called a leak,
// whenever its first block comes. For random samples, nine of ten such leaks are enough.
func (r *Result) shows(every int64, births bool) bool {
	const phases = 40
	most := 0 // leaks that may be missed
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

// arrivals returns the places of the axis at which a leak gets its blocks: first after the start, and then every so
// often. For a sampled profile they are random, equally often on average.
func (r *Result) arrivals(seed, first, every int64) []int64 {
	fine := r.Series.Axis.Fine()
	x := r.Series.Axis.X
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

// wouldCall reports whether a site that gets a block at each of these places of the axis would be called a leak.
func (r *Result) wouldCall(at []int64, births bool) bool {
	size := max(512, r.samplePeriod())
	n := len(r.Series.Marks)
	site := SiteSeries{Blocks: make([]int64, n), Bytes: make([]snapshot.Bytes, n)}
	held := 0
	for i, x := range r.Series.Axis.X {
		for mark := int64(math.Ceil(x * r.Series.Axis.Fine())); held < len(at) && at[held] < mark; {
			held++
		}
		site.Blocks[i] = int64(held)
		site.Bytes[i] = size * snapshot.Bytes(held)
	}
	all := Tally{Blocks: int64(held), Bytes: size * snapshot.Bytes(held)}
	row := Row{Born: all, After: all}
	if births {
		row.Births.Steps = at[:held]
	} else {
		row.Births.Unknown = held
	}
	h := series.HistoryOf(r.Series, &site)
	ask := judge.Question{Row: &row, History: h, First: r.First, Last: r.Last, Discovery: h.Chance() * float64(max(1, len(r.Rows))), Tides: r.tides}
	return ask.Judge(r.options.Without).Verdict == Leak
}

// LeastMore is how much longer a run that is too short must be to show a leak, with marks as far apart as the last
// two; zero for a run that could, and if unknown. It is found by trial, as More is.
func (r *Result) LeastMore() More {
	n := len(r.Series.Marks)
	if r.Rule != ByTrend || !r.Comparable || r.Series.Axis.Unit == Place || n < 2 {
		return More{}
	}
	if l := r.Least(); l.Every > 0 || l.Counted > 0 {
		return More{}
	}
	marks := fewest(n, func(more int) bool { return r.longer(more).least(false) > 0 })
	return r.moreMarks(marks, r.Series.Axis.X[n-1]-r.Series.Axis.X[n-2])
}

// longer is the result with so many more marks, for a trial.
func (r *Result) longer(marks int) *Result {
	out, last := *r, *r.Last
	out.Series = r.Series.Longer(marks)
	last.Mark = out.Series.Marks[len(out.Series.Marks)-1]
	out.Last = &last
	return &out
}
