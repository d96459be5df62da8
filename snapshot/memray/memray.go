// Package memray reads the tables that "memray transform csv" writes out of a
// recording of memray: allocations by stack, at their peak or never freed.
package memray

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const header = "allocator,num_allocations,size,tid,thread_name,stack_trace"

// Detect reports whether a file that unpacks to something that begins with head
// is such a table.
func Detect(head []byte) bool { return bytes.HasPrefix(head, []byte(header)) }

// Decode reads one table of size bytes as totals by stack; threads and allocators
// are added up. The name appears in errors only; they are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	line, err := in.Line()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(line) != header {
		return nil, in.Fail("not a table of memray: it begins with %.60q", line)
	}
	out := totals.New(in, opts)
	device, err := out.Device(snapshot.CPU, 0, "host heap")
	if err != nil {
		return nil, err
	}
	t := table{in: in, out: out, device: device, frames: make(map[string]snapshot.FrameID)}
	if err := in.Lines(t.addRow); err != nil {
		return nil, err
	}
	return out.Snapshot("memray", "the table does not say whether it is of the peak or of what was never freed (--leaks)"), nil
}

// Columns of the table.
const (
	columnCount = 1
	columnBytes = 2
	columnStack = 5
	columns     = 6
)

// table is what reading keeps from row to row.
type table struct {
	in     *bounded.Input
	out    *totals.Builder
	device int
	frames map[string]snapshot.FrameID // by their text
	row    [][]byte
	stack  []snapshot.FrameID
}

func (t *table) addRow(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	const steps = 12
	if err := t.in.Work(steps + bytes.Count(line, []byte(`"`)) + bytes.Count(line, []byte("|"))); err != nil {
		return err
	}
	var ok bool
	if t.row, ok = split(line, t.row[:0]); !ok || len(t.row) != columns {
		return t.in.Fail("not a row of %d columns: %.60q", columns, line)
	}
	row := t.row
	count, countErr := strconv.ParseInt(string(row[columnCount]), 10, 64)
	size, sizeErr := strconv.ParseInt(string(row[columnBytes]), 10, 64)
	if countErr != nil || sizeErr != nil {
		return t.in.Fail("%.40q allocations of %.40q bytes", row[columnCount], row[columnBytes])
	}
	t.stack = t.stack[:0]
	for text := range bytes.SplitSeq(row[columnStack], []byte("|")) {
		if len(text) == 0 || len(t.stack) > totals.MaxDepth {
			continue
		}
		frame, err := t.frame(text)
		if err != nil {
			return err
		}
		t.stack = append(t.stack, frame)
	}
	id, err := t.out.Stack(t.stack)
	if err != nil {
		return err
	}
	return t.out.Add(t.device, id, count, size)
}

func (t *table) frame(text []byte) (snapshot.FrameID, error) {
	id, ok := t.frames[string(text)]
	if ok {
		return id, nil
	}
	id, err := t.out.Frame(frameOf(string(text)))
	if err != nil {
		return 0, err
	}
	const entry = 64 // of the map
	t.frames[string(text)] = id
	return id, t.in.Charge(entry + len(text))
}

// split cuts a row at its commas, in place: names with commas or quotation marks
// are quoted. It stops at more columns than a row has.
func split(line []byte, into [][]byte) ([][]byte, bool) {
	for {
		var field []byte
		if len(line) > 0 && line[0] == '"' {
			if field, line = unquote(line[1:]); line == nil {
				return into, false
			}
		} else {
			end := bytes.IndexByte(line, ',')
			if end < 0 {
				end = len(line)
			}
			if field, line = line[:end], line[end:]; bytes.IndexByte(field, '"') >= 0 {
				return into, false
			}
		}
		into = append(into, field)
		if len(line) == 0 || len(into) > columns {
			return into, true
		}
		if line[0] != ',' {
			return into, false
		}
		line = line[1:]
	}
}

// unquote undoes the doubling of quotation marks up to a single one, and returns what follows it; nil if there is none.
func unquote(b []byte) (field, rest []byte) {
	field = b[:0]
	for {
		end := bytes.IndexByte(b, '"')
		if end < 0 {
			return nil, nil
		}
		field = append(field, b[:end]...)
		if b = b[end+1:]; len(b) == 0 || b[0] != '"' {
			return field, b
		}
		field, b = append(field, '"'), b[1:]
	}
}

// frameOf reads "train;leak.py;18". A file's name may hold semicolons, a line and
// a function's name may not.
func frameOf(text string) snapshot.Frame {
	f := snapshot.Frame{Function: text, Line: -1}
	function, rest, ok := strings.Cut(text, ";")
	if !ok {
		return f
	}
	f.Function, f.File = function, rest
	if at := strings.LastIndexByte(rest, ';'); at >= 0 {
		if line, err := strconv.ParseUint(rest[at+1:], 10, 31); err == nil {
			f.File = rest[:at]
			if line > 0 {
				f.Line = int(line)
			}
		}
	}
	return f
}
