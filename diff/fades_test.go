package diff

import (
	"math/rand/v2"
	"testing"
)

// TestHowManyBlocksEachIntervalHasIsEvidence counts verdicts over 40 seeds, of runs whose every interval has a rise and whose
// births are unknown: how many come in each tells a cache that fills from a leak.
func TestHowManyBlocksEachIntervalHasIsEvidence(t *testing.T) {
	const steps = 300
	fills := func(key func() int) (out [][2]int64) {
		seen := make(map[int]bool)
		for step := range int64(steps) {
			if k := key(); !seen[k] {
				seen[k] = true
				out = append(out, [2]int64{step, never})
			}
		}
		return out
	}
	evenly := func(rng *rand.Rand) [][2]int64 {
		n := 40 + rng.IntN(160)
		return fills(func() int { return rng.IntN(n) })
	}
	words := func(rng *rand.Rand) [][2]int64 {
		z := rand.NewZipf(rng, 1.1+rng.Float64(), 1+3*rng.Float64(), uint64(30+rng.IntN(300)))
		return fills(func() int { return int(z.Uint64()) })
	}
	coin := func(rng *rand.Rand) (out [][2]int64) {
		for step := range int64(steps) {
			if rng.Float64() < 0.3 {
				out = append(out, [2]int64{step, never})
			}
		}
		return out
	}
	warm := func(rng *rand.Rand) (out [][2]int64) { // more in its first steps
		every := 5 + rng.Int64N(4)
		for step := range int64(steps) {
			if step < 60 && step%3 == 0 || step%every == 0 {
				out = append(out, [2]int64{step, never})
			}
		}
		return out
	}
	hooks := func(rng *rand.Rand) (out [][2]int64) {
		every := 10 + rng.Int64N(20)
		for step := range int64(steps) {
			for range step / every {
				out = append(out, [2]int64{step, never})
			}
		}
		return out
	}
	for _, c := range []struct {
		name      string
		blocks    func(*rand.Rand) [][2]int64
		snapshots int64
		wrong     Verdict
		most      int
	}{
		{"a cache whose keys are asked for alike", evenly, 13, Leak, 4},
		{"a cache over words, most of them rare", words, 13, Leak, 10},
		{"a leak by the throw of a coin", coin, 13, Inconclusive, 2},
		{"a leak that is faster in its first steps", warm, 13, Inconclusive, 2},
		{"hooks that add hooks, in few snapshots", hooks, 7, Inconclusive, 0},
		{"hooks that add hooks, which seem to begin late", hooks, 13, Inconclusive, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for seed := range uint64(40) {
				run := lives(steps, c.snapshots, false, c.blocks(rand.New(rand.NewPCG(seed, 9))))
				for _, s := range run.Snapshots {
					s.Blocks.BirthStep = nil
				}
				if got, _ := verdictOf(t, run); got == c.wrong {
					n++
				}
			}
			if t.Logf("%d of 40 are %s", n, c.wrong); n > c.most {
				t.Errorf("%d of 40 are %s; want %d at most", n, c.wrong, c.most)
			}
		})
	}
}

// TestEqualGrowthIsFoundAmongManySites is of about nine blocks each 30 steps beside 3,000 sites that vary.
func TestEqualGrowthIsFoundAmongManySites(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	program := make([]block, 0, 9000)
	run := runOf()
	for mark := range int64(13) {
		held := program[:0]
		for range 9*mark + mark%2 + 1 {
			held = append(held, block{"x", 512, -1})
		}
		for i := range 3000 {
			for range rng.IntN(4) {
				held = append(held, block{"noise" + string(rune('A'+i)), 512, -1})
			}
		}
		s := build(30*mark, held...)
		s.Blocks.BirthStep = nil
		run.Snapshots = append(run.Snapshots, s)
	}
	if got, why := verdictOf(t, run); got != Leak {
		t.Errorf("%s, %v; want a leak", got, why)
	}
}

// TestEqualGrowthByTheClockIsEqualAtSnapshots is of a program that writes a snapshot each 1,000 requests, which last unevenly.
func TestEqualGrowthByTheClockIsEqualAtSnapshots(t *testing.T) {
	at, n := []float64{0, 1.1, 1.9, 4.2, 4.8, 6.9, 7.6, 8.1, 10.4, 11}, 0
	r, err := Analyze(clocked(at, func(float64) int { n += 20; return n }), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.Leaks() != 1 {
		t.Errorf("%d leaks, want 1", r.Leaks())
	}
}

// TestWhatSlowsDownIsPromisedNothing: a cache that fills does not do again what it did.
func TestWhatSlowsDownIsPromisedNothing(t *testing.T) {
	var blocks [][2]int64
	for step := int64(0); step < 300; step += 1 + step*step/3000 {
		blocks = append(blocks, [2]int64{step, never})
	}
	run := lives(300, 10, false, blocks)
	for _, s := range run.Snapshots {
		s.Blocks.BirthStep = nil
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if f := &r.Findings[0]; f.Verdict != Inconclusive || f.More != (More{}) {
		t.Errorf("%s, decided in %+v; want no promise", f.Verdict, f.More)
	}
}
