package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// history is one site over the marks that are compared with like: those of the
// last one's phase, without warm-up, and without what came before the site began
// to rise.
type history struct {
	whole            points // in full, with warm-up
	all              points // those judged, in full
	x, blocks, bytes []float64
	unit             Unit
	test             trend.Test // of the bytes
	covariate        string     // that rises too; "" where none does
	// late: the site was flat until the first of the points, in the middle of the
	// run. tries is then among how many such moments it was looked for.
	late    bool
	tries   float64
	without Without
}

// compared is what the histories of all sites of a series share: the marks that are
// compared, and what the marks tell of them.
type compared struct {
	marks               []int // indices into Series.Marks
	x, elements, length []float64
	instants            []int64
}

// alike are the marks of the last one's phase, with the first.
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

// points are a site's marks in order, column by column.
//
// Bytes are those that the program asked for, where snapshots tell them: by how much an
// allocator rounds up changes with the size. Sizes are what they take with that.
type points struct {
	x, blocks, bytes, sizes, elements, length []float64
	instants                                  []int64 // as of a moment; all 0 for counters
	// counted: what they take is not told, and bytes are blocks.
	counted bool
}

func (p points) from(i int) points {
	return points{p.x[i:], p.blocks[i:], p.bytes[i:], p.sizes[i:], p.elements[i:], p.length[i:], p.instants[i:], p.counted}
}

// only are the points that were kept; all of p where all were, as in most runs.
func (p points) only(kept func(int) bool) points {
	n := 0
	for i := range p.x {
		if kept(i) {
			n++
		}
	}
	if n == len(p.x) {
		return p
	}
	column := func(of []float64) []float64 { return chosen(of, kept, n) }
	return points{
		column(p.x), column(p.blocks), column(p.bytes), column(p.sizes), column(p.elements), column(p.length),
		chosen(p.instants, kept, n), p.counted,
	}
}

// chosen are the n values that are kept.
func chosen[T any](values []T, kept func(int) bool, n int) []T {
	out := make([]T, 0, n)
	for i, v := range values {
		if kept(i) {
			out = append(out, v)
		}
	}
	return out
}

// historyOf is nil where fewer than three marks can be compared.
func historyOf(series *Series, site *SiteSeries) *history {
	if site == nil || len(series.Marks) < 3 {
		return nil
	}
	p := series.pointsOf(site)
	if len(p.x) < 3 {
		return nil
	}
	return series.Without.judgedFrom(p, series.Axis.Unit)
}

// pointsOf are a site's marks that are compared.
func (s *Series) pointsOf(site *SiteSeries) points {
	a := &s.compared
	p := points{x: a.x, elements: a.elements, length: a.length, instants: a.instants, blocks: make([]float64, len(a.x)), sizes: make([]float64, len(a.x))}
	for i, at := range a.marks {
		p.blocks[i], p.sizes[i] = float64(site.Blocks[at]), float64(site.Bytes[at])
	}
	p.bytes = p.sizes
	if site.Device < len(s.Devices) && s.Devices[site.Device].Kind.Unsized() && !slices.ContainsFunc(p.sizes, func(v float64) bool { return v != 0 }) {
		p.bytes, p.counted = p.blocks, true
	}
	if site.rounding != nil {
		p.bytes = make([]float64, len(a.x))
		for i, at := range a.marks {
			p.bytes[i] = p.sizes[i] - float64(site.rounding[at])
		}
	}
	if s.seen != nil {
		p = p.only(func(i int) bool { return s.seen[site.Device][a.marks[i]] })
	}
	return p
}

// judgedFrom is the history of three points or more.
func (w Without) judgedFrom(p points, unit Unit) *history {
	if unit == Second && p.replaced() && !w.has(lastingClue) {
		p.bytes = lasting(p.bytes)
	}
	// The first mark stands before the first step; what comes up to the second,
	// or in a long series in its first tenth, is warm-up.
	h := w.newHistory(p.from(warmUp(len(p.x))), unit)
	if i := h.onset(); i > 0 && !w.has(onsetClue) {
		tries := float64(len(h.x) - len(h.x)/onsetParts - testable + 1)
		h = w.newHistory(h.all.from(i), h.unit)
		h.late, h.tries = true, tries
	}
	h.whole = p
	return h
}

func (w Without) newHistory(p points, unit Unit) *history {
	h := &history{all: p, unit: unit, without: w, tries: 1, test: trend.Test{N: min(len(p.x), windows), P: 1}}
	h.x, h.bytes = trend.Floors(p.x, p.bytes, windows)
	_, h.blocks = trend.Floors(p.x, p.blocks, windows)
	if !h.varies() {
		return h // nothing to test, in most sites of most runs
	}
	h.test = trend.MannKendall(h.bytes)
	for _, c := range []struct {
		name   string
		values []float64
	}{{"the batch size", p.elements}, {"the sequence length", p.length}} {
		_, floors := trend.Floors(p.x, c.values, windows)
		if h.explains(floors) {
			h.covariate = c.name
		}
	}
	return h
}

// onset is the point at which a site that was flat begins to rise, or 0: a leak may
// begin in the middle of a run, where a new epoch, dataset or loss term does. The
// moment is where two half-lines, flat and then rising, fit the floors best.
func (h *history) onset() int {
	if h.bytes[len(h.bytes)-1] <= h.bytes[0] {
		return 0
	}
	at, _ := trend.Hinge(h.x, h.bytes)
	if at < len(h.x)/onsetParts || len(h.x)-at < testable {
		return 0
	}
	rise := h.bytes[len(h.bytes)-1] - h.bytes[at]
	before := h.bytes[:at+1]
	if moved := slices.Max(before) - slices.Min(before); moved > flatShare*rise {
		return 0
	}
	return slices.Index(h.all.x, h.x[at])
}

// began is the moment from which on the points are, where the site began late.
func (h *history) began() moment {
	switch {
	case !h.late || h.unit == Place:
		return nowhen
	case h.unit == Second:
		return moment{snapshot.NoStep, h.all.instants[0]}
	}
	return moment{int64(h.all.x[0]), h.all.instants[0]}
}

// eachStep reports whether there are marks of nearly all steps, so that no ramp that starts
// anew in each epoch is seen once in each and taken for growth.
func (h *history) eachStep() bool {
	x := h.whole.x
	return h.unit == Step && float64(len(x)) > nearlyAll*(x[len(x)-1]-x[0])
}

// replaced reports whether the site has held the same number of blocks ever since it
// held any, at two marks or more; or, after the first part of its time, never more than
// at the mark before, at so many that chance does not do that.
func (h *history) replaced() bool { return h.whole.replaced() }

func (p points) replaced() bool {
	i := slices.IndexFunc(p.blocks, func(n float64) bool { return n > 0 })
	if i < 0 {
		return false
	}
	held := p.blocks[i:]
	later := held[len(held)/settling:]
	falls := slices.IsSortedFunc(later, func(a, b float64) int { return cmp.Compare(b, a) })
	return len(held) > 1 && slices.Min(held) == slices.Max(held) || len(later) >= testable && falls && later[len(later)-1] > 0
}

// lasting is of each value what is left of it at the next two marks: those by the clock lie
// anywhere, and between the making of a larger block and the end of the one before both are there.
func lasting(y []float64) []float64 {
	out := make([]float64, len(y))
	for i := range y {
		out[i] = slices.Min(y[i:min(i+stays, len(y))])
	}
	return out
}

// evenAtMarks reports whether the site gains as many blocks at each mark, all marks lie as far apart, and in all it
// gained fewer than there are steps between two. What gains a block each step and is emptied every few
// steps does so, if its period is a little shorter than that.
func (h *history) evenAtMarks() bool {
	x, y := h.all.x, h.all.blocks
	apart, gained := x[1]-x[0], y[1]-y[0]
	for i := 2; i < len(x); i++ {
		if x[i]-x[i-1] != apart || y[i]-y[i-1] != gained {
			return false
		}
	}
	return h.unit == Step && gained > 0 && y[len(y)-1]-y[0] < apart
}

// explains says whether a covariate rises, and the bytes no faster, but for what
// rounding to whole blocks may add. Of few marks, it must rise in each interval.
func (h *history) explains(covariate []float64) bool {
	y := h.bytes
	few := len(covariate) < testable
	if few && rising(covariate) < len(covariate)-1 {
		return false
	}
	if t := trend.MannKendall(covariate); !few && (t.Z <= 0 || t.P > followsInput) {
		return false
	}
	share := make([]float64, len(y))
	for i := range y {
		if covariate[i] <= 0 {
			return false
		}
		share[i] = y[i] / covariate[i]
	}
	n := len(share)
	if few {
		return share[n-1] <= (1+alikeRates)*share[0]
	}
	if t := trend.MannKendall(share); t.Z <= 0 || t.P > followsInput {
		return true
	}
	// What y rose by more than its first share of the covariate's rise.
	third := n / 3
	first, last := median(share[:third]), median(share[n-third:])
	grown := median(covariate[n-third:]) - median(covariate[:third])
	excess := (last - first) * median(covariate[n-third:])
	block := 0.0
	if blocks := h.blocks[n-1]; blocks >= fewStairs { // fewer are not counted by the covariate
		block = y[n-1] / blocks
	}
	return grown > 0 && excess <= alikeRates*first*grown+block
}

func median(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// p is the site's chance of rising so without a trend; 1 where no test is
// possible or it does not rise. A start that was looked for makes chance likelier
// by the number of starts there were to find.
//
// What climbs all along without ever falling is judged by its ranks. Of all else ranks
// alone are too sure: they are blind to size, and a walk, or a few large steps, must not
// pass for growth, so that the drift must be sure as well. But what adds the same in each
// interval is neither, however few they are.
func (h *history) p() float64 {
	if h == nil || h.test.Z <= 0 || len(h.bytes) < testable {
		return 1
	}
	ranks := h.test.P
	p := ranks
	if !h.without.has(driftClue) {
		p = max(p, 2*min(h.drift(windows), h.drift(windows/2))) // noise may be wider than a window
	}
	if h.same() && !h.without.has(sameClue) {
		p = min(p, evenChance(len(h.bytes)))
	}
	if !h.without.has(climbsClue) && len(h.all.x) >= climbing && trend.Climbs(h.all.x, h.all.bytes, fewStairs, longestGap) {
		if !h.eachStep() {
			ranks = max(ranks, math.Ldexp(1, -rising(h.all.bytes)))
		}
		p = min(p, ranks)
	}
	return min(1, p*h.tries)
}

// drift is the chance that a walk without one rose as far, over at most n windows, which
// are alike wherever in them the floors are.
func (h *history) drift(n int) float64 {
	x, y := trend.Floors(h.all.x, h.all.bytes, n)
	if len(x) < len(h.all.x) {
		return trend.Drift(y)
	}
	return trend.DriftAlong(x, y)
}

// tide is how far a site came and went as slowly as the marks can show: it turned
// seldom, and no interval made up most of the way. Zero where it did not so, or where
// there is a mark of each step.
type tide struct{ blocks, bytes float64 }

func (h *history) tide() tide {
	y := h.all.bytes
	if h.eachStep() || !h.varies() {
		return tide{}
	}
	turns, fell, peak, widest := 0, 0.0, y[0], 0.0
	up := true
	for i := 1; i < len(y); i++ {
		widest = max(widest, math.Abs(y[i]-y[i-1]))
		if y[i] != y[i-1] && (y[i] > y[i-1]) != up {
			turns, up = turns+1, !up
		}
		peak = max(peak, y[i])
		fell = max(fell, peak-y[i])
	}
	width := func(v []float64) float64 { return slices.Max(v) - slices.Min(v) }
	if turns > max(1, len(y)/4) || 2*widest > width(y) || 2*fell < width(y) {
		return tide{}
	}
	return tide{width(h.all.blocks), width(y)}
}

// rides holds for a site that rose no further than any of the tides is wide: seen at a
// few moments, it may be another of them.
func (h *history) rides(tides []tide) bool {
	n := len(h.bytes) - 1
	return slices.ContainsFunc(tides, func(t tide) bool {
		return h.blocks[n]-h.blocks[0] <= t.blocks && h.bytes[n]-h.bytes[0] <= t.bytes
	})
}

// varies holds for a site that does not stay as it is.
func (h *history) varies() bool { return h != nil && slices.Min(h.bytes) < slices.Max(h.bytes) }

// wanders holds for a site of which so many blocks were held at some mark and are gone
// by now that those that stayed may be the rest of a walk without a drift. Such a
// walk, as of a pool whose demand comes and goes, leaves blocks behind whose births are
// as even as those of a leak, so that these prove nothing of it. What is held at every
// mark alike, such as a batch, counts for nothing.
func (h *history) wanders(row *Row) bool {
	gone, stayed := h.gone(row)
	return len(gone) > 0 && slices.Max(gone)-slices.Min(gone) > lent*stayed
}

// moves reports whether the number of blocks has changed since the middle.
func (h *history) moves() bool {
	late := h.whole.blocks[middle(h.whole.x):]
	return slices.Min(late) < slices.Max(late)
}

// gone is how many of the blocks of each mark but the last are gone by now, and stayed
// how many that were born since the first are not; gone is nil where births do not tell.
func (h *history) gone(row *Row) (gone []float64, stayed float64) {
	if h.unit != Step || len(row.births.steps) == 0 || row.births.unknown > 0 {
		return nil, 0
	}
	steps, until := row.births.byStep()
	all := until[len(until)-1]
	older := row.After.Blocks - all
	for i, x := range h.all.x[:len(h.all.x)-1] {
		held := older
		if k, _ := slices.BinarySearch(steps, int64(x)+1); k > 0 { // what is born in step x may be there at its mark
			held += until[k-1]
		}
		// What a recorder saw a part of may stand for more by now than it did then.
		gone = append(gone, max(0, h.all.blocks[i]-float64(held)))
	}
	return gone, float64(all)
}

// rate is the slope of the floors, of what the device gives.
func (h *history) rate() Rate {
	_, sizes := trend.Floors(h.all.x, h.all.sizes, windows)
	return Rate{Unit: h.unit, Blocks: trend.Rate(h.x, h.blocks), Bytes: trend.Rate(h.x, sizes)}
}

// keepsRising says whether floors at x rise to the end, or why not: one jump that
// carries most, or a curve that flattens. Marks may lie ever farther apart, so that the
// middle is that of x.
func (w Without) keepsRising(x, y []float64) (ok bool, why string) {
	n := len(y) - 1
	total := y[n] - y[0]
	if total <= 0 || y[n] <= y[middle(x)] {
		return false, "it rose and stopped: no more at the end than half-way"
	}
	if n < 3 {
		return true, ""
	}
	for i := 1; i <= n; i++ {
		jump, share := y[i]-y[i-1], (x[i]-x[i-1])/(x[n]-x[0])
		if jump > total/2 && jump > steepJump*share*total && !w.has(jumpClue) {
			return false, "one jump carries more than half of its growth"
		}
	}
	late, _ := slices.BinarySearch(x, x[0]+lateBegins*(x[n]-x[0]))
	late = min(late, n-1)
	if (y[n]-y[late])*(x[n]-x[0]) < lateShare*total*(x[n]-x[late]) && !w.has(flatClue) {
		return false, fmt.Sprintf("it flattens: its last %.0f %% grow at less than %.1f of the rate before", 100*(1-lateBegins), lateShare)
	}
	return true, ""
}

// levelsOff reports whether the end adds hardly anything for good, as no stretch as long did since the first rise: what
// fills up along an S has its steepest part late, and does not flatten in the last 40 % as a whole. Floors are of no use,
// since marks may lie ever farther apart, and the last of them ends long before the last mark.
func (h *history) levelsOff() bool {
	x, y, n := h.all.x, slices.Clone(h.all.bytes), len(h.all.x)-1
	for i := n - 1; i >= 0; i-- {
		y[i] = min(y[i], y[i+1])
	}
	length, share := (1-endBegins)*(x[n]-x[0]), endShare*(1-endBegins)*(y[n]-y[0])
	adds := func(from float64) float64 { return trend.At(x, y, from+length) - trend.At(x, y, from) }
	if adds(x[n]-length) >= share {
		return false
	}
	for i := 0; i < n && x[i] <= x[n]-2*length; i++ {
		if y[i+1] > y[0] && adds(x[i]) < share {
			return false
		}
	}
	return true
}

// jumpsLast reports whether the last interval has most of the growth, in several blocks, and more than ever before: by the
// clock a program may have begun its work there.
func (h *history) jumpsLast() bool {
	y, b, n := h.whole.bytes, h.whole.blocks, len(h.whole.bytes)-1
	return 2*(y[n]-y[n-1]) > y[n]-y[0] && b[n]-b[n-1] >= enough && y[n] > slices.Max(y[:n])
}

// middle is the last index up to the middle of the ascending x.
func middle(x []float64) int {
	i, exact := slices.BinarySearch(x, (x[0]+x[len(x)-1])/2)
	if !exact {
		i--
	}
	return i
}

// goesOn says whether the site rises to the end, or why not; stopped tells that the
// time since its last rise alone says so.
func (h *history) goesOn() (ok, stopped bool, why string) {
	idle, stopped := trend.Stopped(h.all.x, h.all.bytes)
	stopped = stopped && !h.without.has(stoppedClue)
	if ok, why = h.without.keepsRising(h.x, h.bytes); !ok && !h.without.has(countClue) && h.bytes[len(h.bytes)-1] > h.bytes[middle(h.x)] {
		// One block that is larger than all others hides what their number does.
		ok, _ = h.without.keepsRising(h.x, h.blocks)
	}
	if ok && stopped {
		return false, true, fmt.Sprintf("it rose and stopped: it is constant in the last %s, and never was for half as long before", h.unit.text(idle))
	}
	return ok, stopped, why
}

func rising(y []float64) int {
	n := 0
	for i := 1; i < len(y); i++ {
		if y[i] > y[i-1] {
			n++
		}
	}
	return n
}

// curve is the rise of the count, or of the bytes where the count stays, from 0 to
// 1; nil for what does not rise.
func (h *history) curve() []float64 {
	y := h.blocks
	if y[len(y)-1] <= y[0] {
		y = h.bytes
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

// risesWith reports whether two sites rise in the same intervals and in no other.
func (h *history) risesWith(other *history) bool {
	a, b := h.whole.bytes, other.whole.bytes
	for i := 1; i < len(a); i++ {
		if (a[i] > a[i-1]) != (b[i] > b[i-1]) {
			return false
		}
	}
	return true
}
