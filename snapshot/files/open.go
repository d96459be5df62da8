// Package files opens snapshot files and run folders of any format that memdiag
// reads.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/heaptrack"
	"github.com/memdiag/memdiag/snapshot/jemalloc"
	"github.com/memdiag/memdiag/snapshot/kineto"
	"github.com/memdiag/memdiag/snapshot/massif"
	"github.com/memdiag/memdiag/snapshot/memray"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/pprofio"
	"github.com/memdiag/memdiag/snapshot/torch"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/tracemalloc"
)

// InputError is a name or a folder that does not give what was asked of it. It
// wraps fs.ErrNotExist where there is nothing of the name.
type InputError struct {
	Reason string // one line, with the name in it
	hint   string
	err    error
}

func (e *InputError) Error() string { return e.Reason }

// Hint is the way out, or "".
func (e *InputError) Hint() string { return e.hint }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.err }

// format is one that memdiag reads.
type format struct {
	detect func(head []byte) bool
	decode func(name string, r io.ReaderAt, size int64, into *snapshot.Stacks) (*snapshot.Snapshot, error)
}

// headSize is how much of a file tells its format.
const headSize = max(torch.DetectLen, bounded.HeadLen)

// formats are asked in this order, those that are sure of themselves first: any
// pickle may be one of PyTorch's.
func formats() []format {
	return []format{
		{detect: native.Detect, decode: native.Decode},
		{detect: unpacked(tracemalloc.Detect), decode: totalsOf(tracemalloc.Decode)},
		{detect: unpacked(kineto.Detect), decode: totalsOf(kineto.Decode)},
		{detect: torch.Detect, decode: decodeTorch},
		{detect: unpacked(memray.Detect), decode: totalsOf(memray.Decode)},
		{detect: unpacked(heaptrack.Detect), decode: totalsOf(heaptrack.Decode)},
		{detect: unpacked(massif.Detect), decode: totalsOf(massif.Decode)},
		{detect: unpacked(jemalloc.Detect), decode: totalsOf(jemalloc.Decode)},
		{detect: unpacked(pprofio.Detect), decode: totalsOf(pprofio.Decode)},
	}
}

// unpacked asks about what the file's beginning unpacks to.
func unpacked(detect func(head []byte) bool) func(head []byte) bool {
	return func(head []byte) bool { return detect(bounded.Head(head)) }
}

func totalsOf(decode func(string, io.ReaderAt, int64, totals.Options) (*snapshot.Snapshot, error)) func(string, io.ReaderAt, int64, *snapshot.Stacks) (*snapshot.Snapshot, error) {
	return func(name string, r io.ReaderAt, size int64, into *snapshot.Stacks) (*snapshot.Snapshot, error) {
		return decode(name, r, size, totals.Options{Stacks: into})
	}
}

func decodeTorch(name string, r io.ReaderAt, size int64, into *snapshot.Stacks) (*snapshot.Snapshot, error) {
	return torch.Decode(name, r, size, torch.Options{Stacks: into})
}

// Open reads the snapshot at path; its format is told by its content. Errors of
// its content are *snapshot.FormatError.
func Open(path string) (*snapshot.Snapshot, error) {
	return openInto(path, nil)
}

// source is an open file of which the format has been looked up.
type source struct {
	file   *os.File
	size   int64
	head   []byte
	format *format // nil where none knows it
}

func (s *source) close() { _ = s.file.Close() } // it was only read

func openFile(path string) (*source, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, size: size, head: make([]byte, min(headSize, size))}
	if _, err := file.ReadAt(s.head, 0); err != nil && !errors.Is(err, io.EOF) {
		s.close()
		return nil, err
	}
	for _, f := range formats() {
		if f.detect(s.head) {
			s.format = &f
			break
		}
	}
	return s, nil
}

// unknown is the error for a file of no format that is read.
func (s *source) unknown() error {
	e := &snapshot.FormatError{
		File:   s.file.Name(),
		Reason: "not a snapshot in a format that memdiag reads",
		Hint:   "memdiag reads its own .memdiag files and PyTorch's memory snapshots (pickle, torch.save, JSON, the viewer's page)",
	}
	switch {
	case s.size == 0:
		e.Reason, e.Hint = "an empty file", ""
	case native.DetectSeries(s.head):
		e.Reason = "the counters of a run, not a snapshot"
		e.Hint = "name the folder that it lies in"
	}
	return e
}

func notThere(reason, hint string) error {
	return &InputError{Reason: reason, hint: hint, err: fs.ErrNotExist}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// some lists the first names and how many more there are.
func some(names []string) string {
	const shown = 8
	text := ""
	for i, n := range names {
		if i == shown {
			return fmt.Sprintf("%s and %d more", text, len(names)-shown)
		}
		if i > 0 {
			text += ", "
		}
		text += n
	}
	return text
}
