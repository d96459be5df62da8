package series

import "testing"

// masks is what a cache by length held after these steps of a recorded run, in bytes, from its warm-up on: it speeds up, and the recorder rested for 21 steps.
var (
	maskSteps = []float64{34, 43, 53, 62, 64, 66, 68, 70, 72, 74, 76, 78, 99, 115}
	maskBytes = []float64{276480, 502784, 864768, 1316352, 1395200, 1563648, 1680896, 1773568, 1971712, 2108416, 2216448, 2445312, 4715008, 7004160}
)

func TestALongIntervalOfFastGrowthBeforeTheLastIsNotFlat(t *testing.T) {
	if h := (History{X: maskSteps, Bytes: maskBytes}); h.GoesOnAtLast() {
		t.Error("only the last interval is said to go on")
	}
	flat := append([]float64{}, maskBytes...)
	for i := 8; i < 13; i++ {
		flat[i] = flat[7]
	}
	if h := (History{X: maskSteps, Bytes: flat}); !h.GoesOnAtLast() {
		t.Error("a site that stood still from step 70 to 99 is not said to have been flat")
	}
}
