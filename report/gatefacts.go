package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

// place is a leak's rate and line.
func (g *Gate) place(l *baseline.Leak) string {
	return string(l.State) + " leak: " + g.told(leakText(l))
}

// title is a leak's rate, line and holder, for what shows no more than a line.
func (g *Gate) title(l *baseline.Leak) string {
	if h := l.Finding.Holder; h != nil {
		return g.place(l) + ", held by " + unglued(heldBy(h, 0))
	}
	return g.place(l)
}

// facts are what a reader who has no more than this file needs to know of a leak beyond its
// place, in the order in which it is to be told.
func (g *Gate) facts(l *baseline.Leak) []fact {
	out := g.findingFacts(l.Finding)
	// A new leak's state has said that it is not in the baseline.
	if why := brief(l.Why) + owned(l.Entry); l.State != baseline.New || l.Entry != nil || l.Library != nil {
		out = append(out, fact{"Why it is " + string(l.State), g.told(why)})
	}
	return out
}

// findingFacts are those of a finding by itself: its holder, its cause with the fix, its pace
// and its rate's interval.
func (g *Gate) findingFacts(f *diff.Finding) []fact {
	var out []fact
	add := func(label, text string) {
		if text != "" {
			out = append(out, fact{label, g.told(unglued(text))})
		}
	}
	add("Held by", held(f))
	for _, c := range causeFacts(f) {
		add(c.Label, c.Text)
	}
	add("Pace", paceText(f))
	add("Rate", rateText(f.Rate, f.Uncounted))
	return out
}

// sentences are facts for a reader that shows one paragraph.
func sentences(facts []fact) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Label+": "+strings.TrimSuffix(f.Text, ".")+".")
	}
	return strings.Join(out, " ")
}

// lines are facts for a reader that shows lines.
func lines(facts []fact) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Label+": "+f.Text)
	}
	return strings.Join(out, "\n")
}

// calls is a finding's stack as the text report draws it, outermost call first.
func (g *Gate) calls(f *diff.Finding) string {
	list := callsOf(f)
	for i := range list {
		list[i] = g.told(list[i])
	}
	return strings.Join(list, "\n")
}

// account is all that is said of a leak: its facts and its stack.
func (g *Gate) account(l *baseline.Leak) string {
	return lines(g.facts(l)) + "\n\n" + g.calls(l.Finding)
}

// summary lists, for the test of the whole run, the leaks that fail with their facts, or else
// what may leak, and by what the process itself grows.
func (g *Gate) summary() string {
	var out []string
	add := func(title string, facts []fact) {
		out = append(out, title)
		for _, f := range facts {
			out = append(out, "  "+f.Label+": "+f.Text)
		}
	}
	failing := g.Outcome.Failing()
	for i := range failing[:min(len(failing), mostTold)] {
		add(g.title(&failing[i]), g.facts(&failing[i]))
	}
	if rest := len(failing) - mostTold; rest > 0 {
		out = append(out, "… "+count(int64(rest), "more leak"))
	}
	if len(failing) == 0 {
		undecided := g.Outcome.Undecided
		for _, f := range undecided[:min(len(undecided), mostTold)] {
			add(g.open(f), g.findingFacts(f))
		}
		if rest := len(undecided) - mostTold; rest > 0 {
			out = append(out, "… "+count(int64(rest), "more finding"))
		}
	}
	return strings.Join(append(out, g.unexplained()...), "\n")
}

// mostTold is how many of each kind a file for readers tells: GitHub takes a summary of up to
// 1 MiB, and a pair of snapshots has thousands of findings in doubt. Files for programs have all.
const mostTold = 20

// open says what may leak, in one line.
func (g *Gate) open(f *diff.Finding) string {
	if f.Rate.Unit == "" {
		return "more " + g.told(unglued(atPlace(f))) + ", in a snapshot that is not comparable with the earlier one"
	}
	text := growthText(f)
	if h := f.Holder; h != nil {
		text += ", held by " + heldBy(h, 0)
	}
	return g.told(unglued(text)) + "; only a longer run can tell whether it leaks"
}

// unexplained says of each rank by how much the process itself grows beyond what has a
// line, and what is known of that; of the first mostTold that do.
func (g *Gate) unexplained() []string {
	var out []string
	for _, r := range g.Ranks {
		for _, e := range r.Result.Unaccounted() {
			switch {
			case len(out) == mostTold:
				return append(out, "… and more")
			case r.Rank == snapshot.NoRank || e.Processes != nil:
				out = append(out, upperFirst(g.told(reserveText(e))))
			default:
				out = append(out, fmt.Sprintf("Rank %d: %s", r.Rank, g.told(reserveText(e))))
			}
		}
	}
	return out
}

// unglued is text in which lines break anywhere.
func unglued(text string) string { return strings.ReplaceAll(text, noBreak, " ") }
