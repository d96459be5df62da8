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

func (j *judgement) call(v Verdict, e Evidence, format string, args ...any) {
	j.verdict, j.evidence = v, e
	j.because(format, args...)
}

func (j *judgement) because(format string, args ...any) {
	j.reasons = append(j.reasons, fmt.Sprintf(format, args...))
}

// Bounds of the judgement over a series.
const (
	// windows is into how many floors a long series is thinned: few enough that
	// one block in ten steps shows in most, enough that chance among ten thousand
	// sites does not rise in all.
	windows = 20
	// significant is the false discovery rate at which a trend counts.
	significant = 0.01
	// lateShare is how much of the whole run's slope its last 40 % must keep: what
	// saturates keeps less.
	lateShare = 0.4
	// testable is how many floors a test for trend needs: strictly rising, six
	// have p = 0.009.
	testable = 6
)

// history is one site over the marks that are compared with like: those of the
// last one's phase, thinned to floors, without warm-up.
type history struct {
	x, blocks, bytes []float64
	unit             string
	test             trend.Test // of the bytes
	covariate        string     // that rises too; "" where none does
}

// historyOf is nil where fewer than three marks can be compared.
func historyOf(series *Series, site *SiteSeries) *history {
	if site == nil || len(series.Marks) < 3 {
		return nil
	}
	axis, inSteps := series.X()
	h := &history{unit: "snapshot"}
	if inSteps {
		h.unit = "step"
	}
	phase := series.Marks[len(series.Marks)-1].Phase
	var x, blocks, bytes, elements, length []float64
	for i, m := range series.Marks {
		if m.Phase == phase || i == 0 {
			x = append(x, axis[i])
			blocks, bytes = append(blocks, float64(site.Blocks[i])), append(bytes, float64(site.Bytes[i]))
			elements, length = append(elements, float64(m.BatchElements)), append(length, float64(m.SequenceLength))
		}
	}
	if len(x) < 3 {
		return nil
	}
	// The first mark stands before the first step; what comes up to the second,
	// or in a long series in its first tenth, is warm-up.
	warm := max(1, len(x)/10)
	h.x, h.bytes = trend.Floors(x[warm:], bytes[warm:], windows)
	_, h.blocks = trend.Floors(x[warm:], blocks[warm:], windows)
	h.test = trend.HamedRao(h.bytes)
	for _, c := range []struct {
		name   string
		values []float64
	}{{"the batch size", elements}, {"the sequence length", length}} {
		_, floors := trend.Floors(x[warm:], c.values[warm:], windows)
		if explains(floors, h.bytes) {
			h.covariate = c.name
		}
	}
	return h
}

// explains says whether a covariate rises, and y no faster.
func explains(covariate, y []float64) bool {
	if len(covariate) < testable || trend.HamedRao(covariate).Z <= 0 || trend.MannKendall(covariate).P > 0.05 {
		return false
	}
	share := make([]float64, len(y))
	for i := range y {
		if covariate[i] <= 0 {
			return false
		}
		share[i] = y[i] / covariate[i]
	}
	t := trend.MannKendall(share)
	return t.Z <= 0 || t.P > 0.05
}

// p is the site's chance of rising so without a trend; 1 where no test is
// possible or it does not rise.
func (h *history) p() float64 {
	if h == nil || h.test.Z <= 0 || len(h.bytes) < testable {
		return 1
	}
	return h.test.P
}

// rate is the slope of the floors.
func (h *history) rate() Rate {
	return Rate{Unit: h.unit, Blocks: trend.TheilSen(h.x, h.blocks), Bytes: trend.TheilSen(h.x, h.bytes)}
}

// judge decides about one site that grew between the first and the last
// snapshot. q is the false discovery rate at which its trend would count, among
// all sites of the run.
func judge(row *Row, h *history, q float64, first, last *snapshot.Snapshot) judgement {
	births, born := row.births.spread(first, last)
	if h == nil {
		return judgePair(row, births, born, first, last)
	}
	j := judgement{rate: h.rate()}
	y := h.bytes
	rises, intervals := rising(y), len(y)-1
	goesOn, why := keepsRising(y)
	steady := born && births.steady()
	switch {
	case !goesOn:
		j.call(Bounded, Strong, "%s", why)
	case born && births.atOnce() && births.recent && slices.Max(h.blocks[:len(h.blocks)/2+1]) > float64(row.After.Blocks-births.blocks):
		j.call(Bounded, Weak, "%s, the last ones, and those before are gone: blocks come and go", births)
	case h.covariate != "":
		j.call(Inconclusive, Weak, "it rises, but so does %s, and no faster; hold that constant to decide", h.covariate)
	case steady, q <= significant:
		j.call(Leak, Strong, "%s", riseInWords(rises, intervals))
		if q <= significant {
			j.because("that has p = %.2g by chance (Mann–Kendall, corrected for autocorrelation, n = %d; false discovery rate over all stacks %.2g)", h.test.P, len(y), q)
		}
		if steady {
			j.because("%s", births)
		}
	case rises == intervals:
		j.call(Leak, Weak, "%s", riseInWords(rises, intervals))
		j.because("more snapshots would make it sure")
	default:
		j.call(Inconclusive, Weak, "%s; a longer run decides", riseInWords(rises, intervals))
	}
	return j
}

func riseInWords(rises, intervals int) string {
	switch {
	case intervals == 1:
		return "live bytes rose in the one interval after warm-up"
	case rises == intervals:
		return fmt.Sprintf("live bytes rose in each of the %d intervals after warm-up", intervals)
	}
	return fmt.Sprintf("live bytes rose in %d of %d intervals after warm-up, up to the end", rises, intervals)
}

// keepsRising says whether floors rise to the end, or why not: one jump that
// carries most, or a curve that flattens.
func keepsRising(y []float64) (ok bool, why string) {
	n := len(y) - 1
	total := y[n] - y[0]
	if total <= 0 || y[n] <= y[n/2] {
		return false, "it rose and stopped: no more at the end than half-way"
	}
	if n < 3 {
		return true, ""
	}
	jump := 0.0
	for i := 1; i <= n; i++ {
		jump = max(jump, y[i]-y[i-1])
	}
	if jump > total/2 {
		return false, "one jump carries more than half of its growth"
	}
	late := n - max(1, n*2/5)
	if (y[n]-y[late])/float64(n-late) < lateShare*total/float64(n) {
		return false, "it flattens: its last 40 % grow at less than 0.4 of the rate before"
	}
	return true, ""
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
	j := judgement{rate: pairRate(row.Growth(), first, last)}
	switch {
	case !born:
		j.call(Inconclusive, Weak, "growth between two snapshots only, and the files do not say when its blocks were born; a third snapshot decides")
	case births.steady():
		j.call(Leak, Strong, "%s", births)
	case births.atOnce():
		j.call(Bounded, Weak, "%s", births)
		j.because("state that is made once, or a window of recent steps, looks like this; a third snapshot decides")
	default:
		j.call(Inconclusive, Weak, "%s", births)
		j.because("too few births, or too long gaps between them, to tell; a third snapshot decides")
	}
	return j
}

func pairRate(growth Tally, first, last *snapshot.Snapshot) Rate {
	unit, length := "snapshot", 1.0
	if a, b := first.Mark.Step, last.Mark.Step; a != snapshot.NoStep && b > a {
		unit, length = "step", float64(b-a)
	}
	exact := func(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 2} }
	return Rate{unit, exact(float64(growth.Blocks) / length), exact(float64(growth.Bytes) / length)}
}
