package diff

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// lives is a run of blocks that are born in one step and freed in another, seen at so
// many snapshots with their births, and with counters of each step where they are asked for.
func lives(steps, snapshots int64, counters bool, blocks [][2]int64) *snapshot.Run {
	var run snapshot.Run
	held := func(at int64) (out []block) {
		for _, b := range blocks {
			if b[0] < at && at <= b[1] {
				out = append(out, block{"x", 512, b[0]})
			}
		}
		return out
	}
	for i := range snapshots {
		at := i * steps / (snapshots - 1)
		run.Snapshots = append(run.Snapshots, build(at, append(grown("w", 1, 512, snapshot.NoStep, 0), held(at)...)...))
	}
	if !counters {
		return &run
	}
	last := run.Snapshots[len(run.Snapshots)-1]
	series := &snapshot.Series{Stacks: last.Stacks, Devices: last.Devices}
	b := &last.Blocks
	series.Sites = []snapshot.SeriesSite{{Stack: b.Stack[0]}, {Stack: b.Stack[b.Len()-1]}}
	for at := range steps + 1 {
		p := snapshot.Point{Mark: snapshot.Mark{Step: at}, Meters: make([]snapshot.Meters, 1), Sites: []snapshot.SiteCount{{Count: 1, Bytes: 512}}}
		n := int64(len(held(at)))
		p.Sites = append(p.Sites, snapshot.SiteCount{Site: 1, Count: n, Bytes: 512 * snapshot.Bytes(n)})
		series.Points = append(series.Points, p)
	}
	run.Series = series
	return &run
}

const never = int64(1) << 40

func verdictOf(t *testing.T, run *snapshot.Run) (Verdict, []string) {
	t.Helper()
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Rows[0].Frames[1].Function == "x" {
			return f.Verdict, f.Reasons
		}
	}
	return Clean, nil
}

// TestYoungRunsDecideSeldom counts verdicts over 40 seeds, of runs that may be too short to
// tell: how many may be wrong is what chance leaves.
func TestYoungRunsDecideSeldom(t *testing.T) {
	once := func(at []int64) (out [][2]int64) {
		for _, step := range at {
			out = append(out, [2]int64{step, never})
		}
		return out
	}
	cache := func(rng *rand.Rand) [][2]int64 {
		var at []int64
		seen := make(map[int]bool)
		keys := 30 + rng.IntN(31)
		for step := range int64(60) {
			if key := rng.IntN(keys); !seen[key] {
				seen[key] = true
				at = append(at, step)
			}
		}
		return once(at)
	}
	few := func(rng *rand.Rand) [][2]int64 {
		var at []int64
		for range 3 + rng.IntN(4) {
			at = append(at, 6+rng.Int64N(54))
		}
		slices.Sort(at)
		return once(slices.Compact(at))
	}
	sessions := func(rng *rand.Rand) (out [][2]int64) {
		for start := range int64(60) {
			if rng.Float64() > 0.3 {
				continue
			}
			end := start + 4 + rng.Int64N(16)
			for step := start; step < end; step++ {
				out = append(out, [2]int64{step, end})
			}
		}
		return out
	}
	window := func(*rand.Rand) (out [][2]int64) { // of recent steps, made larger five times
		for step := range int64(60) {
			for range 1 + step/10 {
				out = append(out, [2]int64{step, step + 1})
			}
		}
		return out
	}
	coin := func(rng *rand.Rand) [][2]int64 {
		var at []int64
		for step := range int64(60) {
			if rng.Float64() < 0.4 {
				at = append(at, step)
			}
		}
		return once(at)
	}
	for _, c := range []struct {
		name      string
		blocks    func(*rand.Rand) [][2]int64
		snapshots int64
		counters  bool
		wrong     Verdict
		at        int // most
	}{
		{"a cache over 30 to 60 keys, 6 snapshots", cache, 6, false, Leak, 14},
		{"the same with counters", cache, 6, true, Leak, 14},
		{"few births at random", few, 6, false, Bounded, 4},
		{"the same with counters", few, 2, true, Bounded, 4},
		{"sessions that overlap", sessions, 11, false, Leak, 0},
		{"sessions that overlap, with counters", sessions, 11, true, Leak, 0},
		{"a window that widens by a plan", window, 11, true, Leak, 0},
		{"the same without counters", window, 11, false, Leak, 0},
		{"a leak by the throw of a coin", coin, 6, false, Inconclusive, 4},
		{"a leak by the throw of a coin, with counters", coin, 6, true, Inconclusive, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for seed := range uint64(40) {
				if got, _ := verdictOf(t, lives(60, c.snapshots, c.counters, c.blocks(rand.New(rand.NewPCG(seed, 9))))); got == c.wrong {
					n++
				}
			}
			if t.Logf("%d of 40 are %s", n, c.wrong); n > c.at {
				t.Errorf("%d of 40 are %s; want %d at most", n, c.wrong, c.at)
			}
		})
	}
}
