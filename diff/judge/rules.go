package judge

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// rule is one rule of the judge.
type rule struct {
	name     string
	asks     string // the condition in words, with its thresholds
	holds    func(*facts) bool
	verdict  Verdict
	evidence Evidence
	reason   func(*facts) string
	also     func(*facts, *Judgement) // adds to the judgement; may be nil
}

// ask lets the first rule that holds decide. The last rule always holds.
func ask(rules []rule, f *facts, w series.Without, j *Judgement) {
	for i := range rules {
		if r := &rules[i]; !w.Has(r.name) && r.holds(f) {
			j.Call(r.verdict, r.evidence, "%s", r.reason(f))
			if r.also != nil {
				r.also(f, j)
			}
			return
		}
	}
}

// seriesRules decide about a site with three marks or more to compare, in this order.
var seriesRules = []rule{
	{
		name: "doubling",
		asks: "larger buffers replace a buffer; its size and the time between replacements grow by the same factor, and in between the size is constant",
		holds: func(f *facts) bool {
			return f.replaced && trend.Doubles(f.History.Whole.X, f.History.Whole.Bytes) && waits(f.History.Whole.Bytes)
		},
		verdict: Leak, evidence: Strong,
		reason: says("its blocks are replaced by larger ones, and size and interval grow by one constant factor: the growth does not stop"),
		also:   func(_ *facts, j *Judgement) { j.Shape = Doubling },
	},
	{
		name: "unseen",
		asks: "it stopped, but the recorder watches only some steps, and may have missed growth",
		holds: func(f *facts) bool {
			return !f.goesOn && f.born && !f.wanders && f.Row.Births.MayBeUnseen(f.History.Whole.X)
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but lately only one step in %d was recorded, and new blocks may have been missed; run longer to decide", f.why, slices.Max(f.Row.Births.Weights))
		},
	},
	{
		name: "old-births",
		asks: fmt.Sprintf("it stopped, but blocks of more than %d steps all over the run are still alive, and their number varies", series.SteadySteps),
		holds: func(f *facts) bool {
			return !f.goesOn && !f.stopped && f.born && !f.replaced && f.births.Steady() && f.births.Distinct > series.SteadySteps && f.History.Moves()
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but blocks from %d points of the run are still live; run longer to decide", f.why, f.births.Distinct)
		},
	},
	{
		name:    "few-rises",
		asks:    fmt.Sprintf("it stopped after only 2 to %d rises; chance makes so long a last pause in more than one case in %.0f", series.Enough-1, 1/series.Unlikely),
		holds:   func(f *facts) bool { return !f.goesOn && f.moments != nil && f.moments.MayBeFew() },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s; but it rose only %s, so the pause at the end may be chance; run longer to decide", f.why, f.moments)
		},
	},
	{
		name: "last-jump",
		asks: fmt.Sprintf("it stopped, but more than half of its growth is in the last interval, in %d blocks or more. If the run counts steps, these are of as many steps, up to the end, or stand for unwatched ones", series.Enough),
		holds: func(f *facts) bool {
			return !f.goesOn && f.History.JumpsLast() && (f.History.Unit != series.Step || f.History.BornToTheEnd(f.Row))
		},
		verdict: Inconclusive, evidence: Weak,
		reason: says("more than half of its growth came in the last interval; run longer to decide"),
	},
	{
		name: "last-low",
		asks: "it stopped, by the clock, but a block that larger ones replace grew until the snapshot before the last. Earlier snapshots may have both the old and the new block",
		holds: func(f *facts) bool {
			return !f.goesOn && f.replaced && f.History.Unit == series.Second && f.History.RoseBefore()
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return f.why + "; but only the last value is low, and earlier snapshots may hold both the old block and the new one; run longer to decide"
		},
	},
	{
		name: "order-only",
		asks: "it stopped, but it rose in each interval, and the run has neither steps nor times",
		holds: func(f *facts) bool {
			return !f.goesOn && !f.stopped && f.History.Unit == series.Place && f.rises == len(f.History.Bytes)-1
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return f.why + "; but it rose in each interval, and the steps between snapshots are unknown: put the step into each file's name"
		},
	},
	{
		name:    "stopped",
		asks:    fmt.Sprintf("it stopped: the end is no higher than the middle; one jump is more than half of the growth; the last %.0f %% grow at less than %.1f of the whole rate; or chance makes so long a pause in fewer than one case in a thousand", 100*(1-series.LateBegins), series.LateShare),
		holds:   func(f *facts) bool { return !f.goesOn },
		verdict: Bounded, evidence: Strong,
		reason: func(f *facts) string { return f.why },
	},
	{
		name: "few-replaced",
		asks: fmt.Sprintf("it has fewer than %d rises, or blocks of one step only, and no old block stays, as in a window or sequence that a schedule widens", series.Enough),
		holds: func(f *facts) bool {
			atOnce := f.window && f.births.Distinct == 1 && !f.History.EachStep() // that would show a ramp that begins anew
			return f.trend && ((f.replaced || f.window) && f.rises < series.Enough || atOnce)
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return f.inWords() + ", but old blocks are freed, as with a sequence or window that a schedule widens; run longer to decide"
		},
	},
	{
		name:    "window",
		asks:    "all new blocks are recent, and earlier ones are gone",
		holds:   func(f *facts) bool { return f.window && !(f.trend && f.History.EachStep()) },
		verdict: Bounded, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("%s, the last ones; earlier blocks were freed, so the blocks are temporary", f.births)
		},
	},
	{
		name:    "covariate",
		asks:    "the batch size or the sequence length rises as fast as the site",
		holds:   func(f *facts) bool { return f.History.Covariate != "" },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rises no faster than %s; keep that constant to decide", f.History.Covariate)
		},
	},
	{
		name:    "overdue",
		asks:    "the rises are regular, and the next is overdue",
		holds:   func(f *facts) bool { return f.moments != nil && f.moments.Overdue() },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rose %s at regular intervals, and the next rise is overdue: it may have stopped; run longer to decide", f.moments)
		},
	},
	{
		name:    "slows",
		asks:    fmt.Sprintf("rises become rarer or smaller, as in a cache with a finite set of keys, and no earlier slowdown ended. Chance makes this in fewer than one case in %.0f", 1/series.Doubtful),
		holds:   func(f *facts) bool { return f.History.SlowsDown(f.moments, f.born) },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			if f.moments.Slows(&f.History.Whole) {
				return "it rises more and more rarely, like a cache that fills up; run longer to decide"
			}
			return "each interval adds less than the one before, like a cache that fills up; run longer to decide"
		},
	},
	{
		name: "tapers",
		asks: "it never fell; it rose at each mark, and then, at the end, at a far lower rate than in the slowest of these intervals",
		holds: func(f *facts) bool {
			return f.History.Unit == series.Step && series.Tapers(f.History.All.X, f.History.All.Bytes)
		},
		verdict: Inconclusive, evidence: Weak,
		reason: says("it rose steadily, but far less at the end, like a buffer that is full; run longer to decide"),
	},
	{
		name:    "silence",
		asks:    fmt.Sprintf("the last pause is the longest; chance makes one so long in fewer than one case in %.0f", 1/series.Doubtful),
		holds:   func(f *facts) bool { return f.moments != nil && f.moments.Silence() < series.Doubtful },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return fmt.Sprintf("it rose %s, but not in the last %s, which is an unusually long pause: it may have stopped; run longer to decide", f.moments, f.History.Unit.Text(f.moments.Idle()))
		},
	},
	{
		name:    "last-alone",
		asks:    "it flattens without its last interval, and births are not steady",
		holds:   func(f *facts) bool { return !f.steady && f.History.GoesOnAtLast() },
		verdict: Inconclusive, evidence: Weak,
		reason: says("it flattened, then rose in the last interval; run longer to decide"),
	},
	{
		name: "oscillation",
		asks: "births are unknown, and other stacks rise and fall as slowly and as much",
		holds: func(f *facts) bool {
			return !f.born && (f.trend || f.Few) && !f.History.EachStep() && f.History.Rides(f.Tides)
		},
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			return f.inWords() + ", but other stacks rise and fall by as much, and when its blocks were allocated is unknown; take more snapshots or run longer to decide"
		},
	},
	{
		name:    EvenMarks,
		asks:    "files have totals only, snapshots are evenly spaced, and each adds the same number of blocks, in all fewer than the steps of one interval. A list that is emptied every 11 steps and seen every 12 looks the same",
		holds:   func(f *facts) bool { return !f.born && f.Row.Summed() && f.History.EvenAtMarks() },
		verdict: Inconclusive, evidence: Weak,
		reason: says("each evenly spaced snapshot has the same few blocks more, as with a list that is emptied at another interval; take snapshots at uneven intervals to decide"),
	},
	{
		name:    "leak",
		asks:    fmt.Sprintf("births are steady (in %d steps or more, no gap above %.0f %% of the run, and at most %.0f %% as many blocks came and went as stayed); or there is a trend of %d rises or more, at a false discovery rate up to %.0f %%; or one list, map or set holds all blocks and only became longer, in steady rises", series.SteadySteps, 100*series.LongestGap, 100*series.Lent, series.FewStairs, 100*Significant),
		holds:   func(f *facts) bool { return f.steady || f.trend || f.gathers },
		verdict: Leak, evidence: Strong,
		reason: (*facts).inWords,
		also:   leakInWords,
	},
	{
		name:    "few-snapshots",
		asks:    fmt.Sprintf("there are fewer than %d snapshots, each interval adds about the same, and more sites do so than chance makes", series.Testable),
		holds:   func(f *facts) bool { return f.Few && !f.wanders },
		verdict: Leak, evidence: Weak,
		reason: (*facts).inWords,
		also:   func(_ *facts, j *Judgement) { j.Because("take more snapshots to be sure") },
	},
	{
		name:    lastRule,
		asks:    "none of these",
		holds:   func(*facts) bool { return true },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string { return f.inWords() + "; run longer to decide" },
	},
}

// Chance begins the reason that gives a significance test.
const Chance = "p = "

// leakInWords sets the leak's shape and adds further reasons.
func leakInWords(f *facts, j *Judgement) {
	h := f.History
	if f.replaced || h.Regrows() && !f.steady {
		j.Shape = BytesOnly
		j.Because("the number of blocks is constant: they are replaced by larger ones")
	} else if trend.Accelerates(h.X, h.Blocks) {
		j.Shape = Quadratic
		j.Because("each rise adds more blocks than the last")
	}
	if h.Late {
		j.Because("it was flat until %s", h.Unit.Moment(h.All.X[0]))
	}
	if n := len(h.Bytes); f.trend && (h.Same() || h.SameAtMarks()) {
		chance := series.EvenChance(n)
		if h.Same() {
			j.Because("each interval adds the same per %s", h.Unit)
		} else {
			j.Because("each interval adds the same")
			chance *= 2 // two tests: growth per unit, and growth per interval
		}
		j.Because(Chance+"%.2g by chance (equal intervals, n = %d; false discovery rate over all stacks %.2g)", chance, n, f.Discovery)
	} else if f.trend {
		j.Because(Chance+"%.2g by chance (Mann–Kendall, n = %d; false discovery rate over all stacks %.2g)", h.Test.P, n, f.Discovery)
	}
	if f.steady {
		j.Because("%s", f.births)
	} else if f.gathers {
		j.Because("neither it nor its holder ever shrank")
	}
}

// pairFacts are the facts of two snapshots: the births of the new blocks, if the files record them.
func (q *Question) pairFacts() *facts {
	f := &facts{Question: q}
	f.births, f.born = q.Row.Births.Spread(q.First, q.Last, series.Nowhen)
	f.steady = f.born && f.births.Steady()
	return f
}

// pairRules decide about a site with two snapshots, in this order.
var pairRules = []rule{
	{
		name:    "pair-leak",
		asks:    "two snapshots: births are steady",
		holds:   func(f *facts) bool { return f.steady },
		verdict: Leak, evidence: Strong,
		reason: func(f *facts) string { return f.births.String() },
		also: func(f *facts, j *Judgement) {
			switch first, last := f.First.Mark.Epoch, f.Last.Mark.Epoch; {
			case last == snapshot.NoStep || first == snapshot.NoStep:
				j.Because("epochs are unknown: memory that is released at an epoch's end looks the same")
			case first == last:
				j.Because("all growth is in one epoch: memory that is released at an epoch's end looks the same")
			}
		},
	},
	{
		name:    "pair-at-once",
		asks:    fmt.Sprintf("two snapshots: all births lie within %.0f %% of the time", 100*series.AtOnce),
		holds:   func(f *facts) bool { return f.born && f.births.AtOnce() },
		verdict: Bounded, evidence: Weak,
		reason: func(f *facts) string { return f.births.String() },
		also: func(_ *facts, j *Judgement) {
			j.Because("state that is allocated once, or a window of recent steps, looks the same; take more snapshots to decide")
		},
	},
	{
		name:    lastRule,
		asks:    "none of these",
		holds:   func(*facts) bool { return true },
		verdict: Inconclusive, evidence: Weak,
		reason: func(f *facts) string {
			if !f.born {
				return "two snapshots show no trend; take more snapshots to decide"
			}
			return f.births.String()
		},
		also: func(f *facts, j *Judgement) {
			if f.born {
				j.Because("too few, or too irregular, to tell whether it keeps growing; take more snapshots")
			}
		},
	},
}

func says(text string) func(*facts) string { return func(*facts) string { return text } }
