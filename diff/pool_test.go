package diff

import (
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// pool is a run of one site, with the births of its blocks: a pool that takes or
// gives back a block in half of the steps each, the youngest first, up to a capacity;
// and a leak below it of one block in so many steps, 0 for none. It has a snapshot
// every so many steps and, if asked for, counters of each step.
func pool(seed uint64, n, every int64, counters bool, leak int64) *snapshot.Run {
	rng := rand.New(rand.NewPCG(seed, 3))
	capacity := 6 + rng.IntN(20)
	var held, leaked []block
	run := &snapshot.Run{}
	series := &snapshot.Series{Stacks: snapshot.NewStacks()}
	for t := int64(0); t <= n; t++ {
		if t > 0 {
			born := block{"lend", 2048, t - 1}
			switch up := rng.IntN(2) == 0; {
			case up && len(held) < capacity:
				held = append(held, born)
			case !up && len(held) > 0:
				held = held[:len(held)-1]
			}
			if leak > 0 && t%leak == 0 {
				leaked = append(leaked, born)
			}
		}
		s := build(t, append(held[:len(held):len(held)], leaked...)...)
		for i := range s.Blocks.Address {
			s.Blocks.Address[i] = uint64(s.Blocks.BirthStep[i]+1)<<20 + uint64(i)
		}
		if t%every == 0 {
			run.Snapshots = append(run.Snapshots, s)
		}
		if len(series.Sites) == 0 && len(s.Blocks.Stack) > 0 {
			series.Devices = s.Devices
			series.Sites = []snapshot.SeriesSite{{Stack: series.Stacks.InternFrames(s.Stacks.Frames(s.Blocks.Stack[0]))}}
		}
		count := int64(len(held) + len(leaked))
		series.Points = append(series.Points, snapshot.Point{Mark: s.Mark, Meters: make([]snapshot.Meters, 1), Sites: []snapshot.SiteCount{{Count: count, Bytes: snapshot.Bytes(count) * 2048}}})
	}
	if counters {
		run.Series = series
	}
	return run
}

// TestAPoolThatFollowsDemandIsNoLeak looks at pools whose size is a walk by chance:
// what is left of it was born as evenly as what leaks.
func TestAPoolThatFollowsDemandIsNoLeak(t *testing.T) {
	const seeds = 400
	for _, c := range []struct {
		name     string
		n, every int64
		counters bool
		leak     int64
		least    float64 // the least share that is called a leak
		most     int     // and the most
	}{
		{"counters of 120 steps", 120, 12, true, 0, 0, 0},
		{"counters of 300 steps", 300, 30, true, 0, 0, 0},
		// Seen this rarely, one pool in a hundred looks as if it only grew.
		{"11 snapshots", 120, 12, false, 0, 0, seeds / 100},
		{"6 snapshots", 120, 24, false, 0, 0, seeds / 100},
		{"a leak of a block in three steps below it", 300, 30, true, 3, 0.95, seeds},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			for seed := range uint64(seeds) {
				r, err := Analyze(pool(seed, c.n, c.every, c.counters, c.leak), ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				if n := r.Leaks(); n > 0 {
					found++
					if found > c.most {
						t.Logf("seed %d: %v", seed, r.Findings[0].Reasons)
					}
				}
			}
			if found > c.most || float64(found) < c.least*seeds {
				t.Errorf("%d of %d are called a leak; want %d to %d", found, seeds, int(c.least*seeds), c.most)
			}
		})
	}
}

// TestABlockThatStandsForManyCountsForThem has a leak of which a recorder saw one block
// in eight, and a block of the step under way in every other snapshot.
func TestABlockThatStandsForManyCountsForThem(t *testing.T) {
	run := program{{stack: "keep:8 step:20", every: 8}}.run(200, 20)
	for i, s := range run.Snapshots {
		b := &s.Blocks
		b.Count = make([]int64, b.Len())
		for k := range b.Count {
			b.Count[k] = 8
		}
		if n := len(b.Count); n > 0 && i%2 == 0 && i < len(run.Snapshots)-1 {
			b.Count[n-1] = 16
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Findings[0]; f.Verdict != Leak {
		t.Errorf("got %s: %v", f.Verdict, f.Reasons)
	}
}

// TestADeviceThatWasNotLookedAtHeldNotNothing has a leak on a heap that is traced late.
func TestADeviceThatWasNotLookedAtHeldNotNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		from int // the first snapshot in which the heap is traced
		want Verdict
	}{
		{"in the last two of ten", 8, Inconclusive},
		{"from the third on", 3, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []*snapshot.Snapshot
			for i := range 10 {
				s := build(int64(10*i), grown("keep", 10*i+1, 512, snapshot.NoStep, 0)...)
				for k := range s.Blocks.Address {
					s.Blocks.Address[k] = uint64(k+1) * 4096
				}
				s.Devices = []snapshot.Device{{Kind: snapshot.CPU}, {Kind: snapshot.CPU, Index: 1}}
				s.Segments = append(s.Segments, snapshot.Segment{Device: 1, Address: 1 << 40, Size: 4096, FirstBlock: s.Blocks.Len(), NumBlocks: 1})
				s.Segments[0].Device = 0
				if i < c.from {
					// The heap, device 0 here, is not yet traced: only the other one is there.
					s.Devices, s.Segments = s.Devices[1:], s.Segments[1:]
					s.Segments[0].Device, s.Segments[0].FirstBlock, s.Segments[0].NumBlocks = 0, 0, 0
					s.Blocks = snapshot.Blocks{}
				} else {
					s.Segments[1].NumBlocks = 0
				}
				all = append(all, s)
			}
			r, err := Analyze(runOf(all...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("got %s: %v; want %s", f.Verdict, f.Reasons, c.want)
			}
		})
	}
}
