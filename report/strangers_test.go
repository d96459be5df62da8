package report

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// Snapshots of different processes show neither growth nor that there is none.
func TestHeadlineOfDifferentProcessesIsNoVerdict(t *testing.T) {
	a := &snapshot.Snapshot{Producer: "PyTorch", Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
	b := &snapshot.Snapshot{Producer: "JAX", Stacks: snapshot.NewStacks(), Rank: snapshot.NoRank}
	r, err := diff.Analyze(&snapshot.Run{Snapshots: []*snapshot.Snapshot{a, b}}, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Headline(r), "no verdict on 0 sites of different processes; live memory 0 B"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
