// Package memray reads the tables that "memray transform csv" writes out of a
// recording of memray: allocations by stack, at their peak or never freed.
package memray

import (
	"bytes"
	"encoding/csv"
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
	for {
		line, err := in.Line()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := addRow(in, out, device, line); err != nil {
			return nil, err
		}
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

func addRow(in *bounded.Input, out *totals.Builder, device int, line []byte) error {
	if len(line) == 0 {
		return nil
	}
	row, err := split(line)
	if err != nil || len(row) != columns {
		return in.Fail("a row of %d columns where %d belong", len(row), columns)
	}
	count, countErr := strconv.ParseInt(row[columnCount], 10, 64)
	size, sizeErr := strconv.ParseInt(row[columnBytes], 10, 64)
	if countErr != nil || sizeErr != nil {
		return in.Fail("%.40q allocations of %.40q bytes", row[columnCount], row[columnBytes])
	}
	var stack []snapshot.FrameID
	for text := range strings.SplitSeq(row[columnStack], "|") {
		if text == "" || len(stack) > totals.MaxDepth {
			continue
		}
		frame, err := out.Frame(frameOf(text))
		if err != nil {
			return err
		}
		stack = append(stack, frame)
	}
	id, err := out.Stack(stack)
	if err != nil {
		return err
	}
	return out.Add(device, id, count, size)
}

// split cuts a row at its commas. Names with commas or quotation marks are quoted,
// and rare: a csv.Reader for each row takes 1.4 times as long.
func split(line []byte) ([]string, error) {
	if bytes.IndexByte(line, '"') < 0 {
		return strings.Split(string(line), ","), nil
	}
	return csv.NewReader(bytes.NewReader(line)).Read()
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
