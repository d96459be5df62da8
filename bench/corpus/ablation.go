package corpus

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memdiag/memdiag/diff"
)

// Parts are the names of the parts of memdiag's judge that can be left out.
func Parts() []string {
	var names []string
	for _, p := range diff.Parts() {
		names = append(names, p.Name)
	}
	return names
}

// tally is what memdiag, or memdiag without a part, gets of the runs of a view.
type tally struct {
	found, alarms, undecided, line, holder, cause, findings int
}

func tallyOf(s score) tally {
	healthy := s.healthy()
	return tally{s.Found, healthy.False, s.Undecided + healthy.Undecided, s.Line, s.Holder, s.Cause, s.Findings + s.Strays}
}

func (t tally) plus(u tally, sign int) tally {
	return tally{
		t.found + sign*u.found, t.alarms + sign*u.alarms, t.undecided + sign*u.undecided, t.line + sign*u.line,
		t.holder + sign*u.holder, t.cause + sign*u.cause, t.findings + sign*u.findings,
	}
}

// String names what changed, with its sign.
func (t tally) String() string {
	var said []string
	for _, c := range []struct {
		name  string
		value int
	}{{"found", t.found}, {"false", t.alarms}, {"undecided", t.undecided}, {"line", t.line}, {"holder", t.holder}, {"cause", t.cause}, {"findings", t.findings}} {
		if c.value != 0 {
			said = append(said, fmt.Sprintf("%s %+d", c.name, c.value))
		}
	}
	return strings.Join(said, ", ")
}

// AblationText writes what memdiag gets in all views together, a row for each part of what changes
// without it, and the views in which that is so.
func AblationText(w io.Writer, plan Plan, runs []*Run) error {
	var whole tally
	changes := make([]tally, len(plan.Without))
	where := make([][]string, len(plan.Without))
	leaks, healthy := 0, 0
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		all := scores(of)
		base := tallyOf(all[0])
		whole = whole.plus(base, 1)
		leaks, healthy = leaks+all[0].Leaks, healthy+all[0].healthy().Runs
		for i := range plan.Without {
			change := tallyOf(all[i+1]).plus(base, -1)
			if change != (tally{}) {
				changes[i] = changes[i].plus(change, 1)
				where[i] = append(where[i], fmt.Sprintf("%s: %s", of[0].View.Name, change))
			}
		}
	}
	var b strings.Builder
	if plan.Stopped > 0 {
		fmt.Fprintf(&b, "partial: %d of %d runs were done when it was stopped\n", len(runs), plan.Stopped)
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	tell(table, "without\tfound\tfalse\tundecided\tline\tholder\tcause\tfindings\n")
	tell(table, "nothing\t%s\t%s\t%d\t%d\t%d\t%d\t%d\n", of(whole.found, leaks), of(whole.alarms, healthy), whole.undecided, whole.line, whole.holder, whole.cause, whole.findings)
	var same []string
	for i, name := range plan.Without {
		c := changes[i]
		if where[i] == nil {
			same = append(same, name)
			continue
		}
		tell(table, "%s\t%+d\t%+d\t%+d\t%+d\t%+d\t%+d\t%+d\n", name, c.found, c.alarms, c.undecided, c.line, c.holder, c.cause, c.findings)
	}
	_ = table.Flush() // a Builder takes all
	if same != nil {
		fmt.Fprintf(&b, "\nnothing changes without: %s\n", strings.Join(same, ", "))
	}
	for i, name := range plan.Without {
		if where[i] != nil {
			fmt.Fprintf(&b, "\n%s (%s)\n  %s\n", name, about(name), strings.Join(where[i], "\n  "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func about(name string) string {
	parts := diff.Parts()
	return parts[slices.IndexFunc(parts, func(p diff.Part) bool { return p.Name == name })].About
}
