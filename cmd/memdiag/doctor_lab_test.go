package main

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/doctor"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// TestAChangedRunIsJudgedByItsRank: of the changed run only rank 0 wrote snapshots, and rank 1 is examined.
func TestAChangedRunIsJudgedByItsRank(t *testing.T) {
	dir := t.TempDir()
	w, err := rundir.Create(dir, snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{0, 50, 100} {
		if err := w.WriteSnapshot(step, &snapshot.Snapshot{Mark: snapshot.Mark{Step: step}, Rank: 0}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		lab    lab
		result bool
		why    string
	}{
		{lab{}, true, ""},
		{lab{ranked: true, rank: 0}, true, ""},
		{lab{ranked: true, rank: 1}, false, "has no rank 1"},
	} {
		c.lab.env, _, _ = newTestEnvironment()
		c.lab.env.rank = snapshot.NoRank
		run := &doctor.Run{Dir: dir}
		if err := c.lab.judge(run); err != nil {
			t.Fatal(err)
		}
		if (run.Result != nil) != c.result || !strings.HasSuffix(run.Why, c.why) {
			t.Errorf("examined rank %d: %v, %q", c.lab.rank, run.Result != nil, run.Why)
		}
	}
}
