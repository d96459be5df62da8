package diff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// rule is a case of the judge.
type rule struct {
	name     string
	asks     string // of what it decides, in a few words
	holds    func(*facts) bool
	verdict  Verdict
	evidence Evidence
	reason   func(*facts) string
	also     func(*facts, *judgement) // nil for nothing
}

// ask has the first of the rules that holds decide. The last always holds.
func (w Without) ask(rules []rule, f *facts, j *judgement) {
	for i := range rules {
		if r := &rules[i]; !w.has(r.name) && r.holds(f) {
			j.call(r.verdict, r.evidence, "%s", r.reason(f))
			if r.also != nil {
				r.also(f, j)
			}
			return
		}
	}
}

// seriesRules decide about a site of which three marks or more are compared, in this order.
var seriesRules = []rule{
	{
		name: "doubling", asks: "a buffer that is replaced by one larger by a factor, each time it is full",
		holds: func(f *facts) bool {
			return f.replaced && trend.Doubles(f.h.whole.x, f.h.whole.bytes) && waits(f.h.whole.bytes)
		},
		verdict: Leak, evidence: Strong,
		reason: says("its blocks are replaced by ones larger by a constant factor, each time after a wait that has grown by that factor: what fills them does not stop"),
		also:   func(_ *facts, j *judgement) { j.shape = Doubling },
	},
	{
		name: "unseen", asks: "no growth of late, but few of the steps were recorded",
		holds:   func(f *facts) bool { return !f.goesOn && f.born && !f.wanders && f.row.births.mayBeUnseen(f.h.whole.x) },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but of the steps one in %d was recorded of late, and as few births may be chance; a longer run decides", f.why, slices.Max(f.row.births.weights))
		},
	},
	{
		name: "old-births", asks: "no growth of late, but births all along of blocks that are still alive",
		holds: func(f *facts) bool {
			return !f.goesOn && !f.stopped && f.born && !f.replaced && f.births.steady() && f.births.distinct > steadySteps && f.h.moves()
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but %s, and they are still alive; a longer run decides", f.why, f.births)
		},
	},
	{
		name: "few-rises", asks: "no growth of late, but so few rises that the silence may be chance",
		holds:   func(f *facts) bool { return !f.goesOn && f.moments != nil && f.moments.mayBeFew() },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but it rose %s only, and as long a silence at the end may be chance; a longer run decides", f.why, f.moments)
		},
	},
	{
		name: "last-jump", asks: "no growth before the last interval, by the clock",
		holds:   func(f *facts) bool { return !f.goesOn && f.h.unit != Step && f.h.jumpsLast() },
		verdict: Inconclusive, evidence: Weak,
		reason: says("its last interval carries more than half of its growth, and nothing tells how it goes on; a longer run decides"),
	},
	{
		name: "order-only", asks: "growth in each interval of which nobody knows how long they are",
		holds: func(f *facts) bool {
			return !f.goesOn && !f.stopped && f.h.unit == Place && f.rises == len(f.h.bytes)-1
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return f.why + "; but it rose in each interval, and nothing tells how far the snapshots lie apart: name them by their steps"
		},
	},
	{
		name: "stopped", asks: "no growth of late",
		holds:   func(f *facts) bool { return !f.goesOn },
		verdict: Bounded, evidence: Strong,
		reason: func(f *facts) string { return f.why },
	},
	{
		name: "few-replaced", asks: "growth in a few rises, or of what each step makes at once, of blocks that do not stay",
		holds: func(f *facts) bool {
			atOnce := f.window && f.births.distinct == 1 && !f.h.eachStep() // not a ramp that begins anew
			return f.trend && ((f.replaced || f.window) && f.rises < enough || atOnce)
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return riseInWords(f.h.what(), f.h.bytes) + ", but no old block stays: what a plan widens for a while, such as a sequence length, looks the same; a longer run decides"
		},
	},
	{
		name: "window", asks: "only recent blocks are alive, and those before are gone",
		holds:   func(f *facts) bool { return f.window && !(f.trend && f.h.eachStep()) },
		verdict: Bounded, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s, the last ones, and those before are gone: blocks come and go", f.births)
		},
	},
	{
		name: "covariate", asks: "growth no faster than the batch or the sequence length",
		holds:   func(f *facts) bool { return f.h.covariate != "" },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rises, but so does %s, and no faster; hold that constant to decide", f.h.covariate)
		},
	},
	{
		name: "overdue", asks: "regular rises, and the next is overdue",
		holds:   func(f *facts) bool { return f.moments != nil && f.moments.overdue() },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rose %s at regular distances, and the next rise is overdue: it may have stopped; a longer run decides", f.moments)
		},
	},
	{
		name: "slows", asks: "rises that come ever more rarely",
		holds:   func(f *facts) bool { return f.moments != nil && f.moments.slows(&f.h.whole) },
		verdict: Inconclusive, evidence: Weak,
		reason: says("it rises ever more rarely, as what is made once for each of many kinds does; a longer run decides"),
	},
	{
		name: "silence", asks: "a time without a rise at the end that chance seldom leaves",
		holds:   func(f *facts) bool { return f.moments != nil && f.moments.silence() < doubtful },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rose %s, but not in the last %s, which chance seldom leaves: it may have stopped; a longer run decides", f.moments, f.h.unit.text(f.moments.idle()))
		},
	},
	{
		name: "tides", asks: "growth without births beside sites that come and go as slowly and as far",
		holds:   func(f *facts) bool { return !f.born && (f.trend || f.few) && !f.h.eachStep() && f.h.rides(f.tides) },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return riseInWords(f.h.what(), f.h.bytes) + ", but other stacks come and go as slowly and as far, and nothing tells when its blocks were born; more snapshots, or a longer run, decide"
		},
	},
	{
		name: evenMarks, asks: "the same few blocks more at each of snapshots that are evenly apart, of sums",
		holds:   func(f *facts) bool { return !f.born && f.row.summed() && f.h.evenAtMarks() },
		verdict: Inconclusive, evidence: Weak,
		reason: says("it has the same few blocks more at each snapshot, and snapshots are evenly apart: what fills and is emptied again at other distances looks the same, and nothing tells its blocks apart; snapshots at uneven distances decide"),
	},
	{
		name: "leak", asks: "even births of blocks that stay, or a trend that chance does not make",
		holds:   func(f *facts) bool { return f.steady || f.trend || f.gathers },
		verdict: Leak, evidence: Strong,
		reason: func(f *facts) string { return riseInWords(f.h.what(), f.h.bytes) },
		also:   leakInWords,
	},
	{
		name: "few-marks", asks: "even growth over few marks, of more sites than chance explains",
		holds:   func(f *facts) bool { return f.few && !f.wanders },
		verdict: Leak, evidence: Weak,
		reason: func(f *facts) string { return riseInWords(f.h.what(), f.h.bytes) },
		also:   func(_ *facts, j *judgement) { j.because("more snapshots would make it sure") },
	},
	{
		name: lastRule, asks: "growth of which too little is known",
		holds:   func(*facts) bool { return true },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string { return riseInWords(f.h.what(), f.h.bytes) + "; a longer run decides" },
	},
}

// leakInWords is the leak's shape, and what else it rests on.
func leakInWords(f *facts, j *judgement) {
	h := f.h
	if f.replaced {
		j.shape = BytesOnly
		j.because("its blocks do not become more: they are replaced by larger ones")
	} else if trend.Accelerates(h.x, h.blocks) {
		j.shape = Quadratic
		j.because("each time adds more blocks than the last")
	}
	if h.late {
		j.because("it was flat until %s", h.unit.moment(h.all.x[0]))
	}
	if n := len(h.bytes); f.trend && h.same() {
		j.because("each adds as much for each %s, which has p = %.2g by chance (n = %d; false discovery rate over all stacks %.2g)", h.unit, evenChance(n), n, f.q)
	} else if f.trend {
		j.because("that has p = %.2g by chance (Mann–Kendall, n = %d; false discovery rate over all stacks %.2g)", h.test.P, n, f.q)
	}
	if f.steady {
		j.because("%s", f.births)
	} else if f.gathers {
		j.because("it never fell, and what holds it has only become longer")
	}
}

// pairFacts are those of two snapshots: the births of the new blocks, where the files tell them.
func pairFacts(row *Row, first, last *snapshot.Snapshot) *facts {
	f := &facts{row: row, first: first, last: last}
	f.births, f.born = row.births.spread(first, last, nowhen)
	f.steady = f.born && f.births.steady()
	return f
}

// pairRules decide about a site of two snapshots, in this order.
var pairRules = []rule{
	{
		name: "pair-unborn", asks: "growth between two snapshots that do not tell births",
		holds:   func(f *facts) bool { return !f.born },
		verdict: Inconclusive, evidence: Weak,
		reason: says("growth between two snapshots only, and the files do not say when its blocks were born; more snapshots decide"),
	},
	{
		name: "pair-leak", asks: "even births of blocks that stay",
		holds:   func(f *facts) bool { return f.steady },
		verdict: Leak, evidence: Strong,
		reason: func(f *facts) string { return f.births.String() },
		also: func(f *facts, j *judgement) {
			switch first, last := f.first.Mark.Epoch, f.last.Mark.Epoch; {
			case last == snapshot.NoStep || first == snapshot.NoStep:
				j.because("the files do not tell epochs: what is reset at an epoch's end looks the same")
			case first == last:
				j.because("all of it lies in one epoch: what is reset at an epoch's end looks the same")
			}
		},
	},
	{
		name: "pair-at-once", asks: "all births within a quarter of the time",
		holds:   func(f *facts) bool { return f.births.atOnce() },
		verdict: Bounded, evidence: Weak,
		reason: func(f *facts) string { return f.births.String() },
		also: func(_ *facts, j *judgement) {
			j.because("state that is made once, or a window of recent steps, looks like this; more snapshots decide")
		},
	},
	{
		name: lastRule, asks: "growth of which too little is known",
		holds:   func(*facts) bool { return true },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string { return f.births.String() },
		also: func(_ *facts, j *judgement) {
			j.because("too few births, or too long gaps between them, to tell; more snapshots decide")
		},
	},
}

func says(text string) func(*facts) string { return func(*facts) string { return text } }
