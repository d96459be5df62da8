package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestARankIsReadWithoutListingTheOthersFiles: to list the folder of a thousand ranks for each of them took most of the time.
func TestARankIsReadWithoutListingTheOthersFiles(t *testing.T) {
	dir := recordRanks(t, 2)
	allocations := func() float64 {
		f, err := Opener{}.LookThrough(dir)
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(10, func() {
			if run, err := f.OpenRank(1); err != nil || len(run.Snapshots) != 2 {
				t.Fatal(err)
			}
		})
	}
	alone := allocations()
	for i := range 500 {
		name := fmt.Sprintf("snapshot_%d_rank%d.memdiag", i%5, 2+i/5)
		if err := os.Link(filepath.Join(dir, "snapshot_0_rank1.memdiag"), filepath.Join(dir, name)); err != nil {
			t.Skip("no links:", err)
		}
	}
	if among := allocations(); among > alone+50 {
		t.Errorf("%.0f allocations among 100 ranks, %.0f among two", among, alone)
	}
}
