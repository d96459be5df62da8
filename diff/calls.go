package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// few is how many times as large as a small finding in the same call a leak must be to include it without proof that
// they grow in proportion, which few windows cannot show.
const few = 10

// joinCalls joins a leak of objects with a known holder and those without a holder if one call of the program's
// function allocates both and they grow in proportion: a search reaches only some parts of a library's object. A
// finding that is many times as large stays separate: something else may hold it.
func (r *Result) joinCalls(tree *callTree) {
	joined := make(map[int]bool)
	for i := range r.Findings {
		held := &r.Findings[i]
		if !r.ofObjects(held) || held.Unheld() || !gathers(held.Holder) {
			continue
		}
		known, size := r.bytesOf(held), held.Growth().Bytes
		n := len(held.Rows)
		for k := range r.Findings {
			f := &r.Findings[k]
			if r.ofObjects(f) && f.Unheld() && !joined[k] && f.Growth().Bytes <= mostTaken*size && inOneCall(held.Rows[:n], f) && (few*f.Growth().Bytes <= size || r.proportional(known, r.bytesOf(f))) {
				held.Rows = append(held.Rows, f.Rows...)
				joined[k] = true
			}
		}
		if len(held.Rows) > n {
			largestFirst(held.Rows)
			lineFirst(held.Rows)
			held.Headline = r.head(held.Rows[:1], tree)
			r.measure(held)
		}
	}
	var kept []Finding
	for i, f := range r.Findings {
		if !joined[i] {
			kept = append(kept, f)
		}
	}
	r.Findings = kept
}

// ofObjects reports whether a finding is a leak on a language's heap with a line of the program.
func (r *Result) ofObjects(f *Finding) bool {
	return f.Verdict == Leak && f.Against == nil && f.Headline >= 0 && onLanguageHeap(f.Rows)
}

// inOneCall reports whether one call of a function of the program allocates both some of the rows and the finding, at
// the same or different lines.
func inOneCall(rows []*Row, f *Finding) bool {
	mine := f.Rows[0].Frames[f.Headline:]
	return slices.ContainsFunc(rows, func(row *Row) bool {
		at := frame.Headline(row.Frames)
		return at >= 0 && row.On() == f.Rows[0].On() && ofOneCall(row.Frames[at:], mine)
	})
}

// ofOneCall reports whether two lines are in one function, called from the same line, as far as the recorder stored
// the callers.
func ofOneCall(a, b []snapshot.Frame) bool {
	n := min(len(a), len(b))
	return a[0].Function == b[0].Function && a[0].File == b[0].File && slices.Equal(a[1:n], b[1:n])
}
