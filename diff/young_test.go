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
	reservoir := func(rng *rand.Rand) (out [][2]int64) { // of 24 items, in each step one offered with odds of a half
		var kept []int
		seen := 0
		for step := range int64(60) {
			if rng.Float64() < 0.5 {
				continue
			}
			seen++
			if len(kept) < 24 {
				kept = append(kept, len(out))
				out = append(out, [2]int64{step, never})
			} else if i := rng.IntN(seen); i < 24 {
				out[kept[i]][1] = step
				kept[i] = len(out)
				out = append(out, [2]int64{step, never})
			}
		}
		return out
	}
	for _, c := range []struct {
		name      string
		blocks    func(*rand.Rand) [][2]int64
		snapshots int64
		counters  bool
		wrong     Verdict
		at        int // most
		unborn    bool
	}{
		{"a cache over 30 to 60 keys, 6 snapshots", cache, 6, false, Leak, 7, false},
		{"the same with counters", cache, 6, true, Leak, 7, false},
		{"few births at random", few, 6, false, Bounded, 4, false},
		{"the same with counters", few, 2, true, Bounded, 4, false},
		{"sessions that overlap", sessions, 11, false, Leak, 0, false},
		{"sessions that overlap, with counters", sessions, 11, true, Leak, 0, false},
		{"a window that widens by a plan", window, 11, true, Leak, 0, false},
		{"the same without counters", window, 11, false, Leak, 0, false},
		{"a leak by the throw of a coin", coin, 6, false, Inconclusive, 4, false},
		{"a leak by the throw of a coin, with counters", coin, 6, true, Inconclusive, 4, false},
		{"a window that widens by a plan, without births", window, 11, true, Leak, 0, true},
		{"the same, seen at 11 marks", window, 11, false, Leak, 0, true},
		{"sessions that overlap, without births", sessions, 11, true, Leak, 0, true},
		{"a reservoir that fills late, without births", reservoir, 11, true, Leak, 11, true},
		{"the same, seen at 11 marks", reservoir, 11, false, Leak, 11, true},
		{"a leak by the throw of a coin, without births", coin, 11, true, Inconclusive, 4, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for seed := range uint64(40) {
				run := lives(60, c.snapshots, c.counters, c.blocks(rand.New(rand.NewPCG(seed, 9))))
				if c.unborn {
					for _, s := range run.Snapshots {
						s.Blocks.BirthStep = nil
					}
				}
				if got, _ := verdictOf(t, run); got == c.wrong {
					n++
				}
			}
			if t.Logf("%d of 40 are %s", n, c.wrong); n > c.at {
				t.Errorf("%d of 40 are %s; want %d at most", n, c.wrong, c.at)
			}
		})
	}
}
