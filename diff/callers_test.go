package diff

import (
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestManyStacksToOneLineAreOneLeak: a recursion, or a helper with many callers, allocates with many stacks.
func TestManyStacksToOneLineAreOneLeak(t *testing.T) {
	caller := func(n int) []snapshot.Frame {
		return []snapshot.Frame{{Function: "keep", File: "util.py", Line: 5}, {Function: "head", File: "heads.py", Line: 10 + n}, {Function: "main", File: "main.py", Line: 3}}
	}
	recursion := func(n int) []snapshot.Frame {
		frames := caller(0)[:1]
		for range n {
			frames = append(frames, snapshot.Frame{Function: "walk", File: "tree.py", Line: 20})
		}
		return append(frames, snapshot.Frame{Function: "main", File: "main.py", Line: 3})
	}
	for _, c := range []struct {
		name            string
		stacks, healthy int
		stack           func(int) []snapshot.Frame
		findings        int
	}{
		{"callers", 10, 0, caller, 1},
		{"a recursion", 10, 0, recursion, 1},
		{"few callers", 3, 0, caller, 3},
		{"callers of what also makes what stays", 10, 60, caller, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			var snapshots []*snapshot.Snapshot
			for now := 0; now <= 240; now += 30 {
				s := build(int64(now))
				for range c.healthy {
					addBlock(s, caller(90), 0)
				}
				for born := 1; born <= now; born++ {
					addBlock(s, c.stack(born%c.stacks), born)
				}
				snapshots = append(snapshots, s)
			}
			r, err := Analyze(runOf(snapshots...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := &r.Findings[0]; len(r.Findings) != c.findings || f.Verdict != Leak {
				t.Fatalf("%d findings, want %d; the first: %s, %q", len(r.Findings), c.findings, f.Verdict, f.Reasons)
			} else if line := fmt.Sprint(f.Rows[0].Frames[f.Headline]); c.findings == 1 && (line != fmt.Sprint(caller(0)[0]) || f.Rate.Bytes.Value != 1<<15) {
				t.Errorf("%v bytes a step at %s: %q", f.Rate.Bytes.Value, line, f.Reasons)
			}
		})
	}
}
