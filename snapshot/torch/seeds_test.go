package torch

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
)

// seed reads one of the made-up files (testdata/make_seeds.py).
func seed(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decodeSeed(t testing.TB, name string) *snapshot.Snapshot {
	t.Helper()
	b := seed(t, name)
	s, err := Decode(name, bytes.NewReader(b), int64(len(b)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func seedNames(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}

func TestReaderAgreesWithItsTwinOnEveryEraAndDialect(t *testing.T) {
	for _, name := range seedNames(t, "*.pickle") {
		t.Run(name, func(t *testing.T) {
			checkTwin(t, seed(t, name), pickleTree)
			compareWithMachine(t, seed(t, name))
		})
	}
	for _, name := range seedNames(t, "*.json") {
		t.Run(name, func(t *testing.T) { checkTwin(t, seed(t, name), jsonTree) })
	}
}

func TestEveryDialectAndWrappingSaysTheSame(t *testing.T) {
	want := describe(decodeSeed(t, "full_protocol4.pickle"))
	for _, name := range append(seedNames(t, "full*"), "foreign.pickle", "traces_first.pickle", "unordered.pickle", "era_2026.pickle") {
		got := describe(decodeSeed(t, name))
		if strings.HasPrefix(name, "era_2026") { // two events more
			got = strings.Replace(got, "events 15", "events 13", 1)
		}
		if got != want {
			t.Errorf("%s: %s", name, firstDifference(got, want))
		}
	}
}

// TestWhatAFullSnapshotSays pins the reading of one file; the twin and the
// dialects tie the others to it.
func TestWhatAFullSnapshotSays(t *testing.T) {
	s := decodeSeed(t, "full_protocol4.pickle")
	want := `events 13 lost 1 from 1750000000001000 to 1750000000022000 steps 2
segment 0 7f0000000000+2097152 stream 0 small "" false [{c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc  -1} {forward /site-packages/torch/nn/modules/linear.py 125} {train_start train.py 40} {<module> <string> 1}]
 7f0000000000+512 (4) live born 1750000000005000 in 0: [{c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc  -1} {train_start train.py 40} {init_gpu_context fake_tensor.py -1} {<module> <string> 1}]
 7f0000000200+1024 (1000) live born 1750000000008000 in 1: [{c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc  -1} {forward /site-packages/torch/nn/modules/linear.py 125} {train_start train.py 40} {<module> <string> 1}]
 7f0000000600+512 (0) free born 0 in -1: []
 7f0000000800+2048 (2000) pending born 1750000000009000 in 1: [{c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc  -1} {forward /site-packages/torch/nn/modules/linear.py 125} {train_start train.py 40} {<module> <string> 1}]
 7f0000001000+2093056 (0) free born 0 in -1: []
segment 0 7f0000c00000+20971520 stream 123323568 large "" true []
 7f0000c00000+20971520 (20000000) live born 1750000000021000 in 2: [{c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc  -1} {AddmmBackward0::apply  -1} {clone  -1}]
segment 0 7f0002000000+2097664 stream 0 large "0,1" false []
 7f0002000000+2097152 (2097152) pending born 0 in -1: []
 7f0002200000+512 (512) live born 0 in -1: []
segment 1 7f0003000000+1024 stream 0 large "" false []
 7f0003000000+512 (512) live born 1750000000012000 in 1: [{torch::unwind::unwind()  -1} {_PyEval_EvalFrameDefault  -1} {_start  -1}]
 7f0003000200+512 (300) live born 0 in -1: [{forward /site-packages/torch/nn/modules/linear.py 125} {forward /site-packages/torch/nn/modules/linear.py 125} {forward /site-packages/torch/nn/modules/linear.py 125} {train_start train.py 40}]
device 0: [20001516 20973568 23072768 25166336]
device 1: [812 1024 1024 1024]
`
	if got := describe(s); got != want {
		t.Error(firstDifference(got, want))
	}
	wantNotes := []string{
		"1 of 6 live blocks (512 B) has no stack: older than the recording, or it was without stacks",
		"1 free has no allocation in the record: older blocks than the recording, or its oldest events were overwritten",
	}
	if diff := cmp.Diff(wantNotes, s.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if s.Mark.Step != 2 || s.Rank != snapshot.NoRank || len(s.Devices) != 2 {
		t.Errorf("step %d, rank %d, %d devices", s.Mark.Step, s.Rank, len(s.Devices))
	}
}

func TestSnapshotsOfARunShareATable(t *testing.T) {
	stacks := snapshot.NewStacks()
	var snapshots []*snapshot.Snapshot
	for _, name := range []string{"full_protocol4.pickle", "full.json", "era_2_1.pickle"} {
		b := seed(t, name)
		s, err := Decode(name, bytes.NewReader(b), int64(len(b)), Options{Stacks: stacks})
		if err != nil {
			t.Fatal(err)
		}
		if s.Stacks != stacks {
			t.Errorf("%s has a table of its own", name)
		}
		snapshots = append(snapshots, s)
	}
	for _, s := range snapshots[1:] {
		if diff := cmp.Diff(snapshots[0].Blocks.Stack, s.Blocks.Stack); diff != "" {
			t.Errorf("equal stacks have different ids (-first +other):\n%s", diff)
		}
	}
}

func TestEverySeedIsDetected(t *testing.T) {
	for _, name := range seedNames(t, "*.*") {
		b := seed(t, name)
		if got, want := Detect(b[:min(len(b), DetectLen)]), !strings.HasSuffix(name, ".py"); got != want {
			t.Errorf("%s: detected %v, want %v", name, got, want)
		}
	}
}

func TestPinnedMemoryIsADeviceOfItsOwn(t *testing.T) {
	for _, name := range []string{"host.pickle", "host_by_device.pickle"} {
		s := decodeSeed(t, name)
		d := s.Devices[len(s.Devices)-1]
		if d.Kind != snapshot.CPU || d.Name != "pinned host memory" || d.Meters.Allocated != 1<<20+4096 || d.Meters.Reserved != 1<<20+4096 {
			t.Errorf("%s: device %+v", name, d)
		}
		var births []int64
		for i, at := range s.Blocks.BirthTime {
			if s.Segments[s.Blocks.Segment[i]].Device == len(s.Devices)-1 {
				births = append(births, at-1_750_000_000_000_000)
			}
		}
		if diff := cmp.Diff([]int64{2000, 3000}, births); diff != "" {
			t.Errorf("%s: births (-want +got):\n%s", name, diff)
		}
		passed := 2 // an unknown segment and a text
		if name == "host_by_device.pickle" {
			passed++
		}
		want := counts(passed, "value", "was", "were") + " passed over for an unexpected type"
		if !slices.Contains(s.Notes, want) {
			t.Errorf("%s: notes %q, want %q", name, s.Notes, want)
		}
	}
}

func TestASegmentsFramesMayBeWrittenInParts(t *testing.T) {
	const (
		begin = "\x80\x04\x8c\x04name\x940\x8c\x01f\x940\x8c\x06frames\x940\x8c\x01g\x940}(\x8c\x08segments](}(h\x02" +
			"](}\x94(h\x00h\x01u}(h\x00h\x03ue"
		end = "\x8c\x0atotal_sizeK\x08\x8c\x0eallocated_sizeK\x08\x8c\x0bactive_sizeK\x08ueu."
	)
	for more, frames := range map[string]int{
		"":                      2,
		"}(h\x00h\x03ua":        3,
		"h\x04a":                3, // the first frame
		"(h\x04h\x04e":          4,
		"\x94":                  2, // the list goes into the memo
		"h\x03a":                0, // a string
		"h\x03N":                2, // a key
		"h\x03h\x01h\x03h\x04":  2,
		"\x94(h\x04eh\x02h\x05": 3, // a reference to the list
	} {
		b := []byte(begin + more + end)
		compareWithMachine(t, b)
		s, err := Decode("file", bytes.NewReader(b), int64(len(b)), Options{})
		if err != nil {
			t.Errorf("%q: %v", more, err)
			continue
		}
		if got := len(s.Stacks.FrameIDs(s.Blocks.Stack[0])); got != frames {
			t.Errorf("%q: %d frames, want %d", more, got, frames)
		}
	}
}
