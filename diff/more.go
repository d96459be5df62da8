package diff

import (
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// More is after how much more an inconclusive finding may be decided, if it goes on as it
// did; zero where nothing tells.
type More struct {
	Steps int64 // or seconds, as the axis counts; 0 where only the order is known
	// Snapshots are how many more of them, as far apart as the last two, it takes; 0 where
	// counters tell each step, or a declared bound is what decides.
	Snapshots int
}

// Farthest is for how many times the length of a run its rates are thought on, to tell when
// a bound or a limit is reached.
const Farthest = 100

// Bounds on the trials, so that they take no longer than the judgement itself.
const (
	mostMore  = 2    // more marks, for each that a run has, and for each that a test needs
	mostTried = 1000 // findings, those that grew most
	// margin is the part of it that is added to what a trial gives, since no past is repeated to
	// the letter: of the promises of the corpus 78 % hold with a quarter, and 81 % with a half.
	margin = 2
)

// more tells what decides an inconclusive cluster. It is found by trial: what its first site
// did since warm-up is done again, and again, at marks as far apart as the last two, and
// judged among as many sites as change in this run.
func (r *Result) more(c *cluster) More {
	length := r.Series.Axis.Length()
	if c.j.Verdict != Inconclusive || !r.Comparable || c.against != nil {
		return More{}
	}
	if c.toBound > 0 {
		if c.j.Rate.Unit == Place || c.j.Rate.Blocks.Value <= 0 {
			return More{}
		}
		if more := math.Ceil(c.toBound / c.j.Rate.Blocks.Value); more <= Farthest*length {
			return More{Steps: int64(more)}
		}
		return More{}
	}
	p := r.Series.PastOf(c.rows[0])
	if r.tried++; p == nil || r.tried > mostTried {
		return More{}
	}
	decides := func(marks int) bool { return r.wouldDecide(c, p, marks) }
	calm := *r
	calm.tides = nil
	// What leaves it undecided may not be in what is done again, or go on with it: other sites that
	// come and go, which do so further in a longer run, and a batch that grows. And growth by the clock that
	// the last interval made is one event, of which nothing tells whether it comes again.
	if decides(0) || calm.wouldDecide(c, p, 0) || p.Follows(r.Series.Axis.Unit) || p.JumpsLast(r.Series.Axis.Unit) {
		return More{}
	}
	// Nor does what slows down do again what it did.
	if r.slowsDown(c.rows[0]) {
		return More{}
	}
	marks := fewest(len(p.X), decides)
	if marks > 0 && r.Series.Axis.Unit == Second {
		// Programs by the clock repeat their past less: of 488 promises of 76 recordings 69 % held, and
		// of those so much later 81 %.
		return r.moreMarks(2*(marks+1), p.Apart())
	}
	return r.moreMarks(marks+marks/margin, p.Apart())
}

func (r *Result) slowsDown(row *Row) bool {
	h := series.HistoryOf(r.Series, r.Series.Site(row))
	if h == nil {
		return false
	}
	_, born := row.Births.Spread(r.First, r.Last, h.Began())
	return h.SlowsDown(series.RisesOf(h, row, born), born)
}

// fewest is with how many marks more than there are enough holds; 0 where nothing tells.
func fewest(marks int, enough func(more int) bool) int {
	k := 1
	for ; !enough(k); k *= 2 {
		if k >= mostMore*(marks+series.Testable) {
			return 0
		}
	}
	low, high := k/2, k // not enough, and enough
	for high-low > 1 {
		if half := (low + high) / 2; enough(half) {
			high = half
		} else {
			low = half
		}
	}
	return high
}

// moreMarks is so many marks more, so far apart.
func (r *Result) moreMarks(marks int, apart float64) More {
	m := More{Snapshots: marks}
	if r.Series.Axis.Unit != Place {
		m.Steps = int64(math.Ceil(float64(marks) * apart))
	}
	if r.Series.Counted() {
		m.Snapshots = 0
	}
	return m
}

// wouldDecide judges a cluster's first site over its past and so many marks more.
func (r *Result) wouldDecide(c *cluster, p *series.Past, marks int) bool {
	row := *c.rows[0]
	to := p.GoneOn(marks)
	if len(to.X) < 3 {
		return false
	}
	n, m := len(p.X), len(to.X)
	row.Births = p.BornOn(row.Births, to, r.Series.Axis.Unit)
	more := Tally{Blocks: int64(to.Blocks[m-1] - to.Blocks[n-1]), Bytes: snapshot.Bytes(to.Sizes[m-1] - to.Sizes[n-1])}
	row.After, row.Born = row.After.Plus(more), row.Born.Plus(more)
	last := *r.Last
	if r.Series.Axis.Unit == Step {
		last.Mark.Step = int64(to.X[m-1])
	}
	if late := to.Instants[m-1] - to.Instants[n-1]; late > 0 && !last.History.Last.IsZero() {
		last.History.Last = last.History.Last.Add(series.Duration(float64(late) / 1e6))
	}
	h := r.options.Without.History(to, r.Series.Axis.Unit)
	marked := judge.FewMarks{Varying: max(r.changed, r.few.Varying), Even: len(c.rows), Marks: len(h.Bytes)}
	ask := judge.Question{
		Row: &row, History: h, First: r.First, Last: &last, Tides: r.tides, Few: marked.Enough() && h.Even(),
		Discovery: h.Chance() * float64(max(1, len(r.Rows))) / float64(len(c.rows)),
	}
	// What is done again at marks evenly apart adds as much each time, whatever it is.
	without := append(slices.Clone(r.options.Without), judge.EvenMarks)
	return ask.Judge(without).Verdict != Inconclusive
}
