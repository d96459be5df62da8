package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// Of a cache of 30 masks ever more are made in steps that nobody watches.
func TestBlocksWithoutAStackLeakOnlyWhereTheirDeviceGrows(t *testing.T) {
	for want, known := range map[Verdict]func(unknown int) int{
		Inconclusive: func(unknown int) int { return 30 - unknown },
		Leak:         func(int) int { return 30 },
	} {
		var snapshots []*snapshot.Snapshot
		for i := range 20 {
			blocks := grown("mask", known(i), 400, int64(10*i), 0)
			snapshots = append(snapshots, build(int64(10*i+1), append(blocks, grown("", i, 400, -1, 0)...)...))
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want {
			t.Errorf("%s, want %s: %q", f.Verdict, want, f.Reasons)
		}
	}
}
