package diff

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestACacheOfWhichOnlyTheSumsAreKnownIsNoLeak: nor does what lies in pinned memory explain that the process grows, for it is of tensors
// that do so already.
func TestACacheOfWhichOnlyTheSumsAreKnownIsNoLeak(t *testing.T) {
	var run []*snapshot.Snapshot
	for i := range snapshot.Bytes(10) {
		s := build(int64(10*i), block{"weights", 50 * snapshot.MiB, -1})
		pinned := snapshot.Meters{Allocated: 4096, Active: 4096, Reserved: 4096 * (i + 1), Driver: snapshot.Unknown}
		heap := snapshot.Meters{Allocated: 51 * snapshot.MiB, Driver: snapshot.Unknown}
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.CPU, Index: 1, Name: snapshot.PinnedCounts, Meters: pinned}, snapshot.Device{Kind: snapshot.Process, Meters: heap})
		run = append(run, s)
	}
	r, err := Analyze(runOf(run...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	const want = "reserved memory of cpu:1 grew by 32.0 KiB after warm-up while active memory changed by 0 B. That is no leak: the allocator's cache has grown. Now 36.0 KiB are free"
	if len(r.Reserves) != 1 || r.Reserves[0].String() != want || r.Leaks() != 0 {
		t.Errorf("%d leaks, %+v", r.Leaks(), r.Reserves)
	}
	if _, rest := r.Series.Unrecorded(); rest[0] != 1<<20 {
		t.Errorf("the process has %v beside what was recorded", rest)
	}
}

func TestReservedMemoryThatGrowsAloneIsNoLeak(t *testing.T) {
	const mib = snapshot.MiB
	flat := func(i int) snapshot.Bytes { return 100 * mib }
	grows := func(i int) snapshot.Bytes { return (120 + 20*snapshot.Bytes(i)) * mib }
	for _, c := range []struct {
		name           string
		reserved, live func(i int) snapshot.Bytes
		empty          snapshot.Bytes // of the free memory, in a segment of its own
		want           string         // id of the cause; "" where nothing is said
	}{
		{"free segments are the cache's", grows, flat, 100 * mib, "cache-growth"},
		{"free pieces of segments are fragments", grows, flat, 0, "fragmentation"},
		{"live memory that grows as well explains it", grows, func(i int) snapshot.Bytes { return grows(i) - 20*mib }, 100 * mib, ""},
		{"a warm-up is none", func(i int) snapshot.Bytes { return grows(min(i, 2)) }, flat, 100 * mib, ""},
		{"one stair is none", func(i int) snapshot.Bytes { return (120 + 80*snapshot.Bytes(i/6)) * mib }, flat, 100 * mib, ""},
		{"nothing is none", flat, flat, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i := range 10 {
				s := build(int64(10*i), block{"weights", 50 * mib, -1})
				s.Devices[0].Meters = snapshot.Meters{Allocated: c.live(i), Active: c.live(i), Reserved: c.reserved(i)}
				s.Segments[0].Size = 150 * mib
				add := func(segment int32, size snapshot.Bytes) {
					b := &s.Blocks
					b.Segment, b.Address, b.Stack = append(b.Segment, segment), append(b.Address, uint64(0x90000000+b.Len()*0x10000000)), append(b.Stack, snapshot.NoStack)
					b.Size, b.Requested, b.State = append(b.Size, size), append(b.Requested, 0), append(b.State, snapshot.Free)
					b.BirthStep = append(b.BirthStep, snapshot.NoStep)
				}
				add(0, 60*mib)
				add(0, 40*mib)
				s.Segments[0].NumBlocks = 3
				if c.empty > 0 {
					s.Segments = append(s.Segments, snapshot.Segment{Address: 0x80000000, Size: c.empty, FirstBlock: 3, NumBlocks: 1})
					add(1, c.empty)
				}
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(r.Reserves) != 0 {
					t.Fatalf("got %v", &r.Reserves[0])
				}
				return
			}
			if len(r.Reserves) != 1 || r.Reserves[0].Cause == nil || r.Reserves[0].Cause.ID != c.want {
				t.Fatalf("got %+v, want %s", r.Reserves, c.want)
			}
			e := r.Reserves[0]
			if e.Free != 100*mib+c.empty || e.Trim != c.empty || e.Largest != max(60*mib, c.empty) || e.Live != 0 {
				t.Errorf("got %v", &e)
			}
			if r.Leaks() != 0 {
				t.Error("it is called a leak")
			}
		})
	}
}

// TestCountersBetweenSnapshotsTellOfReservedMemory has two snapshots and the allocator's
// counters of each step, which name no sites: those are the snapshots'.
func TestCountersBetweenSnapshotsTellOfReservedMemory(t *testing.T) {
	const mib = snapshot.MiB
	run := runOf(build(1, block{"weights", 50 * mib, -1}), build(40, block{"weights", 50 * mib, -1}))
	c := &snapshot.Series{Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: "cuda", Index: 9}, run.Snapshots[0].Devices[0]}}
	for step := int64(1); step <= 40; step++ {
		m := snapshot.Meters{Allocated: 50 * mib, Active: 50 * mib, Reserved: snapshot.Bytes(100+step) * mib}
		c.Points = append(c.Points, snapshot.Point{Mark: snapshot.Mark{Step: step}, Meters: []snapshot.Meters{{}, m}})
	}
	run.Series = c
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Series.Sites) != 1 || !slices.Equal(r.Series.Sites[0].Blocks, []int64{1, 1}) {
		t.Errorf("sites %+v", r.Series.Sites)
	}
	if len(r.Reserves) != 1 || r.Reserves[0].Growth != 35*mib {
		t.Errorf("reserves %+v", r.Reserves)
	}
	x, meters := r.Series.Metered(0)
	if len(x) != 40 || x[1] != 2 || meters[1].Reserved != 102*mib {
		t.Errorf("meters at %v: %+v", x, meters)
	}
}

func TestMemoryThatWaitsToBeFreedAndPrivatePoolsAreNamed(t *testing.T) {
	const mib = snapshot.MiB
	for _, c := range []struct {
		name            string
		pending, pooled func(i int) snapshot.Bytes
		want            []string // ids of causes
	}{
		{"what waits for a stream grows", func(i int) snapshot.Bytes { return 10 * snapshot.Bytes(i) * mib }, nil, []string{"pending-free"}},
		{"what waits comes and goes", func(i int) snapshot.Bytes { return 10 * snapshot.Bytes(i%3) * mib }, nil, nil},
		{"private pools grow", nil, func(i int) snapshot.Bytes { return 20 * snapshot.Bytes(i) * mib }, []string{"private-pool"}},
		{"one pool is captured", nil, func(i int) snapshot.Bytes { return 20 * snapshot.Bytes(min(i, 4)) / 4 * mib }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i := range 10 {
				s := build(int64(10*i), block{"weights", 50 * mib, -1})
				m := &s.Devices[0].Meters
				if c.pending != nil {
					m.Active += c.pending(i)
					m.Reserved += c.pending(i)
				}
				if c.pooled != nil {
					s.Segments = append(s.Segments, snapshot.Segment{Address: 0x80000000, Size: c.pooled(i), Private: "(0, 1)", FirstBlock: 1})
					m.Reserved += c.pooled(i)
				}
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range r.Reserves {
				got = append(got, r.Reserves[i].Cause.ID)
			}
			if !slices.Equal(got, c.want) || r.Leaks() != 0 {
				t.Errorf("got %v and %d leaks, want %v and none", got, r.Leaks(), c.want)
			}
		})
	}
}

func TestWhatBlocksTakeBeyondWhatWasRequestedIsToldOf(t *testing.T) {
	const mib = snapshot.MiB
	for _, c := range []struct {
		name                 string
		requested, allocated func(i snapshot.Bytes) snapshot.Bytes
		want                 bool
	}{
		{"requests shrink within blocks that stay", func(i snapshot.Bytes) snapshot.Bytes { return (100 - 2*i) * mib }, func(snapshot.Bytes) snapshot.Bytes { return 110 * mib }, true},
		{"more of each block is left over", func(snapshot.Bytes) snapshot.Bytes { return 100 * mib }, func(i snapshot.Bytes) snapshot.Bytes { return (110 + 3*i) * mib }, true},
		{"what is requested grows as well", func(i snapshot.Bytes) snapshot.Bytes { return (100 + 10*i) * mib }, func(i snapshot.Bytes) snapshot.Bytes { return (110 + 13*i) * mib }, false},
		{"a fiftieth is rounding", func(snapshot.Bytes) snapshot.Bytes { return 100 * mib }, func(i snapshot.Bytes) snapshot.Bytes { return 110*mib + i*mib/5 }, false},
		{"nobody told what was requested", func(snapshot.Bytes) snapshot.Bytes { return 0 }, func(i snapshot.Bytes) snapshot.Bytes { return (110 + 3*i) * mib }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i := range snapshot.Bytes(10) {
				s := build(10*int64(i), block{"weights", 50 * mib, -1})
				s.Devices[0].Meters = snapshot.Meters{Requested: c.requested(i), Allocated: c.allocated(i), Active: c.allocated(i), Reserved: 200 * mib}
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(r.Reserves) == 1 && r.Reserves[0].Cause != nil && r.Reserves[0].Cause.ID == "unsplit-waste"; got != c.want || !c.want && len(r.Reserves) > 0 {
				t.Errorf("got %+v", r.Reserves)
			}
		})
	}
}

// TestBlocksThatNobodySawAllocatedAreNamedSo: a recording that misses what allocates
// behind its back.
func TestBlocksThatNobodySawAllocatedAreNamedSo(t *testing.T) {
	var run []*snapshot.Snapshot
	for i := range 12 {
		s := build(int64(10*i), unseenBlocks(i+1)...)
		for at := range s.Blocks.Stack {
			s.Blocks.Stack[at] = snapshot.NoStack
		}
		run = append(run, s)
	}
	r, err := Analyze(runOf(run...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != 1 || r.Findings[0].Cause == nil || r.Findings[0].Cause.ID != "before-recording" {
		t.Errorf("got %+v", r.Findings)
	}
}

// unseenBlocks are as many blocks of one stack.
func unseenBlocks(n int) []block {
	var all []block
	for range n {
		all = append(all, block{"unseen", 4096, -1})
	}
	return all
}

// TestAProcessThatGrowsWithoutAStackLeaksOrMay has meters of the C library's heap.
func TestAProcessThatGrowsWithoutAStackLeaksOrMay(t *testing.T) {
	const mib = snapshot.MiB
	line := func(each float64) func(int) snapshot.Bytes {
		return func(i int) snapshot.Bytes { return 150*mib + snapshot.Bytes(each*float64(i)*float64(mib)) }
	}
	for _, c := range []struct {
		name     string
		process  func(i int) snapshot.Bytes
		recorded func(i int) snapshot.Bytes
		want     bool
		leaks    int
	}{
		{"a straight line is a leak", line(2), func(int) snapshot.Bytes { return mib }, true, 1},
		{"one that recorded tensors explain is not", line(2), func(i int) snapshot.Bytes { return line(2)(i) - 149*mib }, false, 0},
		{"a tenth beside what they explain is not: it may be their headers", func(i int) snapshot.Bytes { return line(2.2)(i) }, func(i int) snapshot.Bytes { return line(2)(i) - 149*mib }, false, 0},
		{"half as much as they explain is", func(i int) snapshot.Bytes { return line(3)(i) }, func(i int) snapshot.Bytes { return line(2)(i) - 149*mib }, true, 1},
		{"a twentieth as along a ruler is", line(0.4), func(int) snapshot.Bytes { return mib }, true, 0},
		{"so is one between which jumps come and go", func(i int) snapshot.Bytes { return line(0.4)(i) + []snapshot.Bytes{2 * mib, 0, mib}[(i+7)/10] }, func(int) snapshot.Bytes { return mib }, true, 0},
		{"a twentieth in uneven steps is not", func(i int) snapshot.Bytes { return line(0.4)(i-i%2) + snapshot.Bytes(i) }, func(int) snapshot.Bytes { return mib }, false, 0},
		{"a two-hundredth is not", line(0.04), func(int) snapshot.Bytes { return mib }, false, 0},
		{"a line that begins after a flat half is a leak", func(i int) snapshot.Bytes {
			return 150*mib + snapshot.Bytes(max(0, i-8))*9*mib + snapshot.Bytes(i%2)*mib/4
		}, func(int) snapshot.Bytes { return mib }, true, 1},
		{"a line with a copy under way at three snapshots is a leak", func(i int) snapshot.Bytes {
			return 20*mib + snapshot.Bytes(i)*mib/3 + map[int]snapshot.Bytes{7: mib, 12: 3 * mib, 18: 5 * mib}[i]
		}, func(int) snapshot.Bytes { return mib }, true, 1},
		{"a stair is not", func(i int) snapshot.Bytes { return line(30)(i / 10) }, func(int) snapshot.Bytes { return mib }, false, 0},
		{"jumps of a buffer that is replaced by larger ones may be", func(i int) snapshot.Bytes {
			return 50*mib + []snapshot.Bytes{0, 0, 0, 0, 0, 0, 0, 0, 25, 25, 55, 55, 55, 55, 95, 95, 95, 95, 95, 145}[i]*mib
		}, func(int) snapshot.Bytes { return mib }, true, 0},
		{"such of what tensors leave, which is below nothing, are not", func(i int) snapshot.Bytes {
			return 50*mib + []snapshot.Bytes{0, 0, 0, 0, 0, 0, 0, 0, 25, 25, 55, 55, 55, 55, 95, 95, 95, 95, 95, 145}[i]*mib/100
		}, func(int) snapshot.Bytes { return 450 * mib }, false, 0},
		{"such that do not double it are not", func(i int) snapshot.Bytes {
			return 200*mib + []snapshot.Bytes{0, 0, 0, 0, 0, 0, 0, 0, 25, 25, 55, 55, 55, 55, 95, 95, 95, 95, 95, 145}[i]*mib
		}, func(int) snapshot.Bytes { return mib }, false, 0},
		{"what has stopped is not", func(i int) snapshot.Bytes { return line(4)(min(i, 8)) }, func(int) snapshot.Bytes { return mib }, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i := range 20 {
				s := build(int64(10*i), block{"weights", mib, -1})
				s.Devices[0].Meters.Allocated = c.recorded(i)
				s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: c.process(i), Active: c.process(i), Reserved: c.process(i)}})
				run = append(run, s)
			}
			r, err := Analyze(runOf(run...), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if (r.ProcessGrowth() != nil) != c.want || r.Leaks() != c.leaks {
				t.Errorf("got %v, %d leaks: %+v", r.ProcessGrowth() != nil, r.Leaks(), r.Reserves)
			}
			if e := r.ProcessGrowth(); e != nil && e.Uneven != strings.HasPrefix(c.name, "jumps of a buffer") {
				t.Errorf("uneven: %v", e.Uneven)
			}
			if c.want && (r.Reserves[0].Cause == nil || r.Reserves[0].Cause.ID != "host-only") {
				t.Errorf("got the cause %+v", r.Reserves[0].Cause)
			}
		})
	}
}

// TestTheLineAtWhichNativeMemoryGrowsIsNamed also if it is no leak yet.
func TestTheLineAtWhichNativeMemoryGrowsIsNamed(t *testing.T) {
	const mib = snapshot.MiB
	for each, leaks := range map[snapshot.Bytes]int{2 * mib: 1, 2 * mib / 5: 0} {
		var run []*snapshot.Snapshot
		for i := range 20 {
			s := build(int64(10*i), block{"weights", mib, -1})
			m := 150*mib + snapshot.Bytes(i)*each
			s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: m, Active: m, Reserved: m}})
			if i > 9 {
				frames := []snapshot.Frame{{Function: "solve", File: "/env/site-packages/lib.py", Line: 4}, {Function: "main", File: "fit.py", Line: 16}}
				s.Native = []snapshot.StackID{s.Stacks.InternFrames(frames)}
			}
			run = append(run, s)
		}
		r, err := Analyze(runOf(run...), ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		e := r.ProcessGrowth()
		if e == nil || r.Leaks() != leaks {
			t.Fatalf("%d leaks, %+v", r.Leaks(), e)
		}
		if at := e.Line(); at == nil || at.File != "fit.py" || !strings.Contains(e.String(), "while fit.py:16 ran") || !strings.Contains(e.Fix(), "the extension that the line calls") {
			t.Errorf("%v: %s Fix: %s", at, e, e.Fix())
		}
		for _, f := range r.Findings[:leaks] {
			if f.Headline != 1 || f.Rows[0].Frames[1].Line != 16 || f.Cause.ID != "host-only" {
				t.Errorf("%+v", f)
			}
		}
	}
}

// TestGrowthBesideAHeapThatWasNotRecordedIsInDoubt: a cache of words that filled for four seconds, too few for its line to be
// found, was called a leak.
func TestGrowthBesideAHeapThatWasNotRecordedIsInDoubt(t *testing.T) {
	const mib = snapshot.MiB
	for _, c := range []struct {
		name   string
		unseen []snapshot.Unseen
		leaks  int
	}{
		{"all was recorded", nil, 1},
		{"shared memory was not", []snapshot.Unseen{{Device: snapshot.SharedMemory}}, 1},
		{"Python's heap was not", []snapshot.Unseen{{Device: snapshot.PythonHeap}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var run []*snapshot.Snapshot
			for i := range 20 {
				s := build(int64(10*i), block{"weights", mib, -1})
				m := snapshot.Bytes(20+2*i) * mib
				s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: m, Active: m, Reserved: m}})
				run = append(run, s)
			}
			recorded := runOf(run...)
			recorded.Info.Unseen = c.unseen
			r, err := Analyze(recorded, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.leaks || (r.Unexplained() != nil) != (c.leaks == 0) {
				t.Errorf("got %d leaks, %+v in doubt", r.Leaks(), r.Unexplained())
			}
		})
	}
}

// A recorder spares time by ever longer intervals: from mark to mark such growth is no line,
// and was not reported.
func TestAProcessThatGrowsEachStepLeaksWhereMarksLieUnevenly(t *testing.T) {
	const mib = snapshot.MiB
	var run []*snapshot.Snapshot
	for i, step := range []int64{1, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 74, 93, 118, 149, 188, 399, 572, 716, 896, 1121, 1403} {
		s := build(step, block{"weights", mib, -1})
		m := 150*mib + 28*snapshot.KiB*snapshot.Bytes(step) + 30*snapshot.KiB*snapshot.Bytes(i%3)
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: m, Active: m, Reserved: m}})
		run = append(run, s)
	}
	r, err := Analyze(runOf(run...), ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if r.ProcessGrowth() == nil {
		t.Fatal("nothing is said of 38 MiB")
	}
	if fix := r.ProcessGrowth().Fix(); !strings.HasPrefix(fix, "run longer") {
		t.Errorf("no line is known, and the fix is to %s", fix)
	}
	if e := r.ProcessGrowth(); e.Graph != nil || e.Cause.ID != "host-only" {
		t.Errorf("held by %+v: %s", e.Graph, e.Cause.ID)
	}
	last := run[len(run)-1]
	last.Holders = []snapshot.Holder{{Stack: last.Stacks.Intern([]snapshot.FrameID{last.Stacks.Frame(snapshot.Frame{Function: "nodes"})}), Kind: snapshot.Nodes, Path: "main.mean", Items: 18_000}}
	if r, _ := Analyze(runOf(run...), ByTrend); r.ProcessGrowth().Graph != &last.Holders[0] || r.Findings[0].Cause.ID != "graph-retained" || r.Findings[0].Holder != &last.Holders[0] {
		t.Errorf("got %+v", r.ProcessGrowth())
	}
	run[20].Producer = "another"
	if r, _ := Analyze(runOf(run...), ByTrend); r.ProcessGrowth() != nil {
		t.Error("two processes are taken for one that grows")
	}
	if e := r.ProcessGrowth(); e.Live != 0 {
		t.Errorf("%s are explained by stacks that hold the same all along", e.Live)
	}
	if rate := r.Reserves[0].Rate; rate.Unit != "step" || rate.Bytes.Low > 28*1024 || rate.Bytes.High < 28*1024 {
		t.Errorf("got %+v, want 28 KiB a step", rate)
	}
}
