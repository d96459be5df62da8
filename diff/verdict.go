package diff

import (
	"fmt"

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

// Rate is growth for one unit of the series' axis, with 95 % intervals where
// there were points enough to have one.
type Rate struct {
	Unit   string // "step", or "snapshot" where steps are not known
	Blocks trend.Slope
	Bytes  trend.Slope
}

// judgement is one site's verdict with its reasons in plain words.
type judgement struct {
	verdict  Verdict
	evidence Evidence
	reasons  []string
	rate     Rate
}

// windows is into how many floors a series of counters is thinned: enough to
// see that growth goes on, few enough that one block in ten steps still shows
// in each.
const windows = 10

// judge decides about one site that grew between the first and the last
// snapshot. site may be nil.
func judge(row *Row, series *Series, first, last *snapshot.Snapshot) judgement {
	births, born := row.births.spread(first, last)
	site := series.Site(row)
	if site == nil || len(series.Marks) < 3 {
		return judgePair(row, births, born, first, last)
	}
	x, inSteps := series.X()
	blocks, bytes := make([]float64, len(x)), make([]float64, len(x))
	for i := range x {
		blocks[i], bytes[i] = float64(site.Blocks[i]), float64(site.Bytes[i])
	}
	// The first mark stands before the first step; what the first interval
	// brings is warm-up.
	fx, fbytes := trend.Floors(x[1:], bytes[1:], windows)
	bx, fblocks := trend.Floors(x[1:], blocks[1:], windows)
	j := judgement{rate: Rate{Unit: "snapshot", Blocks: trend.TheilSen(bx, fblocks), Bytes: trend.TheilSen(fx, fbytes)}}
	if inSteps {
		j.rate.Unit = "step"
	}
	rises, intervals := rising(fbytes), len(fbytes)-1
	switch {
	case rises == intervals:
		j.verdict, j.evidence = Leak, Strong
		if intervals == 1 {
			j.reasons = append(j.reasons, "live bytes rose in the one interval after warm-up")
		} else {
			j.reasons = append(j.reasons, fmt.Sprintf("live bytes rose in each of the %d intervals after warm-up", intervals))
		}
		if intervals == 1 && !(born && births.steady()) {
			j.evidence = Weak
			j.reasons = append(j.reasons, "more snapshots would make it sure")
		}
		if born && births.steady() {
			j.reasons = append(j.reasons, births.String())
		}
	case fbytes[len(fbytes)-1] <= fbytes[len(fbytes)/2]:
		j.verdict, j.evidence = Bounded, Strong
		j.reasons = append(j.reasons, "it rose and stopped: no more at the end than half-way")
	default:
		j.verdict, j.evidence = Inconclusive, Weak
		j.reasons = append(j.reasons, fmt.Sprintf("live bytes rose in %d of %d intervals after warm-up; a longer run decides", rises, intervals))
	}
	return j
}

func rising(y []float64) int {
	n := 0
	for i := 1; i < len(y); i++ {
		if y[i] > y[i-1] {
			n++
		}
	}
	return n
}

// judgePair decides from two snapshots: by the births of the new blocks where
// the files tell them, else not at all.
func judgePair(row *Row, births spread, born bool, first, last *snapshot.Snapshot) judgement {
	j := judgement{rate: pairRate(row, first, last)}
	switch {
	case !born:
		j.verdict, j.evidence = Inconclusive, Weak
		j.reasons = append(j.reasons, "growth between two snapshots only, and the files do not say when its blocks were born; a third snapshot decides")
	case births.steady():
		j.verdict, j.evidence = Leak, Strong
		j.reasons = append(j.reasons, births.String())
	case births.distinct < 4 || births.gap >= 0.65:
		j.verdict, j.evidence = Bounded, Weak
		j.reasons = append(j.reasons, births.String(), "state that is made once, or a window of recent steps, looks like this; a third snapshot decides")
	default:
		j.verdict, j.evidence = Inconclusive, Weak
		j.reasons = append(j.reasons, births.String(), "births have long gaps; a third snapshot decides")
	}
	return j
}

func pairRate(row *Row, first, last *snapshot.Snapshot) Rate {
	unit, length := "snapshot", 1.0
	if a, b := first.Mark.Step, last.Mark.Step; a != snapshot.NoStep && b > a {
		unit, length = "step", float64(b-a)
	}
	g := row.Growth()
	exact := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 2} }
	return Rate{unit, exact(float64(g.Blocks) / length), exact(float64(g.Bytes) / length)}
}

func (s spread) String() string {
	switch {
	case s.distinct == 1 && s.inSteps:
		return "its new blocks were born in one step"
	case s.distinct == 1:
		return "its new blocks were born in one instant"
	}
	unit := "instants"
	if s.inSteps {
		unit = "steps"
	}
	return fmt.Sprintf("its new blocks were born in %d distinct %s, the longest stretch without a birth being %.0f %% of the time between the snapshots", s.distinct, unit, 100*s.gap)
}
