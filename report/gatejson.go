package report

import (
	"io"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

type gateJSON struct {
	SchemaVersion int             `json:"schema_version"`
	Verdict       diff.Verdict    `json:"verdict"` // leak, over-budget, clean or inconclusive
	Sentence      string          `json:"sentence"`
	Leaks         []gateLeakJSON  `json:"leaks"`
	Undecided     []gateLeakJSON  `json:"undecided"`
	Declared      []gateLeakJSON  `json:"declared"` // these grow up to a declared bound
	Entries       []gateEntryJSON `json:"entries"`  // entries of the baseline that matched no leak
	// Unexplained is growth of a process that no stack explains, for each rank.
	Unexplained []gateReserveJSON `json:"unexplained"`
	NotSeen     []string          `json:"not_seen"` // what no verdict covers
	Budgets     []gateBudgetJSON  `json:"budgets"`
}

type gateReserveJSON struct {
	Rank *int   `json:"rank,omitempty"`
	Fix  string `json:"fix,omitempty"`
	reserveJSON
}

type gateLeakJSON struct {
	State       baseline.State `json:"state,omitempty"`
	Fingerprint string         `json:"fingerprint"`
	Place       string         `json:"place"`
	File        string         `json:"file,omitempty"`
	Line        int            `json:"line,omitempty"`
	Rate        *rateJSON      `json:"rate"`
	Ranks       []int          `json:"ranks,omitempty"`
	Child       *childOfJSON   `json:"child,omitempty"`
	HeldBy      string         `json:"held_by,omitempty"` // holder and owners in words
	Holder      *holderJSON    `json:"holder,omitempty"`
	Owners      []string       `json:"owners"`
	Cause       string         `json:"cause,omitempty"`
	CauseName   string         `json:"cause_name,omitempty"`
	CauseWhy    string         `json:"cause_why,omitempty"`
	Fix         string         `json:"fix,omitempty"`
	Frames      []frameJSON    `json:"frames"`
	Library     string         `json:"library,omitempty"`
	Why         string         `json:"why,omitempty"`
}

type gateEntryJSON struct {
	Fingerprint string         `json:"fingerprint"`
	State       baseline.State `json:"state"`
	Where       string         `json:"where,omitempty"`
	Owner       string         `json:"owner,omitempty"`
	Issue       string         `json:"issue,omitempty"`
}

// JSON writes the decision as one indented object. Lists are never null.
func (g *Gate) JSON(w io.Writer) error {
	out := gateJSON{SchemaVersion: schemaVersion, Verdict: g.Verdict, Sentence: g.told(g.Sentence), Leaks: []gateLeakJSON{}, Undecided: []gateLeakJSON{}, Declared: []gateLeakJSON{}, Entries: []gateEntryJSON{}, Unexplained: []gateReserveJSON{}, NotSeen: []string{}, Budgets: []gateBudgetJSON{}}
	of := func(f *diff.Finding, fingerprint string) gateLeakJSON {
		j := gateLeakJSON{
			Fingerprint: fingerprint, Place: g.told(Place(f)), Rate: rateOfFinding(f), HeldBy: g.told(unglued(held(f))),
			Owners: append([]string{}, f.Owners().Names()...), Frames: framesOf(f.Rows[0].Frames),
		}
		j.File, j.Line = g.site(f)
		for i := range j.Frames {
			j.Frames[i].File = g.relative(j.Frames[i].File)
		}
		if f.Holder != nil {
			j.Holder = holderOf(f.Holder)
		}
		j.Child = childOf(f)
		if c := f.Cause; c != nil {
			j.Cause, j.CauseName, j.CauseWhy, j.Fix = c.ID, c.Name, f.CauseWhy, c.Fix
		}
		return j
	}
	for i := range g.Outcome.Leaks {
		l := &g.Outcome.Leaks[i]
		j := of(l.Finding, l.Fingerprint)
		j.State, j.Ranks, j.Why = l.State, l.Ranks, l.Why
		if l.Library != nil {
			j.Library = l.Library.ID
		}
		out.Leaks = append(out.Leaks, j)
	}
	for _, f := range g.Outcome.Undecided {
		out.Undecided = append(out.Undecided, of(f, baseline.Fingerprint(f.Rows[0])))
	}
	for _, f := range g.Outcome.Declared {
		j := of(f, baseline.Fingerprint(f.Rows[0]))
		j.Why = declaredText(f)
		out.Declared = append(out.Declared, j)
	}
	for _, f := range g.Outcome.Fates {
		out.Entries = append(out.Entries, gateEntryJSON{f.Entry.Fingerprint, f.State, f.Entry.Where, f.Entry.Owner, f.Entry.Issue})
	}
	for _, r := range g.Ranks {
		for _, text := range r.Result.NotSeen {
			if !slices.Contains(out.NotSeen, text) {
				out.NotSeen = append(out.NotSeen, text)
			}
		}
		for _, e := range r.Result.Unaccounted() {
			j := gateReserveJSON{reserveJSON: reserveOf(e), Fix: e.Fix()}
			if r.Rank != snapshot.NoRank && e.Processes == nil {
				j.Rank = &r.Rank
			}
			out.Unexplained = append(out.Unexplained, j)
		}
	}
	for i := range g.Budgets {
		out.Budgets = append(out.Budgets, g.Budgets[i].json())
	}
	return writeJSON(w, out)
}
