package diff

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestMemoryThatMallocDoesNotHaveGrows has what the process took from the system itself, in address space and in pages, at
// each of 20 snapshots 10 steps apart.
func TestMemoryThatMallocDoesNotHaveGrows(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name           string
		mapped, pages  func(n int) float64 // MiB
		reserved, heap func(n int) float64
		want           bool
	}{
		{"native code maps ever more", func(n int) float64 { return 300 + float64(n) }, func(n int) float64 { return 200 + float64(n) }, nil, nil, true},
		{"a buffer is filled that was taken whole", func(int) float64 { return 300 }, func(n int) float64 { return 100 + 10*float64(n) }, nil, nil, false},
		{"threads take stacks that they do not use", func(n int) float64 { return 300 + 8*float64(n) }, func(n int) float64 { return 100 + 0.1*float64(n) }, nil, nil, false},
		{"it levels off", func(n int) float64 { return 300 + float64(min(n, 8)) }, func(n int) float64 { return 200 + float64(min(n, 8)) }, nil, nil, false},
		{"malloc has the pages", func(n int) float64 { return 300 + float64(n) }, func(n int) float64 { return 200 + float64(n) }, func(n int) float64 { return 100 + float64(n) }, nil, false},
		{"Python's heap grew as much", func(n int) float64 { return 300 + float64(n) }, func(n int) float64 { return 200 + float64(n) }, nil, func(n int) float64 { return float64(n) }, false},
		{"it is not known", func(int) float64 { return 0 }, func(n int) float64 { return 200 + float64(n) }, nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := &snapshot.Run{}
			for n := range 20 {
				s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: int64(10 * n), Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}
				reserved, heap := 100., 0.
				if c.reserved != nil {
					reserved = c.reserved(n)
				}
				if c.heap != nil {
					heap = c.heap(n)
				}
				s.Devices = []snapshot.Device{
					{Kind: snapshot.Process, Limit: snapshot.Unknown, Mapped: snapshot.Bytes(c.mapped(n) * mib), Meters: snapshot.Meters{
						Allocated: 90*mib + snapshot.Bytes(heap*mib), Reserved: snapshot.Bytes(reserved * mib), Driver: snapshot.Bytes(c.pages(n) * mib),
					}},
					{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: snapshot.Bytes(heap * mib)}},
				}
				run.Snapshots = append(run.Snapshots, s)
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			e := r.Unexplained()
			if (e != nil) != c.want {
				t.Fatalf("%v", e)
			}
			if e != nil && (e.Growth < 12*mib || !strings.Contains(e.String(), "Source line unknown: native code mapped it without malloc")) {
				t.Errorf("%s: %s", e.Growth, e)
			}
		})
	}
}

// TestGrowthIsSeenWhereMallocGivesNoFigures: on musl 16 MiB of bytes of 20 kB were "possible leak: +265 B/step".
func TestGrowthIsSeenWhereMallocGivesNoFigures(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		small float64 // MiB of Python's own allocator at each snapshot
		want  bool
	}{
		{"large objects grow", 0.01, true},
		{"small ones do, which are recorded", 0.9, false},
	} {
		run := &snapshot.Run{}
		for n := range 20 {
			s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: int64(10 * n), Epoch: snapshot.NoStep}, Rank: snapshot.NoRank, Stacks: snapshot.NewStacks()}
			s.Devices = []snapshot.Device{
				{Kind: snapshot.Process, Limit: snapshot.Unknown, Mapped: snapshot.Bytes((30 + n) * mib), Meters: snapshot.Meters{Driver: snapshot.Bytes((20 + n) * mib)}},
				{Kind: snapshot.PythonHeap, Limit: snapshot.Unknown, Meters: snapshot.Meters{Allocated: snapshot.Bytes(c.small * float64(n) * mib)}},
			}
			run.Snapshots = append(run.Snapshots, s)
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		e := r.Unexplained()
		if (e != nil) != c.want || e != nil && !strings.Contains(e.String(), "malloc gives no figures") {
			t.Errorf("%s: %v", c.name, e)
		}
	}
}

// TestALeakOfSmallObjectsDoesNotHideLargeOnesOfAnotherMalloc: 70 B a step of numbers stood for 20 kB a step on musl.
func TestALeakOfSmallObjectsDoesNotHideLargeOnesOfAnotherMalloc(t *testing.T) {
	const mib = 1 << 20
	run := &snapshot.Run{}
	for n := range 20 {
		s := build(int64(10*n), grown("train;numbers", n, 512, 0, 10)...)
		s.Devices[0].Kind = snapshot.PythonHeap
		s.Devices = append(s.Devices, snapshot.Device{Kind: snapshot.Process, Limit: snapshot.Unknown, Mapped: snapshot.Bytes((30 + n) * mib), Meters: snapshot.Meters{Driver: snapshot.Bytes((20 + n) * mib)}})
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if e := r.Unexplained(); r.Leaks() != 1 || e == nil || !e.Uncounted {
		t.Errorf("%d leaks, %v", r.Leaks(), e)
	}
}
