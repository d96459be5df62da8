package diff

import (
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// holdSegments finds the holder of leaking segments of shared memory: a container that grows in proportion, and holds
// what the same line allocated on the language's heap, the handles. The leak of the handles is then added to that of
// the segments.
func (r *Result) holdSegments() {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || !ofSegments(f) || f.Headline < 0 {
			continue
		}
		held := r.heldBytes(f.Rows)
		for k := range r.Rows {
			row := &r.Rows[k]
			if !f.Unheld() || !madeWith(f, row) {
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
		if f.Verdict != Leak || !ofSegments(f) || f.Headline < 0 || f.Unheld() {
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

// tensorsInSegments reports whether growing shared memory consists of tensors that leak in recorded processes: these
// grew by at least half as much, and the private memory there did not. It adds that to the reasons of their findings.
func (r *Result) tensorsInSegments(e *Reserve) bool {
	var of []*Finding
	all := snapshot.Bytes(0)
	look := func(in *Result, pid, alike int) {
		n, leaked := len(of), snapshot.Bytes(0)
		for i := range in.Findings {
			if f := &in.Findings[i]; f.Verdict == Leak && f.Rows[0].Device.Kind == snapshot.CPU {
				of, leaked = append(of, f), leaked+f.Growth().Bytes
			}
		}
		if private, known := r.privateGrowthOf(pid, in.First.Mark.Time); !known || 2*private > leaked {
			of, leaked = of[:n], 0
		}
		all += snapshot.Bytes(alike) * leaked
	}
	look(r, r.Last.PID, 1)
	for _, c := range r.Children {
		look(c.Result, c.PID, c.Alike)
	}
	if 2*all < e.Growth {
		return false
	}
	where := "it is shared memory"
	if e.Processes.Segments > 1 {
		where += "; there were up to " + e.Processes.files()
	}
	for _, f := range of {
		f.Reasons = append(f.Reasons, where)
	}
	return true
}

// privateGrowthOf is the growth of a process's private memory since a moment.
func (r *Result) privateGrowthOf(pid int, since time.Time) (grown snapshot.Bytes, known bool) {
	p := r.run.Tree.ProcessAt(pid, since)
	if p == nil {
		return 0, false
	}
	p = withoutEnd(p)
	first := slices.IndexFunc(p.Points, func(at snapshot.ProcessPoint) bool { return !at.Time.Before(since) })
	if first < 0 {
		return 0, false
	}
	return p.Points[len(p.Points)-1].Anonymous - p.Points[first].Anonymous, true
}

// ofSegments reports whether a finding consists of segments of shared memory.
func ofSegments(f *Finding) bool { return f.Rows[0].Device.Kind == snapshot.SharedMemory }

// madeWith reports whether a row is on the language's heap, and the line that allocated a finding's segments is in
// its stack.
func madeWith(f *Finding, row *Row) bool {
	return onLanguageHeap([]*Row{row}) && slices.Contains(row.Frames, f.Rows[0].Frames[f.Headline])
}
