package diff

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// timed has the births of a run's blocks by time alone: a step takes a second, and each block of it a
// millisecond.
func timed(run *snapshot.Run) *snapshot.Run {
	for _, s := range run.Snapshots {
		for i, birth := range s.Blocks.BirthStep {
			s.Blocks.BirthTime = append(s.Blocks.BirthTime, (1000+max(0, birth))*1e6+int64(i%500)*1e3)
		}
		s.Blocks.BirthStep = nil
	}
	return run
}

// A cache whose keys are drawn at random fills more and more slowly. Few snapshots do not show it, the births of its blocks do.
// Births that are known by time only, as in PyTorch's snapshots, were not asked: with four snapshots 52 of 80 draws were called a leak.
func TestBirthsByTimeTellAFillingCache(t *testing.T) {
	const steps, draws = 600, 40
	for _, marks := range []int64{4, 6, 12} {
		for _, c := range []struct {
			name    string
			keys    int     // of a cache; 0 for a leak
			chance  float64 // of a block in each step
			atMost  int     // draws that are called a leak
			atLeast int
		}{
			{"a cache of 80 keys", 80, 1, 1, 0},
			{"a cache of 200 keys", 200, 1, 1, 0},
			{"a block a step", 0, 1, draws, draws},
			{"a block in one step of ten", 0, 0.1, draws, 34},
		} {
			t.Run(fmt.Sprintf("%s, %d snapshots", c.name, marks), func(t *testing.T) {
				leaks := 0
				for seed := range uint64(draws) {
					random := rand.New(rand.NewPCG(seed, 1))
					var blocks [][2]int64
					known := map[int]bool{}
					for step := range int64(steps) {
						switch key := random.IntN(max(1, c.keys)); {
						case c.keys > 0 && !known[key], c.keys == 0 && random.Float64() < c.chance:
							known[key] = true
							blocks = append(blocks, [2]int64{step, never})
						}
					}
					if v, _ := verdictOf(t, timed(lives(steps, marks, false, blocks))); v == Leak {
						leaks++
					}
				}
				if leaks > c.atMost || leaks < c.atLeast {
					t.Errorf("a leak in %d of %d draws, want %d to %d", leaks, draws, c.atLeast, c.atMost)
				}
			})
		}
	}
}
