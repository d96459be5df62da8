package watch

import (
	"testing"

	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func TestABudgetIsToldOnceUntilItTurns(t *testing.T) {
	b, err := budget.Parse(budget.Live, "cuda:0=5MiB")
	if err != nil {
		t.Fatal(err)
	}
	f := &Follower{Check: func(run *snapshot.Run) []budget.Outcome { return budget.Check(run, []budget.Budget{b}, 0) }}
	var told []report.LiveKind
	for _, live := range []snapshot.Bytes{4, 6, 7, 5, 4, 6} {
		s := &snapshot.Snapshot{Rank: snapshot.NoRank, Devices: []snapshot.Device{{Kind: snapshot.CUDA, Meters: snapshot.Meters{Allocated: live * snapshot.MiB}}}}
		look := &Look{Ranks: []Rank{{Run: &snapshot.Run{Snapshots: []*snapshot.Snapshot{s}}}}}
		f.check(look.Ranks)
		if got := look.OverBudget(); got != (live > 5) {
			t.Errorf("%d MiB: over budget %v", live, got)
		}
		for _, e := range look.Events(false) {
			told = append(told, e.Kind)
		}
	}
	if len(told) != 3 || told[0] != report.LiveOverBudget || told[1] != report.LiveWithinBudget || told[2] != report.LiveOverBudget {
		t.Errorf("told: %v", told)
	}
}
