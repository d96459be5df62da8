package diff

import (
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// sampledRun keeps a block a step. Up to step 40 each step is watched, then one in four; the
// blocks of the others are shared out among all that were seen after that, as a census does.
func sampledRun(marks ...int64) *snapshot.Run {
	run := &snapshot.Run{}
	for _, step := range marks {
		var births []int64
		late := 0
		for born := range step {
			if born < 40 || born%4 == 0 {
				births = append(births, born)
				if born >= 40 {
					late++
				}
			}
		}
		missing, given := int(step)-len(births), 0
		s := build(step)
		s.Segments[0].Address = 0
		for _, born := range births {
			count := 1
			if born >= 40 {
				at := missing * int(born-36) / 4 / late
				count, given = count+at-given, at
			}
			b := &s.Blocks
			b.Segment, b.Address, b.State = append(b.Segment, 0), append(b.Address, 0), append(b.State, snapshot.Live)
			b.Stack = append(b.Stack, s.Stacks.InternFrames([]snapshot.Frame{{Function: "keep", File: "train.py", Line: 7}}))
			b.Size, b.Requested = append(b.Size, snapshot.Bytes(1000*count)), append(b.Requested, snapshot.Bytes(1000*count))
			b.BirthStep, b.Count = append(b.BirthStep, born), append(b.Count, int64(count))
		}
		s.Segments[0].NumBlocks = len(births)
		run.Snapshots = append(run.Snapshots, s)
	}
	return run
}

func TestBirthsThatNobodySawLieBetweenTheSnapshotsOnBothSides(t *testing.T) {
	run := sampledRun(0, 40, 80, 120, 160, 200)
	last := run.Snapshots[5]
	unseen := UnseenBirths(last, series.Collect(run))
	var all Tally
	for _, u := range unseen {
		if u.From < 40 || u.To != u.From+40 || u.Blocks < 29 || u.Blocks > 31 {
			t.Errorf("%d blocks in steps %d to %d, want 30 in each stretch between two snapshots from 40 on", u.Blocks, u.From, u.To)
		}
		all = all.Plus(u.Tally)
		if half := u.Within(u.From, u.From+20); half.Blocks < 14 || half.Blocks > 16 {
			t.Errorf("%d of %d blocks in the first half of steps %d to %d", half.Blocks, u.Blocks, u.From, u.To)
		}
		if beside := u.Within(0, u.From).Plus(u.Within(u.To, 200)); beside != (Tally{}) {
			t.Errorf("%v outside of steps %d to %d", beside, u.From, u.To)
		}
	}
	if want := (Tally{Blocks: 120, Bytes: 120_000, Requested: 120_000}); all != want {
		t.Errorf("%v in all, want %v", all, want)
	}
	// Seen and unseen births together are one block a step all along.
	for from := int64(0); from < 200; from += 8 {
		n := int64(0)
		for i, born := range last.Blocks.BirthStep {
			if born >= from && born < from+8 {
				n += SeenOf(&last.Blocks, i).Blocks
			}
		}
		for _, u := range unseen {
			n += u.Within(from, from+8).Blocks
		}
		if n < 7 || n > 9 {
			t.Errorf("%d blocks were born in steps %d to %d, want 8", n, from, from+8)
		}
	}
}

func TestOneSnapshotBoundsUnseenBirthsByTheStepsThatWereWatched(t *testing.T) {
	last := sampledRun(200).Snapshots[0]
	unseen := UnseenBirths(last, nil)
	if len(unseen) != 1 || unseen[0].From != 0 || unseen[0].To != 200 || unseen[0].Blocks != 120 {
		t.Fatalf("got %+v", unseen)
	}
	if early := unseen[0].Within(0, 40); early != (Tally{}) {
		t.Errorf("%v in steps each of which was watched", early)
	}
	for from := int64(40); from < 200; from += 40 {
		if n := unseen[0].Within(from, from+40).Blocks; n != 30 {
			t.Errorf("%d in steps %d to %d, want 30", n, from, from+40)
		}
	}
}

func TestWhatWasSeenWholeHasNoUnseenBirths(t *testing.T) {
	run := sampledRun(0, 20, 40)
	if got := UnseenBirths(run.Snapshots[2], series.Collect(run)); got != nil {
		t.Errorf("got %+v", got)
	}
	s := build(40, block{"weights", 100, 3})
	if got := UnseenBirths(s, nil); got != nil {
		t.Errorf("of blocks one by one got %+v", got)
	}
}
