package live_test

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAnAlarmOfAWorkerEnds: it leaks for 110 steps, and gives it back. A result has only processes that leak.
func TestAnAlarmOfAWorkerEnds(t *testing.T) {
	stacks, w := snapshot.NewStacks(), live.New()
	run := &snapshot.Run{}
	worker := &snapshot.Run{Role: "loader worker 0", PID: 7}
	seen := ""
	for step := range int64(130) {
		held := 1 + int(step)
		if step > 110 {
			held = 1
		}
		run.Snapshots = append(run.Snapshots, taken(stacks, step, 1))
		worker.Snapshots = append(worker.Snapshots, taken(stacks, step, held))
		if step < 20 || step%4 > 0 {
			continue
		}
		one := *worker
		one.Snapshots = slices.Clone(worker.Snapshots)
		r, err := diff.Analyze(&snapshot.Run{Snapshots: slices.Clone(run.Snapshots), Children: []*snapshot.Run{&one}}, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Look(r) {
			seen += string("SAEW"[s.State])
		}
		if again := w.Look(r); again != nil {
			t.Fatalf("step %d: a second look at the same changes %v", step, again)
		}
	}
	if seen != "SAE" {
		t.Error(seen)
	}
}
