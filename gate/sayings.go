package gate

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// saying is a sentence with the ranks that it is about.
type saying struct {
	text  string
	ranks []int
}

// apart is the most ranks whose sentences are listed rank by rank; with more, equal sentences are merged.
const apart = 16

// noted begins a note about the reading of a run.
const noted = "note: "

// sayings are the sentences about ranks, in their order, each with its ranks. Equal notes are merged. With more than apart ranks, all
// equal sentences are merged.
func sayings(ranks []Rank, of func(*Rank) []string) (out []saying) {
	at := make(map[string]int)
	for i := range ranks {
		for _, text := range of(&ranks[i]) {
			if text == "" {
				continue // the process itself has no sentence, since another's says it
			}
			k, ok := at[text]
			if !ok || len(ranks) <= apart && !strings.HasPrefix(text, noted) {
				k = len(out)
				at[text] = k
				out = append(out, saying{text: text})
			}
			if rank := ranks[i].Number; rank != snapshot.NoRank {
				out[k].ranks = append(out[k].ranks, rank)
			}
		}
	}
	return out
}

// lines are the sentences about ranks for a console.
func lines(ranks []Rank, of func(*Rank) []string) (out []string) {
	for _, s := range sayings(ranks, of) {
		out = append(out, s.line(len(ranks)))
	}
	return out
}

// line is the sentence with its ranks in front, if there are several ranks.
func (s saying) line(of int) string {
	if of < 2 || len(s.ranks) == 0 {
		return s.text
	}
	return report.Ranks(s.ranks) + ": " + s.text
}

// sentence is all sentences about the ranks in one, for files.
func sentence(ranks []Rank) string {
	all := sayings(ranks, func(r *Rank) []string {
		return append([]string{r.Doubt + r.Said, report.OutOfMemory(r.refused)}, r.more()...)
	})
	several := len(ranks) > apart && slices.ContainsFunc(all, func(s saying) bool { return len(s.ranks) < len(ranks) })
	var parts []string
	for _, s := range all {
		if several {
			parts = append(parts, s.line(len(ranks)))
		} else {
			parts = append(parts, s.text)
		}
	}
	return strings.Join(parts, "; ")
}
