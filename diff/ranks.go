package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Across combines the results of one run's ranks.
type Across struct {
	Ranks []int      // judged ranks, ascending
	Leaks []RankLeak // larger growth first
	// Notes name ranks that are behind, or lack snapshots that others have.
	Notes []string
}

// RankLeak is a leak, and the ranks that have it.
type RankLeak struct {
	Finding *Finding // from the rank where it grew most
	Rank    int      // that rank
	On      []int    // ascending
}

// JoinRanks returns the result of the rank that leaks most, with its children, and sets its Across; of equals, the
// lowest rank. Ranks that run the same code have equal stacks, so a leak is the same on two ranks if they share any
// of its stacks. The results are of one run, each of another rank; there is at least one.
func JoinRanks(results []*Result) *Result {
	results = slices.SortedFunc(slices.Values(results), func(a, b *Result) int { return cmp.Compare(a.Last.Rank, b.Last.Rank) })
	a := &Across{}
	lead, most := results[0], snapshot.Bytes(-1)
	steps, count := snapshot.NoStep, 0
	for _, r := range results {
		a.Ranks = append(a.Ranks, r.Last.Rank)
		var leaked snapshot.Bytes
		for i := range r.Findings {
			if f := &r.Findings[i]; f.Verdict == Leak {
				leaked += f.Growth().Bytes
				a.add(f, r.Last.Rank)
			}
		}
		for _, c := range r.Children {
			_, all := c.Leaked()
			leaked += all
		}
		if leaked > most {
			lead, most = r, leaked
		}
		steps, count = max(steps, r.Last.Mark.Step), max(count, r.Intermediate+2)
	}
	slices.SortStableFunc(a.Leaks, func(x, y RankLeak) int {
		return cmp.Compare(y.Finding.Growth().Bytes, x.Finding.Growth().Bytes)
	})
	for _, r := range results {
		switch {
		case r.Last.Mark.Step < steps:
			a.Notes = append(a.Notes, fmt.Sprintf("rank %d is behind: its last snapshot is of step %s, others have step %s", r.Last.Rank, snapshot.Grouped(r.Last.Mark.Step), snapshot.Grouped(steps)))
		case r.Intermediate+2 < count:
			a.Notes = append(a.Notes, fmt.Sprintf("rank %d has %d snapshots, others have %d", r.Last.Rank, r.Intermediate+2, count))
		}
	}
	lead.Across = a
	for _, r := range results {
		lead.Refused = cmp.Or(lead.Refused, r.Refused)
	}
	return lead
}

func (a *Across) add(f *Finding, rank int) {
	for i := range a.Leaks {
		l := &a.Leaks[i]
		if !sharesStack(l.Finding, f) {
			continue
		}
		if !slices.Contains(l.On, rank) {
			l.On = append(l.On, rank)
		}
		if f.Growth().Bytes > l.Finding.Growth().Bytes {
			l.Finding, l.Rank = f, rank
		}
		return
	}
	a.Leaks = append(a.Leaks, RankLeak{f, rank, []int{rank}})
}

func sharesStack(f, g *Finding) bool {
	return slices.ContainsFunc(f.Rows, func(x *Row) bool {
		return slices.ContainsFunc(g.Rows, func(y *Row) bool { return x.Hash == y.Hash })
	})
}
