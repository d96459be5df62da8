package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// alikeEntries is the largest ratio of blocks per item, now to earlier, for the number of items to be what grew.
const alikeEntries = 1.25

// leastEach and mostEach are how many blocks of Python's heap an item of a container may have: the item and its
// parts.
const leastEach, mostEach = 0.5, 8

// fillUp settles the blocks of a container with a bound on its items, such as a deque with a maxlen: below its bound
// it fills, at its bound it is full. It stays a leak if the full container would not fit into memory, or if it grows
// while the number of items stays.
func (r *Result) fillUp(grown []cluster) {
	for i := range grown {
		c := &grown[i]
		if c.j.Verdict != Leak && c.j.Verdict != Inconclusive {
			continue
		}
		h := r.boundedHolder(c.rows)
		if h == nil {
			if g := r.fillsInStep(c); g != nil {
				c.j.Reasons = nil
				c.j.Call(Inconclusive, Weak, "it grows at the rate of the %s %s, which fills up and has %s of %s items; run longer to decide",
					g.Kind, g.Path, snapshot.Grouped(int64(g.Items)), snapshot.Grouped(int64(g.Bound)))
			}
			continue
		}
		name, bound := fmt.Sprintf("the %s %s", h.Kind, h.Path), float64(h.Bound)
		each, items := r.blocksPerItem(c.rows, h)
		since := r.sinceFull(c.rows[0], h)
		if each > 0 && becameMore(since, h.Items) && !c.rows[0].Births.Sampled() {
			c.j.Reasons = nil
			c.j.Call(Inconclusive, Weak, "%s is full, but the blocks that it holds still grew from %.0f to %.0f; run longer to decide", name, since[0], since[len(since)-1])
			continue
		}
		if each > 0 && items >= bound || staysFull(since) {
			c.j.Reasons = nil
			c.j.Call(Bounded, Strong, "%s is full: it holds at most %s items", name, snapshot.Grouped(int64(h.Bound)))
			continue
		}
		if each == 0 {
			continue
		}
		held := c.sum()
		full := snapshot.Bytes(min(float64(held.Bytes)*each*bound/float64(held.Blocks), math.MaxInt64/2))
		room, known := r.headroom(c.rows[0])
		if room.limit > 0 && full-held.Bytes > room.free { // even if others share that memory
			c.j.Because("%s takes up to %s items: these need %s, and %s is free", name, snapshot.Grouped(int64(h.Bound)), full, room.free)
			continue
		}
		text := fmt.Sprintf("%s fills up: it has %s of %s items", name, snapshot.Grouped(int64(items)), snapshot.Grouped(int64(h.Bound)))
		left, far := 0.0, false
		if rate := c.j.Rate; rate.Unit != Place && rate.Blocks.Value > 0 {
			left = math.Ceil((bound - items) * each / rate.Blocks.Value)
			far = left > Farthest*r.Series.Axis.Length()
		}
		switch {
		case far:
			text += fmt.Sprintf(", and will be full after more than %d times this run", Farthest)
		case left > 0:
			text += ", and will be full in about " + c.j.Rate.Unit.Text(left)
		}
		text += fmt.Sprintf("; full, it takes %s", full)
		c.j.Reasons = nil
		if far && !known {
			c.j.Call(Inconclusive, Weak, "%s; whether that fits into memory is unknown", text)
			continue
		}
		c.j.Call(Bounded, Strong, "%s", text)
		r.Notes = append(r.Notes, text)
	}
}

// fillsInStep finds a container below its bound that gains items as fast, per step or second, as a leak on a
// language's heap without a known holder gains blocks, within limits: the blocks may be the container's items, since
// a search does not find all of them. It is nil for none.
func (r *Result) fillsInStep(c *cluster) *snapshot.Holder {
	if c.j.Verdict != Leak || c.j.Rate.Unit == Place || !onLanguageHeap(c.rows) || slices.ContainsFunc(c.rows, func(row *Row) bool { return r.container(row) != nil }) {
		return nil
	}
	for i := range r.Last.Holders {
		h := &r.Last.Holders[i]
		if h.Bound <= h.Items || h.Counted > 0 {
			continue
		}
		for _, seen := range r.indexed().seen[h.Path] {
			length := float64(r.Last.Mark.Step - seen.in.Mark.Step)
			if c.j.Rate.Unit == Second {
				length = r.Last.Mark.Time.Sub(seen.in.Mark.Time).Seconds()
			}
			if items := float64(h.Items - seen.holder.Items); seen.holder.Counted == 0 && items > 0 && length > 0 {
				if rate := c.j.Rate.Blocks; rate.High*length >= leastEach*items && rate.Low*length <= mostEach*items {
					return h
				}
				break
			}
		}
	}
	return nil
}

// sum is the total of a cluster's rows.
func (c *cluster) sum() Tally {
	var t Tally
	for _, row := range c.rows {
		t = t.Plus(row.After)
	}
	return t
}

// boundedHolder is the container with a bound that, in the last snapshot, holds all of the rows, or most objects on a
// language's heap; nil if there is none.
func (r *Result) boundedHolder(rows []*Row) *snapshot.Holder {
	if onLanguageHeap(rows) {
		rows = mostOf(rows)
	}
	h := r.container(rows[0])
	if h == nil || h.Bound == 0 || h.Items == 0 || slices.ContainsFunc(rows, func(row *Row) bool {
		other := r.container(row)
		return other == nil || other.Path != h.Path || !r.mayHold(other, row)
	}) {
		return nil
	}
	return h
}

// blocksPerItem is how many blocks the rows have per item of a bounded holder, and how many items there are. It is
// zero if blocks per item have grown since the container was shorter: then the bound does not limit them.
func (r *Result) blocksPerItem(rows []*Row, h *snapshot.Holder) (each, items float64) {
	now := 0.0
	for _, row := range rows {
		now += float64(row.After.Blocks)
	}
	items = float64(h.Items)
	each = now / items
	if h.Counted > 0 {
		then := r.blocksAt(rows, func(m snapshot.Mark) bool { return m.Step == h.Counted })
		if then == 0 {
			return 0, 0
		}
		each, items = then/items, now*items/then
	}
	if early, late := r.blocksPerMore(rows, h); early > 0 {
		if late > alikeEntries*early || items > alikeEntries*float64(h.Bound) {
			return 0, 0
		}
		return late, items
	}
	then, first := r.countedBefore(rows, h)
	if then > 0 && each > alikeEntries*then/first || items > alikeEntries*float64(h.Bound) {
		return 0, 0
	}
	return each, items
}

// blocksPerMore is how many blocks came with each further item, in the first half of the items that came while the
// rows were known, and in the second half. A line of a language's heap is known late, when the container already has
// items. It is zero if there are too few snapshots.
func (r *Result) blocksPerMore(rows []*Row, h *snapshot.Holder) (early, late float64) {
	if !onLanguageHeap(rows) {
		return 0, 0
	}
	var blocks, items []float64
	var last *snapshot.Snapshot
	for _, seen := range r.indexed().seen[h.Path] {
		if seen.in == last || seen.holder.Counted > 0 {
			continue
		}
		last = seen.in
		if n := r.blocksAt(rows, at(seen.in.Mark)); n > 0 {
			blocks, items = append(blocks, n), append(items, float64(seen.holder.Items))
		}
	}
	if len(items) < series.Testable {
		return 0, 0
	}
	from, to := 1, len(items)-1 // the first may show only a part of the blocks
	half := (items[from] + items[to]) / 2
	middle := slices.IndexFunc(items, func(n float64) bool { return n >= half })
	if items[from] >= items[middle] || items[middle] >= items[to] {
		return 0, 0
	}
	return (blocks[middle] - blocks[from]) / (items[middle] - items[from]), (blocks[to] - blocks[middle]) / (items[to] - items[middle])
}

// full reports whether a container has reached its bound.
func full(h *snapshot.Holder) bool { return h.Bound > 0 && h.Items >= h.Bound && h.Counted == 0 }

// sinceFull returns the blocks that a full container holds, in each snapshot that has it full. Blocks of unwatched
// steps are assigned to lines by size, so one line may have more while another has less; all lines count together.
func (r *Result) sinceFull(row *Row, h *snapshot.Holder) []float64 {
	if !full(h) {
		return nil
	}
	i := r.indexed()
	hang := i.rows[onContainer{h.Path, row.On()}]
	var blocks []float64
	var last *snapshot.Snapshot // a container is listed once for each line whose blocks it holds
	for _, seen := range i.seen[h.Path] {
		if seen.in != last && full(seen.holder) {
			blocks, last = append(blocks, r.blocksAt(hang, at(seen.in.Mark))), seen.in
		}
	}
	return blocks
}

// staysFull reports whether the blocks of a container have not become more since it was first seen full, at least three snapshots ago; or
// not in the second half of that time. In the first, blocks of unwatched steps may have been another line's.
func staysFull(blocks []float64) bool {
	last := len(blocks) - 1
	half := last / 2
	return last >= 3 && blocks[0] > 0 && (blocks[last] <= blocks[0] || half >= 3 && blocks[last] <= slices.Max(blocks[half:last]))
}

// becameMore reports whether a full container held more at each of the later snapshots than at any earlier one, by
// more than one item, which the running step may hold in addition.
func becameMore(blocks []float64, items int) bool {
	last := len(blocks) - 1
	if last < 1 {
		return false
	}
	half := (last + 1) / 2
	return slices.Min(blocks[half:]) > slices.Max(blocks[:half]) && blocks[last]-blocks[0] > math.Ceil(blocks[0]/float64(items))
}

// longer is the least ratio by which a container must have grown to show the blocks per item: beside a short one,
// what the running step holds weighs too much.
const longer = 1.5

// countedBefore is how many blocks the rows had when a holder was last shorter by the factor longer, or else at the
// first snapshot with the holder, and its number of items then; zero for none.
func (r *Result) countedBefore(rows []*Row, h *snapshot.Holder) (blocks, items float64) {
	var in, last *snapshot.Snapshot
	for _, seen := range r.indexed().seen[h.Path] {
		g := seen.holder
		if seen.in == last || g.Items == 0 || g.Counted > 0 {
			continue
		}
		last = seen.in
		if items == 0 || longer*float64(g.Items) <= float64(h.Items) {
			items, in = float64(g.Items), seen.in
		}
	}
	if items == 0 {
		return 0, 0
	}
	return r.blocksAt(rows, at(in.Mark)), items
}

// at returns a function that recognises a mark.
func at(mark snapshot.Mark) func(snapshot.Mark) bool {
	return func(m snapshot.Mark) bool { return m.Step == mark.Step && m.Time.Equal(mark.Time) }
}

// blocksAt is the number of the rows' blocks at a mark; 0 if the series lacks the mark.
func (r *Result) blocksAt(rows []*Row, at func(snapshot.Mark) bool) float64 {
	sum, i := int64(0), slices.IndexFunc(r.Series.Marks, at)
	for _, row := range rows {
		if site := r.Series.Site(row); site != nil && i >= 0 {
			sum += site.Blocks[i]
		}
	}
	return float64(sum)
}

// takesIn reports whether a container has grown by at least half, with about as many of the row's blocks per item as
// before.
func (r *Result) takesIn(row *Row, h *snapshot.Holder) bool {
	then, first := r.countedBefore([]*Row{row}, h)
	now, items := float64(row.After.Blocks), float64(h.Items)
	if then == 0 || h.Counted > 0 || items < longer*first {
		return false
	}
	change := now / items / (then / first)
	return change <= alikeEntries && 1/change <= alikeEntries
}
