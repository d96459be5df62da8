package workload_test

import (
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
)

// TestAForwardPassLeavesTheBytesThatWereReported: 32 rows of 8096 hidden numbers
// and of 4 outputs, to the byte, as tracel-ai/burn#2743 and #4339 have it; and
// nothing without the decorator that records.
func TestAForwardPassLeavesTheBytesThatWereReported(t *testing.T) {
	w, err := workload.Find("L03")
	if err != nil {
		t.Fatal(err)
	}
	const steps = 10
	reported := workload.Amount{Blocks: 2, Bytes: 1036288 + 512}
	seed := int64(0)
	for g := w.Truth(seed).Growth[0]; reported != (workload.Amount{Blocks: g.Blocks, Bytes: g.Bytes}); g = w.Truth(seed).Growth[0] {
		if seed++; seed == 20 {
			t.Fatal("no seed draws the batch that was reported")
		}
	}
	before := w.Truth(seed).Growth[0].First - 1
	for _, c := range []struct {
		name  string
		valid bool
		want  workload.Amount
	}{
		{"with a graph that nobody goes back through", false, workload.Amount{Blocks: 2 * steps, Bytes: steps * reported.Bytes}},
		{"on the undecorated backend, the last output alone is live", true, workload.Amount{Blocks: 1, Bytes: 512}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runFor(t, w, seed, before+steps, c.valid)
			if got := run.at[before+steps].lines[0]; got != c.want {
				t.Errorf("%+v is live after %d forward passes, want %+v", got, steps, c.want)
			}
		})
	}
}
