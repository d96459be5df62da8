// Package gate decides whether a run passes CI. It is pure: what was judged and what a user set go in, and a decision
// with its sentences comes out.
package gate

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
)

// Options are what a user sets.
type Options struct {
	Slice     Slice
	Budgets   []budget.Budget
	MaxGrowth diff.Growth // leaks pass that grow by no more together; without a unit none does
	Canary    bool        // one was planted, whether or not the run has it
	AllRanks  bool        // each rank is judged, and not one alone
	InDoubt   Doubt
}

// Doubt is the result of a run that cannot be judged.
type Doubt string

// The results. Doubt about the gate itself, as of a canary that could not be planted, never passes.
const (
	DoubtStays  Doubt = "" // it is inconclusive
	DoubtPasses Doubt = "pass"
	DoubtFails  Doubt = "fail"
)

// Decision is what a gate decided, and says.
type Decision struct {
	Verdict   diff.Verdict // Leak: it fails; Clean: it passes; report.OverBudget: it fails by a budget alone; else Inconclusive
	Headlines []string     // a line for each rank, or for several that say the same
	Explained bool         // whether holders, causes and fixes are of use: something leaks, or may
	More      []string     // after the headlines: budgets, the canary, what was not seen
	Sentence  string       // all of it in one, for files
}

// Fails reports whether CI is to fail.
func (d *Decision) Fails() bool { return d.Verdict == diff.Leak || d.Verdict == report.OverBudget }

// Decide weighs the ranks, and the leaks that a baseline lets pass or not: a leak or a broken budget before doubt,
// and doubt before a pass. It writes into ranks what leaves them in doubt.
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
		ranks[0].Said = report.Failing(outcome) // the headline may be of one that passes
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
		d.Verdict = diff.Leak // what let this pass may have let anything pass
	}
	if d.Verdict == diff.Inconclusive {
		d.Verdict = o.settled(ranks)
	}
	return d
}

// leaks reports whether leaks fail, and says what a headline with leaks begins with where they pass.
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

// confirmed reports whether no rank's run of half the steps speaks against a leak.
func confirmed(ranks []Rank, l baseline.Leak) bool {
	for _, r := range ranks {
		if r.Double != nil && slices.Contains(r.Double.Unconfirmed, l.Finding) {
			return false
		}
	}
	return true
}

// within reports whether all of these leaks together grow by no more than the most that passes.
// Growth by another unit is never within.
func (o Options) within(leaks []baseline.Leak) bool {
	sum := 0.0
	for _, l := range leaks {
		f := l.Finding
		if f.Rate.Unit != o.MaxGrowth.Unit || f.Shape != diff.Steady {
			return false // a rate that grows itself has no limit
		}
		sum += f.Rate.Bytes.Value
	}
	return o.MaxGrowth.Unit != "" && sum <= float64(o.MaxGrowth.Bytes)
}

// inDoubt reports whether any rank cannot be judged, and writes the reason into each. A finding in doubt that the
// baseline knows is no reason.
func inDoubt(ranks []Rank, outcome *baseline.Outcome) (doubt bool) {
	for i := range ranks {
		r := &ranks[i]
		switch {
		case r.Doubt != "":
		case outcome.InDoubt(r.Result):
			r.Doubt = "only a longer run can judge this growth; "
		case r.Double != nil && len(r.Double.Unconfirmed)+len(r.Double.Unexplained) > 0:
			r.Doubt = "the run of twice the steps disagrees; "
		case budget.Unchecked(r.Budgets):
			r.Doubt = "a budget could not be checked; "
		}
		doubt = doubt || r.Doubt != ""
	}
	return doubt
}

// settled is the verdict in doubt, by what doubt is worth.
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

// acrossRanks leaves out of each rank's outcomes what only another rank has.
func acrossRanks(ranks []Rank) {
	all := make([][]budget.Outcome, len(ranks))
	for i := range ranks {
		all[i] = ranks[i].Budgets
	}
	for i, of := range budget.Across(all) {
		ranks[i].Budgets = of
	}
}
