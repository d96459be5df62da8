package diff

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// withSegment is a snapshot with one segment on the CPU, of so many blocks, which are still to be set.
func withSegment(step int64, blocks int) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep}, Stacks: snapshot.NewStacks(),
		Devices:  []snapshot.Device{{Kind: snapshot.CPU}},
		Segments: []snapshot.Segment{{Address: 1 << 20, NumBlocks: blocks}},
	}
}

// TestWhatNobodySawBeingMadeBelongsToTheStackOfItsSize: a recorder that watches one step in eight sees
// one block of a leak, in the end, and counts those of before without a stack. No jump is
// made of that.
func TestWhatNobodySawBeingMadeBelongsToTheStackOfItsSize(t *testing.T) {
	run := &snapshot.Run{}
	for i := range 11 {
		s := withSegment(int64(10*i), 1)
		leak := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 7}})
		b := snapshot.Blocks{
			Segment: []int32{0}, Address: []uint64{1 << 20}, State: []snapshot.State{snapshot.Live}, Stack: []snapshot.StackID{snapshot.NoStack},
			BirthStep: []int64{snapshot.NoStep}, Owners: []snapshot.Owners{0}, Count: []int64{int64(5 * i)},
			Size: []snapshot.Bytes{snapshot.Bytes(5*i) * 512}, Requested: []snapshot.Bytes{snapshot.Bytes(5*i) * 512},
		}
		if i == 10 {
			b.Stack[0], b.BirthStep[0] = leak, 93
		}
		if i == 0 {
			b, s.Segments[0].NumBlocks = snapshot.Blocks{Count: []int64{}, BirthStep: []int64{}}, 0
		}
		s.Blocks = b
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	site := r.Series.Site(&r.Rows[0])
	if want := []int64{0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50}; !slices.Equal(site.Blocks, want) {
		t.Errorf("blocks %v, want %v", site.Blocks, want)
	}
	if r.Findings[0].Verdict != Leak {
		t.Errorf("%s: %v", r.Findings[0].Verdict, r.Findings[0].Reasons)
	}
}

// TestSnapshotsWhereEachBlockCountsOnceHideNoStack: memdiag's agent writes no counts then, as at the beginning, while it watches each step.
// A leak of one block an evaluation stayed without a stack until one of its steps was watched, and that was one jump.
func TestSnapshotsWhereEachBlockCountsOnceHideNoStack(t *testing.T) {
	run := &snapshot.Run{}
	for i := range 11 {
		s := withSegment(int64(10*i), 2)
		model := s.Stacks.InternFrames([]snapshot.Frame{{Function: "model", File: "train.py", Line: 3}})
		leak := s.Stacks.InternFrames([]snapshot.Frame{{Function: "evaluate", File: "train.py", Line: 7}})
		n := int64(1 + i)
		size := snapshot.Bytes(512 * n)
		b := snapshot.Blocks{
			Segment: []int32{0, 0}, Address: []uint64{1 << 20, 2 << 20}, State: []snapshot.State{snapshot.Live, snapshot.Live},
			Stack: []snapshot.StackID{model, snapshot.NoStack}, BirthStep: []int64{0, snapshot.NoStep}, Owners: []snapshot.Owners{0, 0},
			Size: []snapshot.Bytes{64, size}, Requested: []snapshot.Bytes{64, size},
		}
		if n > 1 {
			b.Count = []int64{1, n}
		}
		if i > 7 {
			b.Stack[1], b.BirthStep[1] = leak, 78
		}
		s.Blocks = b
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	site := r.Series.Site(&r.Rows[0])
	if want := []int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(site.Blocks[1:], want) || r.Findings[0].Verdict != Leak {
		t.Errorf("blocks %v, want %v; %s: %v", site.Blocks[1:], want, r.Findings[0].Verdict, r.Findings[0].Reasons)
	}
}

// TestWhatIsOlderThanTheRecordingStaysWithoutAStack: a worker that is watched once it has grown has blocks of the
// size of its leak. To count them with the leak at all marks but the last made the leak end there.
func TestWhatIsOlderThanTheRecordingStaysWithoutAStack(t *testing.T) {
	run := &snapshot.Run{}
	for i := range 11 {
		s := &snapshot.Snapshot{
			Mark: snapshot.Mark{Step: int64(10 * i), Epoch: snapshot.NoStep}, Stacks: snapshot.NewStacks(),
			Devices:  []snapshot.Device{{Kind: snapshot.CPU}},
			Segments: []snapshot.Segment{{Address: 1 << 20, NumBlocks: 2}},
		}
		leak := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 7}})
		n := int64(1 + 5*i)
		s.Blocks = snapshot.Blocks{
			Segment: []int32{0, 0}, Address: []uint64{1 << 20, 2 << 20}, State: []snapshot.State{snapshot.Live, snapshot.Live},
			Stack: []snapshot.StackID{snapshot.NoStack, leak}, BirthStep: []int64{snapshot.NoStep, int64(10*i) - 8}, Owners: []snapshot.Owners{0, 0},
			Count: []int64{30, n}, Size: []snapshot.Bytes{30 * 512, snapshot.Bytes(n) * 512}, Requested: []snapshot.Bytes{30 * 512, snapshot.Bytes(n) * 512},
		}
		s.Blocks.BirthStep[1] = max(0, s.Blocks.BirthStep[1])
		run.Snapshots = append(run.Snapshots, s)
	}
	r, err := Analyze(run, ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	f := r.Findings[0]
	site := r.Series.Site(f.Rows[0])
	if want := []int64{1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51}; !slices.Equal(site.Blocks, want) || f.Verdict != Leak {
		t.Errorf("blocks %v, want %v; %s: %v", site.Blocks, want, f.Verdict, f.Reasons)
	}
}
