// Package gate decides whether a run passes CI. It is pure: it takes judged ranks and the user's options, and returns a decision with
// its sentences.
package gate

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
)

// Options are the user's settings.
type Options struct {
	Slice     Slice
	Budgets   []budget.Budget
	MaxGrowth diff.Growth // leaks pass if together they grow by at most this; without a unit no leak passes
	Canary    bool        // whether a canary was requested, even if the run has none
	AllRanks  bool        // whether each rank is judged, instead of one
	InDoubt   Doubt
}

// Doubt is the result for a run that cannot be judged.
type Doubt string

// The results. Doubt about the gate itself, such as a canary that could not be planted, never passes.
const (
	DoubtStays  Doubt = "" // it is inconclusive
	DoubtPasses Doubt = "pass"
	DoubtFails  Doubt = "fail"
)

// Decision is a gate's decision, with its texts.
type Decision struct {
	Verdict   diff.Verdict // Leak: it fails; Clean: it passes; report.OverBudget: it fails only because of a budget; else Inconclusive
	Headlines []string     // one line for each rank, or for several ranks with the same text
	Explained bool         // whether holders, causes and fixes are useful: there is a leak or a possible leak
	More      []string     // after the headlines: budgets, the canary, what was not seen
	Sentence  string       // all texts in one sentence, for files
}

// Fails reports whether CI should fail.
func (d *Decision) Fails() bool { return d.Verdict == diff.Leak || d.Verdict == report.OverBudget }

// Decide makes the decision for all ranks, given which leaks a baseline lets pass. A leak or a broken budget comes before doubt, and
// doubt before a pass. It writes the reasons for doubt into ranks.
func (o Options) Decide(ranks []Rank, outcome *baseline.Outcome) *Decision {
	acrossRanks(ranks)
	leaks, passing := o.leaks(ranks, outcome)
	d := &Decision{Verdict: diff.Clean}
	switch {
	case leaks:
		d.Verdict = diff.Leak
	default:
		if inDoubt(ranks, outcome) {
			d.Verdict = diff.Inconclusive
		}
		if slices.ContainsFunc(ranks, func(r Rank) bool { return budget.Broken(r.Budgets) }) {
			d.Verdict = report.OverBudget
		}
	}
	if n := len(outcome.Failing()); len(ranks) == 1 && leaks && 0 < n && n < len(outcome.Leaks) {
		ranks[0].Said = report.Failing(outcome) // the headline may be about a leak that passes
	}
	d.Headlines = lines(ranks, func(r *Rank) []string {
		said := r.Said
		switch {
		case r.Doubt != "" && !d.Fails():
			said = "inconclusive: " + r.Doubt + r.Said
		case r.Result != nil && r.Result.Leaks() > 0:
			said = passing + r.Said
		}
		return []string{said, report.OutOfMemory(r.refused)}
	})
	d.Explained = d.Verdict != diff.Clean
	d.More = lines(ranks, (*Rank).more)
	d.Sentence = sentence(ranks)
	if slices.ContainsFunc(ranks, func(r Rank) bool { return r.bird == missed }) {
		d.Verdict = diff.Leak // a gate that missed the canary may have missed anything
	}
	if d.Verdict == diff.Inconclusive {
		d.Verdict = o.settled(ranks)
	}
	return d
}

// leaks reports whether leaks fail. If they pass, it returns the beginning of a headline about them.
func (o Options) leaks(ranks []Rank, outcome *baseline.Outcome) (fail bool, passing string) {
	failing := outcome.Failing()
	if !slices.ContainsFunc(failing, func(l baseline.Leak) bool { return confirmed(ranks, l) }) {
		failing = nil
	}
	switch {
	case len(failing) > 0 && !o.within(failing):
		return true, ""
	case len(failing) > 0:
		return false, "within " + o.MaxGrowth.String() + ": "
	case slices.ContainsFunc(outcome.Leaks, func(l baseline.Leak) bool { return l.State == baseline.Library }):
		return false, "known of libraries: "
	}
	return false, "in the baseline: "
}

// confirmed reports whether no rank's run with half the steps contradicts a leak.
func confirmed(ranks []Rank, l baseline.Leak) bool {
	for _, r := range ranks {
		if r.Double != nil && slices.Contains(r.Double.Unconfirmed, l.Finding) {
			return false
		}
	}
	return true
}

// within reports whether all these leaks together grow by at most the limit that passes. A rate in another unit is never within.
func (o Options) within(leaks []baseline.Leak) bool {
	sum := 0.0
	for _, l := range leaks {
		f := l.Finding
		if f.Rate.Unit != o.MaxGrowth.Unit || f.Shape != diff.Steady {
			return false // a rate that increases has no limit
		}
		sum += f.Rate.Bytes.Value
	}
	return o.MaxGrowth.Unit != "" && sum <= float64(o.MaxGrowth.Bytes)
}

// inDoubt reports whether any rank cannot be judged, and writes the reason into each. An inconclusive finding that is in the baseline
// is no reason.
func inDoubt(ranks []Rank, outcome *baseline.Outcome) (doubt bool) {
	for i := range ranks {
		r := &ranks[i]
		switch {
		case r.Doubt != "":
		case r.why != "": // its leaks pass, and others may be hidden
			r.Doubt = r.why
		case outcome.InDoubt(r.Result):
			r.Doubt = undecided(r.Result, outcome)
		case r.Double != nil && len(r.Double.Unconfirmed)+len(r.Double.Unexplained) > 0:
			r.Doubt = "the run of twice the steps disagrees; "
		case budget.Unchecked(r.Budgets):
			r.Doubt = "a budget could not be checked; "
		}
		doubt = doubt || r.Doubt != ""
	}
	return doubt
}

// longerRun is the doubt about growth that may stop.
const longerRun = "only a longer run can judge this growth; "

// undecided is the doubt about a result's undecided findings: longerRun, unless the reasons of all ask for something else.
func undecided(r *diff.Result, outcome *baseline.Outcome) string {
	for i := range r.Findings {
		f := &r.Findings[i]
		asks := len(f.Reasons) == 0 || f.More != (diff.More{}) || slices.ContainsFunc(f.Reasons, func(why string) bool { return strings.Contains(why, "longer") })
		if asks && slices.Contains(outcome.Undecided, f) {
			return longerRun
		}
	}
	return "this growth cannot be judged; "
}

// settled is the verdict for a run in doubt, by the InDoubt option.
func (o Options) settled(ranks []Rank) diff.Verdict {
	switch o.InDoubt {
	case DoubtPasses:
		if !slices.ContainsFunc(ranks, func(r Rank) bool { return r.bird == unplanted }) {
			return diff.Clean
		}
	case DoubtFails:
		return diff.Leak
	}
	return diff.Inconclusive
}

// acrossRanks removes from each rank the budget outcomes that only concern another rank.
func acrossRanks(ranks []Rank) {
	all := make([][]budget.Outcome, len(ranks))
	for i := range ranks {
		all[i] = ranks[i].Budgets
	}
	for i, of := range budget.Across(all) {
		ranks[i].Budgets = of
	}
}
