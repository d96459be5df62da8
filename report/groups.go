package report

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Grouping says by what key live memory is summed.
type Grouping string

// Groupings.
const (
	BySite     Grouping = "site"
	ByOperator Grouping = "operator" // a PyTorch operator, or the node of a backward pass
	ByModule   Grouping = "module"   // the path of nn.Modules
)

// group is the live memory of one name, before and after.
type group struct {
	name          string
	before, after diff.Tally
}

// groupsOf sums the memory of two snapshots by name, the largest first; before may be nil.
func groupsOf(before, after *snapshot.Snapshot, by Grouping) []group {
	nameOf := frame.Operator
	if by == ByModule {
		nameOf = frame.Module
	}
	var out []group
	index := make(map[string]int)
	add := func(s *snapshot.Snapshot, to func(*group) *diff.Tally) {
		if s == nil {
			return
		}
		for _, site := range s.Sites() {
			name := nameOf(s.Stacks.Frames(site.Stack))
			at, known := index[name]
			if !known {
				at = len(out)
				index[name] = at
				out = append(out, group{name: name})
			}
			tally := to(&out[at])
			*tally = plus(*tally, diff.Tally{Blocks: site.Count, Bytes: site.Bytes, Requested: site.Requested})
		}
	}
	add(before, func(g *group) *diff.Tally { return &g.before })
	add(after, func(g *group) *diff.Tally { return &g.after })
	slices.SortFunc(out, func(x, y group) int {
		return cmp.Or(cmp.Compare(max(y.after.Bytes, y.before.Bytes), max(x.after.Bytes, x.before.Bytes)), cmp.Compare(x.name, y.name))
	})
	return out
}

// groups writes live memory by operator or by module.
func (p *page) groups(s *snapshot.Snapshot, live diff.Tally, o TextOptions) {
	all := groupsOf(o.Since, s, o.By)
	if len(all) == 0 {
		p.line("nothing is live")
		return
	}
	p.line(p.paint.bold("Live memory by " + string(o.By)))
	var rest group
	var rows [][]string
	row := func(name string, g group) {
		if o.Since != nil {
			rows = append(rows, []string{signed(g.after.Bytes - g.before.Bytes), g.before.Bytes.String(), g.after.Bytes.String(), name})
			return
		}
		rows = append(rows, []string{heldBlocks(g.after.Blocks, s.Blocks.Uncounted()), g.after.Bytes.String(), share(g.after.Bytes, live.Bytes), name})
	}
	shown := o.top(len(all))
	for i, g := range all {
		if i < shown {
			row(cmp.Or(brief(g.name), "(no "+string(o.By)+" on the stack)"), g)
			continue
		}
		rest.before, rest.after = plus(rest.before, g.before), plus(rest.after, g.after)
	}
	if n := len(all) - shown; n > 0 {
		row("… "+count(int64(n), "more "+string(o.By)), rest)
	}
	columns := []column{{"blocks", true}, {"bytes", true}, {"share", true}, {string(o.By), false}}
	if o.Since != nil {
		columns = []column{{"change", true}, {"before", true}, {"after", true}, {string(o.By), false}}
	}
	p.table(columns, rows)
}

// groupJSON is the live memory of an operator or a module.
type groupJSON struct {
	Name   string     `json:"name"` // "" for stacks that name none
	Before *tallyJSON `json:"before,omitempty"`
	tallyJSON
}

func groupsJSONOf(s *snapshot.Snapshot, o TextOptions) []groupJSON {
	if o.By == BySite || o.By == "" {
		return nil
	}
	out := []groupJSON{}
	uncounted := s.Blocks.Uncounted()
	for _, g := range groupsOf(o.Since, s, o.By) {
		each := groupJSON{Name: g.name, tallyJSON: tallyOf(g.after, uncounted)}
		if o.Since != nil {
			before := tallyOf(g.before, uncounted)
			each.Before = &before
		}
		out = append(out, each)
	}
	return out
}
