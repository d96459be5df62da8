package diff

import (
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// block is one live block in a test's snapshot.
type block struct {
	stack string // function and file; "" for none
	size  snapshot.Bytes
	birth int64
}

// build makes a snapshot at a step with these live blocks on one CPU device, at
// addresses by position unless the block's birth is NoStep.
func build(step int64, blocks ...block) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: step, Epoch: snapshot.NoStep, Time: time.Unix(1000+step, 0)}, Rank: snapshot.NoRank, Producer: "test",
		Stacks:  snapshot.NewStacks(),
		Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
	}
	var total snapshot.Bytes
	for i, b := range blocks {
		id := snapshot.NoStack
		if b.stack != "" {
			id = s.Stacks.InternFrames([]snapshot.Frame{{Function: "conv2d", File: "/x/site-packages/torch/nn/functional.py", Line: 1}, {Function: b.stack, File: b.stack + ".py", Line: 7}})
		}
		s.Blocks.Segment = append(s.Blocks.Segment, 0)
		s.Blocks.Address = append(s.Blocks.Address, uint64(0x1000+i*0x100000)+uint64(b.birth+1)*8)
		s.Blocks.Size = append(s.Blocks.Size, b.size)
		s.Blocks.Requested = append(s.Blocks.Requested, b.size-1)
		s.Blocks.State = append(s.Blocks.State, snapshot.Live)
		s.Blocks.Stack = append(s.Blocks.Stack, id)
		s.Blocks.BirthStep = append(s.Blocks.BirthStep, b.birth)
		total += b.size
	}
	s.Segments = []snapshot.Segment{{Address: 0x1000, Size: total, NumBlocks: len(blocks)}}
	s.Devices[0].Meters = snapshot.Meters{Requested: total - snapshot.Bytes(len(blocks)), Allocated: total, Active: total, Reserved: total, Driver: snapshot.Unknown}
	return s
}

// grown is n blocks of a stack, born at from, from+every, …
func grown(stack string, n int, size snapshot.Bytes, from, every int64) []block {
	out := make([]block, n)
	for i := range out {
		out[i] = block{stack, size, from + int64(i)*every}
	}
	return out
}

// addBlock adds a block of 32 KiB to a snapshot that build made.
func addBlock(s *snapshot.Snapshot, frames []snapshot.Frame, born int) {
	const size = 32 * snapshot.KiB
	b := &s.Blocks
	b.Segment, b.State, b.Stack = append(b.Segment, 0), append(b.State, snapshot.Live), append(b.Stack, s.Stacks.InternFrames(frames))
	b.Address, b.Size, b.Requested = append(b.Address, uint64(0x1000+b.Len()*0x10000)), append(b.Size, size), append(b.Requested, size)
	b.BirthStep = append(b.BirthStep, int64(born))
	s.Segments[0].Size += size
	s.Segments[0].NumBlocks++
}

func runOf(snapshots ...*snapshot.Snapshot) *snapshot.Run { return &snapshot.Run{Snapshots: snapshots} }
