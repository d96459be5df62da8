package diff

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// joinLists joins leaks whose blocks the same list, map or graph holds into one finding, if they grow in step, or
// have a block for each of its items: then each item has a part from each line. Objects on a language's heap need
// neither, since their growth is divided among lines by what some windows showed.
func (r *Result) joinLists() {
	r.joinLeaks(func(lead, f *Finding) bool {
		if onLanguageHeap(lead.Rows) && sameOrWithin(lead, f) {
			return true
		}
		return lead.Shape == f.Shape && sameList(lead, f) && (r.inStep(lead.Rows[0], f.Rows[0]) || inEachItem(lead, f))
	})
}

// putNumbersBehind moves leaks without the user's line to Behind a leak that the same container or graph holds and
// that is at least muchMore times as large, such as the single numbers in a graph: they show nothing about the cause.
func (r *Result) putNumbersBehind() {
	var kept []Finding
	for _, f := range r.Findings {
		at := -1
		if f.Verdict == Leak && f.Headline < 0 {
			at = slices.IndexFunc(kept, func(lead Finding) bool {
				return lead.Verdict == Leak && lead.Headline >= 0 && lead.Against == nil && sameList(&lead, &f) && muchMore*f.Growth().Bytes <= lead.Growth().Bytes
			})
		}
		if at < 0 {
			kept = append(kept, f)
			continue
		}
		r.putBehind(&kept[at], f.Rows, f.Rate)
	}
	r.Findings = kept
}

// joinLeaks joins leaks that have a holder and are alike.
func (r *Result) joinLeaks(alike func(lead, f *Finding) bool) {
	var kept []Finding
	var leads []int // indices into kept, so that thousands of sites that do not leak are skipped
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || f.Holder == nil {
			kept = append(kept, *f)
			continue
		}
		at := slices.IndexFunc(leads, func(i int) bool {
			lead := &kept[i]
			return lead.Against == nil && alike(lead, f)
		})
		if at < 0 {
			leads = append(leads, len(kept))
			kept = append(kept, *f)
			continue
		}
		r.join(&kept[leads[at]], f)
	}
	r.Findings = kept
}

// join adds a finding's rows to another's. The first row gives the line: one of the program's, if either finding has
// one, rather than that of a library's thread that receives what the program asked for.
func (r *Result) join(lead, f *Finding) {
	also := place(f)
	if lead.Headline < 0 && f.Headline >= 0 {
		also = place(lead)
		lead.Rows, lead.Headline = slices.Concat(f.Rows, lead.Rows), f.Headline
	} else {
		lead.Rows = append(lead.Rows, f.Rows...)
	}
	r.measure(lead)
	lead.Reasons = alsoHolds(lead.Reasons, f.Holder.Path+" also holds memory from ", also)
}

// alsoHolds adds a place to the reason with this beginning, once for each place: several stacks may have one line.
func alsoHolds(reasons []string, begins, place string) []string {
	at := slices.IndexFunc(reasons, func(why string) bool { return strings.HasPrefix(why, begins) })
	switch {
	case at < 0:
		return append(reasons, begins+place)
	case !slices.Contains(strings.Split(strings.TrimPrefix(reasons[at], begins), ", "), place):
		reasons[at] += ", " + place
	}
	return reasons
}

// perItem is the share of a list's items for which a finding must have blocks to count as having one for each: blocks
// of unwatched steps are estimated.
const perItem = 0.9

// inEachItem reports whether findings that one list or map holds both have about a block or more for each of its
// items.
func inEachItem(a, b *Finding) bool {
	items := float64(max(a.Holder.Items, b.Holder.Items))
	return items > 0 && float64(a.After().Blocks) >= perItem*items && float64(b.After().Blocks) >= perItem*items
}

// joinFields joins leaks in step with one cause, if lists of one object hold their blocks and have equal length: a
// metric may list scores and labels.
func (r *Result) joinFields() {
	apart := len(r.Findings)
	r.joinLeaks(func(lead, f *Finding) bool {
		return lead.Shape == f.Shape && sameObject(lead, f) && r.inStep(lead.Rows[0], f.Rows[0])
	})
	if len(r.Findings) < apart { // the name of one list may show what the other is for, and the size of its blocks not
		r.explain(r.Findings)
	}
}

// joinCycles joins leaks in step that one function allocates and that only reference cycles hold: one object that the
// collector does not free has several tensors.
func (r *Result) joinCycles() {
	cyclic := func(f *Finding) bool {
		return f.Verdict == Leak && f.Holder == nil && f.Against == nil && f.Cause != nil && f.Cause.ID == "reference-cycle" && f.Headline >= 0
	}
	var kept []Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		at := -1
		if cyclic(f) {
			at = slices.IndexFunc(kept, func(lead Finding) bool {
				return cyclic(&lead) && lead.Rows[0].On() == f.Rows[0].On() && sameFunction(&lead, f) && r.inStep(lead.Rows[0], f.Rows[0])
			})
		}
		if at < 0 {
			kept = append(kept, *f)
			continue
		}
		kept[at].Rows = append(kept[at].Rows, f.Rows...)
		r.measure(&kept[at])
	}
	r.Findings = kept
}

// sameFunction reports whether the lines of two findings are in one function, called from the same line.
func sameFunction(a, b *Finding) bool {
	x, y := a.Rows[0].Frames[a.Headline:], b.Rows[0].Frames[b.Headline:]
	return x[0].Function == y[0].Function && x[0].File == y[0].File && slices.Equal(x[1:], y[1:])
}

// joinLines joins leaks that one line of the program causes by calling a library into one finding. The library
// allocates many objects for one of the program's, some of them too unevenly to decide alone. A small finding in step
// with a large leak, such as a job's number, is included in it.
func (r *Result) joinLines() {
	var kept []Finding
	var leads []int // indices of the leaks in kept
	for i := range r.Findings {
		f := &r.Findings[i]
		at := -1
		doubtful := f.Verdict == Inconclusive && f.Bound == nil && f.Against == nil && onLanguageHeap(f.Rows)
		if f.Verdict == Leak || doubtful {
			at = slices.IndexFunc(leads, func(at int) bool {
				lead := &kept[at]
				return lead.Against == nil && (sameLine(lead, f) || !doubtful && r.besideLeak(lead, f))
			})
		}
		if at < 0 {
			if f.Verdict == Leak {
				leads = append(leads, len(kept))
			}
			kept = append(kept, *f)
			continue
		}
		lead := &kept[leads[at]]
		larger := lead.Growth().Bytes
		lead.Rows = append(lead.Rows, f.Rows...)
		if lead.Unheld() || !f.Unheld() && f.Growth().Bytes > larger {
			lead.Holder = f.Holder
		}
		r.measure(lead)
	}
	r.Findings = kept
}

// sameLine reports whether a library allocates the blocks of two findings on one device for the same call of the
// program, and one container, or one object in it, holds both. For objects on a language's heap the holder may be
// unknown.
func sameLine(a, b *Finding) bool {
	x, y := a.called(), b.called()
	if onLanguageHeap(a.Rows) && len(y) > 0 { // the recorder keeps fewer callers of a deeper stack
		n := min(len(x), len(y))
		x, y = x[:n], y[:n]
	}
	if len(x) == 0 || a.Rows[0].On() != b.Rows[0].On() || !slices.Equal(x, y) {
		return false
	}
	return sameList(a, b) || sameElement(a, b) || onLanguageHeap(a.Rows) && (a.Unheld() || b.Unheld() || passing(a) || passing(b))
}

// passing reports whether a finding's container has few items for its many blocks, as a queue that a walk met the newest ones in.
func passing(f *Finding) bool {
	return f.Holder.Items > 0 && muchMore*int64(f.Holder.Items) < f.After().Blocks
}

// sameElement reports whether fields of one object in a container hold the blocks of two findings. The container may
// have such an object in each item, of which only this one was found.
func sameElement(a, b *Finding) bool {
	if a.Holder == nil || b.Holder == nil || a.Holder.Kind != "attribute" || b.Holder.Kind != "attribute" {
		return false
	}
	of := object(a.Holder.Path)
	return strings.Contains(of, "[") && of == object(b.Holder.Path)
}

// Unheld reports whether no holder of a finding's blocks is known.
func (f *Finding) Unheld() bool { return f.Holder == nil || f.Holder.Path == snapshot.Nameless }

// muchMore is how many times as large as a minor finding a leak must be to include it.
const muchMore = 100

// besideLeak reports whether a finding of objects without a known holder is small, and grows in step with a leak on
// the same heap, or in the same call: only some windows may show it.
func (r *Result) besideLeak(leak, f *Finding) bool {
	return onLanguageHeap(leak.Rows) && onLanguageHeap(f.Rows) && f.Unheld() && muchMore*f.Growth().Bytes <= leak.Growth().Bytes &&
		(r.inStep(leak.Rows[0], f.Rows[0]) || f.Headline >= 0 && inOneCall(leak.Rows, f))
}

// called returns the frames of a finding from the program's line outward; nil if no library was called.
func (f *Finding) called() []snapshot.Frame {
	if f.Headline <= 0 {
		return nil
	}
	return f.Rows[0].Frames[f.Headline:]
}

// sameObject reports whether two findings on one device have one specific cause, and lists of equal length of one
// object hold them; or the name of only one list shows its cause. Graphs are not joined this way: each retained value
// has its own.
func sameObject(a, b *Finding) bool {
	if a.graph || b.graph || (a.Owners()|b.Owners())&snapshot.OwnedByTape != 0 || a.Cause == nil || b.Cause == nil || a.Holder == nil || b.Holder == nil {
		return false
	}
	switch untold := a.Cause.Last() && b.Cause.Last(); {
	case untold && !(private(a.Holder.Path) && private(b.Holder.Path)):
		return false
	case a.Cause != b.Cause && (a.Cause.Last() == b.Cause.Last() || ofScope(a.Holder.Path)):
		return false
	}
	return a.Rows[0].On() == b.Rows[0].On() && a.Holder.Items > 0 && a.Holder.Items == b.Holder.Items && object(a.Holder.Path) == object(b.Holder.Path)
}

// ofScope reports whether a path is a variable of the program's script or of a function, and not a field of an
// object.
func ofScope(path string) bool {
	of := object(path)
	return of == "" || of == "__main__" || strings.HasSuffix(of, "<locals>")
}

// private reports whether a path ends in a private field: one call to a library may add to several.
func private(path string) bool {
	return strings.HasPrefix(path[strings.LastIndexByte(path, '.')+1:], "_")
}

// object is the path of the object whose field a path names; "" if it names no field.
func object(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// inStep reports whether two rows grow in step.
func (r *Result) inStep(a, b *Row) bool {
	of := func(row *Row) *member { return &member{row: row, h: series.HistoryOf(r.Series, r.Series.Site(row))} }
	return inStep(of(a), of(b))
}

// measure updates the figures of a finding from all its rows.
func (r *Result) measure(f *Finding) {
	f.Rate = r.rateOf(f.Rows)
	if f.Pace != nil {
		f.Pace = r.pace(f.Rows, &judge.Judgement{Rate: f.Rate, Shape: f.Shape})
	}
	if f.RunsOut != nil {
		f.RunsOut = r.forecast(f.Rows[0], f.Rate)
	}
}

// place is a finding's line, for a reason.
func place(f *Finding) string {
	frames := f.Rows[0].Frames
	if f.Headline < 0 {
		return "another stack"
	}
	return fmt.Sprintf("%s:%d", path.Base(frames[f.Headline].File), frames[f.Headline].Line)
}

// sameList reports whether one list, map or graph holds the blocks of two findings of one device.
func sameList(a, b *Finding) bool {
	return gathers(a.Holder) && gathers(b.Holder) && a.Holder.Path == b.Holder.Path && a.Rows[0].On() == b.Rows[0].On()
}

// sameOrWithin is sameList, or one list or map is part of the other: such as the neighbours of one graph node, and of
// all nodes.
func sameOrWithin(a, b *Finding) bool {
	if sameList(a, b) || !gathers(a.Holder) || !gathers(b.Holder) || a.Rows[0].On() != b.Rows[0].On() {
		return sameList(a, b)
	}
	return partOf(a.Holder.Path, b.Holder.Path) || partOf(b.Holder.Path, a.Holder.Path)
}

// partOf reports whether path names an element of whole.
func partOf(path, whole string) bool { return strings.HasPrefix(path, whole+"[") }

// joinHeld adds inconclusive findings to a leak if the same list, map or graph holds their blocks: what only grows
// frees neither. In a graph, the part that was observed often enough may be any, such as a batch's labels, so its
// line is chosen from all parts.
func (r *Result) joinHeld(tree *callTree) {
	var kept []Finding
	joined := make(map[int]bool)
	for i := range r.Findings {
		maybe := &r.Findings[i]
		if at := r.leakOf(maybe); at >= 0 {
			leak := &r.Findings[at]
			leak.Rows, leak.Joined = append(leak.Rows, maybe.Rows...), leak.Joined+len(maybe.Rows)
			joined[i] = true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		if joined[i] {
			continue
		}
		if f.Joined > 0 {
			f.Pace = nil
			lead := f.Rows[0]
			if f.Holder.Kind == "graph" {
				f.graph = true
				endFirst(f.Rows)
				f.Headline = r.headOf(&cluster{rows: f.Rows, graph: true}, tree)
			} else if lineFirstOf(f.Rows); f.Rows[0] != lead {
				f.Headline = r.head(f.Rows[:1], tree)
			}
			r.measure(f)
			f.Reasons = append(f.Reasons, fmt.Sprintf("other growth that %s holds is included: %s", f.Holder.Path, moreStacks(f.Joined)))
		}
		kept = append(kept, *f)
	}
	r.Findings = kept
}

// lineFirstOf sorts rows by growth, and moves the largest one with a line of the program to the front.
func lineFirstOf(rows []*Row) {
	largestFirst(rows)
	if at := slices.IndexFunc(rows, func(row *Row) bool { return frame.Headline(row.Frames) >= 0 }); at > 0 {
		row := rows[at]
		copy(rows[1:], rows[:at])
		rows[0] = row
	}
}

// leakOf is the index of a leak with the same holder as an inconclusive finding; -1 for none.
func (r *Result) leakOf(maybe *Finding) int {
	if maybe.Verdict != Inconclusive || maybe.Bound != nil || maybe.Against != nil || !gathers(maybe.Holder) {
		return -1
	}
	return slices.IndexFunc(r.Findings, func(leak Finding) bool {
		return leak.Verdict == Leak && (sameList(&leak, maybe) || sameLine(&leak, maybe))
	})
}

// gathers reports whether a holder is a list, a map or a graph.
func gathers(h *snapshot.Holder) bool {
	return h != nil && (h.Items > 0 || h.Kind == "graph" || strings.Contains(h.Path, "[]"))
}

// gathered reports whether one list, map or set holds all of the row's blocks, or equally many for each of its items,
// and only grew, over at least three snapshots: it frees nothing. A full container is excluded, since it frees an
// item for each new one. steadily reports that it grew in steady rises, over half of the run or more. The container's
// length is exact, while blocks of unrecorded steps are estimated.
func (r *Result) gathered(row *Row) (gathers, steadily bool) {
	h := holder(r.Last, row)
	if h == nil || full(h) || !slices.Contains([]string{"list", "map", "dict", "set", "deque"}, h.Kind) || h.Items == 0 {
		return false, false
	}
	site, each := r.Series.Site(row), row.After.Blocks/int64(h.Items)
	if each > 0 && each*int64(h.Items) != row.After.Blocks || each > 1 && site == nil {
		return false, false
	}
	var seen, rises []float64 // places on the axis
	first, items := 0, 0
	for _, s := range r.run.Snapshots {
		i := slices.IndexFunc(s.Holders, func(g snapshot.Holder) bool { return g.Path == h.Path && g.Kind == h.Kind })
		if i < 0 {
			continue
		}
		n := s.Holders[i].Items
		if len(seen) == 0 {
			first, items = n, n
		} else if n < items {
			return false, false
		}
		mark := slices.IndexFunc(r.Series.Marks, at(s.Mark))
		if mark < 0 {
			continue
		}
		if each > 1 && site.Blocks[mark] != each*int64(n) {
			return false, false
		}
		x := r.Series.Axis.X[mark]
		if n > items {
			rises = append(rises, x)
		}
		seen, items = append(seen, x), n
	}
	if len(seen) < 3 || first >= h.Items {
		return false, false
	}
	all, from, to := r.Series.Axis.X, seen[0], seen[len(seen)-1]
	return true, 2*(to-from) >= all[len(all)-1]-all[0] && len(rises) >= series.SteadySteps && trend.LargestGap(rises, from, to) <= series.LongestGap
}

// moreStacks is "1 more stack".
func moreStacks(n int) string {
	if n == 1 {
		return "1 more stack"
	}
	return fmt.Sprintf("%d more stacks", n)
}
