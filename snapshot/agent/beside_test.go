package agent_test

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/agent"
)

// onGPU is a snapshot of two blocks on a GPU, of which the first is free.
func onGPU() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Mark: snapshot.Mark{Step: 8}, Stacks: snapshot.NewStacks(), Notes: []string{"an older note"}}
	stack := s.Stacks.InternFrames([]snapshot.Frame{{Function: "forward", File: "m.py", Line: 4}})
	s.Devices = []snapshot.Device{{Kind: snapshot.CUDA}}
	s.Segments = []snapshot.Segment{{Address: 4096, Size: 1024, NumBlocks: 2}}
	s.Blocks = snapshot.Blocks{
		Segment: []int32{0, 0}, Address: []uint64{4096, 4608}, Size: []snapshot.Bytes{512, 512}, Requested: []snapshot.Bytes{0, 500},
		State: []snapshot.State{snapshot.Free, snapshot.Live}, Stack: []snapshot.StackID{stack, stack}, BirthTime: []int64{0, 1_700_000_000_000_000},
	}
	return s
}

func part(text string) *io.SectionReader {
	return io.NewSectionReader(strings.NewReader(text), 0, int64(len(text)))
}

func TestWhatTheAgentKnowsIsAddedToAGPUsSnapshot(t *testing.T) {
	s := onGPU()
	text := strings.Replace(good, `"holders":[`, `"holders":[{"stack":0,"address":4608,"path":"kept","kind":"list","items":9,"bound":12},
		{"stack":0,"address":4096,"path":"freed","kind":"list","items":1},{"stack":0,"address":77,"path":"elsewhere","kind":"list","items":1},`, 1)
	if err := agent.AddTo(s, "x.pickle", part(text), 0); err != nil {
		t.Fatal(err)
	}
	if len(s.Devices) != 3 || s.Devices[0].Kind != snapshot.CUDA || s.Devices[1].Kind != snapshot.CPU || s.Devices[2].Kind != snapshot.PythonHeap {
		t.Errorf("devices %+v", s.Devices)
	}
	b := &s.Blocks
	for name, n := range map[string]int{
		"segments": len(b.Segment), "addresses": len(b.Address), "requests": len(b.Requested), "states": len(b.State), "stacks": len(b.Stack),
		"steps": len(b.BirthStep), "times": len(b.BirthTime), "counts": len(b.Count),
	} {
		if n != 6 {
			t.Errorf("%d %s of 6 rows", n, name)
		}
	}
	if b.BirthStep[1] != snapshot.NoStep || b.BirthTime[1] == 0 || b.BirthTime[2] != 0 || b.CountOf(1) != 1 {
		t.Errorf("births %v, %v, counts %v", b.BirthStep, b.BirthTime, b.Count)
	}
	for i, g := range s.Segments {
		for row := g.FirstBlock; row < g.FirstBlock+g.NumBlocks; row++ {
			if int(b.Segment[row]) != i {
				t.Errorf("row %d is of segment %d, want %d", row, b.Segment[row], i)
			}
		}
	}
	if sites := s.Sites(); len(sites) != 4 || s.Devices[sites[len(sites)-1].Device].Kind != snapshot.PythonHeap {
		t.Errorf("sites %+v", sites)
	}
	if len(s.Holders) != 2 || s.Holders[1].Path != "kept" || s.Holders[1].Stack != b.Stack[1] || s.Holders[1].Items != 9 || s.Holders[1].Bound != 12 {
		t.Errorf("holders %+v", s.Holders)
	}
	if s.Mark.Step != 8 || s.Mark.Phase != "train" || s.Mark.Epoch != 3 || s.Mark.Time.Unix() != 1_700_000_000 || len(s.Notes) != 2 || len(s.At) != 2 {
		t.Errorf("%+v, notes %q", s.Mark, s.Notes)
	}
}

func TestCategoriesOfAGPUsBlocksAreThoseOfLiveOnes(t *testing.T) {
	text := strings.Replace(strings.Replace(good, `"holders":[`, `"categories":[[4608,3],[4096,1],[77,2]],"holders":[`, 1), `"count":[1,5,2,1]`, `"category":[1,0,3,4]`, 1)
	s := onGPU()
	if err := agent.AddTo(s, "x.pickle", part(text), 0); err != nil {
		t.Fatal(err)
	}
	want := []snapshot.Category{0, snapshot.Gradient, snapshot.Gradient, snapshot.OptimizerState, snapshot.Parameter, 0}
	if !slices.Equal(s.Blocks.Category, want) {
		t.Errorf("categories %v, want %v", s.Blocks.Category, want)
	}
	for name, text := range map[string]string{"none": good, "those of the CPU alone": strings.Replace(good, `"count":[1,5,2,1]`, `"category":[1,0,3,4]`, 1)} {
		s := onGPU()
		if err := agent.AddTo(s, "x.pickle", part(text), 0); err != nil || len(s.Blocks.Category) != map[string]int{"none": 0, "those of the CPU alone": 6}[name] {
			t.Errorf("%s: %v, %v", name, s.Blocks.Category, err)
		}
	}
	// At an earlier moment another block may have been at the address.
	s = onGPU()
	s.Moment = &snapshot.Moment{}
	if err := agent.AddTo(s, "x.pickle", part(text), 0); err != nil || s.Blocks.Category[1] != snapshot.NoCategory {
		t.Errorf("%v, %v at another moment", s.Blocks.Category, err)
	}
}

func TestWhatTheAgentCannotHaveWrittenIsNotAdded(t *testing.T) {
	for text, want := range map[string]string{
		good[:len(good)-40]: "in the middle", strings.Replace(good, `agent":1`, `agent":2`, 1): "version 2", "": "",
	} {
		if err := agent.AddTo(onGPU(), "x.pickle", part(text), 0); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.pickle") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
