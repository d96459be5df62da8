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
func judge(row *Row, h *history, q float64, few bool, tides []tide, first, last *snapshot.Snapshot) judgement {
	if row.After.Bytes == 0 && !row.unsized() {
		j := judgement{rate: pairRate(row.Growth(), first, last)}
		j.call(Clean, Strong, "its blocks take no bytes, so that no memory of the device is lost to them, however many there are")
		return j
	}
	if h == nil {
		births, born := row.births.spread(first, last, nowhen)
		return judgePair(row, births, born, first, last)
	}
	j := judgement{rate: h.rate()}
	births, born := row.births.spread(first, last, h.began())
	y := h.bytes
	rises := rising(y)
	goesOn, stopped, why := h.goesOn()
	// A block that is replaced by a larger one was born just now, however long it
	// has been growing.
	replaced := h.replaced() && !last.Blocks.Uncounted()
	wanders := born && !replaced && h.wanders(row)
	steady := born && births.steady() && !wanders
	trending := q <= significant && rises >= fewStairs
	if wanders && falling(y) && (!births.steady() || h.mostGone(row)) {
		trending = false // blocks that live for much of the run come and go in waves as long
	}
	window := born && !replaced && births.atOnce() && births.recent && slices.Max(h.blocks[:len(h.blocks)/2+1]) > float64(row.After.Blocks-births.blocks)
	moments := risesOf(h, row, born)
	if moments != nil {
		rises = max(rises, len(moments.at))
	}
	gathers := h.gathered && (!born || row.births.sampled()) && moments != nil && moments.steady()
	if !goesOn && !stopped && moments != nil && moments.steadyLate() {
		goesOn = true
	}
	switch {
	case replaced && trend.Doubles(h.whole.x, h.whole.bytes) && waits(h.whole.bytes):
		j.shape = Doubling
		j.call(Leak, Strong, "its blocks are replaced by ones larger by a constant factor, each time after a wait that has grown by that factor: what fills them does not stop")
	case !goesOn && !stopped && moments != nil && moments.mayGoOn():
		j.call(Inconclusive, Weak, "it rose %s, the last of them no longer ago than they are apart; a longer run decides", moments)
	case !goesOn && born && !wanders && row.births.mayBeUnseen(h.whole.x):
		j.call(Inconclusive, Weak, "%s; but of the steps one in %d was recorded of late, and as few births may be chance; a longer run decides", why, slices.Max(row.births.weights))
	case !goesOn && !stopped && born && !replaced && births.steady() && births.distinct > 4 && h.moves():
		j.call(Inconclusive, Weak, "%s; but %s, and they are still alive; a longer run decides", why, births)
	case !goesOn && moments != nil && moments.mayBeFew():
		j.call(Inconclusive, Weak, "%s; but it rose %s only, and as long a silence at the end may be chance; a longer run decides", why, moments)
	case !goesOn && h.unit != Step && h.jumpsLast():
		j.call(Inconclusive, Weak, "its last interval carries more than half of its growth, and nothing tells how it goes on; a longer run decides")
	case !goesOn && !stopped && h.unit == Place && rises == len(y)-1:
		j.call(Inconclusive, Weak, "%s; but it rose in each interval, and nothing tells how far the snapshots lie apart: name them by their steps", why)
	case !goesOn:
		j.call(Bounded, Strong, "%s", why)
	case (replaced || window) && trending && rises < enough:
		j.call(Inconclusive, Weak, "%s, but no old block stays: what a plan widens for a while, such as a sequence length, looks the same; a longer run decides", riseInWords(h.what(), y))
	case window && !(trending && h.eachStep()):
		j.call(Bounded, Weak, "%s, the last ones, and those before are gone: blocks come and go", births)
	case h.covariate != "":
		j.call(Inconclusive, Weak, "it rises, but so does %s, and no faster; hold that constant to decide", h.covariate)
	case moments != nil && moments.overdue():
		j.call(Inconclusive, Weak, "it rose %s at regular distances, and the next rise is overdue: it may have stopped; a longer run decides", moments)
	case moments != nil && moments.slows(&h.whole):
		j.call(Inconclusive, Weak, "it rises ever more rarely, as what is made once for each of many kinds does; a longer run decides")
	case moments != nil && moments.silence() < doubtful:
		j.call(Inconclusive, Weak, "it rose %s, but not in the last %s, which chance seldom leaves: it may have stopped; a longer run decides", moments, h.unit.text(moments.idle()))
	case moments != nil && moments.fewAndFewer(&h.whole):
		j.call(Inconclusive, Weak, "it rose %s, at irregular distances, and less often of late: what is made once for each of a few kinds looks the same; a longer run decides", moments)
	case !born && (trending || few) && !h.eachStep() && h.rides(tides):
		j.call(Inconclusive, Weak, "%s, but other stacks come and go as slowly and as far, and nothing tells when its blocks were born; more snapshots, or a longer run, decide", riseInWords(h.what(), y))
	case steady, trending, gathers:
		j.call(Leak, Strong, "%s", riseInWords(h.what(), y))
		if replaced {
			j.shape = BytesOnly
			j.because("its blocks do not become more: they are replaced by larger ones")
		} else if trend.Accelerates(h.x, h.blocks) {
			j.shape = Quadratic
			j.because("each time adds more blocks than the last")
		}
		if h.late {
			j.because("it was flat until %s", h.unit.moment(h.all.x[0]))
		}
		if trending && h.same() {
			j.because("each adds as much for each %s, which has p = %.2g by chance (n = %d; false discovery rate over all stacks %.2g)", h.unit, evenChance(len(y)), len(y), q)
		} else if trending {
			j.because("that has p = %.2g by chance (Mann–Kendall, corrected for autocorrelation, n = %d; false discovery rate over all stacks %.2g)", h.test.P, len(y), q)
		}
		if steady {
			j.because("%s", births)
		} else if gathers {
			j.because("it never fell, and what holds it has only become longer")
		}
	case few && !wanders:
		j.call(Leak, Weak, "%s", riseInWords(h.what(), y))
		j.because("more snapshots would make it sure")
	case wanders:
		j.call(Inconclusive, Weak, "%s, but its blocks come and go, and what stayed of them is no more than chance leaves; a longer run decides", riseInWords(h.what(), y))
	default:
		j.call(Inconclusive, Weak, "%s; a longer run decides", riseInWords(h.what(), y))
	}
	if replaced && j.verdict == Inconclusive {
		j.shape = BytesOnly
	}
	if h.whole.counted && (j.verdict == Leak || j.verdict == Inconclusive) {
		j.because("what each of them takes is not known, and is the process's memory")
	}
	return j
}

// falling holds for values of which one is below that before it.
func falling(y []float64) bool { return !slices.IsSorted(y) }

// waits holds where floors stayed as they were at some mark before each of the last two
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

// judgePair decides from two snapshots: by the births of the new blocks where
// the files tell them, else not at all.
func judgePair(row *Row, births spread, born bool, first, last *snapshot.Snapshot) judgement {
	j := judgement{rate: pairRate(row.Growth(), first, last)}
	var r *rises
	var grown points
	if born && births.inSteps {
		r, grown = bornBetween(row, first, last)
	}
	switch {
	case !born:
		j.call(Inconclusive, Weak, "growth between two snapshots only, and the files do not say when its blocks were born; more snapshots decide")
	case births.steady() && r != nil && row.cameAndWent(last):
		j.call(Inconclusive, Weak, "%s, but many of those before are gone: blocks come and go; more snapshots decide", births)
	case births.steady() && r != nil && r.ended(&grown):
		j.call(Inconclusive, Weak, "%s, but there were none in the last %.0f steps: it may have stopped; more snapshots decide", births, r.idle())
	case births.steady() && r != nil && r.slows(&grown):
		j.call(Inconclusive, Weak, "%s, but they come ever more rarely, as what is made once for each of many kinds does; more snapshots decide", births)
	case births.steady():
		j.call(Leak, Strong, "%s", births)
		switch {
		case last.Mark.Epoch == snapshot.NoStep || first.Mark.Epoch == snapshot.NoStep:
			j.because("the files do not tell epochs: what is reset at an epoch's end looks the same")
		case first.Mark.Epoch == last.Mark.Epoch:
			j.because("all of it lies in one epoch: what is reset at an epoch's end looks the same")
		}
	case births.atOnce():
		j.call(Bounded, Weak, "%s", births)
		j.because("state that is made once, or a window of recent steps, looks like this; more snapshots decide")
	default:
		j.call(Inconclusive, Weak, "%s", births)
		j.because("too few births, or too long gaps between them, to tell; more snapshots decide")
	}
	return j
}

// cameAndWent holds where more of a site's earlier blocks are gone than the last step
// holds anew, as a share of those that stayed: a window of recent steps that is not yet
// full looks so.
func (r *Row) cameAndWent(last *snapshot.Snapshot) bool {
	fresh := int64(0)
	steps, until := r.births.byStep()
	if n := len(steps); n > 0 && steps[n-1] >= last.Mark.Step-1 {
		fresh = until[n-1]
		if n > 1 {
			fresh -= until[n-2]
		}
	}
	return float64(r.Died.Blocks-fresh) > lent*float64(r.Born.Blocks)
}

func pairRate(growth Tally, first, last *snapshot.Snapshot) Rate {
	axis := pairAxis(first, last)
	length := axis.Length()
	exact := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 2} }
	return Rate{axis.Unit, exact(float64(growth.Blocks) / length), exact(float64(growth.Bytes) / length)}
}
