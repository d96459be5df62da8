package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestWhatAListGathersOfEachEvaluationLeaks: nine evaluations are few, and of what no watched step made nobody knows when
// it was born. That its holder only becomes longer says that each rise was a birth, and that all are alive.
func TestWhatAListGathersOfEachEvaluationLeaks(t *testing.T) {
	marks := []int64{1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 49, 53, 57, 75, 93, 117, 146, 183, 228, 286, 357, 447, 558, 698, 873}
	const every, each = 100, 16
	for name, c := range map[string]struct {
		holder func(evaluations int) *snapshot.Holder
		births bool
		want   Verdict
	}{
		"a list": {func(n int) *snapshot.Holder { return &snapshot.Holder{Kind: "list", Items: each * n} }, false, Leak},
		"nobody": {func(int) *snapshot.Holder { return nil }, false, Inconclusive},
		"a list, while the blocks that are counted fall once": {func(n int) *snapshot.Holder { return &snapshot.Holder{Kind: "list", Items: each * n} }, false, Leak},
		"a list, which holds some": {func(n int) *snapshot.Holder {
			return &snapshot.Holder{Kind: "list", Items: 3 * n}
		}, false, Inconclusive},
		"a list of lists": {func(n int) *snapshot.Holder { return &snapshot.Holder{Kind: "list", Items: n} }, false, Leak},
		"a list of things that grow": {func(n int) *snapshot.Holder {
			return &snapshot.Holder{Kind: "list", Items: min(n, 4)}
		}, false, Inconclusive},
		"a list that was emptied": {func(n int) *snapshot.Holder {
			return &snapshot.Holder{Kind: "list", Items: max(each*n, each*(8-n))}
		}, false, Inconclusive},
		"a list that was seen twice": {func(n int) *snapshot.Holder {
			if n < 7 {
				return nil
			}
			return &snapshot.Holder{Kind: "list", Items: each * n}
		}, false, Inconclusive},
		"a cache with a bound":  {func(n int) *snapshot.Holder { return &snapshot.Holder{Kind: "cache", Items: each * n} }, false, Inconclusive},
		"births that are known": {func(int) *snapshot.Holder { return nil }, true, Leak},
	} {
		t.Run(name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for _, m := range marks {
				list := []block{{"weights", 1 << 20, -1}}
				n := int(m / every)
				if strings.HasSuffix(name, "fall once") && m == 447 {
					n-- // a census found fewer
				}
				for e := range n {
					list = append(list, grown("maps", each, 1<<20, int64(every*(e+1)), 0)...)
				}
				s := build(m, list...)
				if !c.births {
					s.Blocks.BirthStep = nil
				}
				if h := c.holder(int(m / every)); n > 0 && h != nil {
					h.Path, h.Stack = "evaluator.maps", s.Blocks.Stack[1]
					s.Holders = []snapshot.Holder{*h}
				}
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("got %s, want %s: %q", f.Verdict, c.want, f.Reasons)
			}
		})
	}
}
