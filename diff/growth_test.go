package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// An allocator that rounds large blocks up to its pieces makes stairs of a line.
func TestRoundingOfTheAllocatorIsNoGrowth(t *testing.T) {
	var run snapshot.Run
	for step := int64(0); step <= 120; step += 10 {
		asked := snapshot.Bytes(20_000 * (step + 1))
		given := asked
		if asked > 1<<20 {
			given = max(asked, 2_100_000) // the rest of a large piece is not split
		}
		s := build(step, block{"regrown", given, step - 1})
		s.Blocks.Requested[0] = asked
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(&run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Leaks() != 1 || r.Findings[0].Shape != BytesOnly {
		t.Fatalf("got %+v; want a leak by bytes", r.Findings)
	}
	for i := range run.Snapshots { // the same sizes, and nobody asked for more
		run.Snapshots[i].Blocks.Requested[0] = min(run.Snapshots[i].Blocks.Requested[0], 200_000)
	}
	if r, err = Analyze(&run, ByTrend); err != nil || r.Leaks() != 0 {
		t.Errorf("got %+v, %v; want no leak where only the rounding grows", r.Findings, err)
	}
}

// Births that are known as times are counted from the moment at which a site began, as
// those are that are known as steps.
func TestALateLeakIsSeenByTheTimesOfItsBirths(t *testing.T) {
	var run snapshot.Run
	for step := int64(0); step <= 400; step += 20 {
		blocks := grown("w", 1, 512, 0, 1)
		if step > 240 {
			blocks = append(blocks, grown("late", int(step-240), 512, 240, 1)...)
		}
		s := build(step, blocks...)
		s.Blocks.BirthTime = make([]int64, len(blocks))
		for i, b := range s.Blocks.BirthStep {
			s.Blocks.BirthTime[i] = (1000 + b) * 1e6
		}
		s.Blocks.BirthStep = nil
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(&run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Leaks() != 1 || !strings.Contains(strings.Join(r.Findings[0].Reasons, "; "), "160 distinct instants") {
		t.Errorf("got %+v; want a leak by its 160 births", r.Findings)
	}
}

// A count that comes and goes may be no higher at the end than half-way, whatever of it
// is never given back.
func TestBlocksOfEveryTimeOutweighACountThatFell(t *testing.T) {
	saw := func(kept int64) *snapshot.Run { // eleven of twelve blocks go every twelve steps, and the twelfth where it is not kept
		var run snapshot.Run
		for step := int64(0); step <= 120; step += 10 {
			var blocks []block
			for born := range step {
				if born%12 == 0 && kept > 0 || born >= step-step%12 {
					blocks = append(blocks, block{"saw", 512, born})
				}
			}
			run.Snapshots = append(run.Snapshots, build(step, append(grown("w", 1, 512, snapshot.NoStep, 0), blocks...)...))
		}
		return &run
	}
	for _, c := range []struct {
		name string
		kept int64
		want Verdict
	}{
		{"one of twelve stays", 1, Inconclusive},
		{"none stays", 0, Bounded},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := saw(c.kept)
			run.Snapshots = run.Snapshots[:len(run.Snapshots)-1] // up to step 110: 2 of the last saw
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != 1 || r.Findings[0].Verdict != c.want {
				t.Errorf("got %+v; want one finding, %s", r.Findings, c.want)
			}
		})
	}
}

func TestWhatAddsTheSameInEachOfAFewIntervalsIsNoChance(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks func(step int64) int64
		want   Verdict
	}{
		{"12 blocks each step", func(step int64) int64 { return 12 * step }, Leak},
		{"at rates that differ", func(step int64) int64 { return 12*step + 7919*step%4001 }, Inconclusive},
		{"ever fewer", func(step int64) int64 { return 12 * step * 4000 / (2000 + step) }, Inconclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run snapshot.Run
			for _, at := range []int64{1, 698, 879, 1108, 1399, 1767, 2235, 2826} {
				var blocks []block
				for i := range 9 {
					blocks = append(blocks, grown(fmt.Sprintf("w%d", i), 1, 512, snapshot.NoStep, 0)...)
				}
				run.Snapshots = append(run.Snapshots, build(at, append(blocks, grown("x", int(c.blocks(at-1)), 64, snapshot.NoStep, 0)...)...))
			}
			if got, why := verdictOf(t, &run); got != c.want {
				t.Errorf("%s, want %s: %q", got, c.want, why)
			}
		})
	}
}
