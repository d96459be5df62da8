package corpus

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAPromiseIsHeldAgainstThePartItIsDueAt: of what is undecided until the end, none is kept.
func TestAPromiseIsHeldAgainstThePartItIsDueAt(t *testing.T) {
	marks := []int64{0, 10, 20, 30, 40}
	open := func(hash snapshot.Hash, more diff.More) opinion {
		return opinion{undecided: []flag{{hashes: []snapshot.Hash{hash, 99}, more: more}}}
	}
	for _, c := range []struct {
		name  string
		parts []opinion
		want  decided
	}{
		{"nothing is promised", []opinion{{}, open(1, diff.More{}), open(1, diff.More{})}, decided{}},
		{"it is decided by the snapshot", []opinion{{}, open(1, diff.More{Snapshots: 1}), {}}, decided{1, 1}},
		{"it is not, after as many snapshots", []opinion{{}, open(1, diff.More{Snapshots: 2}), {}, open(1, diff.More{})}, decided{1, 0}},
		{"steps end between two marks", []opinion{{}, open(1, diff.More{Steps: 11}), open(1, diff.More{}), {}, {}}, decided{1, 1}},
		{"steps end at a mark", []opinion{{}, open(1, diff.More{Steps: 10}), open(1, diff.More{}), {}, {}}, decided{1, 0}},
		{"the run ends before", []opinion{{}, open(1, diff.More{Steps: 90}), {}}, decided{}},
		{"another stack is open", []opinion{{}, {undecided: []flag{{hashes: []snapshot.Hash{1}, more: diff.More{Snapshots: 1}}}}, {undecided: []flag{{hashes: []snapshot.Hash{2}}}}}, decided{1, 1}},
	} {
		if got := promised(marks, c.parts); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
