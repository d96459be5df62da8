package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// Snapshots lie ever further apart, so that a leak that begins late is one jump.
func TestWhatBeginsInTheLastIntervalOfStepsIsUndecided(t *testing.T) {
	marks := []int64{1, 50, 100, 150, 200, 250, 320, 420, 540, 710, 930}
	for _, c := range []struct {
		name string
		born []block
		want Verdict
	}{
		{"a block a step, up to the end", grown("keep", 210, 512, 720, 1), Inconclusive},
		{"one in 20 steps, up to the end", grown("keep", 10, 512, 730, 20), Inconclusive},
		{"210 blocks at once", grown("once", 210, 512, 900, 0), Bounded},
		{"it filled up early in the interval", grown("cache", 40, 512, 715, 1), Bounded},
		{"210 blocks at once, at the end", grown("once", 210, 512, 929, 0), Bounded},
		{"it began two intervals ago", grown("keep", 380, 512, 545, 1), Inconclusive},
	} {
		run, timed := runOf(), runOf()
		for _, step := range marks {
			blocks := grown("init", 4, 512, 0, 0)
			for _, b := range c.born {
				if b.birth < step {
					blocks = append(blocks, b)
				}
			}
			run.Snapshots = append(run.Snapshots, build(step, blocks...))
			s := build(step, blocks...)
			for i, birth := range s.Blocks.BirthStep { // a step takes a second, and each block of it a millisecond
				s.Blocks.BirthTime = append(s.Blocks.BirthTime, (1000+birth)*1e6+int64(i)*1e3)
			}
			s.Blocks.BirthStep = nil
			timed.Snapshots = append(timed.Snapshots, s)
		}
		for births, run := range map[string]*snapshot.Run{"steps": run, "times": timed} {
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("%s, births by %s: %s, want %s: %q", c.name, births, f.Verdict, c.want, f.Reasons)
			}
		}
	}
}

// TestAJumpOfSampledBlocksAtTheEndIsInDoubt: of a run that counts steps, whose recorder watched one step in 16 and found one block of
// 24 that a line had made since the snapshot before, nothing tells whether they were made at once.
func TestAJumpOfSampledBlocksAtTheEndIsInDoubt(t *testing.T) {
	for count, want := range map[int64]Verdict{24: Inconclusive, 1: Bounded} {
		var snapshots []*snapshot.Snapshot
		for i := range 20 {
			blocks := 0
			if i == 19 {
				blocks = 24 / int(count)
			}
			s := build(int64(10*i+1), grown("kept", blocks, 512, 185, 0)...)
			for range s.Blocks.Size {
				s.Blocks.Count = append(s.Blocks.Count, count)
			}
			snapshots = append(snapshots, s)
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != want {
			t.Errorf("blocks that stand for %d: %s, want %s: %q", count, f.Verdict, want, f.Reasons)
		}
	}
}
