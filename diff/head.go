package diff

import (
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// head is the frame of the largest row's stack that a person should look at: an index into rows[0].Frames, or -1 if
// no frame is the user's.
//
// It is the innermost call of the user's that all rows share, unless it is known that the blocks were only allocated
// there, and a caller retained them:
//
//   - parts: the rows are fields of the objects in one list. The line that leaks is the one that created the object,
//     so the call of its constructor. A function that they share by several of its lines is the constructor itself,
//     which allocated the parts;
//   - keeper: a method of a type filled a list that is a field of the type. This does not apply if an operation of
//     the user's own allocated, whose caller is the autodiff engine, a function literal, or a method of the list's
//     elements: it retains its own blocks;
//   - graph: the functions that computed what only the autograd graph holds have released it. It lives for a retained
//     value that was computed from it. A forward pass is skipped, since it always returns what it computes;
//   - helper: the same calls also allocate healthy memory, so their caller makes the difference.
func (r *Result) head(rows []*Row, tree *callTree) int {
	frames := rows[0].Frames
	if onLanguageHeap(rows) {
		rows = mostOf(rows)
	}
	at := commonFrame(rows)
	if inner := frame.Headline(frames); at < 0 || onLanguageHeap(rows) && inner < at && frame.InLoop(frames[inner:at]) {
		return inner
	}
	own, isOwn := tree.ownFrame(rows[0]), frame.Own(frames)
	outward := func() bool {
		for i := at + 1; i <= own; i++ {
			if isOwn(frames[i]) {
				at = i
				return true
			}
		}
		return false
	}
	w := r.options.Without
	holders := r.containers(rows)
	if !w.Has(partsLine) && partsOfOne(holders) && sameCall(rows, at) {
		outward()
	}
	switch {
	case !w.Has(keeperLine) && holders != nil && !frame.IsCustomOperation(frames, at) && !frame.IsLiteral(frames[at]):
		if i := methodOf(keeperType(holders[0]), frames[:own+1], at); i >= 0 && !byElement(holders[0], frames[at], frames[i]) {
			at = i
		}
	case heldByGraph(rows):
		for !w.Has(forwardLine) && frame.CallsModel(frames[at]) && outward() {
		}
	}
	together := func(row *Row) bool {
		h := holder(r.Last, row)
		return h != nil && len(holders) > 0 && container(h) == container(holders[0])
	}
	for !w.Has(helperLine) && tree.servesHealthy(rows[0].On(), frames[:at+1], together) && outward() {
	}
	return at
}

// most is the share of a finding's growth on a language's heap that decides its line.
const most = 0.8

// mostOf returns the largest rows that together have most of the growth; rows are in that order. An object also
// allocates keys, numbers and arrays of pointers, at lines around the one that allocates its bytes.
func mostOf(rows []*Row) []*Row {
	var all, sum Tally
	for _, row := range rows {
		all = all.Plus(row.Growth())
	}
	for i, row := range rows {
		if sum = sum.Plus(row.Growth()); float64(sum.Bytes) >= most*float64(all.Bytes) {
			return rows[:i+1]
		}
	}
	return rows
}

// lineFirst moves the largest row of the line with most growth to the front, for objects on a language's heap: many
// stacks may lie below one line. The line that runs an event loop does not count, unless there is no other.
func lineFirst(rows []*Row) {
	if !onLanguageHeap(rows) {
		return
	}
	held := make(map[snapshot.Frame]snapshot.Bytes)
	line := func(row *Row) (f snapshot.Frame) {
		if i := frame.Headline(row.Frames); i >= 0 && !frame.InLoop(row.Frames[:i]) {
			f = row.Frames[i]
		}
		return f
	}
	for _, row := range rows {
		held[line(row)] += row.Growth().Bytes
	}
	if len(held) > 1 {
		held[snapshot.Frame{}] = 0
	}
	first := 0
	for i, row := range rows {
		if held[line(row)] > held[line(rows[first])] {
			first = i
		}
	}
	row := rows[first]
	copy(rows[1:first+1], rows[:first])
	rows[0] = row
}

// commonFrame is the index in the first row's stack of the innermost call of the
// user's that all rows share, by function where the line differs; -1 for none.
func commonFrame(rows []*Row) int {
	frames := rows[0].Frames
	shared := len(frames)
	for _, row := range rows[1:] {
		shared = min(shared, commonSuffix(frames, row.Frames))
	}
	from := len(frames) - shared
	if from > 0 && frame.Own(frames)(frames[from-1]) && !slices.ContainsFunc(rows, func(row *Row) bool {
		i := len(row.Frames) - shared - 1
		return i < 0 || row.Frames[i].Function != frames[from-1].Function || row.Frames[i].File != frames[from-1].File
	}) {
		return from - 1
	}
	if i := frame.Headline(frames[from:]); i >= 0 {
		return from + i
	}
	return -1
}

// sameCall reports whether the stacks of all rows include the first one's frames from this index outward, with the
// same lines.
func sameCall(rows []*Row, at int) bool {
	outer := rows[0].Frames[at:]
	return !slices.ContainsFunc(rows, func(row *Row) bool { return commonSuffix(row.Frames, outer) < len(outer) })
}

// commonSuffix counts the outermost frames that two stacks share.
func commonSuffix(a, b []snapshot.Frame) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}

// partsOfOne reports whether the holders are several fields of the elements of one list or map:
// "students.best[].hidden.Weight" and "students.best[].hidden.Bias".
func partsOfOne(holders []*snapshot.Holder) bool {
	differ := false
	for _, h := range holders {
		if container(h) != container(holders[0]) || !strings.Contains(h.Path, "[].") {
			return false
		}
		differ = differ || h.Path != holders[0].Path
	}
	return differ
}

// keeperType is the type that has the list as a field; "" if the path is longer, since its names are then fields, not
// types.
func keeperType(h *snapshot.Holder) string {
	name, field, ok := strings.Cut(container(h), ".")
	if !ok || strings.Contains(field, ".") {
		return ""
	}
	return name
}

// methodOf is the index of the first frame, from at outward, that is a method of the type; -1 for none.
func methodOf(name string, frames []snapshot.Frame, at int) int {
	if name == "" {
		return -1
	}
	for i := at; i < len(frames); i++ {
		if slices.Contains(strings.FieldsFunc(frames[i].Function, func(r rune) bool { return strings.ContainsRune(".*()", r) }), name) {
			return i
		}
	}
	return -1
}

// heldByGraph reports whether only the autograd graph holds the first row.
func heldByGraph(rows []*Row) bool { return rows[0].Owners&^snapshot.Lost == snapshot.OwnedByTape }

// method matches the receiver of a method in Go or Python: "softCap" of "workload.(*softCap).Forward".
var method = regexp.MustCompile(`(?:^|[./*(])([A-Za-z_]\w*)\)?\.[A-Za-z_]\w*$`)

// byElement reports whether a list's elements hold the blocks in a field of their own, and a method of another type,
// presumably the elements', allocated them in the file of the list's type.
func byElement(h *snapshot.Holder, allocates, keeps snapshot.Frame) bool {
	if !strings.Contains(h.Path, "[].") || allocates.File != keeps.File {
		return false
	}
	// Go writes a method's receiver in brackets, and a function's package without.
	bracketed := func(f snapshot.Frame) bool { return strings.Contains(f.Function, "(") }
	m := method.FindStringSubmatch(allocates.Function)
	return m != nil && m[1] != keeperType(h) && bracketed(allocates) == bracketed(keeps)
}

// servesHealthy reports whether the user's calls among the frames, innermost first, also allocate healthy memory.
// These rows do not count: rows that are held together with the leak; rows on another device, since a line that
// creates a tensor creates objects, too; and rows without a caller, such as the function that "def f(): …" creates on
// the leaking line, if functions are unknown.
func (t *callTree) servesHealthy(on series.DeviceID, frames []snapshot.Frame, leftOut func(*Row) bool) bool {
	mine := userFrames(frames)
	if len(mine) == 0 {
		return false
	}
	return slices.ContainsFunc(t.byOrigin[mine[0]], func(row *Row) bool {
		its := userFrames(row.Frames)
		if row.On() != on || leftOut(row) || len(its) < len(mine) {
			return false
		}
		called := len(its) > len(mine) || row.Frames[len(row.Frames)-1] != its[len(its)-1]
		return called && slices.Equal(its[:len(mine)], mine)
	})
}

func userFrames(frames []snapshot.Frame) []snapshot.Frame {
	return slices.DeleteFunc(slices.Clone(frames), frame.Library)
}
