package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// holderOf is the holder of the first row; for a graph, the value that retains it. For objects it is a container that
// holds most of the growth, or has at least half as many items as the largest row has blocks, which are then parts of
// its items. Several new blocks have no variable as their holder, since a variable holds one.
func (r *Result) holderOf(c cluster) *snapshot.Holder {
	rows := c.rows[:1]
	if c.graph {
		rows = c.rows
	} else if onLanguageHeap(c.rows) {
		rows = mostOf(c.rows)
	}
	for i, row := range rows {
		if h := r.keeper(row); h != nil && r.mayHold(h, row) && (i == 0 || c.graph || gathers(h)) {
			return h
		}
	}
	if onLanguageHeap(c.rows) {
		for _, row := range c.rows[len(rows):] {
			if h := r.keeper(row); h != nil && gathers(h) && 2*int64(h.Items) >= c.rows[0].After.Blocks && r.mayHold(h, row) {
				return h
			}
		}
	}
	if c.rows[0].Growth().Blocks > 1 {
		return nil
	}
	return holder(r.Last, c.rows[0])
}

// partlyOf is a list or map that holds some of the first row's blocks, if it is known not to hold the others.
func (r *Result) partlyOf(f *Finding) *snapshot.Holder {
	h := r.keeper(f.Rows[0])
	if f.Holder != nil || h == nil || holdsOne(h) || r.mayHold(h, f.Rows[0]) {
		return nil
	}
	return h
}

func holder(s *snapshot.Snapshot, row *Row) *snapshot.Holder {
	for i := range s.Holders {
		if row.HangsOn(&s.Holders[i]) {
			return &s.Holders[i]
		}
	}
	return nil
}

// holdsOne reports whether a holder is a single attribute, which refers to one block.
func holdsOne(h *snapshot.Holder) bool {
	return h.Kind == "attribute" && h.Items == 0 && !strings.Contains(h.Path, "[")
}

// mayHold is false if h is known to hold only few of a row's blocks, which says nothing about the others: for single
// attributes, unless at least half as many as blocks were found; and for lists and maps likewise, if only the
// program's references hold the blocks. A graph holds more than its end, and without known owners a list may be of
// lists.
func (r *Result) mayHold(h *snapshot.Holder, row *Row) bool {
	one := holdsOne(h)
	if !one && row.Owners&^snapshot.Lost != snapshot.OwnedByUser {
		return true
	}
	n := int64(0)
	for i := range r.Last.Holders {
		if g := &r.Last.Holders[i]; row.HangsOn(g) && (holdsOne(g) || !one) {
			n += int64(max(1, g.Items))
		}
	}
	return 2*n >= row.After.Blocks
}

// keeper is the recorded holder of a row's blocks, unless it is a variable and owners are unknown: a variable holds
// the last block and says nothing about the others.
func (r *Result) keeper(row *Row) *snapshot.Holder {
	if h := holder(r.Last, row); h != nil && (h.Kind != "variable" || row.Owners != 0) {
		return h
	}
	return nil
}

// inVariables reports whether variables are the only recorded holders of all rows.
func (r *Result) inVariables(rows []*Row) bool {
	return !slices.ContainsFunc(rows, func(row *Row) bool { return holder(r.Last, row) == nil || r.keeper(row) != nil })
}

// container is the path of the list or map that holds blocks, without the parts of its elements: "students.best" for
// "students.best[].hidden.Weight".
func container(h *snapshot.Holder) string {
	path, _, _ := strings.Cut(h.Path, "[]")
	return path
}

// containers returns the lists and maps that hold the rows; nil unless there is one for each.
func (r *Result) containers(rows []*Row) []*snapshot.Holder {
	var out []*snapshot.Holder
	for _, row := range rows {
		h := holder(r.Last, row)
		if h == nil || h.Items == 0 && !strings.Contains(h.Path, "[]") {
			return nil
		}
		out = append(out, h)
	}
	return out
}
