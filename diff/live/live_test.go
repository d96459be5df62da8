package live_test

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
)

// taken is a snapshot of so many blocks of a line, born a step each.
func taken(stacks *snapshot.Stacks, step int64, blocks int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: stacks,
		Devices:  []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
		Segments: []snapshot.Segment{{NumBlocks: blocks}},
	}
	id := stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 3}})
	b := &s.Blocks
	for i := range blocks {
		b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i+1)<<12)
		b.Size, b.Requested = append(b.Size, 4096), append(b.Requested, 4096)
		b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, id), append(b.BirthStep, min(int64(i), step))
	}
	return s
}

// states are the suspects' after looks at each step, of a line with so many blocks at each.
func states(t *testing.T, steps int64, blocks func(step int64) int) (suspected, alarmed, ended int64) {
	t.Helper()
	stacks, w := snapshot.NewStacks(), live.New()
	var all []*snapshot.Snapshot
	suspected, alarmed, ended = -1, -1, -1
	for step := range steps {
		all = append(all, taken(stacks, step, blocks(step)))
		if len(all) < 3 {
			continue
		}
		r, err := diff.Analyze(&snapshot.Run{Snapshots: slices.Clone(all)}, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Look(r) {
			switch s.State {
			case live.Suspected:
				suspected = step
			case live.Alarming:
				alarmed = step
			case live.Ended:
				ended = step
			}
		}
		if again := w.Look(r); again != nil {
			t.Fatalf("step %d: a second look at the same changes %v", step, again)
		}
	}
	return suspected, alarmed, ended
}

func TestALeakIsSuspectedAndThenReported(t *testing.T) {
	suspected, alarmed, ended := states(t, 120, func(step int64) int { return 1 + int(step) })
	if suspected != live.Beginning || alarmed != live.Lasting*live.Beginning || ended != -1 {
		t.Errorf("suspected at %d, reported at %d, ended at %d", suspected, alarmed, ended)
	}
}

// TestWhatFillsIsNotReported: a cache has its size after 60 steps, when it has been a suspect for long.
func TestWhatFillsIsNotReported(t *testing.T) {
	if suspected, alarmed, _ := states(t, 150, func(step int64) int { return 1 + int(min(step, 60)) }); suspected < 0 || alarmed >= 0 {
		t.Errorf("suspected at %d, reported at %d", suspected, alarmed)
	}
}

// TestALeakThatStopsIsOver: what leaked for 110 steps is given back.
func TestALeakThatStopsIsOver(t *testing.T) {
	_, alarmed, ended := states(t, 150, func(step int64) int {
		if step > 110 {
			return 1
		}
		return 1 + int(step)
	})
	if alarmed < 0 || ended < 111 {
		t.Errorf("reported at %d, over at %d", alarmed, ended)
	}
}
