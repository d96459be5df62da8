package baseline

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// traces is which functions of a program a run's marks show.
type traces struct {
	marks  int
	looked int                       // of the marks, that tell where the threads were
	held   map[string]int            // marks at which a function's memory was there, by its key
	at     map[string]int            // marks at which a thread was in it
	names  map[string]string         // of functions, by key
	frames map[string]snapshot.Frame // one of each function's, by key
	files  map[string]bool           // of the program's own, as they were recorded
	begins map[string]bool           // files in which the program begins, without their folders
	sizes  map[snapshot.Bytes]int64  // live tensors at the first mark, by what they take
	lines  map[string]int            // marks at which a line of a function's was on a stack, by lineKey
	tables map[*snapshot.Stacks]map[snapshot.StackID]place
}

// place is what the program's own of one stack: functions, and lines.
type place struct{ functions, lines []string }

func tracesOf(run *snapshot.Run) *traces {
	t := &traces{
		marks: len(run.Snapshots), held: make(map[string]int), at: make(map[string]int), names: make(map[string]string), frames: make(map[string]snapshot.Frame),
		files: make(map[string]bool), begins: make(map[string]bool), sizes: sizesOf(run),
		lines: make(map[string]int), tables: make(map[*snapshot.Stacks]map[snapshot.StackID]place),
	}
	for _, s := range run.Snapshots {
		if s.Stacks == nil {
			continue
		}
		var held []snapshot.StackID
		there := make(map[snapshot.StackID]bool)
		for _, id := range s.Blocks.Stack { // memory that was freed tells as well who took it
			if id != snapshot.NoStack && !there[id] {
				there[id] = true
				held = append(held, id)
			}
		}
		t.count(t.held, s.Stacks, held)
		if len(s.At) > 0 {
			t.looked++
			t.count(t.at, s.Stacks, s.At)
		}
	}
	if c := run.Series; c != nil && len(c.Points) > t.marks && len(c.Sites) > 0 {
		t.marks, t.held = len(c.Points), make(map[string]int)
		for _, p := range c.Points {
			var held []snapshot.StackID
			for _, n := range p.Sites {
				held = append(held, c.Sites[n.Site].Stack)
			}
			t.count(t.held, c.Stacks, held)
		}
	}
	return t
}

// Function is one of a program's, wherever its folder lay.
type Function struct{ Name, File string }

// FunctionOf is a frame's: of a native one without parameters, and the name of the file without its folder.
func FunctionOf(f snapshot.Frame) Function { return Function{function(f), frame.Base(f.File)} }

// Functions are frames of the program's own functions on any stack of a run, of memory or of a thread, one for each in
// order. Where a program begins is in every run of it, and is left out.
func Functions(run *snapshot.Run) []snapshot.Frame {
	t := tracesOf(run)
	keys := make(map[string]bool)
	for _, of := range []map[string]int{t.held, t.at} {
		for key := range of {
			keys[key] = true
		}
	}
	var out []snapshot.Frame
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, t.frames[key])
	}
	return out
}

// count adds a mark to each function of the program's own on any of some stacks.
func (t *traces) count(to map[string]int, stacks *snapshot.Stacks, ids []snapshot.StackID) {
	known := t.tables[stacks]
	if known == nil {
		known = make(map[snapshot.StackID]place)
		t.tables[stacks] = known
	}
	counted := make(map[string]bool)
	for _, id := range ids {
		at, ok := known[id]
		if !ok {
			frames := stacks.Frames(id)
			at.functions = t.own(frames)
			for _, f := range frames {
				at.lines = append(at.lines, lineKey(f, f.Line))
			}
			known[id] = at
		}
		for _, key := range at.functions {
			if !counted[key] {
				counted[key] = true
				to[key]++
			}
		}
		for _, key := range at.lines {
			if !counted[key] {
				counted[key] = true
				t.lines[key]++
			}
		}
	}
}

// own are the keys of a stack's functions of the program's own, innermost first. Where a program
// begins is in every run of it, and is left out.
func (t *traces) own(frames []snapshot.Frame) []string {
	own := frame.Own(frames)
	var keys []string
	for _, f := range slices.Backward(frames) {
		if named := f.File != "" && !strings.HasPrefix(f.File, "<"); named && own(f) {
			if function(f) == "<module>" {
				t.begins[frame.Base(f.File)] = true
			}
			break
		}
	}
	for _, f := range frames {
		if own(f) && f.File != "" && !strings.HasPrefix(f.File, "<") { // as <string> and <stdin> are
			t.files[f.File] = true
		}
		name := function(f)
		if !own(f) || Begins(name) {
			continue
		}
		key := name + "\x00" + frame.Base(f.File)
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
			t.names[key] = name
			t.frames[key] = f
		}
	}
	return keys
}

// Begins reports whether a program begins in a function of this name.
func Begins(function string) bool {
	last := function[strings.LastIndexByte(function, '.')+1:]
	return last == "<module>" || last == "main"
}

// sizesOf counts the tensors that live at a run's first mark by what they take: most are
// parameters, which are the same in every run of a program.
func sizesOf(run *snapshot.Run) map[snapshot.Bytes]int64 {
	sizes := make(map[snapshot.Bytes]int64)
	if len(run.Snapshots) == 0 {
		return sizes
	}
	s := run.Snapshots[0]
	b := &s.Blocks
	for row, state := range b.State {
		kind := s.Devices[s.Segments[b.Segment[row]].Device].Kind
		if n := b.CountOf(row); state == snapshot.Live && kind != snapshot.PythonHeap && kind != snapshot.Process && n > 0 {
			sizes[b.Size[row]/snapshot.Bytes(n)] += n
		}
	}
	return sizes
}

// enoughAlike is the share of one run's functions, or of its tensors by size, that the other
// has where the two are of one program.
const enoughAlike = 0.5

// named reports whether commands tell of both runs what they ran, or need not: programs that wrote
// their snapshots themselves have none, and of a run whose command was left out the script does on
// the stacks of both.
func (c *comparison) named() bool {
	before, after := c.before.Run(), c.after.Run()
	told := func(r *snapshot.Run) bool { return r.Info.Workload != "" || len(r.Info.Command) > 0 }
	left := func(r *snapshot.Run) bool { return r.Info.Workload == "" && r.Info.Command == nil }
	switch {
	case before.Unnamed || after.Unnamed:
		return false
	case told(before) && told(after), left(before) && left(after):
		return true
	}
	for file := range c.was.begins {
		if c.is.begins[file] {
			return true
		}
	}
	return false
}

// known reports whether something recorded shows that both runs are of one program: a file of
// its own, most of its functions, or tensors of the same sizes. Equal commands show nothing:
// python train.py is another program in another folder.
func (c *comparison) known() bool {
	if w := c.before.Run().Info.Workload; w != "" {
		return w == c.after.Run().Info.Workload
	}
	for file := range c.was.files {
		if c.is.files[file] {
			return true
		}
	}
	if share(c.was.names, c.is.names) >= enoughAlike || share(c.codeWas.functions(), c.codeIs.functions()) >= enoughAlike {
		return true
	}
	var common, before, after int64
	for size, n := range c.was.sizes {
		common, before = common+min(n, c.is.sizes[size]), before+n
	}
	for _, n := range c.is.sizes {
		after += n
	}
	return common > 0 && float64(common) >= enoughAlike*float64(max(before, after))
}

// share is which part of one map's keys the other has; 0 of none.
func share[V any](was, is map[string]V) float64 {
	n := 0
	for key := range was {
		if _, ok := is[key]; ok {
			n++
		}
	}
	return float64(n) / float64(max(1, len(was)))
}

// reach is the evidence that a run came to the work that leaked before.
type reach struct {
	how   string  // a clause; "" where nothing tells
	why   string  // a clause, why nothing does
	share float64 // of the run, that was spent there
}

// reached is how the run after is known to have come to the work that has these frames on its stack. Of code that did not
// change, the very line must have run: what is no longer called leaves as little behind as what is mended. Of code that
// changed the line may be gone, and that a caller ran is enough. Where neither is known, the function itself must be seen.
func (c *comparison) reached(frames []snapshot.Frame, paced bool) reach {
	of := c.compareCode(frames)
	switch {
	case of.change == changed:
		r := c.around(frames, paced)
		if r.how != "" {
			r.how = of.name + " was changed, and " + r.how
		}
		return r
	case of.looks > 0:
		return reach{how: fmt.Sprintf("%s ran in %d of %d watched steps", of.name, of.looks, c.codeIs.looks), share: of.share}
	case of.held > 0:
		return reach{how: fmt.Sprintf("%s still allocates (seen at %d of %d recorded points)", of.name, of.held, c.is.marks), share: c.shareOf(of.held, of.held)}
	case of.change == unchanged && c.codeWas.python != "":
		if len(frames) == 0 {
			return reach{why: "its code is the same, and nothing shows that it did the work in which the process grew"}
		}
		if c.codeIs.looks == 0 {
			return reach{why: "its code is the same, and which lines ran was not recorded"}
		}
		return reach{why: fmt.Sprintf("not reached: its code is the same, and %s ran in none of %d watched steps", of.name, c.codeIs.looks)}
	}
	if r := c.allocates(c.was.own(frames), 1); r.how != "" {
		return r
	}
	if r, _ := c.within(c.was.own(frames), 1); r.how != "" {
		return r
	}
	return reach{why: "nothing shows that it reached the code that leaked, or that the code was changed"}
}

// Reached is how often the run after came to the line that leaked before, as a share of how often the run before did; why says
// why nothing shows that it did, a clause, else "".
func Reached(before, after *diff.Result, f *diff.Finding) (share float64, why string) {
	c := compare(before, after)
	r := c.reached(f.Rows[0].Frames, true)
	if r.how == "" {
		return 0, r.why
	}
	return r.share, ""
}

// around is the evidence of any function on a stack, or that the run went through all its steps.
func (c *comparison) around(frames []snapshot.Frame, paced bool) reach {
	keys := c.was.own(frames)
	depth := len(keys)
	if !c.alike {
		depth = 1 // a caller may come elsewhere
	}
	if r := c.allocates(keys, depth); r.how != "" {
		return r
	}
	r, elsewhere := c.within(keys, depth)
	switch {
	case r.how != "":
	case !c.alike:
		r.why = "it was run with other arguments, and nothing shows that it reached the code that leaked"
	case c.unit == diff.Step && paced:
		r = reach{how: fmt.Sprintf("it took %.0f steps of the same program", c.length), share: 1}
	case c.same && !elsewhere:
		r = reach{how: "the same command ended with code 0", share: 1}
	default:
		r.why = "nothing shows that it reached the code that leaked"
	}
	return r
}

// allocates is the evidence of memory that the first of some functions have taken.
func (c *comparison) allocates(keys []string, depth int) reach {
	for i, key := range keys[:min(depth, len(keys))] {
		if n := c.is.held[key]; n > 0 {
			name := c.was.names[key]
			who := name + " still allocates"
			if i > 0 {
				who = "its caller " + name + " still allocates"
			}
			return reach{how: fmt.Sprintf("%s (seen at %d of %d recorded points)", who, n, c.is.marks), share: c.shareOf(n, c.was.held[key])}
		}
	}
	return reach{}
}

// shareOf is which part of the run was spent at what was there at so many recorded points, and at so many before.
func (c *comparison) shareOf(is, was int) float64 {
	if c.unit == diff.Step {
		return 1
	}
	return min(1, float64(is*c.was.marks)/float64(c.is.marks*max(1, was)))
}

// within is the evidence of threads that were in the first of some functions; and whether they were before, and never after.
func (c *comparison) within(keys []string, depth int) (r reach, elsewhere bool) {
	for _, key := range keys[:min(depth, len(keys))] {
		if c.was.at[key] == 0 {
			continue
		}
		if n := c.is.at[key]; n > 0 {
			share := min(1, float64(n)/float64(c.is.looked)*float64(c.was.looked)/float64(c.was.at[key]))
			return reach{how: fmt.Sprintf("a thread was in %s at %d of %d recorded points", c.was.names[key], n, c.is.looked), share: share}, false
		}
		elsewhere = c.is.looked > 0
	}
	return reach{}, elsewhere
}
