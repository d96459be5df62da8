package baseline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// traces is which functions of a program a run's marks show.
type traces struct {
	marks  int
	looked int                      // of the marks, that tell where the threads were
	held   map[string]int           // marks at which a function's memory was there, by its key
	at     map[string]int           // marks at which a thread was in it
	names  map[string]string        // of functions, by key
	files  map[string]bool          // of the program's own, as they were recorded
	begins map[string]bool          // files in which the program begins, without their folders
	sizes  map[snapshot.Bytes]int64 // live tensors at the first mark, by what they take
	tables map[*snapshot.Stacks]map[snapshot.StackID][]string
}

func tracesOf(run *snapshot.Run) *traces {
	t := &traces{
		marks: len(run.Snapshots), held: make(map[string]int), at: make(map[string]int), names: make(map[string]string),
		files: make(map[string]bool), begins: make(map[string]bool), sizes: sizesOf(run),
		tables: make(map[*snapshot.Stacks]map[snapshot.StackID][]string),
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

// count adds a mark to each function of the program's own on any of some stacks.
func (t *traces) count(to map[string]int, stacks *snapshot.Stacks, ids []snapshot.StackID) {
	known := t.tables[stacks]
	if known == nil {
		known = make(map[snapshot.StackID][]string)
		t.tables[stacks] = known
	}
	counted := make(map[string]bool)
	for _, id := range ids {
		keys, ok := known[id]
		if !ok {
			keys = t.own(stacks.Frames(id))
			known[id] = keys
		}
		for _, key := range keys {
			if !counted[key] {
				counted[key] = true
				to[key]++
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
		if last := name[strings.LastIndexByte(name, '.')+1:]; !own(f) || last == "<module>" || last == "main" {
			continue
		}
		key := name + "\x00" + frame.Base(f.File)
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
			t.names[key] = name
		}
	}
	return keys
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
	shared := 0
	for key := range c.was.names {
		if _, ok := c.is.names[key]; ok {
			shared++
		}
	}
	if shared > 0 && float64(shared) >= enoughAlike*float64(len(c.was.names)) {
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

// reach is the evidence that a run came to the work that leaked before.
type reach struct {
	how   string  // a clause; "" where nothing tells
	share float64 // of the run, that was spent there
}

// reached is how the run after is known to have come to the work that has these frames on its
// stack; of memory without a stack there are none.
func (c *comparison) reached(frames []snapshot.Frame, paced bool) reach {
	keys := c.was.own(frames)
	for i, key := range keys {
		if i > 0 && !c.alike {
			break // a caller may come elsewhere
		}
		if n := c.is.held[key]; n > 0 {
			name := c.was.names[key]
			who := name + " still allocates"
			if i > 0 {
				who = "its caller " + name + " still allocates"
			}
			share := 1.0
			if c.unit != diff.Step {
				share = min(1, float64(n*c.was.marks)/float64(c.is.marks*max(1, c.was.held[key])))
			}
			return reach{fmt.Sprintf("%s (seen at %d of %d recorded points)", who, n, c.is.marks), share}
		}
	}
	elsewhere := false // threads were in it before, and never after
	for i, key := range keys {
		if i > 0 && !c.alike {
			break
		}
		if c.was.at[key] == 0 {
			continue
		}
		if n := c.is.at[key]; n > 0 {
			share := min(1, float64(n)/float64(c.is.looked)*float64(c.was.looked)/float64(c.was.at[key]))
			return reach{fmt.Sprintf("a thread was in %s at %d of %d recorded points", c.was.names[key], n, c.is.looked), share}
		}
		elsewhere = c.is.looked > 0
	}
	switch {
	case !c.alike:
	case c.unit == diff.Step && paced:
		return reach{fmt.Sprintf("it took %.0f steps of the same program", c.length), 1}
	case c.same && !elsewhere:
		return reach{"the same command ended with code 0", 1}
	}
	return reach{}
}
