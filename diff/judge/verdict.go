// Package judge decides for one call site whether its growth is a leak, and gives the reasons. The facts about a site
// are computed once, and the first rule that holds decides. Of other sites it knows only how many there are and which
// come and go slowly. Package diff decides which sites belong together, and applies bounds and baselines.
package judge

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Verdict is memdiag's judgement of a site that grew.
type Verdict string

// The four verdicts.
const (
	Leak         Verdict = "leak"
	Bounded      Verdict = "bounded" // it rose and stopped, or it rises and falls
	Clean        Verdict = "clean"   // no growth
	Inconclusive Verdict = "inconclusive"
)

// Evidence is what a verdict rests on, strongest first.
type Evidence string

// Tiers of evidence.
const (
	Proof  Evidence = "proof"  // the block can never be freed
	Strong Evidence = "strong" // from the whole run, or from the births of the site's blocks
	Weak   Evidence = "weak"   // from growth between two snapshots only
)

// Shape is how a leak grows.
type Shape string

// The shapes.
const (
	Steady    Shape = ""           // the same amount each time
	Quadratic Shape = "quadratic"  // more each time: a hook that adds hooks
	BytesOnly Shape = "bytes only" // a block is replaced by a larger one
	Doubling  Shape = "doubling"   // a full buffer is replaced by one that is larger by a constant factor
)

// Judgement is one site's verdict, with its reasons in plain words.
type Judgement struct {
	Verdict  Verdict
	Evidence Evidence
	Reasons  []string
	Rate     series.Rate
	Shape    Shape
}

// Call sets the verdict and adds its reason.
func (j *Judgement) Call(v Verdict, e Evidence, format string, args ...any) {
	j.Verdict, j.Evidence = v, e
	j.Because(format, args...)
}

// SizeUnknown is a reason for blocks that were counted without their sizes.
const SizeUnknown = "their size is unknown, and they use the process's memory"

// Because adds a reason.
func (j *Judgement) Because(format string, args ...any) {
	j.Reasons = append(j.Reasons, fmt.Sprintf(format, args...))
}

// Question asks about one site that grew between the first and the last snapshot.
type Question struct {
	Row         *series.Row
	History     *series.History // nil if fewer than three marks can be compared
	First, Last *snapshot.Snapshot
	Discovery   float64       // the lowest false discovery rate, over all sites of the run, at which its trend counts
	Few         bool          // the run has few marks, but enough sites grow evenly (FewMarks.Enough)
	Tides       []series.Tide // of other sites, which come and go slowly
	Gathered    bool          // one list, map or set holds all of its blocks, and releases none
	Longer      bool          // that container grows in steady rises
}

// Judge answers the question. It leaves out the parts of the judge that w names.
func (q *Question) Judge(w series.Without) Judgement {
	row, h := q.Row, q.History
	j := Judgement{Rate: series.PairRate(row.Growth(), q.First, q.Last)}
	if row.After.Bytes == 0 && !row.Unsized() {
		j.Call(Clean, Strong, "its blocks have no size, so they use no device memory, however many there are")
		return j
	}
	if h == nil {
		ask(pairRules, q.pairFacts(), w, &j)
		return j
	}
	j.Rate = h.Rate()
	f := q.facts(w)
	ask(seriesRules, f, w, &j)
	if f.replaced && j.Verdict == Inconclusive {
		j.Shape = BytesOnly
	}
	if h.Whole.Counted && (j.Verdict == Leak || j.Verdict == Inconclusive) {
		j.Because(SizeUnknown)
	}
	return j
}

// facts are what the rules ask about a site.
type facts struct {
	*Question
	births                 series.Spread
	born                   bool // births is known
	moments                *series.Rises
	rises                  int
	goesOn, stopped        bool
	why                    string // why it does not go on
	replaced, window       bool
	wanders                bool
	steady, trend, gathers bool
}

func (q *Question) facts(w series.Without) *facts {
	f, row, h := &facts{Question: q}, q.Row, q.History
	f.births, f.born = row.Births.Spread(q.First, q.Last, h.Began())
	y := h.Bytes
	f.rises = series.Rising(y)
	f.goesOn, f.stopped, f.why = h.GoesOn()
	// A block that is replaced by a larger one has a recent birth, however long it has been growing.
	f.replaced = h.Replaced() && !q.Last.Blocks.Uncounted() && !w.Has(replacedClue)
	f.wanders = f.born && !f.replaced && !w.Has(wandersClue) && h.Wanders(row)
	f.steady = f.born && f.births.Steady() && !f.wanders && !w.Has(steadyClue)
	f.trend = q.Discovery <= Significant && f.rises >= series.FewStairs && !w.Has(trendClue)
	f.window = f.born && !f.replaced && f.births.AtOnce() && f.births.Recent && slices.Max(h.Blocks[:len(h.Blocks)/2+1]) > float64(row.After.Blocks-f.births.Blocks)
	if !w.Has(momentsClue) {
		f.moments = series.RisesOf(h, row, f.born)
	}
	if f.moments != nil {
		f.rises = max(f.rises, len(f.moments.At))
		f.goesOn = f.goesOn || !f.stopped && f.moments.SteadyLate() && !w.Has(steadyLateClue)
	}
	// Blocks that each entry of a container allocates anew, as hooks do, look like a window. They are none if the
	// container only grows.
	f.window = f.window && !(q.Gathered && f.rises >= series.Enough)
	f.gathers = q.Gathered && (!f.born || row.Births.Sampled()) && (q.Longer || f.moments != nil && f.moments.Steady()) && !w.Has(gathersClue)
	return f
}

// waits reports whether the floors stayed constant at some mark before each of the last two rises. Some recorders
// take marks that lie farther and farther apart. There, even growth per step grows by a constant factor from mark to
// mark, without such pauses.
func waits(y []float64) bool {
	flat, found := false, 0
	for i := len(y) - 1; i > 0 && found < 3; i-- {
		switch {
		case y[i] == y[i-1]:
			flat = true
		case found > 0 && !flat:
			return false
		default:
			found, flat = found+1, false
		}
	}
	return true
}

// inWords says in how many intervals the site rose, and whether it rose up to the end.
func (f *facts) inWords() string {
	what, y := "live bytes", f.History.Bytes
	if f.History.Whole.Counted {
		what = "their number"
	}
	rises, intervals := series.Rising(y), len(y)-1
	idle := 0 // intervals at the end without a rise
	for idle < intervals && y[intervals-idle] <= y[intervals-idle-1] {
		idle++
	}
	switch {
	case intervals == 1:
		return what + " rose in the one interval after warm-up"
	case rises == intervals:
		return fmt.Sprintf("%s rose in each of the %d intervals after warm-up", what, intervals)
	case idle > 1:
		return fmt.Sprintf("%s rose in %d of %d intervals after warm-up, but in none of the last %d", what, rises, intervals, idle)
	}
	return fmt.Sprintf("%s rose in %d of %d intervals after warm-up, up to the end", what, rises, intervals)
}
