package series

import (
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// History is one site over the marks that can be compared: those of the last mark's phase, without warm-up and
// without what came before the site began to rise.
type History struct {
	Whole            Points // all points, with warm-up
	All              Points // all points that are judged; X, Blocks and Bytes are their floors
	X, Blocks, Bytes []float64
	Unit             Unit
	Test             trend.Test // of the bytes
	Covariate        string     // the input that rises as fast; "" for none
	// Late: the site was flat until the first of the points, in the middle of the run. tries is the number of starts
	// among which that one was found.
	Late    bool
	tries   float64
	without Without
}

// compared is what the histories of all sites of a series share: the compared marks, and what they record.
type compared struct {
	marks               []int // indices into Series.Marks
	x, elements, length []float64
	instants            []int64
}

// alike returns the first mark and the marks of the last one's phase.
func (s *Series) alike() compared {
	var a compared
	if len(s.Marks) == 0 {
		return a
	}
	phase := s.Marks[len(s.Marks)-1].Phase
	for i, m := range s.Marks {
		if m.Phase == phase || i == 0 {
			a.marks, a.x = append(a.marks, i), append(a.x, s.Axis.X[i])
			a.instants = append(a.instants, s.instants[i])
			a.elements, a.length = append(a.elements, float64(m.BatchElements)), append(a.length, float64(m.SequenceLength))
		}
	}
	return a
}

// Points are a site's marks in order, column by column.
//
// Bytes are what the program asked for, if the snapshots record it: the rounding of an allocator changes with the
// size. Sizes include the rounding.
type Points struct {
	X, Blocks, Bytes, Sizes, elements, length []float64
	Instants                                  []int64 // Unix microseconds; all 0 for counters
	// Counted: their size is unknown, and Bytes counts blocks.
	Counted bool
}

func (p Points) from(i int) Points {
	return Points{p.X[i:], p.Blocks[i:], p.Bytes[i:], p.Sizes[i:], p.elements[i:], p.length[i:], p.Instants[i:], p.Counted}
}

// only returns the points that kept selects; p itself if that is all, as in most runs.
func (p Points) only(kept func(int) bool) Points {
	n := 0
	for i := range p.X {
		if kept(i) {
			n++
		}
	}
	if n == len(p.X) {
		return p
	}
	column := func(of []float64) []float64 { return chosen(of, kept, n) }
	return Points{
		column(p.X), column(p.Blocks), column(p.Bytes), column(p.Sizes), column(p.elements), column(p.length),
		chosen(p.Instants, kept, n), p.Counted,
	}
}

// chosen returns the n values that kept selects.
func chosen[T any](values []T, kept func(int) bool, n int) []T {
	out := make([]T, 0, n)
	for i, v := range values {
		if kept(i) {
			out = append(out, v)
		}
	}
	return out
}

// HistoryOf returns the history of a site; nil if fewer than three marks can be compared.
func HistoryOf(series *Series, site *SiteSeries) *History {
	if site == nil || len(series.Marks) < 3 {
		return nil
	}
	p := series.pointsOf(site)
	if len(p.X) < 3 {
		return nil
	}
	return series.Without.History(p, series.Axis.Unit)
}

// pointsOf returns a site's points at the compared marks.
func (s *Series) pointsOf(site *SiteSeries) Points {
	a := &s.compared
	p := Points{X: a.x, elements: a.elements, length: a.length, Instants: a.instants, Blocks: make([]float64, len(a.x)), Sizes: make([]float64, len(a.x))}
	for i, at := range a.marks {
		p.Blocks[i], p.Sizes[i] = float64(site.Blocks[at]), float64(site.Bytes[at])
	}
	p.Bytes = p.Sizes
	if site.Device < len(s.Devices) && s.Devices[site.Device].Kind.Unsized() && !slices.ContainsFunc(p.Sizes, func(v float64) bool { return v != 0 }) {
		p.Bytes, p.Counted = p.Blocks, true
	}
	if site.rounding != nil {
		p.Bytes = make([]float64, len(a.x))
		for i, at := range a.marks {
			p.Bytes[i] = p.Sizes[i] - float64(site.rounding[at])
		}
	}
	if s.seen != nil {
		p = p.only(func(i int) bool { return s.seen[site.Device][a.marks[i]] })
	}
	return p
}

// History returns the history of three points or more.
func (w Without) History(p Points, unit Unit) *History {
	if unit != Second || !p.replaced() || w.Has(lastingClue) {
		return w.historyOf(p, unit)
	}
	// Some marks have both the old and the new block. Correct all marks to have both, or all to have one.
	with, without := p, p
	with.Bytes, without.Bytes = reached(p.Bytes), Lasting(p.Bytes)
	both, one := w.historyOf(with, unit), w.historyOf(without, unit)
	if both.tries *= 2; both.Chance() < one.Chance() {
		return both
	}
	return one
}

func (w Without) historyOf(p Points, unit Unit) *History {
	// The first mark is before the first step. Growth up to the second mark, or in the first tenth of a long series,
	// is warm-up.
	h := w.newHistory(p.from(WarmUp(len(p.X))), unit)
	if i := h.onset(); i > 0 && !w.Has(onsetClue) {
		tries := float64(len(h.X) - len(h.X)/onsetParts - Testable + 1)
		h = w.newHistory(h.All.from(i), h.Unit)
		h.Late, h.tries = true, tries
	}
	h.Whole = p
	return h
}

func (w Without) newHistory(p Points, unit Unit) *History {
	h := &History{All: p, Unit: unit, without: w, tries: 1, Test: trend.Test{N: min(len(p.X), Windows), P: 1}}
	h.X, h.Bytes = trend.Floors(p.X, p.Bytes, Windows)
	_, h.Blocks = trend.Floors(p.X, p.Blocks, Windows)
	if !h.Varies() {
		return h // most sites of most runs never vary
	}
	h.Test = trend.MannKendall(h.Bytes)
	for _, c := range []struct {
		name   string
		values []float64
	}{{"the batch size", p.elements}, {"the sequence length", p.length}} {
		_, floors := trend.Floors(p.X, c.values, Windows)
		if h.explains(floors) {
			h.Covariate = c.name
		}
	}
	return h
}

// onset is the index of the point at which a flat site begins to rise, or 0.
func (h *History) onset() int {
	at := Onset(h.X, h.Bytes)
	if at == 0 {
		return 0
	}
	return slices.Index(h.All.X, h.X[at])
}

// Onset is the index of the floor at which a flat series begins to rise, or 0. A leak may begin in the middle of a
// run, with a new epoch, dataset or loss term. The moment is where two lines, one flat and then one rising, fit the
// floors best.
func Onset(x, y []float64) int {
	if y[len(y)-1] <= y[0] {
		return 0
	}
	hinge, _ := trend.Hinge(x, y)
	for at := hinge; at >= max(1, len(x)/onsetParts, hinge-beforeHinge) && len(x)-at >= Testable; at-- {
		if moved := slices.Max(y[:at+1]) - slices.Min(y[:at+1]); moved <= flatShare*(y[len(y)-1]-y[at]) {
			return at
		}
	}
	return 0
}

// Began is the moment at which the judged points begin, if the site began to rise late; else Nowhen.
func (h *History) Began() Moment {
	switch {
	case !h.Late || h.Unit == Place:
		return Nowhen
	case h.Unit == Second:
		return Moment{snapshot.NoStep, h.All.Instants[0]}
	}
	return Moment{int64(h.All.X[0]), h.All.Instants[0]}
}

// EachStep reports whether there are marks of nearly all steps. Then no ramp that starts anew in each epoch can be
// seen once an epoch and pass for growth.
func (h *History) EachStep() bool {
	x := h.Whole.X
	return h.Unit == Step && float64(len(x)) > nearlyAll*(x[len(x)-1]-x[0])
}

// EvenAtMarks reports whether the site gains equally many blocks at each of evenly spaced marks, and in all fewer
// than there are steps between two marks. A site that gains a block each step, and is emptied every few steps, does
// so if its period is a little shorter than that.
func (h *History) EvenAtMarks() bool {
	x, y := h.All.X, h.All.Blocks
	apart, gained := x[1]-x[0], y[1]-y[0]
	for i := 2; i < len(x); i++ {
		if x[i]-x[i-1] != apart || y[i]-y[i-1] != gained {
			return false
		}
	}
	return h.Unit == Step && gained > 0 && y[len(y)-1]-y[0] < apart
}

// Varies reports whether the site's bytes change at all.
func (h *History) Varies() bool { return h != nil && slices.Min(h.Bytes) < slices.Max(h.Bytes) }

// Wanders reports whether so many blocks were live at some mark and have since been freed that the remaining ones may
// be the rest of a walk without drift. Such a walk, for example of a pool with changing demand, leaves blocks whose
// births are as even as a leak's, so their births prove no leak. Blocks that every mark has alike, such as a batch,
// do not count.
func (h *History) Wanders(row *Row) bool {
	gone, stayed := h.gone(row, &row.Births)
	return len(gone) > 0 && slices.Max(gone)-slices.Min(gone) > Lent*stayed
}

// Moves reports whether the number of blocks has varied since the middle.
func (h *History) Moves() bool {
	late := h.Whole.Blocks[middle(h.Whole.X):]
	return slices.Min(late) < slices.Max(late)
}

// gone returns, for each mark but the last, how many of its blocks have since been freed; nil if births do not show
// it. stayed is the number of live blocks with a known birth.
func (h *History) gone(row *Row, b *Births) (gone []float64, stayed float64) {
	if h.Unit != Step || len(b.Steps) == 0 || b.Unknown > 0 {
		return nil, 0
	}
	steps, until := b.byStep()
	all := until[len(until)-1]
	older := row.After.Blocks - all
	for i, x := range h.All.X[:len(h.All.X)-1] {
		held := older
		if k, _ := slices.BinarySearch(steps, int64(x)+1); k > 0 { // a block of step x may exist at the mark of step x
			held += until[k-1]
		}
		// A sampled block may stand for more blocks now than it did then.
		gone = append(gone, max(0, h.All.Blocks[i]-float64(held)))
	}
	return gone, float64(all)
}

// Rate is the slope of the floors; its bytes are those that the device gives, with rounding.
func (h *History) Rate() Rate {
	_, sizes := trend.Floors(h.All.X, h.All.Sizes, Windows)
	return Rate{Unit: h.Unit, Blocks: trend.Rate(h.X, h.Blocks), Bytes: trend.Rate(h.X, sizes)}
}

// Rising counts the values that exceed the one before.
func Rising(y []float64) int {
	n := 0
	for i := 1; i < len(y); i++ {
		if y[i] > y[i-1] {
			n++
		}
	}
	return n
}

// Curve is the rise of the block count, or of the bytes if the count does not rise, scaled from 0 to 1, over the last
// n points or all; nil without a rise.
func (h *History) Curve(n int) []float64 {
	from := max(0, len(h.X)-n)
	y := h.Blocks[from:]
	if y[len(y)-1] <= y[0] {
		y = h.Bytes[from:]
	}
	rise := y[len(y)-1] - y[0]
	if rise <= 0 {
		return nil
	}
	out := make([]float64, len(y))
	for i := range y {
		out[i] = (y[i] - y[0]) / rise
	}
	return out
}

// RisesWith reports whether two sites rise in exactly the same intervals.
func (h *History) RisesWith(other *History) bool {
	a, b := h.Whole.Bytes, other.Whole.Bytes
	for i := 1; i < len(a); i++ {
		if (a[i] > a[i-1]) != (b[i] > b[i-1]) {
			return false
		}
	}
	return true
}
