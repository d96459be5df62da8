package report

import (
	"fmt"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/snapshot"
)

// OverBudget is the verdict of a gate that fails only because of a budget. No finding has it.
const OverBudget diff.Verdict = "over-budget"

// RankBudget is the outcome of a budget for one rank.
type RankBudget struct {
	Rank int // snapshot.NoRank in a run without ranks
	budget.Outcome
}

type gateBudgetJSON struct {
	Flag    string          `json:"flag"`
	Meter   budget.Meter    `json:"budget"`
	Of      string          `json:"where,omitempty"`
	State   string          `json:"budget_state"`
	Rank    *int            `json:"rank,omitempty"`
	Used    *snapshot.Bytes `json:"used_bytes,omitempty"`
	Allowed *snapshot.Bytes `json:"allowed_bytes,omitempty"`
	Over    *snapshot.Bytes `json:"over_bytes,omitempty"`
	Text    string          `json:"sentence"`
}

func (b *RankBudget) json() gateBudgetJSON {
	j := gateBudgetJSON{Flag: Printable(b.Budget.String()), Meter: b.Budget.Meter, Of: Printable(b.Of), State: b.State(), Text: b.text()}
	if b.Rank != snapshot.NoRank {
		j.Rank = &b.Rank
	}
	if b.Unchecked == "" {
		j.Used, j.Allowed = &b.Used, &b.Allowed
	}
	if over := b.Used - b.Allowed; b.Broken() {
		j.Over = &over
	}
	return j
}

// text is the outcome as a sentence, with its rank.
func (b *RankBudget) text() string {
	text := Printable(b.String())
	if b.Rank != snapshot.NoRank {
		return fmt.Sprintf("rank %d: %s", b.Rank, text)
	}
	return text
}

// junit is a test case for the budget. Its name contains no figures of the run.
func (b *RankBudget) junit(class string) junitCase {
	c := junitCase{Name: Printable(b.Budget.String()), Class: class}
	if b.Of != "" {
		c.Name += ": " + Printable(b.Of)
	}
	if b.Rank != snapshot.NoRank {
		c.Name += fmt.Sprintf(", rank %d", b.Rank)
	}
	switch {
	case b.Broken():
		c.Failure = &junitNote{Message: b.text(), Type: "budget", Text: b.text()}
	case b.Unchecked != "":
		c.Skipped = &junitNote{Message: b.text()}
	}
	return c
}

// budgetRule names the rule for broken budgets in SARIF and in a code quality report.
const budgetRule = "memory-budget"

// sarif is a result for the budget. A budget that is kept needs none.
func (b *RankBudget) sarif(d *sarifDriver) sarifResult {
	text := sarifText{Text: "Memory that a run may take"}
	id, at := d.add(sarifRule{ID: budgetRule, Short: text, Full: text, Help: &sarifText{Text: "A flag of memdiag gate sets the budget: --max-live, --max-peak, --max-reserved or --max-growth"}})
	r := sarifResult{
		RuleID: id, RuleIndex: at, Kind: "fail", Level: "error", Message: sarifText{Text: b.text()},
		Fingerprints: map[string]string{"memdiag/v1": "budget:" + Printable(b.Budget.String()) + ":" + Printable(b.Of)},
	}
	if b.Unchecked != "" {
		r.Kind, r.Level = "open", "none"
	}
	if b.Rank != snapshot.NoRank {
		r.Properties.Ranks = []int{b.Rank}
	}
	return r
}
