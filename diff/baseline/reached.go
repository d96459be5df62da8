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

// traces counts the functions of a program that a run's marks show.
type traces struct {
	marks  int
	looked int                       // marks that record where the threads were
	held   map[string]int            // marks at which memory of a function existed, by its key
	at     map[string]int            // marks at which a thread was in a function
	names  map[string]string         // function names by key
	frames map[string]snapshot.Frame // a frame of each function, by key
	files  map[string]bool           // the program's own files, as recorded
	begins map[string]bool           // names, without folders, of files in which the program begins
	sizes  map[snapshot.Bytes]int64  // live tensors at the first mark, by size
	lines  map[string]int            // marks with a line on a stack, by lineKey
	tables map[*snapshot.Stacks]map[snapshot.StackID]place
}

// place has the program's own functions and the lines of one stack.
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
		for _, id := range s.Blocks.Stack { // freed memory also shows who allocated it
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

// Function is a function of a program, wherever its folder is.
type Function struct{ Name, File string }

// FunctionOf is the function of a frame: a native one without parameters, and the file's name without its folder.
func FunctionOf(f snapshot.Frame) Function { return Function{function(f), frame.Base(f.File)} }

// Functions returns the frames of the program's own functions on any stack of a run, of memory or of a thread, one
// for each function, in order. Functions in which a program begins are in every run, and are left out.
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

// count adds one mark to each of the program's functions on any of the stacks, and to each line.
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

// own returns the keys of the program's own functions on a stack, innermost first. Functions in which a program
// begins are left out.
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
		if own(f) && f.File != "" && !strings.HasPrefix(f.File, "<") { // such as <string> and <stdin>
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

// Begins reports whether a program begins in a function with this name.
func Begins(function string) bool {
	last := function[strings.LastIndexByte(function, '.')+1:]
	return last == "<module>" || last == "main"
}

// sizesOf counts the live tensors at a run's first mark by size: most are parameters, which are the same in every run
// of a program.
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

// enoughAlike is the share of functions, or of tensors by size, that two runs of one program must have in common.
const enoughAlike = 0.5

// named reports whether the commands of both runs are known, or need not be: programs that wrote their snapshots
// themselves have none. If only one run's command is missing, a common script on the stacks of both is enough.
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

// known reports whether recorded data shows that both runs are of one program: one of its files, most of its
// functions, or tensors of the same sizes. Equal commands show nothing: python train.py is another program in another
// folder.
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

// share is the share of one map's keys that the other has; 0 for no keys.
func share[V any](was, is map[string]V) float64 {
	n := 0
	for key := range was {
		if _, ok := is[key]; ok {
			n++
		}
	}
	return float64(n) / float64(max(1, len(was)))
}

// reach is the evidence that a run did the work that leaked before.
type reach struct {
	how   string  // a clause; "" if there is no evidence
	why   string  // a clause, why there is no evidence
	share float64 // share of the run that was spent there
}

// reached returns the evidence that the later run did the work with these frames on its stack. If the code is
// unchanged, the very line must have run, since code that is no longer called leaves as little memory as fixed code.
// If the code changed, the line may be gone, and a caller is enough. If neither is known, the function itself must be
// seen.
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

// Reached is how often the run after did the work that leaked, as a share of the run before; why says, as a clause,
// why there is no evidence of it, else "".
func Reached(before, after *diff.Result, f *diff.Finding) (share float64, why string) {
	c := compare(before, after)
	r := c.reached(f.Rows[0].Frames, true)
	if r.how == "" {
		return 0, r.why
	}
	return r.share, ""
}

// around is the evidence of any function on a stack, or that the run did all its steps.
func (c *comparison) around(frames []snapshot.Frame, paced bool) reach {
	keys := c.was.own(frames)
	depth := len(keys)
	if !c.alike {
		depth = 1 // another caller may do other work
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

// allocates is the evidence of memory that the first `depth` functions have allocated.
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

// shareOf is the share of the run spent in work that was seen at `is` recorded points, and at `was` points before.
func (c *comparison) shareOf(is, was int) float64 {
	if c.unit == diff.Step {
		return 1
	}
	return min(1, float64(is*c.was.marks)/float64(c.is.marks*max(1, was)))
}

// within is the evidence of threads in the first `depth` functions. elsewhere reports that threads were in one of
// them before, and never after.
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
