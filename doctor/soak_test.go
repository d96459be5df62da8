package doctor

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// TestACycleHasThePeakAndTheGrowthOfItsProcess: without a budget, too.
func TestACycleHasThePeakAndTheGrowthOfItsProcess(t *testing.T) {
	run := program(t, list, 1, 1, even).Result.Run()
	for i, s := range run.Snapshots {
		held := snapshot.Bytes(64+i) << 20
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: held, Reserved: held, Driver: held}})
	}
	r, err := diff.Analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	c, err := CycleOf(1, &Run{Result: r}, nil, 0, time.Unix(1e9, 0))
	if last := int64(64+len(run.Snapshots)-1) << 20; err != nil || c.Peak != last || c.Growth <= 0 {
		t.Errorf("%v: peak %d, want %d; growth %d", err, c.Peak, last, c.Growth)
	}
}
