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
	for _, c := range []struct {
		name  string
		valid bool
		want  workload.Amount
	}{
		{"with a graph that nobody goes back through", false, workload.Amount{Blocks: 2 * steps, Bytes: steps * (1036288 + 512)}},
		{"on the undecorated backend, the last output alone is live", true, workload.Amount{Blocks: 1, Bytes: 512}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := runFor(t, w, 1, steps, c.valid)
			if got := run.at[steps].lines[0]; got != c.want {
				t.Errorf("%+v is live after %d forward passes, want %+v", got, steps, c.want)
			}
		})
	}
}
