package report

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestASourceFileIsFoundAmongThoseOfTheStacks(t *testing.T) {
	stacks := snapshot.NewStacks()
	b := newSnapshot(stacks, 1, snapshot.MiB)
	for _, file := range []string{"/app/src/train.py", "/app/src/model.py", "lib/model.py", "main.go", "net.py", "lib/net.py"} {
		b.block(stacks.InternFrames([]snapshot.Frame{{Function: "f", File: file, Line: 1}}), snapshot.Live, 512, 512, 0)
	}
	s := b.done()
	for _, c := range []struct {
		source, file string
		others       int
	}{
		{"train.py", "/app/src/train.py", 0},
		{"./src/train.py", "/app/src/train.py", 0},
		{"/home/u/train.py", "/app/src/train.py", 0}, // moved
		{"src/model.py", "/app/src/model.py", 0},
		{"/work/lib/model.py", "lib/model.py", 0},
		{"model.py", "", 2},
		{"/work/main.go", "main.go", 0},
		{"rain.py", "", 0},
		{"net.py", "net.py", 0},
		{"lib/net.py", "lib/net.py", 0},
		{"/work/lib/net.py", "lib/net.py", 0},
		{"./net.py", "net.py", 0},
	} {
		file, others := RecordedAs(s, c.source)
		if file != c.file || len(others) != c.others || !slices.IsSorted(others) {
			t.Errorf("%s: %q, others %q", c.source, file, others)
		}
	}
}
