package diff

import (
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// alikeEntries is by how much more blocks an item may have than earlier in the run, for the
// number of items to be what grew.
const alikeEntries = 1.25

// leastEach and mostEach are how many blocks of Python's heap an item of a container may have: itself, and what it consists of.
const leastEach, mostEach = 0.5, 8

// fillUp settles what a container holds that takes no more than so many items, such as a deque
// with a maxlen: below its bound it fills, and at its bound it has filled. What would not fit into
// memory by then goes on to leak, and so does what grows while the number of items stays.
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
		if room.limit > 0 && full-held.Bytes > room.free { // though others share it
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

// fillsInStep finds a container below its bound that gains items as fast as a leak gains blocks, as far as that is known, by the step or the clock. The leak is on a language's heap and
// has no known holder: its blocks may be the container's items, since a search does not find all of them. Nil for none.
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

// sum is what all of a cluster's rows hold.
func (c *cluster) sum() Tally {
	var t Tally
	for _, row := range c.rows {
		t = t.Plus(row.After)
	}
	return t
}

// boundedHolder is the one container with a bound that the last snapshot has as the holder of all
// the rows, or of most objects on a language's heap; nil where there is none.
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

// blocksPerItem is how many blocks the rows have for each item of a bounded holder, and how many items
// there are. It is zero where that number has grown since the container was shorter: the
// bound is of something else then.
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

// blocksPerMore is how many blocks came with each further item, in the first half of the items that came while the rows were known, and in
// the second. A line of a language's heap is known late, when the container has items already. Zero where too few snapshots tell.
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
	from, to := 1, len(items)-1 // the first may tell a part
	half := (items[from] + items[to]) / 2
	middle := slices.IndexFunc(items, func(n float64) bool { return n >= half })
	if items[from] >= items[middle] || items[middle] >= items[to] {
		return 0, 0
	}
	return (blocks[middle] - blocks[from]) / (items[middle] - items[from]), (blocks[to] - blocks[middle]) / (items[to] - items[middle])
}

// full reports whether a container takes no more items.
func full(h *snapshot.Holder) bool { return h.Bound > 0 && h.Items >= h.Bound && h.Counted == 0 }

// sinceFull are the blocks that hang on a full container at each snapshot that saw it full. Blocks of steps that were not
// watched are assigned to lines by size, so that one line may have more while another has less.
func (r *Result) sinceFull(row *Row, h *snapshot.Holder) []float64 {
	if !full(h) {
		return nil
	}
	i := r.indexed()
	hang := i.rows[onContainer{h.Path, row.On()}]
	var blocks []float64
	var last *snapshot.Snapshot // each line that a container keeps has it as its holder
	for _, seen := range i.seen[h.Path] {
		if seen.in != last && full(seen.holder) {
			blocks, last = append(blocks, r.blocksAt(hang, at(seen.in.Mark))), seen.in
		}
	}
	return blocks
}

// staysFull reports whether all that hangs on a container has not become more since it was first seen full, three
// snapshots ago or more.
func staysFull(blocks []float64) bool {
	last := len(blocks) - 1
	return last >= 3 && blocks[0] > 0 && blocks[last] <= blocks[0]
}

// becameMore reports whether what hangs on a full container was more at each of the later snapshots than at any earlier one,
// and by more than an item, which the step that runs may hold beside it.
func becameMore(blocks []float64, items int) bool {
	last := len(blocks) - 1
	if last < 1 {
		return false
	}
	half := (last + 1) / 2
	return slices.Min(blocks[half:]) > slices.Max(blocks[:half]) && blocks[last]-blocks[0] > math.Ceil(blocks[0]/float64(items))
}

// longer is by how much a container must have become longer to tell what comes with an item: what the
// step that runs holds beside a short one is much.
const longer = 1.5

// countedBefore is how many blocks the rows had when a holder was last so much shorter, or else at the first snapshot
// that tells of it, and how many items the holder had; zero for none.
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

// at tells a mark from others.
func at(mark snapshot.Mark) func(snapshot.Mark) bool {
	return func(m snapshot.Mark) bool { return m.Step == mark.Step && m.Time.Equal(mark.Time) }
}

// blocksAt are those of rows at a mark; 0 where the series does not have it.
func (r *Result) blocksAt(rows []*Row, at func(snapshot.Mark) bool) float64 {
	sum, i := int64(0), slices.IndexFunc(r.Series.Marks, at)
	for _, row := range rows {
		if site := r.Series.Site(row); site != nil && i >= 0 {
			sum += site.Blocks[i]
		}
	}
	return float64(sum)
}

// takesIn reports whether a container has become longer by half at least, and has as many of a row's blocks for
// each item as it had.
func (r *Result) takesIn(row *Row, h *snapshot.Holder) bool {
	then, first := r.countedBefore([]*Row{row}, h)
	now, items := float64(row.After.Blocks), float64(h.Items)
	if then == 0 || h.Counted > 0 || items < longer*first {
		return false
	}
	change := now / items / (then / first)
	return change <= alikeEntries && 1/change <= alikeEntries
}
