package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// joinGraphs joins the clusters of one autograd graph into one leak, for snapshots without owners, such as PyTorch's.
// A value that is retained with its graph shows there as many stacks that grow at one pace: those of the layers, the
// loss and the batch. Clusters that grow in step are one graph's if
//
//   - a recorder found them in the graph of the same value. What it found only in variables belongs to that graph,
//     too, since a variable holds one value, not one of each step; or
//   - no holder was found, and they are calls of one function, with at least three stacks, two of them in a model's
//     forward pass. A value that is retained alone has one stack.
//
// What a recorder found in a list is not joined: the list holds it.
func (r *Result) joinGraphs(groups []group) []group {
	type bucket struct {
		device series.DeviceID
		value  string // the value that retains the graph; "" if unknown
		call   call   // if the value is unknown
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

// together returns the groups, among those with these ascending indices, that grow in step with the group lead and
// have its verdict and device, and lead first. Groups that were already joined are left out.
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

// leavesGraph reports whether the groups have at least three stacks, two of them in a forward pass.
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

// graphOf is the value whose graph holds some of the rows, as a recorder found. With "", kept reports whether another
// holder was found.
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

// endFirst moves the end of a graph to the front: the retained value, which holds the rest. If owners are known, it
// is what the program refers to; else what was allocated last. If birth times do not decide, it is the smallest
// block, since a loss is a single number. Labels are small as well, but no forward pass computes them.
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

// number is the largest size of a single number, in bytes.
const number = 8

// computed reports whether a forward pass allocated the row, or its blocks are single numbers.
func computed(row *Row) bool {
	return row.After.Requested <= number*snapshot.Bytes(row.After.Blocks) || slices.ContainsFunc(row.Frames, frame.InForward)
}

func largestFirst(rows []*Row) {
	slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(b.Growth().Bytes, a.Growth().Bytes) })
}

// meanSize is the mean size of a row's blocks now.
func meanSize(row *Row) float64 { return float64(row.After.Bytes) / float64(max(1, row.After.Blocks)) }

// graphHead is the frame of a graph's end in the innermost function of the user's that also allocated another part of
// the graph: that function requested the value, and did not only compute it. A forward pass always returns what it
// computes, so for a graph with owners its caller is taken. It is an index into rows[0].Frames; -1 for none.
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
