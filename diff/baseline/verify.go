package baseline

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
)

// Answer is what is said of a leak, or of a run, after a fix.
type Answer string

// The answers.
const (
	Gone       Answer = "fixed"
	Remains    Answer = "not fixed"
	CannotTell Answer = "cannot tell"
)

// Check is one leak of the run before a fix, or one that only the run after it has.
type Check struct {
	Finding *diff.Finding // of the run before; of that after for a leak that is new
	Answer  Answer
	Why     string // one clause
	// Before and After are the bytes for one of the axis that the same places gained
	// before the fix, and gain after it.
	Before, After trend.Slope
}

// enough is how many blocks a leak must have had time to add after a fix for their
// absence to say something.
const enough = 10

// Verify holds the run after a fix against the one before it: a check for each leak
// before, larger growth first, and for each that is new. Places are matched by
// their fingerprints. A leak that is seen no more is fixed only where the run after
// would have shown it, as one does that is as long and has as many marks as the run
// before.
func Verify(before, after *diff.Result) []Check {
	var checks []Check
	mended := make(map[string]bool)
	found, gainBefore, gainAfter := verdicts(after), gainsOf(before), gainsOf(after)
	least := after.Least()
	axis := after.Series.Axis()
	unit, length := axis.Unit, axis.Length()
	shows := length >= before.Series.Axis().Length() && len(after.Series.Marks) >= len(before.Series.Marks)
	for i := range before.Findings {
		f := &before.Findings[i]
		if f.Verdict != diff.Leak {
			continue
		}
		names := fingerprints(f)
		c := Check{Finding: f, Before: gainBefore.of(names), After: gainAfter.of(names)}
		for _, n := range names {
			mended[n] = true
		}
		seen := f.Rate.Blocks.Value // blocks, or samples of them
		if least.Sample > 0 {
			seen = f.Rate.Bytes.Value / float64(least.Sample)
		}
		switch now := worst(found, names); {
		case now == diff.Leak:
			c.Answer, c.Why = Remains, "it still leaks"
			if f.Rate.Unit == unit && unit != diff.Place && c.After.High < c.Before.Low {
				c.Why = "it leaks less, but still"
			}
		case now == diff.Inconclusive:
			c.Answer, c.Why = CannotTell, "it grew, and a longer run must tell whether it leaks"
		case !after.Comparable:
			c.Answer, c.Why = CannotTell, "the snapshots of the run after cannot be compared"
		case !shows && least.Every == 0:
			c.Answer, c.Why = CannotTell, "the run after is too short to show any leak; let it be as long as the run before, with as many snapshots"
		case !shows && f.Rate.Unit == unit && unit != diff.Place && seen > 0 && (least.Every*seen < 1 || length*seen < enough):
			c.Answer, c.Why = CannotTell, fmt.Sprintf("the %.0f %ss of the run after are too few to show a leak of this rate", length, unit)
		default:
			c.Answer, c.Why = Gone, "it leaks no more"
		}
		checks = append(checks, c)
	}
	for i := range after.Findings {
		f := &after.Findings[i]
		if f.Verdict == diff.Leak && !slices.ContainsFunc(fingerprints(f), func(n string) bool { return mended[n] }) {
			checks = append(checks, Check{Finding: f, Answer: Remains, Why: "it is new", After: f.Rate.Bytes})
		}
	}
	return checks
}

// Overall is fixed where every check is, and not fixed where one is not. Without a
// leak before there is nothing to tell.
func Overall(checks []Check) Answer {
	answer := Gone
	for _, c := range checks {
		if c.Answer == Remains {
			return Remains
		}
		if c.Answer == CannotTell {
			answer = CannotTell
		}
	}
	if len(checks) == 0 {
		return CannotTell
	}
	return answer
}

func fingerprints(f *diff.Finding) []string {
	var names []string
	for _, row := range f.Rows {
		names = append(names, Fingerprint(row))
	}
	return names
}

// verdicts are the worst of the findings at each place.
func verdicts(r *diff.Result) map[string]diff.Verdict {
	worst := make(map[string]diff.Verdict)
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, name := range fingerprints(f) {
			if f.Verdict == diff.Leak || f.Verdict == diff.Inconclusive && worst[name] != diff.Leak {
				worst[name] = f.Verdict
			}
		}
	}
	return worst
}

// worst is that of the verdicts at any of these places.
func worst(verdicts map[string]diff.Verdict, names []string) diff.Verdict {
	worst := diff.Clean
	for _, name := range names {
		switch verdicts[name] {
		case diff.Leak:
			return diff.Leak
		case diff.Inconclusive:
			worst = diff.Inconclusive
		}
	}
	return worst
}

// gains are what the sites of a run gain together, by place.
type gains struct {
	run   *diff.Result
	rows  map[string][]*diff.Row
	known map[string]trend.Slope
}

func gainsOf(r *diff.Result) *gains {
	g := &gains{r, make(map[string][]*diff.Row), make(map[string]trend.Slope)}
	for i := range r.Rows {
		name := Fingerprint(&r.Rows[i])
		g.rows[name] = append(g.rows[name], &r.Rows[i])
	}
	return g
}

// of is what all sites at these places gain together. The ends of its interval
// are the sums of theirs, which is wider than it need be.
func (g *gains) of(names []string) trend.Slope {
	var sum trend.Slope
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		sum = add(sum, g.at(name))
	}
	return sum
}

func (g *gains) at(name string) trend.Slope {
	sum, ok := g.known[name]
	if !ok {
		for _, row := range g.rows[name] {
			sum = add(sum, g.run.RateOf(row).Bytes)
		}
		g.known[name] = sum
	}
	return sum
}

func add(a, b trend.Slope) trend.Slope {
	return trend.Slope{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High, N: max(a.N, b.N)}
}
