package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// holding is a snapshot of one device with a block for each stack of calls, innermost first.
func holding(sizes []snapshot.Bytes, stacks ...[]snapshot.Frame) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Rank: snapshot.NoRank, Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: snapshot.CUDA}}, Segments: []snapshot.Segment{{Size: 1 << 30, NumBlocks: len(stacks)}}}
	for i, calls := range stacks {
		var frames []snapshot.FrameID
		for _, f := range calls {
			frames = append(frames, s.Stacks.Frame(f))
		}
		b := &s.Blocks
		b.Segment, b.Address = append(b.Segment, 0), append(b.Address, uint64(i)<<12)
		b.Size, b.Requested = append(b.Size, sizes[i]), append(b.Requested, sizes[i])
		b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, s.Stacks.Intern(frames))
	}
	return s
}

// TestChangesFollowASiteWhoseLinesMoved: equal lines are one site; of the rest, equal functions; and a new line of a known function
// is a site of its own where the old one is still there.
func TestChangesFollowASiteWhoseLinesMoved(t *testing.T) {
	at := func(function string, line int) []snapshot.Frame {
		return []snapshot.Frame{{Function: function, File: "/src/model.py", Line: line}, {Function: "main", File: "/src/train.py", Line: 9}}
	}
	before := holding([]snapshot.Bytes{100, 200, 300}, at("forward", 10), at("attend", 20), at("gone", 30))
	after := holding([]snapshot.Bytes{150, 250, 50, 70}, at("forward", 10), at("attend", 24), at("forward", 12), at("new", 40))
	type held struct{ before, after snapshot.Bytes }
	want := map[string]held{"forward 10": {100, 150}, "attend 24": {200, 250}, "forward 12": {0, 50}, "gone 30": {300, 0}, "new 40": {0, 70}}
	changes := Changes(before, after)
	if len(changes) != len(want) {
		t.Errorf("%d changes, want %d", len(changes), len(want))
	}
	last := changes[0].Growth()
	for _, c := range changes {
		name := c.Frames[0].Function + " " + string(rune('0'+c.Frames[0].Line/10)) + string(rune('0'+c.Frames[0].Line%10))
		if got := (held{c.Before.Bytes, c.After.Bytes}); got != want[name] {
			t.Errorf("%s: %v, want %v", name, got, want[name])
		}
		if c.Growth() > last {
			t.Errorf("%s comes after what grew less", name)
		}
		last = c.Growth()
	}
}
