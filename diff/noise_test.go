//go:build !race

// Twenty runs of ten thousand sites take minutes under the race detector, and have
// one goroutine.

package diff

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// healthy are the shapes of sites that do not leak, as counts after step t of n.
// Each draws what it is made of, so that no two sites are equal.
var healthy = []func(rng *rand.Rand, n int) func(t int) int{
	func(rng *rand.Rand, _ int) func(int) int { // noise about a level
		level, width := 20+rng.IntN(200), 1+rng.IntN(40)
		return func(int) int { return level + rng.IntN(width) }
	},
	func(rng *rand.Rand, _ int) func(int) int { // noise that has a memory
		level, at, keep := 100+rng.IntN(100), 0.0, 0.2+0.7*rng.Float64()
		return func(int) int {
			at = keep*at + 5*rng.NormFloat64()
			return max(0, level+int(at))
		}
	},
	func(rng *rand.Rand, _ int) func(int) int { // a pool that wanders between walls
		at, room := 10, 10+rng.IntN(20)
		return func(int) int {
			at = min(max(at+rng.IntN(3)-1, 0), room)
			return at
		}
	},
	func(rng *rand.Rand, _ int) func(int) int { // a saw-tooth
		period, height := 2+rng.IntN(8), 1+rng.IntN(9)
		return func(t int) int { return height * (t % period) }
	},
	func(rng *rand.Rand, n int) func(int) int { // a ramp to a cap, under noise
		end, width := 1+rng.IntN(n/3), 1+rng.IntN(4)
		return func(t int) int { return min(t, end) + rng.IntN(width) }
	},
	func(rng *rand.Rand, n int) func(int) int { // one stair
		at, height := rng.IntN(n), 1+rng.IntN(30)
		return func(t int) int { return height * step(t, at) }
	},
	func(rng *rand.Rand, n int) func(int) int { // two stairs, under noise
		a, b := rng.IntN(n), rng.IntN(n)
		return func(t int) int { return 10*step(t, a) + 10*step(t, b) + rng.IntN(3) }
	},
	func(rng *rand.Rand, _ int) func(int) int { // rare spikes
		chance := 0.01 + 0.2*rng.Float64()
		return func(int) int {
			if rng.Float64() < chance {
				return 5
			}
			return 0
		}
	},
	func(rng *rand.Rand, _ int) func(int) int { // a wave; seen about once a period it is any slower wave
		period, phase := 5+50*rng.Float64(), 6*rng.Float64()
		return func(t int) int { return 20 + int(10*math.Sin(6.283*float64(t)/period+phase)) }
	},
}

// noisy is a run of clean sites with the given leaks too, as counters of n
// steps or, with every, as snapshots that far apart.
func noisy(seed uint64, sites, n, every int, leaks ...func(t int) int) *snapshot.Run {
	rng := rand.New(rand.NewPCG(seed, 7))
	stacks := snapshot.NewStacks()
	devices := []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}}
	var ids []snapshot.StackID
	var counts []func(int) int
	for i := range sites + len(leaks) {
		ids = append(ids, stacks.InternFrames([]snapshot.Frame{{Function: fmt.Sprint("f", i), File: "train.py", Line: i}}))
		if i < sites {
			counts = append(counts, healthy[i%len(healthy)](rng, n))
		} else {
			counts = append(counts, leaks[i-sites])
		}
	}
	run := &snapshot.Run{}
	series := &snapshot.Series{Stacks: stacks, Devices: devices}
	for _, id := range ids {
		series.Sites = append(series.Sites, snapshot.SeriesSite{Stack: id})
	}
	for t := range n + 1 {
		point := snapshot.Point{Mark: snapshot.Mark{Step: int64(t)}, Meters: make([]snapshot.Meters, 1)}
		s := &snapshot.Snapshot{Mark: point.Mark, Stacks: stacks, Devices: devices, Segments: []snapshot.Segment{{}}}
		b := &s.Blocks
		kept := t == 0 || t == n || every > 0 && t%every == 0
		for i := range ids {
			count := counts[i](t)
			if !kept && every > 0 {
				continue
			}
			size := snapshot.Bytes(count) * 4096
			point.Sites = append(point.Sites, snapshot.SiteCount{Site: int32(i), Count: int64(count), Bytes: size})
			b.Segment, b.Address, b.Stack = append(b.Segment, 0), append(b.Address, 0), append(b.Stack, ids[i])
			b.Size, b.Requested, b.Count = append(b.Size, size), append(b.Requested, size), append(b.Count, int64(count))
			b.State = append(b.State, snapshot.Live)
		}
		if every == 0 {
			series.Points = append(series.Points, point)
		}
		if kept {
			run.Snapshots = append(run.Snapshots, s)
		}
	}
	if every == 0 {
		run.Series = series
	}
	return run
}

// TestCleanNoisySitesRaiseNoAlarm judges 10,000 clean sites at once, without any
// help of births, with twenty seeds, or three; and finds the leak among them all the same.
func TestCleanNoisySitesRaiseNoAlarm(t *testing.T) {
	seeds, sites := heavytest.Of(t, uint64(20), 3), 10_000
	if testing.Short() {
		seeds, sites = 2, 3000
	}
	for _, c := range []struct {
		name     string
		n, every int
		found    float64 // the least share of leaks
	}{
		{"counters of 150 steps", 150, 0, 1},
		{"51 snapshots", 500, 10, 1},
		{"20 snapshots", 190, 10, 1},
		{"15 snapshots", 140, 10, 1},
		{"6 snapshots", 100, 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := 0
			for seed := range seeds {
				r, err := Analyze(noisy(seed, sites, c.n, c.every, func(t int) int { return t }), ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range r.Findings {
					i := f.Rows[0].Frames[0].Line
					switch {
					case i == sites && f.Verdict == Leak:
						found++
					case f.Verdict == Leak:
						t.Errorf("seed %d: site %d of shape %d is called a leak: %v", seed, i, i%len(healthy), f.Reasons)
					}
				}
			}
			if float64(found) < c.found*float64(seeds) {
				t.Errorf("%d of %d leaks found", found, seeds)
			}
		})
	}
}

// BenchmarkAnalyze200SnapshotsOf20000Sites judges heap profiles without counters.
func BenchmarkAnalyze200SnapshotsOf20000Sites(b *testing.B) {
	run := noisy(1, 20_000, 199, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Analyze(run, ByTrend); err != nil {
			b.Fatal(err)
		}
	}
}
