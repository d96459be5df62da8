package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// ofUser reports whether the program itself refers to a block of the row.
func ofUser(row *Row) bool { return row.Owners&snapshot.OwnedByUser != 0 }

// onTape reports whether the autodiff graph holds a block of each row.
func onTape(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return row.Owners&snapshot.OwnedByTape == 0 })
}

// joinTapes makes one leak of the clusters that one autodiff graph keeps, where the
// snapshots tell owners: what grows in step, and is the graph's. A graph is kept for its
// end, a value that the program refers to: one of the rows, or one that is made anew in
// each step by a function of theirs. Where the ends are two that different functions
// make, or different lists hold, nothing tells which rows are of which graph, and they
// stay apart; and where there is none, the graph keeps itself.
func (r *Result) joinTapes(groups []group) []group {
	for i := range groups {
		if groups[i].rows == nil || groups[i].graph || !onTape(groups[i].rows) {
			continue
		}
		var tapes []int
		for _, at := range r.together(groups, i, upFrom(i, len(groups))) {
			if onTape(groups[at].rows) {
				tapes = append(tapes, at)
			}
		}
		r.joinTape(groups, tapes)
	}
	return slices.DeleteFunc(groups, func(g group) bool { return g.rows == nil })
}

func upFrom(from, to int) []int {
	var out []int
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// joinTape joins the groups at some places if they have one end.
func (r *Result) joinTape(groups []group, at []int) {
	var all []*Row
	for _, i := range at {
		all = append(all, groups[i].rows...)
	}
	if len(all) < 2 {
		return
	}
	ends := r.endsOf(all)
	if len(ends) == 0 {
		return
	}
	// The innermost function that any of the rows shares with the end made it.
	deepest, end := 0, ends[0]
	for _, row := range all {
		for _, e := range ends {
			if n := sharedCalls(row, e); n > deepest {
				deepest, end = n, e
			}
		}
	}
	for _, e := range ends {
		if e != end && (sharedCalls(e, end) < deepest || r.heldApart(e, end)) {
			return
		}
	}
	slices.SortStableFunc(all, func(a, b *Row) int { return sharedCalls(b, end) - sharedCalls(a, end) })
	if slices.Contains(all, end) {
		endFirst(all)
	}
	lead := &groups[at[0]]
	for _, i := range at[1:] {
		groups[i].rows = nil
	}
	lead.rows, lead.graph = all, true
}

// endsOf are the ends of the graphs that hold the rows: those rows that the program
// refers to, or else healthy ones of the program's, made in the last step in which the
// rows grew by a function that says something of them.
func (r *Result) endsOf(rows []*Row) []*Row {
	var ends []*Row
	for _, row := range rows {
		if ofUser(row) {
			ends = append(ends, row)
		}
	}
	if ends != nil || len(rows[0].births.steps) == 0 {
		return ends
	}
	last, particular := slices.Max(rows[0].births.steps), r.particular(rows)
	for i := range r.Rows {
		row := &r.Rows[i]
		if !ofUser(row) || row.Growth().Blocks > 1 || !slices.Contains(row.births.steps, last) {
			continue
		}
		if slices.ContainsFunc(rows, func(leaks *Row) bool {
			n := sharedCalls(leaks, row)
			return n > 0 && !isLibrary(leaks.Frames[len(leaks.Frames)-n]) && particular(leaks.Frames[len(leaks.Frames)-n])
		}) {
			ends = append(ends, row)
		}
	}
	return ends
}

// sharedCalls counts the outermost frames that two stacks share, and with them the next,
// if it is of one function, at whichever lines.
func sharedCalls(a, b *Row) int {
	n := commonSuffix(a.Frames, b.Frames)
	if n < min(len(a.Frames), len(b.Frames)) {
		f, g := a.Frames[len(a.Frames)-n-1], b.Frames[len(b.Frames)-n-1]
		if f.Function == g.Function && f.File == g.File {
			n++
		}
	}
	return n
}
