package symbols

import (
	"cmp"
	"debug/dwarf"
	"slices"

	"github.com/ianlancetaylor/demangle"
)

// unit is what was compiled at once.
type unit struct {
	entry  *dwarf.Entry
	done   bool // it was read
	scopes []scope
	lines  []dwarf.LineEntry // by address
	files  []*dwarf.LineFile
}

// span is a stretch of code of a unit.
type span struct {
	low, high uint64
	of        *unit
}

// scope is a function, or one that was inlined into others.
type scope struct {
	ranges             [][2]uint64
	depth              int
	name               string
	callFile, callLine int64
}

// spansOfUnits lists where the code of each unit is.
func spansOfUnits(debug *dwarf.Data) (out []span) {
	r := debug.Reader()
	for {
		entry, err := r.Next()
		if err != nil || entry == nil {
			break
		}
		if entry.Tag == dwarf.TagCompileUnit {
			u := &unit{entry: entry}
			ranges, _ := debug.Ranges(entry) // none if they are damaged
			for _, at := range ranges {
				out = append(out, span{at[0], at[1], u})
			}
		}
		r.SkipChildren()
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.low, b.low) })
	return out
}

// read takes in a unit's functions and lines, once.
func (u *unit) read(debug *dwarf.Data) {
	if u.done {
		return
	}
	u.done = true
	r := debug.Reader()
	r.Seek(u.entry.Offset)
	for depth := 0; ; {
		entry, err := r.Next()
		if err != nil || entry == nil || entry.Tag == dwarf.TagCompileUnit && depth > 0 {
			break
		}
		if entry.Tag == 0 {
			if depth--; depth <= 0 {
				break
			}
			continue
		}
		if entry.Tag == dwarf.TagSubprogram || entry.Tag == dwarf.TagInlinedSubroutine {
			if ranges, err := debug.Ranges(entry); err == nil && len(ranges) > 0 {
				file, _ := entry.Val(dwarf.AttrCallFile).(int64)
				line, _ := entry.Val(dwarf.AttrCallLine).(int64)
				u.scopes = append(u.scopes, scope{ranges, depth, nameOf(debug, entry, maxOrigins), file, line})
			}
		}
		if entry.Children {
			depth++
		}
	}
	lines, err := debug.LineReader(u.entry)
	if err != nil || lines == nil {
		return
	}
	u.files = lines.Files()
	for {
		var entry dwarf.LineEntry
		if lines.Next(&entry) != nil {
			break
		}
		u.lines = append(u.lines, entry)
	}
	slices.SortStableFunc(u.lines, func(a, b dwarf.LineEntry) int { return cmp.Compare(a.Address, b.Address) })
}

// maxOrigins is how often an entry may refer to another for its name.
const maxOrigins = 4

func nameOf(debug *dwarf.Data, entry *dwarf.Entry, left int) string {
	if name, ok := entry.Val(dwarf.AttrLinkageName).(string); ok {
		return demangle.Filter(name, demangle.NoParams)
	}
	plain, _ := entry.Val(dwarf.AttrName).(string)
	for _, attr := range []dwarf.Attr{dwarf.AttrAbstractOrigin, dwarf.AttrSpecification} {
		offset, ok := entry.Val(attr).(dwarf.Offset)
		if !ok || left == 0 {
			continue
		}
		r := debug.Reader()
		r.Seek(offset)
		if origin, err := r.Next(); err == nil && origin != nil {
			if name := nameOf(debug, origin, left-1); name != "" {
				return name
			}
		}
	}
	return plain
}

// scopesAt are the function that an address lies in, and those within it, outermost first.
func (u *unit) scopesAt(address uint64) (out []scope) {
	for _, s := range u.scopes {
		if slices.ContainsFunc(s.ranges, func(r [2]uint64) bool { return r[0] <= address && address < r[1] }) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b scope) int { return cmp.Compare(a.depth, b.depth) })
	return out
}

// line is the place in the source of an address; "" if unknown.
func (u *unit) line(address uint64) (file string, line int) {
	i, _ := slices.BinarySearchFunc(u.lines, address, func(e dwarf.LineEntry, a uint64) int {
		if e.Address <= a {
			return -1
		}
		return 1
	})
	if i--; i < 0 || u.lines[i].EndSequence || u.lines[i].File == nil {
		return "", -1
	}
	return u.lines[i].File.Name, u.lines[i].Line
}

// fileOf is a file by its number; "" for none.
func (u *unit) fileOf(n int64) string {
	if n < 0 || n >= int64(len(u.files)) || u.files[n] == nil {
		return ""
	}
	return u.files[n].Name
}
