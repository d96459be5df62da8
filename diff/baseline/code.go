package baseline

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// change says whether the code on a stack changed.
type change int

const (
	unknown   change = iota // not recorded both before and after
	unchanged               // no function of the program on the stack differs
	changed
)

// code is what a run records of the program's own code.
type code struct {
	python string
	looks  int
	files  map[string]map[string]snapshot.Function
	named  map[string]string // the file by its name without folders; "" for several
}

func codeOf(info *snapshot.Info) *code {
	c := &code{info.Code.Python, info.Code.Looks, make(map[string]map[string]snapshot.Function), make(map[string]string)}
	for file := range info.Code.Files {
		c.files[file] = info.Code.Functions(file)
		name := frame.Base(file)
		if _, ok := c.named[name]; ok {
			c.named[name] = ""
		} else {
			c.named[name] = file
		}
	}
	return c
}

// functions returns all functions, by name and file name without folders, except those in which a program begins.
func (c *code) functions() map[string]bool {
	all := make(map[string]bool)
	for file, functions := range c.files {
		for name := range functions {
			if !Begins(name) {
				all[name+"\x00"+frame.Base(file)] = true
			}
		}
	}
	return all
}

// file returns the functions of a file, wherever the program is now; nil if unknown.
func (c *code) file(name string) map[string]snapshot.Function {
	if f, ok := c.files[name]; ok {
		return f
	}
	return c.files[c.named[frame.Base(name)]]
}

// compared is the result of comparing a stack's own frames before the fix with the code after it.
type compared struct {
	change change
	name   string  // the innermost function that changed or, if none did, the line that was seen least often, as file:line
	looks  int     // looks after the fix that saw the least frequent line of its frames run
	held   int     // recorded points that have the least frequent line on a stack
	share  float64 // how often that line ran, as a share of before
}

// compareCode compares the functions of a stack with those after a fix; without frames, all functions. Only the
// program's own count: an upgrade of a library does not change its code.
func (c *comparison) compareCode(frames []snapshot.Frame) compared {
	was, is := c.codeWas, c.codeIs
	if w := &c.before.Run().Info; w.Workload != "" && w.Parameters["fixed"] != c.after.Run().Info.Parameters["fixed"] {
		return compared{change: changed, name: "the workload"}
	}
	switch {
	case len(was.files) == 0 || len(is.files) == 0 || was.python != is.python:
		return compared{}
	case was.python == "" || len(frames) == 0:
		return compared{change: c.anywhere(), name: "the program"}
	}
	own := frame.Own(frames)
	out := compared{share: 1}
	for _, f := range frames {
		if !own(f) {
			continue
		}
		old, file := was.file(f.File), is.file(f.File)
		before, ok := old[f.Function]
		if !ok || file == nil {
			if out.change == unknown {
				return out // the function that allocates is unknown
			}
			continue
		}
		after, ok := file[f.Function]
		if !ok || after.Digest != before.Digest {
			return compared{change: changed, name: f.Function}
		}
		line, looks, held := f.Line-before.First, 0, 0
		at := line
		for _, l := range moved(f.Function, line, old, file) {
			if n, h := after.Ran[l], c.is.lines[lineKey(f, after.First+l)]; n > looks || n == looks && h >= held {
				at, looks, held = l, n, h
			}
		}
		if out.change == unknown {
			out = compared{change: unchanged, looks: looks + 1, held: held, share: 1}
		}
		if looks < out.looks {
			out.looks, out.name = looks, fmt.Sprintf("%s:%d", frame.Base(f.File), after.First+at)
		}
		out.held = min(out.held, held)
		if looks > 0 && before.Ran[line] > 0 {
			out.share = min(out.share, float64(looks)/float64(is.looks)*float64(was.looks)/float64(before.Ran[line]))
		}
	}
	return out
}

// moved returns where a line of an unchanged function may be after a fix, counted from the function's first line.
// Functions defined within it may have become longer. So the line has moved as far as the last inner function before
// it or, if it is in that function, as far as the next.
func moved(name string, line int, was, is map[string]snapshot.Function) []int {
	within := name + ".<locals>."
	if name == "<module>" {
		within = ""
	}
	first, next, last, following := 0, 0, -1, -1
	for inner, f := range was {
		after, ok := is[inner]
		if inner == name || !ok || !strings.HasPrefix(inner, within) {
			continue
		}
		at := f.First - was[name].First
		by := after.First - is[name].First - at
		if at <= line && at > last {
			last, first = at, by
		}
		if at > line && (following < 0 || at < following) {
			following, next = at, by
		}
	}
	if following < 0 {
		next = first
	}
	return []int{line + first, line + next}
}

// anywhere reports whether any function of the program differs, in files that both runs have.
func (c *comparison) anywhere() change {
	out := unknown
	for name, functions := range c.codeWas.files {
		after := c.codeIs.file(name)
		if after == nil {
			continue
		}
		out = max(out, unchanged)
		for name, f := range functions {
			if after[name].Digest != f.Digest {
				return changed
			}
		}
		if len(after) != len(functions) {
			return changed
		}
	}
	return out
}

// lineKey identifies a line of a function, wherever its file is.
func lineKey(f snapshot.Frame, line int) string {
	return fmt.Sprintf("%s\x00%s\x00%d", f.Function, frame.Base(f.File), line)
}
