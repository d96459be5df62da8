package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// followInput withdraws leaks of blocks that larger ones replace if the input's size is unknown, and blocks of
// another line are replaced at the very same marks, or the larger blocks have new content. A longer batch or sequence
// enlarges all blocks that are computed from it.
func (r *Result) followInput(open []member) {
	if slices.ContainsFunc(r.Series.Marks, func(m snapshot.Mark) bool { return m.BatchElements > 0 || m.SequenceLength > 0 }) {
		return
	}
	for i := range open {
		a := &open[i]
		if a.j.Verdict != Leak || a.j.Shape != BytesOnly {
			continue
		}
		var why string
		switch {
		case slices.ContainsFunc(r.Last.Anew, func(id snapshot.StackID) bool { return r.Last.Stacks.Hash(id) == a.row.Hash }):
			why = "each block is replaced by a larger one with new content"
		case r.Intermediate > 0 && slices.ContainsFunc(open, func(b member) bool {
			return b.j.Shape == BytesOnly && lineOf(b.row) != lineOf(a.row) && a.h.RisesWith(b.h)
		}):
			why = "blocks of this line and of others are replaced by larger ones at the same time"
		default:
			continue
		}
		a.j.Reasons = nil
		a.j.Call(Inconclusive, Weak, "%s, as with ever longer batches or sequences; keep their length constant to decide", why)
	}
}

// lineOf is the line to look at in a row; the zero frame for none.
func lineOf(row *Row) snapshot.Frame {
	at := frame.Headline(row.Frames)
	if at < 0 {
		return snapshot.Frame{}
	}
	return snapshot.Frame{File: row.Frames[at].File, Line: row.Frames[at].Line}
}
