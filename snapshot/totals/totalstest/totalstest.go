// Package totalstest is what tests of the readers of totals share.
package totalstest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Decode reads a file that is in memory with a reader's function of that name.
func Decode(decode func(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error), data []byte) (*snapshot.Snapshot, error) {
	return decode("f", bytes.NewReader(data), int64(len(data)), totals.Options{})
}

// Profile is a file of testdata/profilers, as a test two folders below the root sees it.
func Profile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "profilers", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Unpacked is what a file is without its compression.
func Unpacked(t testing.TB, data []byte) []byte {
	t.Helper()
	in, err := bounded.Open("f", bytes.NewReader(data), int64(len(data)), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Held is the live blocks and bytes by stack. frame formats each frame, and join separates them, innermost first.
func Held(s *snapshot.Snapshot, join string, frame func(snapshot.Frame) string) map[string][2]int64 {
	out := make(map[string][2]int64)
	for _, site := range s.Sites() {
		var key []string
		for _, f := range s.Stacks.Frames(site.Stack) {
			key = append(key, frame(f))
		}
		out[strings.Join(key, join)] = [2]int64{site.Count, int64(site.Bytes)}
	}
	return out
}

// Place is "function file:line".
func Place(f snapshot.Frame) string { return fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line) }

// Refused fails a test unless the error is of the file, and has want in it.
func Refused(t testing.TB, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*snapshot.FormatError](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
