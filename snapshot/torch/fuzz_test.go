package torch

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/memdiag/memdiag/snapshot"
)

// Reasons for which the reader refuses what its twin, which has the whole tree
// before it, can make sense of: it streams, and real files need none of it.
var refusals = []string{
	"lies in an unexpected place", "out of turn", "a reference to something passed already", "is memoised twice",
	"a second time", "two lists of blocks", "is out of range", " bytes", "is not known", "not a list that can be read",
	"added to", "there is no snapshot in this file", "finds no", "of values that are not there",
	"holds", "nothing", "neither total_size nor blocks", "without a size", "values in place of one",
}

// compareWithTwin fails where reader and twin read different things, and where
// only one of them can read the file for no good reason.
func compareWithTwin(t *testing.T, b []byte, tree func([]byte) (any, error)) {
	s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
	var refused *snapshot.FormatError
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%T: %v", err, err)
	}
	if err != nil && (strings.Contains(err.Error(), "\n") || refused.Offset < 0 || refused.Offset > int64(len(b))) {
		t.Fatalf("offset %d: %v", refused.Offset, err)
	}
	if len(b) > 1<<16 {
		return
	}
	root, treeErr := tree(b)
	var want string
	if treeErr == nil {
		want, treeErr = twin(root)
	}
	switch {
	case err == nil && treeErr != nil:
		t.Fatalf("only the reader reads this: %v", treeErr)
	case err == nil:
		if got := describe(s); got != want {
			t.Fatalf("reader and twin differ\n%s", firstDifference(got, want))
		}
	case treeErr == nil && !slices.ContainsFunc(refusals, func(r string) bool { return strings.Contains(err.Error(), r) }):
		t.Fatalf("only the twin reads this: %v", err)
	}
}

func FuzzPickle(f *testing.F) {
	for _, name := range seedNames(f, "*.pickle") {
		if !strings.HasPrefix(name, "big") {
			f.Add(seed(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if sniff(b, true) != pickleFormat {
			return
		}
		compareWithTwin(t, b, pickleTree)
	})
}

func FuzzJSON(f *testing.F) {
	for _, name := range seedNames(f, "*.json") {
		f.Add(seed(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		// The reader is laxer than encoding/json about what is in a string and
		// how a number is written.
		if sniff(b, true) != jsonFormat || !json.Valid(b) || !utf8.Valid(b) {
			return
		}
		compareWithTwin(t, b, jsonTree)
	})
}

// FuzzContainer looks for panics and for errors that are not of the one type.
func FuzzContainer(f *testing.F) {
	for _, pattern := range []string{"*.zip", "*.gz", "*.html"} {
		for _, name := range seedNames(f, pattern) {
			f.Add(seed(f, name))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
		var refused *snapshot.FormatError
		if (s == nil) == (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Fatalf("%v, %T: %v", s, err, err)
		}
		if s != nil && !Detect(b) {
			t.Fatal("a file is read but not detected")
		}
	})
}
