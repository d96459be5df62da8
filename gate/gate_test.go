package gate

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// leaking is what a baseline that knows nothing makes of a leak of so many bytes a step.
func leaking(rate float64) (Rank, *baseline.Outcome) {
	f := diff.Finding{Verdict: diff.Leak, Shape: diff.Steady, Rows: []*diff.Row{{}}}
	f.Rate.Unit, f.Rate.Bytes.Value = series.Step, rate
	r := &diff.Result{First: &snapshot.Snapshot{}, Last: &snapshot.Snapshot{}, Series: &series.Series{}, Findings: []diff.Finding{f}}
	rank := Rank{Number: snapshot.NoRank, Result: r, Said: "1 leak"}
	return rank, &baseline.Outcome{Leaks: []baseline.Leak{{Finding: &r.Findings[0], State: baseline.New}}}
}

func clean() (Rank, *baseline.Outcome) {
	return Rank{Number: snapshot.NoRank, Result: &diff.Result{}, Said: "no leak found"}, &baseline.Outcome{}
}

func TestALeakComesBeforeDoubtAndDoubtBeforeAPass(t *testing.T) {
	broken := []budget.Outcome{{Budget: budget.Budget{Meter: budget.Live}, Of: "the process", Used: 2, Allowed: 1}}
	unchecked := []budget.Outcome{{Of: "the process", Unchecked: "nobody measured it"}}
	for _, c := range []struct {
		name    string
		options Options
		leak    bool
		change  func(*Rank)
		want    diff.Verdict
		first   string
	}{
		{"clean", Options{}, false, func(*Rank) {}, diff.Clean, "no leak found"},
		{"a leak", Options{}, true, func(*Rank) {}, diff.Leak, "1 leak"},
		{"a leak in doubt", Options{}, true, func(r *Rank) { r.Doubt = "the end was not watched; " }, diff.Leak, "1 leak"},
		{"a leak within what passes", Options{MaxGrowth: diff.Growth{Bytes: 10, Unit: series.Step}}, true, func(*Rank) {}, diff.Clean, "within 10 B/step: 1 leak"},
		{"a leak that passes, in a run that was not read whole", Options{MaxGrowth: diff.Growth{Bytes: 10, Unit: series.Step}}, true, func(r *Rank) { r.why = "a part may hide a leak; " }, diff.Inconclusive, "inconclusive: a part may hide a leak; 1 leak"},
		{"a leak above what passes", Options{MaxGrowth: diff.Growth{Bytes: 9, Unit: series.Step}}, true, func(*Rank) {}, diff.Leak, "1 leak"},
		{"a leak by another unit", Options{MaxGrowth: diff.Growth{Bytes: 99, Unit: series.Second}}, true, func(*Rank) {}, diff.Leak, "1 leak"},
		{"doubt", Options{}, false, func(r *Rank) { r.Doubt = "the end was not watched; " }, diff.Inconclusive, "inconclusive: the end was not watched; no leak found"},
		{"doubt that passes", Options{InDoubt: DoubtPasses}, false, func(r *Rank) { r.Doubt = "short; " }, diff.Clean, "inconclusive: short; no leak found"},
		{"doubt that fails is no broken budget", Options{InDoubt: DoubtFails}, false, func(r *Rank) { r.Doubt = "short; " }, diff.Leak, "inconclusive: short; no leak found"},
		{"doubt about the gate itself", Options{InDoubt: DoubtPasses}, false, func(r *Rank) { r.Doubt, r.bird = "no canary; ", unplanted }, diff.Inconclusive, "inconclusive: no canary; no leak found"},
		{"a canary that was not caught", Options{}, false, func(r *Rank) { r.bird = missed }, diff.Leak, "no leak found"},
		{"a broken budget", Options{}, false, func(r *Rank) { r.Budgets = broken }, report.OverBudget, "no leak found"},
		{"a broken budget of a run in doubt", Options{InDoubt: DoubtPasses}, false, func(r *Rank) { r.Doubt, r.Budgets = "short; ", broken }, report.OverBudget, "no leak found"},
		{"a leak over budget", Options{}, true, func(r *Rank) { r.Budgets = broken }, diff.Leak, "1 leak"},
		{"a budget that nobody checked", Options{}, false, func(r *Rank) { r.Budgets = unchecked }, diff.Inconclusive, "inconclusive: a budget could not be checked; no leak found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rank, outcome := clean()
			if c.leak {
				rank, outcome = leaking(10)
			}
			c.change(&rank)
			d := c.options.Decide([]Rank{rank}, outcome)
			if d.Verdict != c.want || len(d.Headlines) != 1 || d.Headlines[0] != c.first {
				t.Errorf("%s, %q; want %s, %q", d.Verdict, d.Headlines, c.want, c.first)
			}
		})
	}
}

// On musl a leak of 8 MiB a second, of large objects, passed with --max-growth 1MiB/second by the rate of the small ones.
func TestALeakWhoseLargeObjectsAreNotCountedDoesNotPassByItsRate(t *testing.T) {
	for _, c := range []struct {
		uncounted bool
		most      snapshot.Bytes
		want      diff.Verdict
		first     string
	}{
		{true, 10, diff.Inconclusive, "inconclusive: the rate of the leak is not known; 1 leak"},
		{true, 9, diff.Leak, "1 leak"},
		{false, 10, diff.Clean, "within 10 B/step: 1 leak"},
	} {
		rank, outcome := leaking(10)
		e := diff.Reserve{Meter: cause.Host, Uncounted: c.uncounted, Rate: diff.Rate{Unit: diff.Step}}
		e.Rate.Bytes.Value = 4096
		rank.Result.Reserves = []diff.Reserve{e}
		rank.Doubt = rank.doubts()
		o := Options{MaxGrowth: diff.Growth{Bytes: c.most, Unit: diff.Step}}
		if d := o.Decide([]Rank{rank}, outcome); d.Verdict != c.want || d.Headlines[0] != c.first {
			t.Errorf("%+v: %s, %q", c, d.Verdict, d.Headlines)
		}
	}
}

// TestTheFirstSentenceIsOfTheLargestLeak: it was of the recorded process, or the first rank.
func TestTheFirstSentenceIsOfTheLargestLeak(t *testing.T) {
	small, _ := leaking(1)
	large, _ := leaking(1000)
	none, _ := clean()
	small.Number, large.Number, none.Number = 0, 1, 2
	ranks := []Rank{{Number: 3}, none, small, large}
	ByDrain(ranks)
	for i, want := range []int{1, 0, 3, 2} {
		if ranks[i].Number != want {
			t.Errorf("rank %d is number %d, not rank %d", ranks[i].Number, i, want)
		}
	}
}

// A leak that the run of half the steps speaks against is doubt, and no failure.
func TestALeakThatTwiceTheStepsDenyIsInDoubt(t *testing.T) {
	rank, outcome := leaking(10)
	rank.Double = &baseline.Doubled{Unconfirmed: []*diff.Finding{outcome.Leaks[0].Finding}, Half: snapshot.Mark{Step: 50}, Whole: snapshot.Mark{Step: 100}}
	if d := (Options{}).Decide([]Rank{rank}, outcome); d.Verdict != diff.Inconclusive {
		t.Errorf("%s, %q", d.Verdict, d.Headlines)
	}
}

// TestGrowthOfTheProcessIsInDoubt also if its line is known.
func TestGrowthOfTheProcessIsInDoubt(t *testing.T) {
	for want, frames := range map[string][]snapshot.Frame{
		"source line unknown; ":                     nil,
		"only a longer run can judge this growth; ": {{Function: "main", File: "fit.py", Line: 16}},
	} {
		rank, outcome := clean()
		rank.Result.Reserves = []diff.Reserve{{Meter: cause.Host, Frames: frames}}
		rank.Doubt = rank.doubts()
		if d := (&Options{}).Decide([]Rank{rank}, outcome); rank.Doubt != want || d.Verdict != diff.Inconclusive {
			t.Errorf("%s: %q", d.Verdict, rank.Doubt)
		}
	}
}

// TestTheRealReasonForDoubtLeads: a longer run was advised also if a snapshot could not be read.
func TestTheRealReasonForDoubtLeads(t *testing.T) {
	unreadable, longer := "the unreadable part of the run may hide a leak; ", "only a longer run can judge this growth; "
	undecided := func(reasons ...string) *diff.Result {
		return &diff.Result{Findings: []diff.Finding{{Verdict: diff.Inconclusive, Reasons: reasons, Rows: []*diff.Row{{}}}}}
	}
	for _, c := range []struct {
		name   string
		result *diff.Result
		why    string
		want   string
	}{
		{"growth that may stop", undecided("it flattened, then rose in the last interval; run longer to decide"), "", longer},
		{"and a snapshot was not read", undecided("it flattened, then rose in the last interval; run longer to decide"), unreadable, unreadable},
		{"growth with the batch size", undecided("it rises no faster than the batch size; keep that constant to decide"), "", "this growth cannot be judged; "},
		{"growth of the process at a line, and a snapshot was not read", &diff.Result{Reserves: []diff.Reserve{{Meter: cause.Host, Frames: []snapshot.Frame{{File: "fit.py", Line: 16}}}}}, unreadable, unreadable},
	} {
		rank := Rank{Number: snapshot.NoRank, Result: c.result, why: c.why}
		if len(c.result.Reserves) > 0 {
			rank.Doubt = rank.doubts()
		}
		outcome := &baseline.Outcome{}
		for i := range c.result.Findings {
			outcome.Undecided = append(outcome.Undecided, &c.result.Findings[i])
		}
		if d := (Options{}).Decide([]Rank{rank}, outcome); d.Verdict != diff.Inconclusive || d.Headlines[0] != "inconclusive: "+c.want {
			t.Errorf("%s: %q", c.name, d.Headlines)
		}
	}
}
