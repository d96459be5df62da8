package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// ranks lists which leaks are on which ranks.
func (p *page) ranks(r *diff.Result) {
	a := r.Across
	if a == nil {
		return
	}
	p.line(p.paint.bold(fmt.Sprintf("Ranks: %d judged; the rest of this report is of rank %d", len(a.Ranks), r.Last.Rank)))
	for _, l := range a.Leaks {
		p.prose("  ", "    ", fmt.Sprintf("%s: %s, %s", onRanks(l.On, a.Ranks), glue(bytesRate(l.Finding.Rate)), atPlace(l.Finding)))
	}
	if len(a.Leaks) == 0 && len(r.Children) == 0 {
		p.line("  no rank leaks")
	}
	for _, n := range a.Notes {
		p.prose("  ", "    ", n)
	}
	p.line("")
}

// rankOf is "rank 1", "rank 1 of 2"; "" in a run without ranks.
func rankOf(r *diff.Result) string {
	switch {
	case r.Last.Rank == snapshot.NoRank:
		return ""
	case r.Across == nil:
		return fmt.Sprintf("rank %d", r.Last.Rank)
	}
	return fmt.Sprintf("rank %d of %d", r.Last.Rank, len(r.Across.Ranks))
}

// onRanks is "on all 4 ranks", "on rank 2 only", "on ranks 0 and 2".
func onRanks(on, all []int) string {
	switch {
	case len(on) == len(all):
		return fmt.Sprintf("on all %d ranks", len(all))
	case len(on) == 1:
		return fmt.Sprintf("on rank %d only", on[0])
	}
	return "on " + Ranks(slices.Sorted(slices.Values(on)))
}

// Ranks is "rank 3", or "ranks 0 to 8, 10 and 3 more" of ascending ranks.
func Ranks(ranks []int) string {
	const shown = 8
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var parts []string
	told := 0
	for told < len(ranks) && len(parts) < shown {
		last := told
		for last+1 < len(ranks) && ranks[last+1] == ranks[last]+1 {
			last++
		}
		if last < told+2 { // a range of two is no shorter
			last = told
			parts = append(parts, strconv.Itoa(ranks[told]))
		} else {
			parts = append(parts, fmt.Sprintf("%d to %d", ranks[told], ranks[last]))
		}
		told = last + 1
	}
	text := "ranks " + strings.Join(parts, ", ")
	switch n := len(parts); {
	case told < len(ranks):
		text += fmt.Sprintf(" and %d more", len(ranks)-told)
	case n > 1:
		text = "ranks " + strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return text
}
