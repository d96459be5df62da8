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
)

// joinLists makes one finding of leaks of which the same list, map or graph holds the blocks, where
// they grow in step, or have a block for each of its items: each entry has a part of each line. Of objects on a
// language's heap, whose growth is divided among lines as some windows saw it, neither may show.
func (r *Result) joinLists() {
	r.joinLeaks(func(lead, f *Finding) bool {
		if onLanguageHeap(lead.Rows) && sameOrWithin(lead, f) {
			return true
		}
		return lead.Shape == f.Shape && sameList(lead, f) && (r.inStep(lead.Rows[0], f.Rows[0]) || inEachItem(lead, f))
	})
}

// putNumbersBehind puts the numbers without a stack that the graph of a leak's tensors has behind these: of what leaks they tell nothing.
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

// joinLeaks joins leaks that something holds and that are alike.
func (r *Result) joinLeaks(alike func(lead, f *Finding) bool) {
	var kept []Finding
	var leads []int // of kept; thousands of sites that do not leak are not looked at
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

// join adds a finding's rows to another's. The first row tells the line: it is one of the program's if either has one, and not a
// thread of a library's that receives what the program asked for.
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

// alsoHolds adds a place to the reason that begins so, each once: several stacks have one line.
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

// perItem is the share of a list's items for each of which a finding has a block, for every item
// to have one: what was recorded at some steps is estimated.
const perItem = 0.9

// inEachItem reports whether findings that one list or map holds have a block or more in each of its
// items.
func inEachItem(a, b *Finding) bool {
	items := float64(max(a.Holder.Items, b.Holder.Items))
	return items > 0 && float64(a.After().Blocks) >= perItem*items && float64(b.After().Blocks) >= perItem*items
}

// joinFields makes one finding of leaks in step with one cause, of which lists of one object hold the
// blocks and are as long: a metric lists scores and labels.
func (r *Result) joinFields() {
	r.joinLeaks(func(lead, f *Finding) bool {
		same := lead.Shape == f.Shape && sameObject(lead, f) && r.inStep(lead.Rows[0], f.Rows[0])
		if same && lead.Cause.Last() { // its list's name does not show what it is for
			lead.Cause, lead.CauseWhy, lead.Others = f.Cause, f.CauseWhy, f.Others
		}
		return same
	})
}

// joinCycles makes one finding of leaks in step that one function makes and that nothing but cycles of references holds: an object
// that the collector does not free has several tensors.
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

// sameFunction reports whether the lines of two findings are of one function that was called from the same line.
func sameFunction(a, b *Finding) bool {
	x, y := a.Rows[0].Frames[a.Headline:], b.Rows[0].Frames[b.Headline:]
	return x[0].Function == y[0].Function && x[0].File == y[0].File && slices.Equal(x[1:], y[1:])
}

// joinLines makes one finding of leaks that one line of the program's makes by calling a library: it makes many objects
// for one of the program's, some of them too unevenly to be decided. What comes beside a large leak, as a job's number does, is counted
// with it.
func (r *Result) joinLines() {
	var kept []Finding
	var leads []int // the leaks of kept
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
		lead.Rows = append(lead.Rows, f.Rows...)
		if lead.Unheld() {
			lead.Holder = f.Holder
		}
		r.measure(lead)
	}
	r.Findings = kept
}

// sameLine reports whether a library makes what two findings on one device have for the same call of the program's, and one
// container, or one object in it, holds both. Of objects on a language's heap that may be unknown.
func sameLine(a, b *Finding) bool {
	x, y := a.called(), b.called()
	if onLanguageHeap(a.Rows) && len(y) > 0 { // of a deeper stack the recorder keeps fewer of the callers
		n := min(len(x), len(y))
		x, y = x[:n], y[:n]
	}
	if len(x) == 0 || a.Rows[0].On() != b.Rows[0].On() || !slices.Equal(x, y) {
		return false
	}
	return sameList(a, b) || sameElement(a, b) || onLanguageHeap(a.Rows) && (a.Unheld() || b.Unheld())
}

// sameElement reports whether fields of one object in a container hold the blocks of two findings: of an object in each of its
// items, where only that one was found.
func sameElement(a, b *Finding) bool {
	if a.Holder == nil || b.Holder == nil || a.Holder.Kind != "attribute" || b.Holder.Kind != "attribute" {
		return false
	}
	of := object(a.Holder.Path)
	return strings.Contains(of, "[") && of == object(b.Holder.Path)
}

// Unheld reports whether nobody found what holds a finding's blocks.
func (f *Finding) Unheld() bool { return f.Holder == nil || f.Holder.Path == snapshot.Nameless }

// muchMore is how many times as large a leak is as what comes beside it.
const muchMore = 100

// besideLeak reports whether a finding of objects that nothing was found to hold is little, and comes in step with a leak on
// the same heap, or in the same call: some windows see little of it.
func (r *Result) besideLeak(leak, f *Finding) bool {
	return onLanguageHeap(leak.Rows) && onLanguageHeap(f.Rows) && f.Unheld() && muchMore*f.Growth().Bytes <= leak.Growth().Bytes &&
		(r.inStep(leak.Rows[0], f.Rows[0]) || f.Headline >= 0 && inOneCall(leak.Rows, f))
}

// called are the frames of a finding from the program's line on; nil where no library lies below.
func (f *Finding) called() []snapshot.Frame {
	if f.Headline <= 0 {
		return nil
	}
	return f.Rows[0].Frames[f.Headline:]
}

// sameObject reports whether two findings on one device have one cause, more than that something grows,
// and lists of one object that are as long; or only one list's name tells its cause. Graphs are not joined so: each value that is kept keeps one.
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

// ofScope reports whether a path is of a variable of the program's script or of a function, and no object's field.
func ofScope(path string) bool {
	of := object(path)
	return of == "" || of == "__main__" || strings.HasSuffix(of, "<locals>")
}

// private reports whether a path ends in a field that is none of the program's business: one call to a library adds to
// several.
func private(path string) bool {
	return strings.HasPrefix(path[strings.LastIndexByte(path, '.')+1:], "_")
}

// object is the path of what has a list as its field; "" where it is no field.
func object(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }

// inStep is true for rows that grow in step.
func (r *Result) inStep(a, b *Row) bool {
	of := func(row *Row) *member { return &member{row: row, h: series.HistoryOf(r.Series, r.Series.Site(row))} }
	return inStep(of(a), of(b))
}

// measure sets what a finding tells of all its rows.
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

// sameList is true for findings of one device whose blocks one list, map or graph holds.
func sameList(a, b *Finding) bool {
	return gathers(a.Holder) && gathers(b.Holder) && a.Holder.Path == b.Holder.Path && a.Rows[0].On() == b.Rows[0].On()
}

// sameOrWithin is sameList, or one list or map is a part of the other: the neighbours of a graph's node, of all its neighbours.
func sameOrWithin(a, b *Finding) bool {
	if sameList(a, b) || !gathers(a.Holder) || !gathers(b.Holder) || a.Rows[0].On() != b.Rows[0].On() {
		return sameList(a, b)
	}
	return partOf(a.Holder.Path, b.Holder.Path) || partOf(b.Holder.Path, a.Holder.Path)
}

// partOf reports whether a path is of an element of what another leads to.
func partOf(path, whole string) bool { return strings.HasPrefix(path, whole+"[") }

// joinHeld adds what is inconclusive to a leak of which the same list, map or graph holds
// the blocks: what only grows lets go of neither. Of a graph any part may be the one that
// was seen often enough, such as a batch's labels: its line is chosen from all of it.
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
			} else if largestFirst(f.Rows); f.Rows[0] != lead {
				f.Headline = r.head(f.Rows[:1], tree)
			}
			r.measure(f)
			f.Reasons = append(f.Reasons, fmt.Sprintf("other growth that %s holds is included: %s", f.Holder.Path, moreStacks(f.Joined)))
		}
		kept = append(kept, *f)
	}
	r.Findings = kept
}

// leakOf is the index of a leak that one holder keeps together with what is inconclusive;
// -1 for none.
func (r *Result) leakOf(maybe *Finding) int {
	if maybe.Verdict != Inconclusive || maybe.Bound != nil || maybe.Against != nil || !gathers(maybe.Holder) {
		return -1
	}
	return slices.IndexFunc(r.Findings, func(leak Finding) bool {
		return leak.Verdict == Leak && (sameList(&leak, maybe) || sameLine(&leak, maybe))
	})
}

// gathers is true for a list, a map or a graph.
func gathers(h *snapshot.Holder) bool {
	return h != nil && (h.Items > 0 || h.Kind == "graph" || strings.Contains(h.Path, "[]"))
}

// gathered reports whether one list, map or set holds all of the row's blocks, or items with as many of them each, and has only
// become longer, as far as three snapshots or more tell: it lets go of nothing. What is full lets go of something for each item that it takes.
// Steadily tells that it did so in steady rises, over half of the run or more: its length is known, while blocks of unrecorded steps
// are estimated.
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
