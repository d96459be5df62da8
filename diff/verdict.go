package diff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Verdict is what memdiag calls a site that grew.
type Verdict string

// The four verdicts.
const (
	Leak         Verdict = "leak"
	Bounded      Verdict = "bounded" // it rose and stopped, or rises and falls
	Clean        Verdict = "clean"   // no growth
	Inconclusive Verdict = "inconclusive"
)

// Evidence is what a verdict rests on, strongest first.
type Evidence string

// Tiers of evidence.
const (
	Proof  Evidence = "proof"  // the block can never be freed
	Strong Evidence = "strong" // over the run, or over the births of its blocks
	Weak   Evidence = "weak"   // growth between two snapshots only
)

// Shape is how a leak grows.
type Shape string

// The shapes.
const (
	Steady    Shape = ""           // the same each time
	Quadratic Shape = "quadratic"  // each time more than the last: a hook that adds hooks
	BytesOnly Shape = "bytes only" // a block is replaced by a larger one
	Doubling  Shape = "doubling"   // the same, by a factor, when it is full
)

// Rate is growth for one unit of the series' axis, with 95 % intervals where
// there were points enough to have one.
type Rate struct {
	Unit   Unit
	Blocks trend.Slope
	Bytes  trend.Slope
}

// judgement is one site's verdict with its reasons in plain words.
type judgement struct {
	verdict  Verdict
	evidence Evidence
	reasons  []string
	rate     Rate
	shape    Shape
}

func (j *judgement) call(v Verdict, e Evidence, format string, args ...any) {
	j.verdict, j.evidence = v, e
	j.because(format, args...)
}

func (j *judgement) because(format string, args ...any) {
	j.reasons = append(j.reasons, fmt.Sprintf(format, args...))
}

// judge decides about one site that grew between the first and the last
// snapshot. q is the false discovery rate at which its trend would count, among
// all sites of the run; few says that the run has few marks, and that they are
// enough all the same; tides are what other sites show that come and go slowly.
func (w Without) judge(row *Row, h *history, q float64, few bool, tides []tide, first, last *snapshot.Snapshot) judgement {
	j := judgement{rate: pairRate(row.Growth(), first, last)}
	if row.After.Bytes == 0 && !row.unsized() {
		j.call(Clean, Strong, "its blocks have no size, so they use no device memory, however many there are")
		return j
	}
	if h == nil {
		w.ask(pairRules, pairFacts(row, first, last), &j)
		return j
	}
	j.rate = h.rate()
	f := w.facts(row, h, q, first, last)
	f.few, f.tides = few, tides
	w.ask(seriesRules, f, &j)
	if f.replaced && j.verdict == Inconclusive {
		j.shape = BytesOnly
	}
	if h.whole.counted && (j.verdict == Leak || j.verdict == Inconclusive) {
		j.because("their size is unknown; they use the process's memory")
	}
	return j
}

// facts are what the rules ask of a site.
type facts struct {
	row                    *Row
	h                      *history // nil between two snapshots
	q                      float64
	few                    bool
	tides                  []tide
	first, last            *snapshot.Snapshot
	births                 spread
	born                   bool // births are known
	moments                *rises
	rises                  int
	goesOn, stopped        bool
	why                    string // it does not go on
	replaced, window       bool
	wanders                bool
	steady, trend, gathers bool
}

func (w Without) facts(row *Row, h *history, q float64, first, last *snapshot.Snapshot) *facts {
	f := &facts{row: row, h: h, q: q, first: first, last: last}
	f.births, f.born = row.births.spread(first, last, h.began())
	y := h.bytes
	f.rises = rising(y)
	f.goesOn, f.stopped, f.why = h.goesOn()
	// A block that is replaced by a larger one was born just now, however long it
	// has been growing.
	f.replaced = h.replaced() && !last.Blocks.Uncounted() && !w.has(replacedClue)
	f.wanders = f.born && !f.replaced && !w.has(wandersClue) && h.wanders(row)
	f.steady = f.born && f.births.steady() && !f.wanders && !w.has(steadyClue)
	f.trend = q <= significant && f.rises >= fewStairs && !w.has(trendClue)
	f.window = f.born && !f.replaced && f.births.atOnce() && f.births.recent && slices.Max(h.blocks[:len(h.blocks)/2+1]) > float64(row.After.Blocks-f.births.blocks)
	if !w.has(momentsClue) {
		f.moments = risesOf(h, row, f.born)
	}
	if f.moments != nil {
		f.rises = max(f.rises, len(f.moments.at))
		f.goesOn = f.goesOn || !f.stopped && f.moments.steadyLate() && !w.has(steadyLateClue)
	}
	f.gathers = h.gathered && (!f.born || row.births.sampled()) && f.moments != nil && f.moments.steady() && !w.has(gathersClue)
	return f
}

// waits reports whether floors stayed as they were at some mark before each of the last two
// rises: at marks that lie ever further apart, as a recorder's do, what grows by the same
// each step grows by the same factor from each to the next.
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

// what rises.
func (h *history) what() string {
	if h.whole.counted {
		return "their number"
	}
	return "live bytes"
}

// riseInWords says in how many intervals floors rose, and whether they did to the end.
func riseInWords(what string, y []float64) string {
	rises, intervals := rising(y), len(y)-1
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
		return fmt.Sprintf("%s rose in %d of %d intervals after warm-up, in none of the last %d", what, rises, intervals, idle)
	}
	return fmt.Sprintf("%s rose in %d of %d intervals after warm-up, up to the end", what, rises, intervals)
}

func pairRate(growth Tally, first, last *snapshot.Snapshot) Rate {
	axis := pairAxis(first, last)
	length := axis.Length()
	exact := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 2} }
	return Rate{axis.Unit, exact(float64(growth.Blocks) / length), exact(float64(growth.Bytes) / length)}
}
