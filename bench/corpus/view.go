package corpus

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// View is the corpus as another recorder would see it: the same programs, with less
// known of their memory.
type View struct {
	Name  string
	About string
	// Counters: the figures of each step are known between the snapshots.
	Counters bool
	// marks are the steps with a snapshot, ascending, the first 0; nil for 11, evenly
	// apart.
	marks func(steps int64, rng *rand.Rand) []int64
	// see takes from a run what this recorder does not see; nil for nothing.
	see func(run *snapshot.Run, rng *rand.Rand)
	// rename gives a file of the corpus the name that see gives it; nil for its own.
	rename func(file string) string
	// goesOn: the run ends at a step between its last snapshot and the next.
	goesOn bool
	// once: it is judged at its end only, since each judgement takes long.
	once bool
	// noHolders: nothing tells what holds the blocks.
	noHolders bool
	// processes: two run the program, and each records itself, the second at uneven marks.
	processes bool
	// resumes: the run is killed, and another process goes on from its last snapshot.
	resumes bool
}

// Whole is what memdiag's own engine records.
const Whole = "whole"

// Views lists all, the whole first.
func Views() []View {
	return []View{
		{Name: Whole, About: "11 snapshots of all blocks, with births and owners, and the counters of each step", Counters: true},
		{Name: "no-owners", About: "without the classes of owners", Counters: true, see: hideOwners},
		{Name: "no-holders", About: "without owners and holders", Counters: true, see: hideHolders, noHolders: true},
		{Name: "no-births", About: "without the step in which a block was born", Counters: true, see: hideBirths},
		{Name: "no-names", About: "the names that the programs chose are replaced", Counters: true, see: HideNames, rename: hiddenFile},
		{Name: "files", About: "11 snapshot files, without owners, holders, births and counters", see: inTurn(hideHolders, hideBirths), noHolders: true},
		{Name: "marks-12", About: "12 snapshots, without counters", marks: evenly(12)},
		{Name: "marks-6", About: "6 snapshots, without counters", marks: evenly(6)},
		{Name: "marks-4", About: "4 snapshots, without counters", marks: evenly(4)},
		{Name: "marks-2", About: "two snapshots, without counters", marks: evenly(2)},
		{Name: "clock", About: "12 snapshots by the clock, unevenly apart, without steps, owners, holders and counters", marks: unevenly(12), see: inTurn(hideHolders, byClock), noHolders: true},
		{Name: "sampled", About: "one step in 8 is watched: of the others blocks are counted by size; no owners, no counters", see: inTurn(hideOwners, sampleSteps(8))},
		{Name: "totals", About: "bytes and number of blocks by stack, without counters", see: totalsOnly, noHolders: true},
		{Name: "rounded", About: "sizes as PyTorch's allocator rounds them; no owners, holders, counters", see: inTurn(hideHolders, roundSizes), noHolders: true},
		{Name: "noise", About: "11 snapshots, without counters, and 10,000 noisy sites beside the program's", see: addNoise(10_000), once: true},
		{Name: "killed", About: "the run ends without warning after 60 to 90 % of its steps", Counters: true, marks: untilKilled, goesOn: true},
		{Name: "resumed", About: "a run is killed after 60 % of its steps, and another process goes on from its last snapshot; no counters", resumes: true},
		{Name: "processes", About: "two processes run the program, and each is recorded, the second at uneven steps", Counters: true, processes: true},
	}
}

// FindView returns the view with this name.
func FindView(name string) (View, error) {
	var names []string
	for _, v := range Views() {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return View{}, fmt.Errorf("there is no view %q: it is one of %s", name, strings.Join(names, ", "))
}

// Snapshots is a view of n snapshots without counters.
func Snapshots(n int) View {
	return View{Name: fmt.Sprintf("marks-%d", n), About: fmt.Sprintf("%d snapshots, without counters", n), marks: evenly(n)}
}

func inTurn(parts ...func(*snapshot.Run, *rand.Rand)) func(*snapshot.Run, *rand.Rand) {
	return func(run *snapshot.Run, rng *rand.Rand) {
		for _, see := range parts {
			see(run, rng)
		}
	}
}

// evenly are n marks. Where the steps do not divide, the last few are not run.
func evenly(n int) func(int64, *rand.Rand) []int64 {
	return func(steps int64, _ *rand.Rand) []int64 {
		every := max(1, steps/int64(n-1))
		marks := make([]int64, n)
		for i := range marks {
			marks[i] = int64(i) * every
		}
		return marks
	}
}

// unevenly are n marks at most, whose distances differ by a factor of three or more
// between the shortest and the longest fifth.
func unevenly(n int) func(int64, *rand.Rand) []int64 {
	return func(steps int64, rng *rand.Rand) []int64 {
		at := make([]float64, n)
		for i := 1; i < n; i++ {
			at[i] = at[i-1] + math.Exp(0.7*rng.NormFloat64())
		}
		marks := make([]int64, n)
		for i := range marks {
			marks[i] = int64(at[i] / at[n-1] * float64(steps))
		}
		return slices.Compact(marks)
	}
}

// untilKilled are eleven marks, less those after the end.
func untilKilled(steps int64, rng *rand.Rand) []int64 {
	marks := evenly(11)(steps, rng)
	return marks[:7+rng.IntN(4)]
}

func hideOwners(run *snapshot.Run, _ *rand.Rand) {
	for _, s := range run.Snapshots {
		s.Blocks.Owners = nil
	}
}

func hideHolders(run *snapshot.Run, _ *rand.Rand) {
	for _, s := range run.Snapshots {
		s.Blocks.Owners, s.Holders = nil, nil
	}
}

func hideBirths(run *snapshot.Run, _ *rand.Rand) {
	for _, s := range run.Snapshots {
		s.Blocks.BirthStep, s.Blocks.BirthTime = nil, nil
	}
}

// byClock replaces steps by times. A step takes 0.2 s, now longer and now shorter.
func byClock(run *snapshot.Run, rng *rand.Rand) {
	last := run.Snapshots[len(run.Snapshots)-1].Mark.Step
	at := make([]time.Time, last+2)
	at[0] = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 1; i < len(at); i++ {
		at[i] = at[i-1].Add(time.Duration(0.2e9 * math.Exp(0.4*rng.NormFloat64())))
	}
	for _, s := range run.Snapshots {
		b := &s.Blocks
		b.BirthTime = make([]int64, b.Len())
		for i, step := range b.BirthStep {
			if step != snapshot.NoStep && b.State[i] != snapshot.Free {
				within := time.Duration(rng.Float64() * float64(at[step+1].Sub(at[step])))
				b.BirthTime[i] = min(at[step].Add(within).UnixMicro(), at[s.Mark.Step].UnixMicro())
			}
		}
		b.BirthStep = nil
		s.Mark = snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: at[s.Mark.Step]}
	}
}

// sampleSteps watches the first step, and then one in n, drawn at random. Blocks of the others are shared
// out by their size among those of watched steps after the first, as package record's agent does it,
// and have no stack where there is none of their size.
func sampleSteps(n int) func(*snapshot.Run, *rand.Rand) {
	return func(run *snapshot.Run, rng *rand.Rand) {
		watched := make(map[int64]bool)
		for step := range run.Snapshots[len(run.Snapshots)-1].Mark.Step + 1 {
			watched[step] = rng.IntN(n) == 0 || step == 0
		}
		for _, s := range run.Snapshots {
			sampleBlocks(s, func(row int) bool { return watched[s.Blocks.BirthStep[row]] })
		}
	}
}

// sampleBlocks leaves the rows that were watched, which stand for the others of their
// size on their device, and a row without a stack for the others of a size.
func sampleBlocks(s *snapshot.Snapshot, watched func(row int) bool) {
	type like struct {
		device int
		size   snapshot.Bytes
	}
	b := &s.Blocks
	b.Count = make([]int64, b.Len())
	seen, unseen := make(map[like][]int), make(map[like][]int)
	for row := range b.Len() {
		b.Count[row] = 1
		if b.State[row] != snapshot.Live {
			continue
		}
		key := like{s.Segments[b.Segment[row]].Device, b.Size[row]}
		switch {
		case !watched(row):
			unseen[key] = append(unseen[key], row)
		case b.BirthStep[row] > 0: // what was made when all was watched stands for itself
			seen[key] = append(seen[key], row)
		}
	}
	gone := make([]bool, b.Len())
	for key, rows := range unseen {
		for _, row := range rows {
			gone[row] = true
		}
		among := seen[key]
		if len(among) == 0 {
			first := rows[0]
			gone[first] = false
			b.Stack[first], b.BirthStep[first] = snapshot.NoStack, snapshot.NoStep
			among = rows[:1]
			rows = rows[1:]
		}
		for i := range rows {
			b.Count[among[i%len(among)]]++
		}
	}
	for row := range b.Len() {
		b.Size[row] *= snapshot.Bytes(b.Count[row])
		b.Requested[row] *= snapshot.Bytes(b.Count[row])
	}
	keepRows(s, func(row int) bool { return !gone[row] && b.State[row] == snapshot.Live })
}

// totalsOnly makes a row of all live blocks of a stack, as heap profilers do.
func totalsOnly(run *snapshot.Run, _ *rand.Rand) {
	hideHolders(run, nil)
	hideBirths(run, nil)
	for _, s := range run.Snapshots {
		b := &s.Blocks
		b.Count = make([]int64, b.Len())
		for _, site := range s.Sites() {
			first := site.Rows[0]
			b.Count[first], b.Size[first], b.Requested[first], b.Address[first] = site.Count, site.Bytes, site.Requested, 0
		}
		keepRows(s, func(row int) bool { return b.Count[row] > 0 })
	}
}

// keepRows drops the rows of blocks that keep does not name. Segments stay, with what
// is left in them.
func keepRows(s *snapshot.Snapshot, keep func(row int) bool) {
	b := &s.Blocks
	var rows []int
	for i := range s.Segments {
		g := &s.Segments[i]
		first := len(rows)
		for row := g.FirstBlock; row < g.FirstBlock+g.NumBlocks; row++ {
			if keep(row) {
				rows = append(rows, row)
			}
		}
		g.FirstBlock, g.NumBlocks = first, len(rows)-first
	}
	*b = snapshot.Blocks{
		Segment: pick(b.Segment, rows), Address: pick(b.Address, rows), Size: pick(b.Size, rows), Requested: pick(b.Requested, rows),
		State: pick(b.State, rows), Stack: pick(b.Stack, rows), BirthStep: pick(b.BirthStep, rows), BirthTime: pick(b.BirthTime, rows),
		Owners: pick(b.Owners, rows), Count: pick(b.Count, rows),
	}
}

func pick[T any](column []T, rows []int) []T {
	if column == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = column[row]
	}
	return out
}

// roundSizes makes sizes multiples of 512 B and, above 1 MiB, of 2 MiB.
func roundSizes(run *snapshot.Run, _ *rand.Rand) {
	for _, s := range run.Snapshots {
		b := &s.Blocks
		for row, size := range b.Size {
			unit := snapshot.Bytes(512)
			if size > 1<<20 {
				unit = 2 << 20
			}
			b.Size[row] = (size + unit - 1) / unit * unit
			if b.State[row] == snapshot.Live {
				b.Requested[row] = b.Size[row]
			}
		}
	}
}

// addNoise adds sites that do not leak to the first device: a level under noise, noise
// that remembers, a pool between two walls, a saw-tooth, a ramp to a cap, a stair and
// spikes.
func addNoise(sites int) func(*snapshot.Run, *rand.Rand) {
	return func(run *snapshot.Run, rng *rand.Rand) {
		n := len(run.Snapshots)
		counts := make([][]int64, sites)
		for i := range counts {
			counts[i] = noise(i%7, n, rng)
		}
		for at, s := range run.Snapshots {
			g := len(s.Segments)
			s.Segments = append(s.Segments, snapshot.Segment{FirstBlock: s.Blocks.Len(), NumBlocks: sites})
			b := &s.Blocks
			b.Count = slices.Repeat([]int64{1}, b.Len())
			for i, count := range counts {
				frame := snapshot.Frame{Function: fmt.Sprint("work", i), File: "noise/noise.go", Line: i + 1}
				b.Segment, b.Address = append(b.Segment, int32(g)), append(b.Address, 0)
				b.Stack, b.State = append(b.Stack, s.Stacks.InternFrames([]snapshot.Frame{frame})), append(b.State, snapshot.Live)
				size := snapshot.Bytes(count[at]) * 4096
				b.Size, b.Requested, b.Count = append(b.Size, size), append(b.Requested, size), append(b.Count, count[at])
				b.BirthStep, b.Owners = append(b.BirthStep, snapshot.NoStep), append(b.Owners, 0)
				s.Segments[g].Size += size
			}
		}
	}
}

// noise is how many blocks a site of a kind has at each of n snapshots.
func noise(kind, n int, rng *rand.Rand) []int64 {
	out := make([]int64, n)
	level, width, memory := 20+rng.IntN(100), 1+rng.IntN(40), 0.0
	keep, end, period := 0.2+0.7*rng.Float64(), 1+rng.IntN(max(n/3, 1)), 2+rng.IntN(5)
	wall := level
	for t := range out {
		var count int
		switch kind {
		case 0:
			count = level + rng.IntN(width)
		case 1:
			memory = keep*memory + 5*rng.NormFloat64()
			count = level + int(memory)
		case 2:
			wall = min(max(wall+rng.IntN(2*width+1)-width, 1), 2*level)
			count = wall
		case 3:
			count = 1 + width*(t%period)
		case 4:
			count = 1 + level*min(t, end) + rng.IntN(4)
		case 5:
			if t >= end {
				count = width
			}
			count++
		default:
			count = 1
			if rng.IntN(5) == 0 {
				count += width
			}
		}
		out[t] = int64(max(count, 1))
	}
	return out
}
