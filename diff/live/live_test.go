package live_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/live"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
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
			case live.Withdrawn:
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

// events are all changes of suspects, a letter each, of a line with so many blocks at each step. As a recording does, it keeps 32
// snapshots, and takes them ever further apart.
func events(t *testing.T, steps int64, blocks func(step int64) int) (seen string, at []int64) {
	t.Helper()
	return eventsEvery(t, 1, steps, blocks)
}

// eventsEvery are the same of looks that are so many steps apart.
func eventsEvery(t *testing.T, look, steps int64, blocks func(step int64) int) (seen string, at []int64) {
	t.Helper()
	stacks, w := snapshot.NewStacks(), live.New()
	var all []*snapshot.Snapshot
	every := int64(1)
	for step := range steps {
		held := blocks(step)
		if step%every != 0 {
			continue
		}
		if all = append(all, taken(stacks, step, held)); len(all) > 32 {
			every *= 2
			all = slices.DeleteFunc(all, func(s *snapshot.Snapshot) bool { return s.Mark.Step%every != 0 })
		}
		if len(all) < 3 || step%look != 0 {
			continue
		}
		r, err := diff.Analyze(&snapshot.Run{Snapshots: slices.Clone(all)}, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Look(r) {
			seen, at = seen+string("SAEW"[s.State]), append(at, step)
		}
	}
	return seen, at
}

// TestASuspicionIsWithdrawnWhenTheGrowthStops: a cache has its size after 60 steps.
func TestASuspicionIsWithdrawnWhenTheGrowthStops(t *testing.T) {
	if seen, at := events(t, 150, func(step int64) int { return 1 + int(min(step, 60)) }); seen != "SW" {
		t.Errorf("%s at %d", seen, at)
	}
}

// TestAnAlarmIsEarnedAnew: what leaked, and stopped for long, leaks again.
func TestAnAlarmIsEarnedAnew(t *testing.T) {
	seen, at := events(t, 1000, func(step int64) int {
		switch {
		case step < 110:
			return 1 + int(step)
		case step < 150:
			return 1
		}
		return 1 + 2*int(step-150)
	})
	if seen != "SAESA" || at[4]-at[3] < 20 {
		t.Errorf("%s at %d", seen, at)
	}
}

// TestEachSnapshotBetweenLooksCounts: a program takes 20 steps between two looks, and leaks at each. A look at each snapshot would have
// reported it at step 96 or soon after it, too.
func TestEachSnapshotBetweenLooksCounts(t *testing.T) {
	if seen, at := eventsEvery(t, 20, 200, func(step int64) int { return 1 + int(step) }); seen != "SA" || at[1] > 120 {
		t.Errorf("%s at %d", seen, at)
	}
}

// TestRandomWalksMakeNoAlarms looks at each step of programs whose memory goes up and down as it likes.
func TestRandomWalksMakeNoAlarms(t *testing.T) {
	const steps = 120
	programs := heavytest.Of(t, 40, 8)
	alarms, suspicions := 0, 0
	for seed := range uint64(programs) { //nolint:gosec // it is small
		rng, level := rand.New(rand.NewPCG(seed, 3)), 200
		seen, _ := events(t, steps, func(int64) int { level = max(1, level+rng.IntN(9)-4); return level })
		alarms, suspicions = alarms+strings.Count(seen, "A"), suspicions+strings.Count(seen, "S")
	}
	// One in 100 may be: of 40 three are by chance in one of 130 sets of programs.
	if alarms > 2 {
		t.Errorf("%d alarms of %d programs, %d suspicions", alarms, programs, suspicions)
	}
	t.Logf("%d suspicions, %d alarms", suspicions, alarms)
}

// TestTwoDevicesAreTwoSuspects: one line leaks on both.
func TestTwoDevicesAreTwoSuspects(t *testing.T) {
	stacks, w := snapshot.NewStacks(), live.New()
	var all []*snapshot.Snapshot
	on := make(map[int]int)
	for step := range int64(60) {
		s := taken(stacks, step, 2*int(step+1))
		half := s.Blocks.Len() / 2
		s.Devices = []snapshot.Device{{Kind: snapshot.CUDA, Index: 0, Limit: snapshot.Unknown}, {Kind: snapshot.CUDA, Index: 1, Limit: snapshot.Unknown}}
		s.Segments = []snapshot.Segment{{NumBlocks: half}, {Device: 1, FirstBlock: half, NumBlocks: half}}
		for i := range half {
			s.Blocks.Segment[half+i] = 1
			s.Blocks.BirthStep[half+i], s.Blocks.BirthStep[i] = int64(i), int64(i)
		}
		all = append(all, s)
		if len(all) < 3 {
			continue
		}
		r, err := diff.Analyze(&snapshot.Run{Snapshots: slices.Clone(all)}, diff.ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range w.Look(r) {
			on[s.Device.Index]++
		}
	}
	if on[0] != 1 || on[1] != 1 {
		t.Errorf("suspicions by device: %v", on)
	}
}

// TestADataSetThatLoadsIsNoSuspect: the program has yet to take its first step, and grows for 200 seconds until then.
func TestADataSetThatLoadsIsNoSuspect(t *testing.T) {
	for _, c := range []struct {
		awaits bool
		want   string
	}{{true, ""}, {false, "SA"}} {
		stacks, w, seen := snapshot.NewStacks(), live.New(), ""
		var all []*snapshot.Snapshot
		for second := int64(0); second < 200; second += 8 {
			s := taken(stacks, 0, int(second)+1)
			s.Mark.Step, s.Mark.Time, s.AwaitsSteps = snapshot.NoStep, time.Unix(1_000_000+second, 0), c.awaits
			if all = append(all, s); len(all) < 3 {
				continue
			}
			r, err := diff.Analyze(&snapshot.Run{Snapshots: slices.Clone(all)}, diff.ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range w.Look(r) {
				seen += string("SAEW"[s.State])
			}
			if grown := w.Growths(r, time.Duration(second)*time.Second); len(grown) > 0 {
				t.Errorf("growth is reported: %+v", grown[0])
			}
		}
		if seen != c.want {
			t.Errorf("awaits steps %v: %s", c.awaits, seen)
		}
	}
}
