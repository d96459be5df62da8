package diff

import (
	"testing"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// recorded is a run of snapshots after some steps, which count an evaluation after each seventh step and a checkpoint after each
// eleventh. held tells the blocks after a step.
func recorded(steps []int64, held func(step int64) int64) (*Result, *Row) {
	run := &snapshot.Run{}
	var hash snapshot.Hash
	for _, step := range steps {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep, Phase: "train"}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks(),
			Devices:  []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
			Segments: []snapshot.Segment{{Address: 1 << 12, Size: snapshot.Bytes(held(step)) << 12, NumBlocks: int(held(step))}},
			Events:   map[string]int64{"train": step/7 + 1, "eval": step / 7, "checkpoint": step / 11},
		}
		id := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 3}})
		hash = s.Stacks.Hash(id)
		b := &s.Blocks
		for i := range held(step) {
			b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i+1)<<12)
			b.Size, b.Requested = append(b.Size, 4096), append(b.Requested, 4096)
			b.State, b.Stack, b.BirthStep = append(b.State, snapshot.Live), append(b.Stack, id), append(b.BirthStep, snapshot.NoStep)
		}
		run.Snapshots = append(run.Snapshots, s)
	}
	r := &Result{run: run, Series: series.Collect(run)}
	return r, &Row{Key: series.SiteKey{Device: series.DeviceID{Kind: snapshot.CPU}, Hash: hash}}
}

func TestGrowthFollowsTheEventsThatSnapshotsCount(t *testing.T) {
	var steps, even, weeks []int64
	for step := int64(1); step < 200; step += 1 + step/8 {
		steps = append(steps, step)
	}
	for step := int64(1); step < 200; step += 4 {
		even = append(even, step)
	}
	for step := int64(7); step < 200; step += 7 {
		weeks = append(weeks, step)
	}
	for _, c := range []struct {
		name  string
		steps []int64
		held  func(step int64) int64
		want  cause.Driver
		every int64
		times int64 // from the first snapshot to the last, as the growth
	}{
		{"one each evaluation", steps, func(step int64) int64 { return 5 + step/7 }, cause.Evaluations, 7, steps[len(steps)-1] / 7},
		{"one each evaluation, those of the warm-up too", even, func(step int64) int64 { return 5 + step/7 }, cause.Evaluations, 7, 28},
		{"two each checkpoint", steps, func(step int64) int64 { return 5 + step/11*2 }, cause.Checkpoints, 11, steps[len(steps)-1] / 11},
		{"one each step", steps, func(step int64) int64 { return step }, "", 0, 0},
		{"one each ninth step", steps, func(step int64) int64 { return 1 + step/9 }, "", 0, 0},
		{"one each other evaluation", steps, func(step int64) int64 { return 1 + step/14 }, "", 0, 0},
		{"snapshots of evaluations alone do not tell them from steps", weeks, func(step int64) int64 { return step / 7 }, "", 0, 0},
		{"too few snapshots", steps[:6], func(step int64) int64 { return 5 + step/7 }, "", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, row := recorded(c.steps, c.held)
			if f := r.counted(row); f.driver != c.want || c.want != "" && (f.every < c.every-1 || f.every > c.every+1) || f.times != c.times {
				t.Errorf("%+v, want %q each %d steps, %d times", f, c.want, c.every, c.times)
			}
		})
	}
}
