package diff

import (
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// large is a snapshot of n blocks from k stacks of 30 frames.
func large(step int64, n, k int) *snapshot.Snapshot {
	s := build(step)
	stacks := make([]snapshot.StackID, k)
	for i := range stacks {
		frames := make([]snapshot.Frame, 30)
		for j := range frames {
			frames[j] = snapshot.Frame{Function: fmt.Sprint("f", (i+j)%1000), File: fmt.Sprint("m", j, ".py"), Line: i}
		}
		stacks[i] = s.Stacks.InternFrames(frames)
	}
	b := &s.Blocks
	for i := range n {
		b.Segment = append(b.Segment, 0)
		b.Address = append(b.Address, uint64(i)*4096)
		b.Size = append(b.Size, 4096)
		b.Requested = append(b.Requested, 4000)
		b.State = append(b.State, snapshot.Live)
		b.Stack = append(b.Stack, stacks[i%k])
		b.BirthStep = append(b.BirthStep, int64(i)*step/int64(n))
	}
	return s
}

func BenchmarkPairOfAMillionBlocks(b *testing.B) {
	x, y := large(50, 1_000_000, 20_000), large(100, 1_000_000, 20_000)
	b.ReportAllocs()
	for b.Loop() {
		series.Pair(x, y)
	}
}
