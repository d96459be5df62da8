package diff

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// holdSegments names the holder of leaking segments of shared memory: a container that becomes longer in proportion, and holds
// what the same line made on the language's heap, their handles. The handles' leak is a part of theirs.
func (r *Result) holdSegments() {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || !ofSegments(f) || f.Headline < 0 {
			continue
		}
		held := r.heldBytes(f.Rows)
		for k := range r.Rows {
			row := &r.Rows[k]
			if !unheld(f) || !madeWith(f, row) {
				continue
			}
			if h := r.keeper(row); h != nil && h.Items > 0 && r.longerWith(h, held) {
				f.Holder = h
			}
		}
	}
	behind := make(map[*Row]bool)
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || !ofSegments(f) || f.Headline < 0 || unheld(f) {
			continue
		}
		for k := range r.Findings {
			handles := &r.Findings[k]
			if handles.Verdict == Leak && handles.Holder != nil && handles.Holder.Path == f.Holder.Path && madeWith(f, handles.Rows[0]) {
				f.Behind = append(f.Behind, handles.Rows...)
				f.Reasons = append(f.Reasons, fmt.Sprintf("%s holds their handles, %s", f.Holder.Path, handles.After().Bytes))
				behind[handles.Rows[0]] = true
			}
		}
	}
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return behind[f.Rows[0]] })
}

// ofSegments reports whether a finding is of segments of shared memory.
func ofSegments(f *Finding) bool { return f.Rows[0].Device.Kind == snapshot.SharedMemory }

// madeWith reports whether a row is of the language's heap, and the line that made a finding's segments is in its stack.
func madeWith(f *Finding, row *Row) bool {
	return onLanguageHeap([]*Row{row}) && slices.Contains(row.Frames, f.Rows[0].Frames[f.Headline])
}
