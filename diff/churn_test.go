package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestSumsOfBlocksAreNotTakenForBlocks shows a leak by what a recorder adds up: a row for each
// size, at whatever address.
func TestSumsOfBlocksAreNotTakenForBlocks(t *testing.T) {
	for name, want := range map[string]Verdict{"sums": Leak, "blocks": Inconclusive} {
		t.Run(name, func(t *testing.T) {
			var run snapshot.Run
			for step := int64(0); step <= 200; step += 10 {
				n := 1
				if name == "blocks" {
					n = 2 + int(step)
				}
				s := build(step, append(grown("w", 1, 512, snapshot.NoStep, 0), grown("keep", n, 512, step, 0)...)...)
				s.Blocks.BirthStep = nil
				if name == "sums" {
					s.Blocks.Count = []int64{1, 2 + step}
					s.Blocks.Size[1] *= snapshot.Bytes(2 + step)
				}
				run.Snapshots = append(run.Snapshots, s)
			}
			r, err := Analyze(&run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != want {
				t.Errorf("%s: %v; want %s", f.Verdict, f.Reasons, want)
			}
		})
	}
}
