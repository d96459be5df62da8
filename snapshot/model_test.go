package snapshot

import (
	"encoding/binary"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"pgregory.net/rapid"
)

func TestStackHashIsEqualInEveryTable(t *testing.T) {
	frames := []Frame{{"conv2d", "functional.py", 456}, {"forward", "fpn.py", 88}}
	a, b := NewStacks(), NewStacks()
	b.InternFrames([]Frame{{"other", "x.py", 1}}) // so that ids differ
	x, y := a.InternFrames(frames), b.InternFrames(frames)
	if a.Hash(x) != b.Hash(y) {
		t.Errorf("%x in one table, %x in the other", a.Hash(x), b.Hash(y))
	}
	// Pinned: reports of two versions are compared by it.
	if want := Hash(0xc0e39730b201f0de); a.Hash(x) != want {
		t.Errorf("hash is %#x, was %#x", a.Hash(x), want)
	}
}

func TestStacksThatDifferHaveOtherHashes(t *testing.T) {
	s := NewStacks()
	seen := map[StackID]string{}
	for name, frames := range map[string][]Frame{
		"line":                       {{"f", "a.py", 1}},
		"other line":                 {{"f", "a.py", 2}},
		"other file":                 {{"f", "b.py", 1}},
		"other function":             {{"g", "a.py", 1}},
		"name and file run together": {{"fa", ".py", 1}},
		"twice":                      {{"f", "a.py", 1}, {"f", "a.py", 1}},
		"none":                       {},
	} {
		id := s.InternFrames(frames)
		if other, ok := seen[id]; ok {
			t.Errorf("%s and %s are one stack", name, other)
		}
		seen[id] = name
	}
}

func TestAHashIsThatOfTheNamesAndLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := rapid.Custom(func(t *rapid.T) Frame {
			return Frame{rapid.SampledFrom([]string{"", "f", "gg"}).Draw(t, "function"), "a.py", rapid.IntRange(0, 2).Draw(t, "line")}
		})
		table := NewStacks()
		for _, frames := range rapid.SliceOfN(rapid.SliceOfN(frame, 1, 8), 1, 8).Draw(t, "stacks") {
			var hashes []byte
			for _, f := range frames {
				names := binary.LittleEndian.AppendUint64(nil, xxhash.Sum64String(f.Function))
				names = binary.LittleEndian.AppendUint64(names, xxhash.Sum64String(f.File))
				hashes = binary.LittleEndian.AppendUint64(hashes, xxhash.Sum64(binary.LittleEndian.AppendUint32(names, uint32(f.Line))))
			}
			if got, want := table.Hash(table.InternFrames(frames)), Hash(xxhash.Sum64(hashes)); got != want {
				t.Fatalf("the hash of %v is %x, want %x", frames, got, want)
			}
		}
	})
}

func TestALongNameInAllFramesTakesNoMemory(t *testing.T) {
	s := NewStacks()
	frame := s.Frame(Frame{Function: strings.Repeat("n", 64<<10)})
	frames := slices.Repeat([]FrameID{frame}, 1<<13) // 512 MiB of text
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.Intern(frames)
	runtime.ReadMemStats(&after)
	if took := Bytes(after.TotalAlloc - before.TotalAlloc); took > 10<<20 {
		t.Errorf("it took %s", took)
	}
}

func TestFramesComeBackAsTheyWereInterned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Frame {
			return Frame{rapid.String().Draw(t, "function"), rapid.String().Draw(t, "file"), rapid.IntRange(-1, math.MaxInt32).Draw(t, "line")}
		}), 0, 5).Draw(t, "frames")
		s := NewStacks()
		s.InternFrames([]Frame{{"first", "a", 1}})
		id := s.InternFrames(frames)
		got := s.Frames(id)
		if len(got) != len(frames) {
			t.Fatalf("%d frames, want %d", len(got), len(frames))
		}
		for i := range got {
			if got[i] != frames[i] {
				t.Fatalf("frame %d is %+v, want %+v", i, got[i], frames[i])
			}
		}
	})
}

func TestLineOfAllOnesIsUnknown(t *testing.T) {
	s := NewStacks()
	for _, line := range []int{-1, math.MinInt64, 1 << 31, math.MaxInt64} {
		if got := s.FrameAt(s.Frame(Frame{"f", "a.py", line})).Line; got != -1 {
			t.Errorf("line %d reads %d, want -1", line, got)
		}
	}
}

func TestSitesAddUpTotalsOfBlocks(t *testing.T) {
	s := &Snapshot{Stacks: NewStacks(), Devices: []Device{{Kind: CPU}}, Segments: []Segment{{NumBlocks: 4}}}
	f := s.Stacks.InternFrames([]Frame{{"f", "a.py", 1}})
	s.Blocks = Blocks{
		Segment: make([]int32, 4), Address: make([]uint64, 4), Requested: make([]Bytes, 4),
		Size:  []Bytes{1000, 24, 10, 90},
		Count: []int64{1 << 40, 2, 1, 9},
		State: []State{Live, Live, Live, Live},
		Stack: []StackID{f, f, NoStack, NoStack},
	}
	sites := s.Sites()
	if len(sites) != 2 {
		t.Fatalf("%d sites, want one with a stack and one without: sizes of single blocks are not known", len(sites))
	}
	if got := sites[0]; got.Stack != f || got.Count != 1<<40+2 || got.Bytes != 1024 || len(got.Rows) != 2 {
		t.Errorf("site with a stack: %+v", got)
	}
	if got := sites[1]; got.Count != 10 || got.Bytes != 100 || got.Label != "<no stack recorded> blocks" {
		t.Errorf("site without a stack: %+v", got)
	}
}

func TestBlocksOfAGPUBesideTotalsOfTheProcessStayAsTheyAre(t *testing.T) {
	s := &Snapshot{Devices: []Device{{Kind: CUDA}, {Kind: Items}}, Segments: []Segment{{Device: 0, NumBlocks: 2}, {Device: 1, NumBlocks: 1}}}
	s.Blocks = Blocks{
		Segment: []int32{0, 0, 1}, Address: []uint64{512, 1024, 7}, Requested: make([]Bytes, 3), Size: []Bytes{512, 1024, 0},
		State: []State{Live, Live, Live}, Stack: make([]StackID, 3),
	}
	hashes := func() (out []Hash) {
		for _, site := range s.Sites() {
			if site.Device == 0 {
				out = append(out, site.Hash)
			}
		}
		return out
	}
	alone := hashes()
	s.Blocks.Count = []int64{1, 1, 40}
	if got := hashes(); len(alone) != 2 || !slices.Equal(got, alone) {
		t.Errorf("sites without a stack are %v beside a total, and %v without", got, alone)
	}
}

func TestSitesGroupLiveBlocksOnly(t *testing.T) {
	s := &Snapshot{Stacks: NewStacks(), Devices: []Device{{Kind: CUDA}}, Segments: []Segment{{NumBlocks: 5, Pool: SmallPool}}}
	f := s.Stacks.InternFrames([]Frame{{"f", "a.py", 1}})
	s.Blocks = Blocks{
		Segment:   []int32{0, 0, 0, 0, 0},
		Address:   []uint64{0, 512, 1024, 1536, 2048},
		Size:      []Bytes{512, 512, 512, 512, 1024},
		Requested: []Bytes{4, 5, 0, 7, 1000},
		State:     []State{Live, Live, Free, Pending, Live},
		Stack:     []StackID{f, f, 0, f, 0},
		Owners:    []Owners{OwnedByUser, OwnedByTape, 0, 0, 0},
	}
	sites := s.Sites()
	if len(sites) != 2 {
		t.Fatalf("%d sites, want one with a stack and one without", len(sites))
	}
	for _, site := range sites {
		switch {
		case site.Stack == f && (site.Count != 2 || site.Bytes != 1024 || site.Requested != 9 || site.Owners != OwnedByUser|OwnedByTape):
			t.Errorf("site with a stack: %+v", site)
		case site.Stack == NoStack && (site.Count != 1 || site.Bytes != 1024 || site.Label == ""):
			t.Errorf("site without a stack: %+v", site)
		}
	}
}

func TestTheCPUHasNeitherPoolsNorStreams(t *testing.T) {
	for kind, want := range map[DeviceKind]string{CPU: "<no stack recorded> 8 B blocks", CUDA: "<no stack recorded> 8 B blocks, large pool, stream 0"} {
		s := &Snapshot{Devices: []Device{{Kind: kind}}, Segments: []Segment{{NumBlocks: 1}}, Blocks: Blocks{
			Segment: []int32{0}, Address: []uint64{8}, Size: []Bytes{8}, Requested: []Bytes{8}, State: []State{Live}, Stack: []StackID{NoStack},
		}}
		if got := s.Sites()[0].Label; got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}
