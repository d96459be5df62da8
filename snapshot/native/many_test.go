package native

import (
	"bytes"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// alike is a snapshot of n blocks of one size and stack, one allocated every other step:
// nothing packs better.
func alike(n int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Stacks:   snapshot.NewStacks(),
		Devices:  []snapshot.Device{{Kind: snapshot.CUDA}},
		Segments: []snapshot.Segment{{Size: snapshot.Bytes(n) * 512, NumBlocks: n}},
	}
	stack := s.Stacks.InternFrames([]snapshot.Frame{{Function: "step", File: "train.py", Line: 1}})
	s.Mark.Step = int64(2 * n)
	b := &s.Blocks
	b.Segment, b.Address, b.Owners = make([]int32, n), make([]uint64, n), make([]snapshot.Owners, n)
	for i := range n {
		b.Address[i] = uint64(i) * 512
		b.Size, b.Requested = append(b.Size, 512), append(b.Requested, 512)
		b.State, b.Stack = append(b.State, snapshot.Live), append(b.Stack, stack)
		b.BirthStep, b.BirthTime = append(b.BirthStep, int64(2*i)), append(b.BirthTime, int64(2000*i))
	}
	return s
}

// Files of more than two million blocks were written and could not be read.
func TestWhatIsWrittenOfManyBlocksIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds, and 500 MB")
	}
	for _, n := range []int{maxPackedBlocks, maxPackedBlocks + 1, 2_000_000, 3_000_000} {
		s := alike(n)
		var b bytes.Buffer
		if err := Encode(&b, s); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d blocks take %d bytes", n, b.Len())
		got, err := decode(b.Bytes())
		if err != nil {
			t.Fatalf("%d blocks: %v", n, err)
		}
		if got.Blocks.Len() != n || got.Blocks.BirthTime[n-1] != s.Blocks.BirthTime[n-1] {
			t.Errorf("%d blocks of %d", got.Blocks.Len(), n)
		}
	}
}
