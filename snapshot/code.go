package snapshot

import (
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Code is a program's own functions, and which of their lines were seen to run.
type Code struct {
	Python string `json:"python"` // version: digests of others are not comparable
	Looks  int    `json:"looks"`  // steps, or stretches of time, in which lines were watched
	// Files has a text for each file, "NAME:FIRST:DIGEST:LINExTIMES,… NAME:…", as an agent writes it.
	Files map[string]string `json:"files"`
	// Contents has what Content returns for each file, as it was when it ran.
	Contents map[string]string `json:"contents,omitempty"`
}

// Content identifies a text of a file by its size and a checksum, as an agent writes them.
func Content(text string) string {
	return fmt.Sprintf("%d:%08x", len(text), crc32.ChecksumIEEE([]byte(text)))
}

// Function is one function of a file.
type Function struct {
	First  int         // line
	Digest string      // a digest of what it does, independent of its line numbers
	Ran    map[int]int // in how many looks a line ran, counted from First
}

// Functions are the functions of a file by name; none if the file is unknown. Malformed entries are left out.
func (c *Code) Functions(file string) map[string]Function {
	functions := make(map[string]Function)
	for entry := range strings.SplitSeq(c.Files[file], " ") {
		parts := strings.Split(entry, ":")
		if len(parts) != 4 {
			continue
		}
		first, err := strconv.Atoi(parts[1])
		if err != nil || parts[2] == "" {
			continue
		}
		f := Function{First: first, Digest: parts[2], Ran: make(map[int]int)}
		for span := range strings.SplitSeq(parts[3], ",") {
			line, times, _ := strings.Cut(span, "x")
			at, err := strconv.Atoi(line)
			n, bad := strconv.Atoi(times)
			if err == nil && bad == nil && n > 0 {
				f.Ran[at] = n
			}
		}
		functions[parts[0]] = f
	}
	return functions
}

// Add adds the code of another process of the same command. If its Python or a file differs, the first one stays.
func (c *Code) Add(other *Code) {
	if c.Files == nil {
		*c = Code{Python: other.Python, Files: make(map[string]string), Contents: make(map[string]string)}
	}
	if c.Python != other.Python {
		return
	}
	c.Looks = max(c.Looks, other.Looks)
	for file := range other.Files {
		if _, ok := c.Files[file]; !ok {
			c.Files[file] = other.Files[file]
			if content, ok := other.Contents[file]; ok {
				c.Contents[file] = content
			}
			continue
		}
		functions := c.Functions(file)
		for name, f := range other.Functions(file) {
			if known, ok := functions[name]; ok && known.Digest == f.Digest {
				for line, n := range f.Ran {
					known.Ran[line] = max(known.Ran[line], n)
				}
			}
		}
		c.Files[file] = text(functions)
	}
}

// text is what Functions reads.
func text(functions map[string]Function) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s:%d:%s:", name, f.First, f.Digest)
		for i, line := range slices.Sorted(maps.Keys(f.Ran)) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%dx%d", line, f.Ran[line])
		}
	}
	return b.String()
}
