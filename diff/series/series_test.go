package series

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// A recording of PyTorch on a GPU has tensors on the CPU in the same snapshots: once these are sampled, rows are counted.
// The GPU's blocks of 4 bytes in 512 were then compared by 512 with marks at which they were compared by 4.
func TestABlockIsComparedByWhatWasAskedForBesideTotals(t *testing.T) {
	b := snapshot.Blocks{Size: []snapshot.Bytes{512, 4096, 2048}, Requested: []snapshot.Bytes{4, 40, 20}, Count: []int64{1, 10, 0}}
	s := SiteSeries{Bytes: make([]snapshot.Bytes, 1)}
	for row := range b.Size {
		s.round(0, &b, row)
	}
	if s.rounding == nil || s.rounding[0] != 508 {
		t.Errorf("rounding %v, want 508, of the one block alone", s.rounding)
	}
}
