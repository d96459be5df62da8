package diff

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

func TestWhatAContainerHoldsBelowItsBoundIsNoLeak(t *testing.T) {
	for _, c := range []struct {
		name   string
		bound  int
		blocks int64 // for each item
		left   snapshot.Bytes
		alter  func(i int, h *snapshot.Holder)
		want   Verdict
		says   string
	}{
		{name: "without a bound", want: Leak},
		{name: "below it", bound: 1000, want: Bounded, says: "the deque replay.items fills up: it has 100 of 1,000 items, and will be full in about 900 steps; full, it takes 3.91 MiB"},
		{name: "with several blocks an item", bound: 1000, blocks: 4, want: Bounded, says: "it has 25 of 1,000 items, and will be full in about 3,900 steps"},
		{name: "more than fits into memory", bound: 1 << 40, left: snapshot.GiB, want: Leak, says: "and 1.00 GiB is free"},
		{name: "more than ever comes, and no limit is known", bound: 1 << 40, want: Inconclusive, says: "of 1,099,511,627,776 items, and will be full after more than 100 times this run; full, it takes 4096 TiB; whether that fits into memory is unknown"},
		{name: "more bytes than there are numbers", bound: 1 << 60, want: Inconclusive, says: "whether that fits into memory is unknown"},
		{name: "more than comes soon, which fits", bound: 100_000, left: snapshot.GiB, want: Bounded, says: "of 100,000 items, and will be full after more than 100 times this run"},
		{name: "full at the end", bound: 100, want: Bounded, says: "is full: it holds at most 100 items"},
		{name: "full in the middle, and the blocks go on", bound: 50, want: Leak, alter: func(_ int, h *snapshot.Holder) { h.Items = min(h.Items, 50) }},
		{name: "a few items that grow themselves", bound: 50, want: Leak, alter: func(_ int, h *snapshot.Holder) { h.Items = 10 }},
		{name: "counted before the end", bound: 1000, want: Bounded, says: "it has 100 of 1,000 items", alter: func(i int, h *snapshot.Holder) {
			if i > 5 {
				h.Items, h.Counted = 50, 50
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{
				{stack: "init:1 main:2"},
				{stack: "push:31 main:45", every: 1, size: 4096, holder: "replay.items", kind: "deque"},
			}.run(100, 10)
			for i, s := range run.Snapshots {
				for k := range s.Holders {
					h := &s.Holders[k]
					h.Bound, h.Items = c.bound, h.Items/int(max(1, c.blocks))
					if c.alter != nil {
						c.alter(i, h)
					}
				}
				if c.left > 0 {
					s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: c.left + 1, Meters: snapshot.Meters{Driver: 1}})
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Findings[0]
			if f.Verdict != c.want || !strings.Contains(strings.Join(f.Reasons, "; "), c.says) {
				t.Errorf("%s: %q", f.Verdict, f.Reasons)
			}
			if fills := c.want == Bounded && !strings.Contains(c.says, "is full"); fills != slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "fills up") }) {
				t.Errorf("the notes are %q", r.Notes)
			}
		})
	}
}

// TestAContainerThatHadItemsWhenItsLineBecameKnownFills: windows of tracemalloc saw the line of a cache of 100,000 entries once it had 6,000,
// and the cache was called a leak.
func TestAContainerThatHadItemsWhenItsLineBecameKnownFills(t *testing.T) {
	for _, c := range []struct {
		name  string
		items func(blocks int) int
		want  Verdict
	}{
		{"a block an item", func(blocks int) int { return 60 + blocks }, Bounded},
		{"items that grow themselves later", func(blocks int) int { return 60 + blocks - max(0, blocks-50)*2/3 }, Leak},
		{"no further items", func(int) int { return 60 }, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := program{{stack: "push:31 main:45", every: 1, size: 4096, holder: "words.cache", kind: "cache"}}.run(100, 10)
			for _, s := range run.Snapshots {
				s.Devices[0].Kind = snapshot.PythonHeap
				for k := range s.Holders {
					s.Holders[k].Bound, s.Holders[k].Items = 1000, c.items(s.Holders[k].Items)
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("%s: %q", f.Verdict, f.Reasons)
			}
		})
	}
}

// TestALineInStepWithAContainerThatFillsIsUndecided: the line's objects may be the items, by the step and by the clock.
func TestALineInStepWithAContainerThatFillsIsUndecided(t *testing.T) {
	for _, clock := range []bool{false, true} {
		for bound, want := range map[int]Verdict{0: Leak, 1000: Inconclusive} {
			run := program{
				{stack: "init:1 main:2", holder: "cache", kind: "dict"},
				{stack: "push:31 main:45", every: 1, size: 4096},
			}.run(100, 10)
			for i, s := range run.Snapshots {
				s.Devices[0].Kind = snapshot.PythonHeap
				s.Holders = []snapshot.Holder{{Path: "cache", Kind: "dict", Items: 10 * i, Bound: bound}}
				if clock {
					s.Mark = snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep, Time: time.Unix(1_700_000_000+10*int64(i), 0)}
					for k := range s.Blocks.BirthStep {
						s.Blocks.BirthStep[k] = snapshot.NoStep
					}
				}
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != want || f.Rate.Unit == Second != clock {
				t.Errorf("by the clock %t, a bound of %d: %s by the %s, %q; want %s", clock, bound, f.Verdict, f.Rate.Unit, f.Reasons, want)
			}
		}
	}
}

// A backlog has what came of late, of which there is ever more; a list that only grows has the first as well.
func TestABacklogIsDrained(t *testing.T) {
	for want, oldest := range map[cause.Answer]func(step int64) int64{
		cause.Yes: func(step int64) int64 { return step / 2 },
		cause.No:  func(int64) int64 { return 0 },
	} {
		var snapshots []*snapshot.Snapshot
		for step := int64(0); step <= 100; step += 10 {
			blocks := []block{{stack: "init", size: 64, birth: snapshot.NoStep}}
			for birth := oldest(step); birth < step; birth++ {
				blocks = append(blocks, block{"fetch", 4096, birth})
			}
			snapshots = append(snapshots, build(step, blocks...))
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.drained(r.Findings[0].Rows); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A list has a model of each fold from the first snapshot on, and each fold has one set of gradients, which are replaced: it was called a queue.
func TestAListOfModelsIsNotDrained(t *testing.T) {
	var snapshots []*snapshot.Snapshot
	for step := int64(1); step <= 201; step += 10 {
		blocks := []block{{stack: "init", size: 64, birth: snapshot.NoStep}}
		for begins := int64(0); begins < step; begins += 25 {
			blocks = append(blocks, block{"model", 4096, begins}, block{"backward", 4096, min(step, begins+25) - 1})
		}
		snapshots = append(snapshots, build(step, blocks...))
	}
	r, err := Analyze(runOf(snapshots...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	byFunction := map[string]*Row{}
	for i := range r.Rows {
		byFunction[r.Rows[i].Frames[1].Function] = &r.Rows[i]
	}
	gradients, models := byFunction["backward"], byFunction["model"]
	if got := r.drained([]*Row{gradients}); got != cause.Yes {
		t.Errorf("the gradients: %v", got)
	}
	if got := r.drained([]*Row{gradients, models}); got != cause.No {
		t.Errorf("with their models: %v", got)
	}
	unborn := *models
	unborn.Births.Steps = nil
	if got := r.drained([]*Row{gradients, &unborn}); got != cause.Unknown {
		t.Errorf("with models of which no birth is known: %v", got)
	}
}

// A full deque gives up a block for each that it takes. Where steps are not watched its blocks are assigned to lines by
// size, so one line may seem to rise for as long as another falls.
func TestLinesOfAFullContainerTradePlaces(t *testing.T) {
	for _, c := range []struct {
		name        string
		line, other string // that keep the rising line and the other
		falls       int    // of ten, how many of the other line's blocks go for each ten that come
		want        Verdict
	}{
		{"one deque", "replay.items", "replay.items", 10, Bounded},
		{"a tuple in it", "replay.items[…]", "replay.items", 10, Bounded},
		{"another deque", "replay.items", "history", 10, Bounded},
		{"another deque, which falls by nearly as much", "replay.items", "history", 9, Inconclusive},
		{"another deque, which falls by half as much", "replay.items", "history", 5, Leak},
		{"all of it grows", "replay.items", "replay.items", 0, Leak},
	} {
		t.Run(c.name, func(t *testing.T) {
			var snapshots []*snapshot.Snapshot
			for i := range 15 {
				step := int64(10 * i)
				blocks := append([]block{{stack: "init", size: 64, birth: snapshot.NoStep}}, grown("roll", 1+i, 32, 0, 10)...)
				blocks = append(blocks, grown("push", 100-c.falls*i/10, 32, max(0, step-100), 1)...)
				s := build(step, blocks...)
				rising, falling := s.Blocks.Stack[1], s.Blocks.Stack[len(blocks)-1]
				s.Holders = []snapshot.Holder{
					{Stack: rising, Path: c.line, Kind: "deque", Items: 100, Bound: 100},
					{Stack: falling, Path: c.other, Kind: "deque", Items: 100, Bound: 100},
				}
				if strings.HasSuffix(c.line, "[…]") {
					s.Holders[0] = snapshot.Holder{Stack: rising, Path: c.line, Kind: "tuple", Items: 4}
				}
				snapshots = append(snapshots, s)
			}
			r, err := Analyze(runOf(snapshots...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if f := r.Findings[0]; f.Verdict != c.want {
				t.Errorf("%s, want %s: %q", f.Verdict, c.want, f.Reasons)
			}
		})
	}
}

// A deque that is full hides a leak of the same line: each 25th of what it takes is kept in a map as well.
func TestAFullContainerHidesNoLeakOfItsLine(t *testing.T) {
	for _, c := range []struct {
		name        string
		bound, kept int64 // and how many come for one that is kept; 0 for none
		also        int64 // that the step holds at the last mark
		want        Verdict
	}{
		{"each 25th is kept", 200, 25, 0, Inconclusive},
		{"none is kept", 200, 0, 0, Bounded},
		{"none is kept, and the step that runs holds one", 200, 0, 1, Bounded},
		{"each is kept", 200, 1, 0, Leak},
	} {
		var snapshots []*snapshot.Snapshot
		for _, step := range []int64{1, 50, 100, 150, 200, 260, 340, 440} {
			from := max(0, step-c.bound)
			blocks := append(grown("init", 1, 64, 0, 0), grown("push", int(step-from), 4096, from, 1)...)
			for birth := int64(0); c.kept > 0 && birth < from; birth += c.kept {
				blocks = append(blocks, block{"push", 4096, birth})
			}
			if step == 440 {
				blocks = append(blocks, grown("push", int(c.also), 4096, step, 0)...)
			}
			s := build(step, blocks...)
			s.Holders = []snapshot.Holder{{Stack: s.Blocks.Stack[1], Path: "replay", Kind: "deque", Items: int(step - from), Bound: int(c.bound)}}
			snapshots = append(snapshots, s)
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; f.Verdict != c.want {
			t.Errorf("%s: %s, want %s: %q", c.name, f.Verdict, c.want, f.Reasons)
		}
	}
}

// Thousands of containers are looked at once, and not once for each that is full.
func TestManyFullContainersTakeNoTime(t *testing.T) {
	heavytest.NearlyLinear(t, 2500, func(many int) {
		var snapshots []*snapshot.Snapshot
		for step := int64(10); step <= 120; step += 10 {
			var blocks []block
			for i := range many {
				blocks = append(blocks, grown("f"+strconv.Itoa(i), int(step/10), 512, 0, 10)...)
			}
			s := build(step, blocks...)
			for i := range many {
				s.Holders = append(s.Holders, snapshot.Holder{Stack: s.Blocks.Stack[i*int(step/10)], Path: "q" + strconv.Itoa(i), Kind: "deque", Items: 20, Bound: 20})
			}
			snapshots = append(snapshots, s)
		}
		r, err := Analyze(runOf(snapshots...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		if r.Leaks() == 0 {
			t.Error("no leak")
		}
	})
}

// TestWhatRisesWithAContainerThatFillsIsUndecided: the search for holders found too few of a replay memory's tuples, and the
// line that appends them was called a leak.
func TestWhatRisesWithAContainerThatFillsIsUndecided(t *testing.T) {
	for _, c := range []struct {
		name   string
		bound  int
		every  int64 // steps to a block of the other line; the deque has an item each step
		device snapshot.DeviceKind
		want   Verdict
	}{
		{"objects of each item", 1000, 1, snapshot.PythonHeap, Inconclusive},
		{"far fewer objects than items", 1000, 10, snapshot.PythonHeap, Leak},
		{"tensors, whose number is exact", 1000, 1, snapshot.CPU, Leak},
		{"the deque is full", 100, 1, snapshot.PythonHeap, Leak},
		{"the deque has no bound", 0, 1, snapshot.PythonHeap, Leak},
	} {
		run := program{
			{stack: "push:31 main:45", every: 1, size: 4096, holder: "replay.items", kind: "deque"},
			{stack: "append:23 main:48", every: c.every},
		}.run(100, 10)
		for _, s := range run.Snapshots {
			s.Devices[0].Kind = c.device
			for k := range s.Holders {
				s.Holders[k].Bound = c.bound
			}
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rows[0].Frames[0].Line == 23 })
		if f := r.Findings[i]; f.Verdict != c.want {
			t.Errorf("%s: %s: %q; want %s", c.name, f.Verdict, f.Reasons, c.want)
		}
	}
}

// TestAFillingContainerIsHeldAgainstTheRatesThatMayBe: windows saw 228 of 3,712 tuples of a replay memory, 0.1 to 0.9 a step, and
// their line was called a leak.
func TestAFillingContainerIsHeldAgainstTheRatesThatMayBe(t *testing.T) {
	run := program{{stack: "push:31 main:45", every: 1, size: 4096, holder: "replay.items", kind: "deque"}}.run(100, 10)
	for _, s := range run.Snapshots {
		for k := range s.Holders {
			s.Holders[k].Bound = 1000
		}
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		low, high float64
		fills     bool
	}{{0.1, 0.9, true}, {0.9, 1.1, true}, {7, 20, true}, {0.1, 0.3, false}, {9, 20, false}} {
		leak := cluster{rows: []*Row{{Device: snapshot.Device{Kind: snapshot.PythonHeap}}}, j: judge.Judgement{
			Verdict: Leak, Rate: Rate{Unit: Step, Blocks: trend.Slope{Value: 5, Low: c.low, High: c.high, N: 6}},
		}}
		if got := r.fillsInStep(&leak) != nil; got != c.fills {
			t.Errorf("%v to %v blocks a step: %v", c.low, c.high, got)
		}
	}
}

// A full deque of a run in which few steps are watched: for a while some of its blocks were another line's.
func TestAContainerStaysFullThoughSomeOfItsBlocksWereAnotherLines(t *testing.T) {
	for _, c := range []struct {
		blocks []float64
		want   bool
	}{
		{[]float64{317, 342, 366, 390, 392, 391, 392, 391, 391, 392, 391, 392, 392, 392}, true},
		{[]float64{317, 342, 366, 390, 392, 393, 394, 395, 396, 397, 398, 399, 400, 401}, false},
		{[]float64{384, 384, 384, 384}, true},
		{[]float64{384, 384, 384}, false},
		{[]float64{317, 384, 384, 384}, false},
	} {
		if got := staysFull(c.blocks); got != c.want {
			t.Errorf("%v: got %v", c.blocks, got)
		}
	}
}
