package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// The size of a container's items is known for the newest item only, and without its C memory. So the items explain
// growth of the process from leastTaken of that size up to mostTaken times as much.
const leastTaken, mostTaken = 0.5, 4

// withoutItems splits rows into those of blocks and those that count the items of containers.
func withoutItems(rows []Row) (blocks, items []Row) {
	for _, row := range rows {
		if row.Device.Kind == snapshot.Items {
			items = append(items, row)
		} else {
			blocks = append(blocks, row)
		}
	}
	return blocks, items
}

// fewMarks is how many marks of a container its growth needs to be weak evidence, together with the process's growth.
const fewMarks = 4

// sizeItems calls steady growth of the process that no stack explains a leak if a container grows in proportion, and
// its items may take that much: then the container holds the leak. Of several containers it names the one whose known
// item size is largest, unless one is known to hold a leak: its items' objects are part of that leak.
func (r *Result) sizeItems(rows []Row) {
	if !r.Comparable || len(rows) == 0 {
		return
	}
	r.inHolders(rows)
	r.nameContainers(rows)
	r.nameAlongside(rows)
	r.step(listsGroup, r.joinLists) // with the leaks that this named
	e, lines := r.beyondTensors()
	slight := e == nil
	if slight {
		e = r.slightly()
	}
	if e == nil {
		return
	}
	var fit []Finding
	for i := range rows {
		if f := r.ofItems(&rows[i], e, slight); f != nil {
			fit = append(fit, *f)
		}
	}
	if len(fit) == 0 {
		return
	}
	slices.SortStableFunc(fit, func(a, b Finding) int { return cmp.Compare(b.Holder.Each, a.Holder.Each) })
	holds := max(0, slices.IndexFunc(fit, func(f Finding) bool { return r.leakHeldWith(&f) != nil }))
	f := fit[holds]
	var others []string
	for _, other := range slices.Delete(fit, holds, holds+1) {
		others = append(others, other.Holder.Path)
	}
	grown := *e
	if lead := r.leakHeldWith(&f); lead != nil {
		lead.Nodes = &grown
		r.putBehind(lead, f.Rows, e.Rate)
		lead.Reasons = append(lead.Reasons, f.Reasons[len(f.Reasons)-1])
	} else {
		f.Nodes, f.Rate.Bytes = &grown, e.Rate.Bytes
		f.sized()
		f.RunsOut = r.forecast(f.Rows[0], f.Rate)
		f.Reasons = append(f.Reasons, inStepWith(others)...)
		r.takeIn(&f, f.Holder, r.Series.Site(f.Rows[0]), lines)
		r.Findings = append(r.Findings, f)
	}
	r.Reserves = slices.DeleteFunc(r.Reserves, func(e Reserve) bool { return e.Meter == cause.Host && e.Processes == nil })
}

// inStepWith is the reason that names containers which may hold a leak as well; empty for none.
func inStepWith(paths []string) []string {
	if len(paths) == 0 {
		return nil
	}
	return []string{"other holders grow at the same rate: " + strings.Join(paths, ", ")}
}

// beyondTensors is the growth of the process that no stack explains; nil if there is none. Lines of Python's heap are
// known from the third window on. While none of them is called a leak, they explain nothing: their growth is then
// included, and lines is true.
func (r *Result) beyondTensors() (e *Reserve, lines bool) {
	if e := r.Unexplained(); e != nil || r.Leaks() > 0 {
		return e, false
	}
	_, beyond := r.Series.BeyondTensors()
	x, rest := r.floorsBeyond(beyond)
	if rest == nil || !steadily(r.options.Without, x, rest) {
		return nil, false
	}
	return r.ofProcess(x, rest), true
}

// slightly is growth of the process that is too small a part of it, or too uneven, to be called growth without
// other evidence. It is nil if something leaks.
func (r *Result) slightly() *Reserve {
	if r.Leaks() > 0 {
		return nil
	}
	_, beyond := r.Series.BeyondTensors()
	x, rest := r.floorsBeyond(beyond)
	if rest == nil || rest[len(rest)-1]-rest[0] < leastGrowth || !goesOn(r.options.Without, x, rest) {
		return nil
	}
	return r.ofProcess(x, rest)
}

// ofItems returns a leak of a container's items. It is nil unless the container grows without end, in proportion to
// the process, and its items may take the process's growth. If that growth is slight, it is a possible leak, and the
// size of an item must be known.
func (r *Result) ofItems(row *Row, e *Reserve, slight bool) *Finding {
	h, site := holder(r.Last, row), r.Series.Site(row)
	if h == nil || h.Bound > 0 || site == nil || slight && h.Each == 0 {
		return nil
	}
	j, ok := r.becomesLonger(row, site)
	_, beyond := r.Series.BeyondTensors()
	if !ok || j.Rate.Unit != e.Rate.Unit || !r.inProportion(site, beyond) {
		return nil
	}
	each := e.Rate.Bytes.Value / j.Rate.Blocks.Value
	if !mayTake(h, each) {
		return nil
	}
	r.doubt(&j)
	r.unsure(&j)
	j.Because("the process grows in proportion, by about %s per %s beyond recorded stacks", snapshot.FormatBytes(each), h.Noun())
	if slight && j.Verdict == Leak {
		j.Call(Inconclusive, Weak, "but that is a small part of the process; run longer to decide")
	}
	if h.From != snapshot.NoStack {
		row.Frames = r.Last.Stacks.Frames(h.From)
	} else if e.Line() != nil {
		row.Frames = e.Frames
	}
	f := r.finding(cluster{rows: []*Row{row}, j: j}, frame.Headline(row.Frames))
	return &f
}

// becomesLonger judges a container by its number of items. With few marks, each mark must have more items than the
// one before, and the first mark must lie in the first half of the run. That is weak evidence, together with the
// growth of the process.
func (r *Result) becomesLonger(row *Row, site *SiteSeries) (j judge.Judgement, ok bool) {
	history := series.HistoryOf(r.Series, site)
	if history == nil {
		return j, false
	}
	ask := judge.Question{Row: row, History: history, First: r.First, Last: r.Last, Discovery: history.Chance()}
	j = ask.Judge(r.options.Without)
	x, items := history.Whole.X, history.Whole.Blocks
	if n := len(history.X); n >= series.Testable || len(x) < fewMarks || 2*x[0] > x[len(x)-1] {
		return j, j.Verdict == Leak
	}
	for i := 1; i < len(items); i++ {
		if items[i] <= items[i-1] {
			return j, false
		}
	}
	j.Reasons = nil
	j.Call(Leak, Weak, "their number rose in each interval, but there are few")
	return j, true
}

// inHolders sorts rows in the order of their holders in the last snapshot, which has those with a name in the program
// first.
func (r *Result) inHolders(rows []Row) {
	place := func(row *Row) int {
		return slices.IndexFunc(r.Last.Holders, func(h snapshot.Holder) bool { return row.HangsOn(&h) })
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(place(&a), place(&b)) })
}

// nameContainers finds a holder for leaks on Python's heap without one: a container that the same line extends, in
// proportion to the leak.
func (r *Result) nameContainers(rows []Row) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Verdict != Leak || !onLanguageHeap(f.Rows) || !f.Unheld() || f.Headline < 0 {
			continue
		}
		var found []*snapshot.Holder
		for k := range rows {
			if h := r.filledBy(&rows[k], f); h != nil {
				found = append(found, h)
			}
		}
		if len(found) == 0 {
			continue
		}
		f.Holder, f.filled = found[0], true
		var others []string
		for _, h := range found[1:] {
			others = append(others, h.Path)
		}
		f.Reasons = append(f.Reasons, inStepWith(others)...)
	}
}

// filledBy returns the container whose items a row counts, if a leak's line extends it in proportion to the leak;
// else nil.
func (r *Result) filledBy(row *Row, f *Finding) *snapshot.Holder {
	h, site := holder(r.Last, row), r.Series.Site(row)
	if h == nil || h.Bound > 0 || h.From == snapshot.NoStack || site == nil {
		return nil
	}
	if !r.addsTo(f, h) {
		return nil
	}
	j, ok := r.becomesLonger(row, site)
	if !ok || j.Rate.Unit != f.Rate.Unit || !mayTake(h, f.Rate.Bytes.Value/j.Rate.Blocks.Value) || !r.inProportion(site, r.bytesOf(f)) {
		return nil
	}
	return h
}

// addsTo reports whether a finding's line is the one that a recorder saw extend a container.
func (r *Result) addsTo(f *Finding, h *snapshot.Holder) bool {
	frames := r.Last.Stacks.Frames(h.From)
	at := frame.Headline(frames)
	return at >= 0 && frames[at] == f.Rows[0].Frames[f.Headline]
}

// bytesOf is the bytes of a finding's rows at each mark.
func (r *Result) bytesOf(f *Finding) []float64 {
	return r.sumOf(f, func(s *SiteSeries, mark int) float64 { return float64(s.Bytes[mark]) })
}

// blocksOf is the number of blocks of a finding's rows at each mark.
func (r *Result) blocksOf(f *Finding) []float64 {
	return r.sumOf(f, func(s *SiteSeries, mark int) float64 { return float64(s.Blocks[mark]) })
}

// sumOf is the sum of a figure over the rows of a finding, at each mark.
func (r *Result) sumOf(f *Finding, of func(s *SiteSeries, mark int) float64) []float64 {
	sum := make([]float64, len(r.Series.Marks))
	for _, row := range f.Rows {
		if s := r.Series.Site(row); s != nil {
			for mark := range s.Bytes {
				sum[mark] += of(s, mark)
			}
		}
	}
	return sum
}

// nameNative adds to the only leak that the process's own memory grows in proportion, if the leak is of objects that
// no variable refers to.
func (r *Result) nameNative() {
	e, at := r.Unexplained(), slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Verdict == Leak })
	if e == nil || at < 0 || r.Leaks() > 1 {
		return
	}
	f := &r.Findings[at]
	_, rest := r.Series.Unrecorded()
	if onLanguageHeap(f.Rows) && f.Unheld() && f.Rate.Unit == e.Rate.Unit && r.proportional(r.bytesOf(f), rest) {
		f.native = true
		f.Reasons = append(f.Reasons, fmt.Sprintf("the process's own memory grows in proportion, by another %s a %s: native code that this line calls may hold both",
			snapshot.FormatBytes(e.Rate.Bytes.Value), e.Rate.Unit))
	}
}

// mayTake reports whether an item of a container may take so many bytes.
func mayTake(h *snapshot.Holder, each float64) bool {
	known := float64(h.Each)
	return known == 0 || leastTaken*each <= known && known <= mostTaken*each
}

// inProportion reports whether a container grows in proportion to bytes, given for each mark.
func (r *Result) inProportion(site *SiteSeries, bytes []float64) bool {
	items := make([]float64, len(site.Blocks))
	for i, n := range site.Blocks {
		items[i] = float64(n)
	}
	return r.proportional(items, bytes)
}

// proportional reports whether a and b grow in proportion, from the first mark with both on.
func (r *Result) proportional(a, b []float64) bool {
	known := func(n float64) bool { return n > 0 }
	from, last := max(r.Series.WarmUp(), slices.IndexFunc(a, known), slices.IndexFunc(b, known)), len(b)-1
	if last-from+1 < fewMarks {
		return false
	}
	grownA, grownB := a[last]-a[from], b[last]-b[from]
	if grownA <= 0 || grownB <= 0 {
		return false
	}
	for i := from; i <= last; i++ {
		if math.Abs((a[i]-a[from])/grownA-(b[i]-b[from])/grownB) > alikeCurves {
			return false
		}
	}
	return true
}
