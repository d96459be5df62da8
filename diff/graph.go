package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// joinGraphs makes one leak of the clusters that one autograd graph keeps, where the
// snapshots do not tell owners: PyTorch's do not, and a value that is kept with its
// graph shows there as many stacks that grow at one pace, those of the layers, of the
// loss and of the batch. Clusters that grow in step are one graph's if
//
//   - a recorder found them in the graph of the same value. What it found in variables
//     only belongs to that graph as well: a variable holds one value, not one of each
//     step; or
//   - nobody found what holds them, and they are calls of one function, of at least
//     three stacks, two of them in a model's forward pass. A value that is kept by
//     itself leaves one stack.
//
// What a recorder found in a list is not joined: the list holds it.
func (r *Result) joinGraphs(groups []group) []group {
	type bucket struct {
		device series.DeviceID
		value  string // whose graph it is; "" where that is not known
		call   call   // in that case
	}
	buckets := make(map[bucket][]int)
	var order []bucket
	var loose []int // held by variables
	for i := range groups {
		g := &groups[i]
		b := bucket{device: g.lead.row.On()}
		value, kept := r.graphOf(g.rows)
		switch {
		case g.lead.row.Owners != 0 || kept && value == "":
			continue
		case kept:
			b.value = value
		case g.call.under == nil:
			continue
		default:
			if r.inVariables(g.rows) {
				loose = append(loose, i)
			}
			b.call = g.call
			b.call.frame.Line = 0
		}
		if buckets[b] == nil {
			order = append(order, b)
		}
		buckets[b] = append(buckets[b], i)
	}
	join := func(into int, others []int) {
		for _, i := range others {
			if i != into {
				groups[into].rows = append(groups[into].rows, groups[i].rows...)
				groups[i].rows = nil
			}
		}
		groups[into].graph = !onLanguageHeap(groups[into].rows)
	}
	for _, b := range order {
		if b.value != "" {
			all := r.together(groups, buckets[b][0], slices.Concat(buckets[b], loose))
			join(all[0], all)
		}
	}
	for _, b := range order {
		if b.value != "" || !leavesGraph(groups, buckets[b]) {
			continue
		}
		for _, i := range buckets[b] {
			if groups[i].rows == nil || groups[i].graph {
				continue
			}
			if all := r.together(groups, i, buckets[b]); leavesGraph(groups, all) {
				join(i, all)
			}
		}
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return g.rows == nil })
	for i := range groups {
		if groups[i].graph {
			endFirst(groups[i].rows)
			continue
		}
		largestFirst(groups[i].rows)
	}
	return groups
}

// together are the groups among those at some places, ascending, that grow in step
// with one of them and have its verdict and device; that one is the first. Groups
// that were joined already are left out.
func (r *Result) together(groups []group, lead int, among []int) []int {
	out := []int{lead}
	a := groups[lead].lead
	for _, i := range among {
		b := groups[i].lead
		if i != lead && groups[i].rows != nil && !groups[i].graph && b.j.Verdict == a.j.Verdict && b.row.On() == a.row.On() && inStep(a, b) {
			out = append(out, i)
		}
	}
	return out
}

// leavesGraph reports whether at least three stacks allocate, two of them in a forward pass.
func leavesGraph(groups []group, at []int) bool {
	stacks, forward := 0, 0
	for _, i := range at {
		for _, row := range groups[i].rows {
			stacks++
			if slices.ContainsFunc(row.Frames, frame.InForward) {
				forward++
			}
		}
	}
	return stacks >= 3 && forward >= 2
}

// graphOf is the value whose graph a recorder found to hold some of the rows; "" with
// true where it found that something else keeps one, and "" with false where it found
// no keeper.
func (r *Result) graphOf(rows []*Row) (value string, kept bool) {
	for _, row := range rows {
		h := r.keeper(row)
		if h == nil {
			continue
		}
		kept = true
		if h.Kind == "graph" {
			return h.Path, true
		}
	}
	return "", kept
}

// endFirst puts the end of a graph to the front: the value that is kept, and keeps the
// rest. The program refers to it, where owners are known, and it was computed last of
// all. Where nothing tells when, it is taken for the smallest, as a loss is a single
// number; but labels are small as well, and a forward pass did not compute them.
func endFirst(rows []*Row) {
	largestFirst(rows)
	end := 0
	for i, row := range rows {
		switch last := rows[end].Births.Latest; {
		case ofUser(row) != ofUser(rows[end]):
			if ofUser(row) {
				end = i
			}
		case row.Births.Latest > last:
			end = i
		case row.Births.Latest < last:
		case computed(row) != computed(rows[end]):
			if computed(row) {
				end = i
			}
		case meanSize(row) < meanSize(rows[end]):
			end = i
		}
	}
	row := rows[end]
	copy(rows[1:end+1], rows[:end])
	rows[0] = row
}

// number is the most that a single number takes.
const number = 8

// computed is true for what a forward pass made, and for single numbers.
func computed(row *Row) bool {
	return row.After.Requested <= number*snapshot.Bytes(row.After.Blocks) || slices.ContainsFunc(row.Frames, frame.InForward)
}

func largestFirst(rows []*Row) {
	slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(b.Growth().Bytes, a.Growth().Bytes) })
}

// meanSize is that of a row's blocks now.
func meanSize(row *Row) float64 { return float64(row.After.Bytes) / float64(max(1, row.After.Blocks)) }

// graphHead is the frame of a graph's end in the innermost function of the user's that
// allocated another part of the graph as well: it had the value computed, and did not
// merely compute it. A forward pass returns what it computes by its nature, so that of a
// graph with owners its caller is meant. It is an index into rows[0].Frames; -1 where
// there is none.
func graphHead(rows []*Row) int {
	at := -1
	for _, row := range rows[1:] {
		if i := commonFrame([]*Row{rows[0], row}); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	frames := rows[0].Frames
	for i := at + 1; at >= 0 && rows[0].Owners != 0 && frame.CallsModel(frames[at]) && i < len(frames); i++ {
		if !frame.Library(frames[i]) {
			at = i
		}
	}
	return at
}

// ofUser reports whether the program itself refers to a block of the row.
func ofUser(row *Row) bool { return row.Owners&snapshot.OwnedByUser != 0 }
