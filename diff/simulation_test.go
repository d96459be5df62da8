package diff

import (
	"math/rand/v2"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// pattern is how many blocks of 4 KiB a site holds after each step.
type pattern struct {
	name  string
	leaks bool
	// aliases: in snapshots about an epoch apart, nothing but births tells it from
	// a leak, and the simulation has none.
	aliases bool
	// at returns the count after step t of n; draws are of this run.
	at func(t, n int, d draws) int
}

// draws are a run's random constants, so that no pattern has one shape only.
type draws struct {
	rng    *rand.Rand
	epoch  int
	level  int
	start  int
	period int
}

func drawsOf(seed uint64, n int) draws {
	rng := rand.New(rand.NewPCG(seed, 1))
	return draws{rng: rng, epoch: n/12 + rng.IntN(n/12), level: 5 + rng.IntN(40), start: n/4 + rng.IntN(n/8), period: 3 + rng.IntN(5)}
}

// patterns are the shapes of healthy and of leaking sites that training shows.
var patterns = []pattern{
	{"flat", false, false, func(_, _ int, d draws) int { return d.level }},
	{"noise", false, false, func(_, _ int, d draws) int { return d.level + d.rng.IntN(d.level) }},
	{"state at the first step", false, false, func(t, _ int, d draws) int { return min(t, 1) * d.level }},
	{"one stair", false, false, func(t, _ int, d draws) int { return d.level * step(t, d.start) }},
	{"ramp to a cap", false, false, func(t, n int, _ draws) int { return min(t, n/3) }},
	{"saw-tooth", false, false, func(t, _ int, d draws) int { return t % d.period }},
	{"ramp in each epoch", false, true, func(t, _ int, d draws) int { return t % d.epoch }},
	{"spikes", false, false, func(t, _ int, d draws) int { return d.level * step(t%d.epoch, d.epoch-1) }},
	{"each step", true, false, func(t, _ int, _ draws) int { return t }},
	{"each period", true, false, func(t, _ int, d draws) int { return t / d.period }},
	{"each epoch", true, false, func(t, _ int, d draws) int { return t / d.epoch }},
	{"each step under noise", true, false, func(t, n int, d draws) int { return t + d.rng.IntN(n/5) }},
	{"from the middle on", true, false, func(t, _ int, d draws) int { return max(0, t-d.start) }},
	{"each step over a saw-tooth", true, false, func(t, _ int, d draws) int { return t + 3*(t%d.period) }},
}

func step(t, from int) int {
	if t >= from {
		return 1
	}
	return 0
}

// simulate is a run with one site for each pattern, as counters of n steps or as
// snapshots every so many of them.
func simulate(seed uint64, n, every int) *snapshot.Run {
	run := &snapshot.Run{}
	series := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: snapshot.CPU}}}
	drawn := make([]draws, len(patterns))
	for i := range patterns {
		drawn[i] = drawsOf(seed*100+uint64(i), n)
		id := series.Stacks.InternFrames([]snapshot.Frame{{Function: patterns[i].name, File: "train.py", Line: i}})
		series.Sites = append(series.Sites, snapshot.SeriesSite{Stack: id})
	}
	for t := range n + 1 {
		point := snapshot.Point{Mark: snapshot.Mark{Step: int64(t)}, Meters: make([]snapshot.Meters, 1)}
		snap := &snapshot.Snapshot{Mark: point.Mark, Stacks: series.Stacks, Devices: series.Devices, Segments: []snapshot.Segment{{}}}
		b := &snap.Blocks
		for i, p := range patterns {
			count := p.at(t, n, drawn[i])
			point.Sites = append(point.Sites, snapshot.SiteCount{Site: int32(i), Count: int64(count), Bytes: snapshot.Bytes(count) * 4096})
			for k := range count {
				b.Segment = append(b.Segment, 0)
				b.Address = append(b.Address, uint64(i<<32+k*4096))
				b.Size, b.Requested = append(b.Size, 4096), append(b.Requested, 4096)
				b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, series.Sites[i].Stack)
			}
		}
		series.Points = append(series.Points, point)
		if t%every == 0 {
			run.Snapshots = append(run.Snapshots, snap)
		}
	}
	if every == n/2 {
		run.Series = series
	}
	return run
}

// TestVerdictsOnSimulatedRuns counts verdicts without any help of births. What is
// healthy is never called a leak; of the leaks few may go unseen.
func TestVerdictsOnSimulatedRuns(t *testing.T) {
	for _, c := range []struct {
		name        string
		n, every    int
		leastRecall float64
	}{
		{"counters of 400 steps", 400, 200, 0.99},
		{"counters of 120 steps", 120, 60, 0.95},
		{"50 snapshots", 400, 8, 0.95},
		{"12 snapshots", 396, 36, 0.6}, // nothing but births tells more
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks, found := 0, 0
			missed := map[string]int{}
			for seed := range uint64(30) {
				r, err := Analyze(simulate(seed, c.n, c.every), ByTrend)
				if err != nil {
					t.Fatal(err)
				}
				called := map[string]Finding{}
				for _, f := range r.Findings {
					if f.Verdict == Leak {
						called[f.Rows[0].Frames[0].Function] = f
					}
				}
				for _, p := range patterns {
					f, ok := called[p.name]
					switch {
					case p.leaks && ok:
						found++
					case p.leaks:
						missed[p.name]++
					case ok && (!p.aliases || c.every == c.n/2):
						t.Errorf("seed %d: %s is called a leak: %v", seed, p.name, f.Reasons)
					}
					if p.leaks {
						leaks++
					}
				}
			}
			recall := float64(found) / float64(leaks)
			t.Logf("recall %.3f, missed %v", recall, missed)
			if recall < c.leastRecall {
				t.Errorf("recall %.3f, want at least %.2f; missed %v", recall, c.leastRecall, missed)
			}
		})
	}
}
