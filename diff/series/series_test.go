package series

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// A recording of PyTorch on a GPU has tensors on the CPU in the same snapshots: once these are sampled, rows are counted.
// The GPU's blocks of 4 bytes in 512 were then compared by 512 with marks at which they were compared by 4.
func TestABlockIsComparedByWhatWasAskedForBesideTotals(t *testing.T) {
	b := snapshot.Blocks{Size: []snapshot.Bytes{512, 4096, 2048}, Requested: []snapshot.Bytes{4, 40, 20}, Count: []int64{1, 10, 0}}
	s := SiteSeries{Bytes: make([]snapshot.Bytes, 1)}
	for row := range b.Size {
		s.round(0, &b, row)
	}
	if s.rounding == nil || s.rounding[0] != 508 {
		t.Errorf("rounding %v, want 508, of the one block alone", s.rounding)
	}
}

// Where a CPU's tensors are counted, what has no stack is given to the line that made most of its size. A GPU's blocks are not.
func TestAGPUsBlocksWithoutAStackStayThatBesideACPUThatIsCounted(t *testing.T) {
	stacks := snapshot.NewStacks()
	line := stacks.InternFrames([]snapshot.Frame{{Function: "f", File: "a.py", Line: 1}})
	at := func(step int64, without int) *snapshot.Snapshot {
		s := &snapshot.Snapshot{Stacks: stacks, Mark: snapshot.Mark{Step: step}, Devices: []snapshot.Device{{Kind: snapshot.CUDA}, {Kind: snapshot.CPU}},
			Segments: []snapshot.Segment{{Device: 0}, {Device: 1}}}
		add := func(segment int32, stack snapshot.StackID, count int64) {
			b := &s.Blocks
			b.Segment, b.Address, b.Size, b.Requested = append(b.Segment, segment), append(b.Address, 512), append(b.Size, 512), append(b.Requested, 512)
			b.State, b.Stack, b.BirthStep, b.Count = append(b.State, snapshot.Live), append(b.Stack, stack), append(b.BirthStep, snapshot.NoStep), append(b.Count, count)
		}
		add(0, line, 1)
		for range without {
			add(0, snapshot.NoStack, 1)
		}
		add(1, line, 2)
		return s
	}
	s := Collect(&snapshot.Run{Snapshots: []*snapshot.Snapshot{at(1, 0), at(2, 3), at(3, 0)}})
	for _, site := range s.Sites {
		if site.key.Device.Kind == snapshot.CUDA && site.key.Hash == stacks.Hash(line) && site.Blocks[1] != 1 {
			t.Errorf("the line has %d blocks, want 1", site.Blocks[1])
		}
	}
}

// Blocks without a stack are one site by their size: of 4 bytes in 512 are those of a leak, of 256 in 512 those that come and go.
func TestBlocksWithoutAStackAreComparedByTheirSize(t *testing.T) {
	s := &snapshot.Snapshot{Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Segments: make([]snapshot.Segment, 1), Blocks: snapshot.Blocks{
		Segment: make([]int32, 2), Address: []uint64{512, 1024}, Size: []snapshot.Bytes{512, 512}, Requested: []snapshot.Bytes{4, 256},
		State: []snapshot.State{snapshot.Live, snapshot.Live}, Stack: make([]snapshot.StackID, 2),
	}}
	if sites := Collect(&snapshot.Run{Snapshots: []*snapshot.Snapshot{s}}).Sites; len(sites) != 1 || sites[0].Bytes[0] != 1024 || sites[0].rounding != nil {
		t.Errorf("%+v", sites)
	}
}

func TestAStretchOfTimeHasTheUnitThatSuitsIt(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0 seconds", 0.12: "120 milliseconds", 0.97: "1 second", 59: "59 seconds", 150: "3 minutes", 7200: "2 hours", 172800: "2 days"} {
		if got := Second.Text(seconds); got != want {
			t.Errorf("%v: %q, want %q", seconds, got, want)
		}
	}
}

// TestALargerBlockBesideTheOneThatItReplacesIsNoSecond: torch.cat in a loop, seen by the clock at odd moments, had one block or two.
func TestALargerBlockBesideTheOneThatItReplacesIsNoSecond(t *testing.T) {
	for _, c := range []struct {
		blocks []float64
		unit   Unit
		want   bool
	}{
		{[]float64{1, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 2}, Second, true},
		{[]float64{1, 1, 2, 1, 1, 2, 1, 1, 1, 2, 1, 1, 2}, Step, false},
		{[]float64{1, 1, 2, 1, 1, 2, 2, 2, 1, 2, 1, 1, 2}, Second, false},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, Second, false},
		{[]float64{1, 2}, Second, false},
	} {
		h := &History{Unit: c.unit, Whole: Points{Blocks: c.blocks}}
		if got := h.Regrows(); got != c.want {
			t.Errorf("%v, by the %s: %v", c.blocks, c.unit, got)
		}
	}
}

// TestABlockBesideItsLargerOneAtAnyMarkIsSeenToRise: numpy.concatenate in a loop, seen by the clock, had one copy or two in one block's
// size. What was left at three marks in a row rose too seldom to tell.
func TestABlockBesideItsLargerOneAtAnyMarkIsSeenToRise(t *testing.T) {
	concatenated := []float64{2.41, 4.08, 4.95, 3.38, 7.15, 7.96, 9.01, 9.66, 5.2, 10.58, 11.17, 11.73, 12.3, 12.74, 13.17, 13.59, 13.59, 13.59, 14.77, 15.05, 15.32, 15.58, 15.97}
	varying := []float64{9, 3, 14, 5, 11, 6, 13, 4, 12, 9, 3, 14, 6, 10, 5, 13, 4, 11, 9, 14, 3, 12, 8}
	for _, c := range []struct {
		name   string
		bytes  []float64
		at     float64 // the chance is below
		orOver bool
	}{{"concatenated", concatenated, 0.01, false}, {"of varying size", varying, 0.05, true}} {
		n := len(c.bytes)
		p := Points{X: make([]float64, n), Blocks: make([]float64, n), Bytes: c.bytes, Sizes: c.bytes, elements: make([]float64, n), length: make([]float64, n), Instants: make([]int64, n)}
		for i := range n {
			p.X[i], p.Blocks[i] = float64(i), 1
		}
		if chance := (Without{}).History(p, Second).Chance(); chance > c.at != c.orOver {
			t.Errorf("%s: %v", c.name, chance)
		}
	}
}

// Two snapshots within a step were said to grow by 5.50 MiB a second, of one block of 16 KiB.
func TestGrowthWithinAStepIsNoRatePerSecond(t *testing.T) {
	at := func(step int64, millis int) *snapshot.Snapshot {
		return &snapshot.Snapshot{Mark: snapshot.Mark{Step: step, Time: time.UnixMilli(int64(1000 + millis))}}
	}
	grown := Tally{Blocks: 1, Bytes: 16384}
	for _, c := range []struct {
		first, last int64
		unit        Unit
		bytes       float64
	}{{98, 98, Place, 16384}, {98, 100, Step, 8192}, {snapshot.NoStep, snapshot.NoStep, Second, 16384e3 / 4}} {
		if r := PairRate(grown, at(c.first, 0), at(c.last, 4)); r.Unit != c.unit || r.Bytes.Value != c.bytes {
			t.Errorf("steps %d and %d: %+v", c.first, c.last, r)
		}
	}
}
