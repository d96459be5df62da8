package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

const (
	inPython = "/usr/lib/python3.12/"
)

// TestToLookIsNoLeak judges a program of which each snapshot leaves some bytes of the
// profiler's, and one that keeps all that the profiler gave it.
func TestToLookIsNoLeak(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want Verdict
	}{
		"a few bytes each time":  {72, Clean},
		"all that was ever seen": {20_000, Leak},
	} {
		t.Run(name, func(t *testing.T) {
			run := noisy(1, 9, 120, 10, func(t int) int { return t / 10 })
			stacks := run.Snapshots[0].Stacks
			looks := stacks.InternFrames([]snapshot.Frame{{File: inPython + "tracemalloc.py", Line: 558}, {File: "train.py", Line: 99}})
			for _, s := range run.Snapshots {
				b := &s.Blocks
				last := b.Len() - 1
				b.Stack[last] = looks
				b.Size[last] = snapshot.Bytes(c.size) * snapshot.Bytes(b.Count[last])
				b.Requested[last] = b.Size[last]
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := findingOf(r, stacks.Hash(looks))
			if f == nil || f.Verdict != c.want {
				t.Errorf("got %+v", f)
			}
		})
	}
}
