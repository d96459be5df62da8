package report

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

// place is a leak's state, rate and line.
func (g *Gate) place(l *baseline.Leak) string {
	return string(l.State) + " leak: " + g.told(leakText(l))
}

// title is a leak's rate, line and holder, for formats that show one line.
func (g *Gate) title(l *baseline.Leak) string {
	if h := l.Finding.Holder; h != nil {
		return g.place(l) + ", held by " + unglued(heldBy(h, 0))
	}
	return g.place(l)
}

// facts are what a reader of this file alone needs to know about a leak beyond its place, in order.
func (g *Gate) facts(l *baseline.Leak) []fact {
	out := g.findingFacts(l.Finding)
	// The state "new" already says that the leak is not in the baseline.
	if why := brief(l.Why) + owned(l.Entry); l.State != baseline.New || l.Entry != nil || l.Library != nil {
		out = append(out, fact{"Why it is " + string(l.State), g.told(why)})
	}
	return out
}

// findingFacts are facts about a finding itself: its holder, its cause with the fix, its pace and its rate's interval.
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

// sentences joins facts into one paragraph.
func sentences(facts []fact) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Label+": "+strings.TrimSuffix(f.Text, ".")+".")
	}
	return strings.Join(out, " ")
}

// lines joins facts into lines.
func lines(facts []fact) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Label+": "+f.Text)
	}
	return strings.Join(out, "\n")
}

// calls is a finding's stack as in the text report, outermost call first.
func (g *Gate) calls(f *diff.Finding) string {
	list := callsOf(f)
	for i := range list {
		list[i] = g.told(list[i])
	}
	return strings.Join(list, "\n")
}

// account is everything about a leak: its facts and its stack.
func (g *Gate) account(l *baseline.Leak) string {
	return lines(g.facts(l)) + "\n\n" + g.calls(l.Finding)
}

// summary, for the test of the whole run, lists the leaks that fail with their facts, or else possible leaks, and the growth of the
// process itself.
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

// mostTold is how many items of each kind a file for people lists. GitHub takes a summary of up to 1 MiB, and a pair of snapshots has
// thousands of inconclusive findings. Files for programs list all.
const mostTold = 20

// open describes a possible leak in one line.
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

// unexplained says for each rank how much the process grows beyond call sites, and what is known about that. It lists at most mostTold.
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

// unglued is text whose lines may break at any space.
func unglued(text string) string { return strings.ReplaceAll(text, noBreak, " ") }
