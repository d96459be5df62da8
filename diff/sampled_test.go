package diff

import (
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// sampled is a run of one site as a recorder sees it that spares time: of the steps it
// looks at one in each stretch, drawn at random, and the stretch doubles as it goes;
// the blocks of a step that it looked at stand for the whole stretch. Each step makes
// a block and holds it to its end, and leaves those that keep tells. Snapshots are
// every 8 steps, and in the second half of the run every so many.
func sampled(seed uint64, n, rare int, keep func(step int) int) *snapshot.Run {
	rng := rand.New(rand.NewPCG(seed, 11))
	type seen struct {
		born, weight int64
		address      uint64
	}
	var kept []seen
	var all []*snapshot.Snapshot
	weight, place, pick := 1, 0, 0
	for step := range n {
		var running []seen
		if place == pick {
			running = []seen{{int64(step), int64(weight), uint64(step+1) << 20}}
			for k := range keep(step) {
				kept = append(kept, seen{int64(step), int64(weight), uint64(step+1)<<20 + uint64(k+1)*4096})
			}
		}
		if place++; place == weight {
			for weight < 32 && 12*weight <= step {
				weight *= 2
			}
			place, pick = 0, rng.IntN(weight)
		}
		mark := step + 1
		if every := 8; mark%every != 0 || 2*mark > n && mark%rare != 0 {
			continue
		}
		var blocks []block
		var count []int64
		var addresses []uint64
		for _, b := range append(kept[:len(kept):len(kept)], running...) {
			blocks = append(blocks, block{"keep:8 step:20 main:3", 4096 * snapshot.Bytes(b.weight), b.born})
			count, addresses = append(count, b.weight), append(addresses, b.address)
		}
		s := build(int64(mark), blocks...)
		s.Blocks.Count, s.Blocks.Address = count, addresses
		all = append(all, s)
	}
	return runOf(all...)
}

// TestARecorderThatLooksEverMoreRarelySeesNoGrowthThatEnds thins known series as the
// recorder of tensors on the CPU does.
func TestARecorderThatLooksEverMoreRarelySeesNoGrowthThatEnds(t *testing.T) {
	const n, seeds = 448, 40
	bounded := 0 // of the leaks
	for _, c := range []struct {
		name  string
		rare  int
		keep  func(step int) int
		least int // of the runs that are called a leak
		most  int
	}{
		{"a block in each step", 32, func(int) int { return 1 }, seeds, seeds},
		{"five in each step, and few snapshots of late", 64, func(int) int { return 5 }, seeds, seeds},
		// Of the late ones the recorder sees two or three, or none.
		{"one in every fourth step", 8, func(step int) int { return 1 - min(1, step%4) }, seeds * 2 / 5, seeds},
		{"nothing", 32, func(int) int { return 0 }, 0, 0},
		{"what is made at the start", 32, func(step int) int { return 1 - min(1, step/40) }, 0, 0},
		{"a cache that is full half-way", 32, func(step int) int { return 1 - min(1, step/(n/2)) }, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			for seed := range uint64(seeds) {
				r, err := Analyze(sampled(seed, n, c.rare, c.keep), ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				switch leaks := r.Leaks(); {
				case leaks > 0:
					found++
					if c.most == 0 {
						t.Log(seed, r.Findings[0].Reasons)
					}
				case c.least > 0 && r.Count(Inconclusive) == 0:
					bounded++
				}
			}
			if found < c.least || found > c.most {
				t.Errorf("%d of %d are called a leak, want %d to %d", found, seeds, c.least, c.most)
			}
		})
	}
	if bounded > seeds/10 {
		t.Errorf("%d leaks are said to have ended", bounded)
	}
}
