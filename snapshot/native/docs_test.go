package native

import (
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
)

// dumps reads the hex dumps of docs/format.md: an offset, the bytes, and what
// they are, with two spaces between them.
func dumps(t *testing.T) (files [][]byte) {
	t.Helper()
	page, err := os.ReadFile("../../docs/format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "```hexdump\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		var data []byte
		for line := range strings.Lines(block) {
			offset, rest, ok := strings.Cut(line, "  ")
			at, err := strconv.ParseInt(offset, 16, 64)
			if !ok || err != nil || at != int64(len(data)) {
				t.Fatalf("byte %#x has the line %q", len(data), line)
			}
			digits, _, _ := strings.Cut(rest, "  ")
			b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(digits), " ", ""))
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			data = append(data, b...)
		}
		files = append(files, data)
	}
	if len(files) != 2 {
		t.Fatalf("%d dumps, not 2", len(files))
	}
	return files
}

func TestTheSnapshotInTheDocumentIsWhatThePageSays(t *testing.T) {
	stacks := snapshot.NewStacks()
	forward := stacks.InternFrames([]snapshot.Frame{{Function: "forward", File: "net.go", Line: 7}})
	want := &snapshot.Snapshot{
		Mark:     snapshot.Mark{Step: 50, Epoch: snapshot.NoStep, Phase: "train"},
		Rank:     snapshot.NoRank,
		Producer: "doc",
		Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown, Meters: snapshot.Meters{
			Requested: 1000, Allocated: 1024, Active: 1024, Reserved: 2048, Driver: snapshot.Unknown,
		}}},
		Stacks:   stacks,
		Segments: []snapshot.Segment{{Address: 0x10000, Size: 2048, Pool: snapshot.SmallPool, NumBlocks: 2}},
		Blocks: snapshot.Blocks{
			Segment:   []int32{0, 0},
			Address:   []uint64{0x10000, 0x10400},
			Size:      []snapshot.Bytes{1024, 1024},
			Requested: []snapshot.Bytes{1000, 0},
			State:     []snapshot.State{snapshot.Live, snapshot.Free},
			Stack:     []snapshot.StackID{forward, snapshot.NoStack},
			BirthStep: []int64{49, snapshot.NoStep},
		},
	}
	data := dumps(t)[0]
	for name, read := range map[string]func([]byte) (*snapshot.Snapshot, error){"Decode": decode, "the slow decoder": slowDecode} {
		got, err := read(data)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := difference(want, got); d != "" {
			t.Error(name, d)
		}
	}
	if d := cmp.Diff(data, encode(t, want)); d != "" {
		t.Error("Encode writes other bytes:", d)
	}
}

func TestTheSeriesInTheDocumentIsWhatThePageSays(t *testing.T) {
	want := &snapshot.Series{
		Devices: []snapshot.Device{{Kind: snapshot.CPU, Limit: snapshot.Unknown}},
		Stacks:  snapshot.NewStacks(),
	}
	want.Sites = []snapshot.SeriesSite{{Stack: want.Stacks.InternFrames([]snapshot.Frame{{Function: "forward", File: "net.go", Line: 7}})}}
	for i := range int64(2) {
		n := snapshot.Bytes(i+1) * snapshot.KiB
		want.Points = append(want.Points, snapshot.Point{
			Mark:   snapshot.Mark{Step: i + 1, Epoch: snapshot.NoStep, Phase: "train"},
			Meters: []snapshot.Meters{{Requested: n, Allocated: n, Active: n, Reserved: 2 * snapshot.KiB, Driver: snapshot.Unknown}},
			Sites:  []snapshot.SiteCount{{Site: 0, Count: i + 1, Bytes: n}},
		})
	}
	w := roomy()
	writeSeries(t, w, want)
	data := dumps(t)[1]
	if !bytes.Equal(data, w.got) {
		t.Error("the writer writes other bytes:", cmp.Diff(data, w.got))
	}
	want.Devices[0].Meters = want.Points[1].Meters[0]
	got, notes, err := decodeSeries(data)
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	if d := seriesDifference(want, got); d != "" {
		t.Error(d)
	}
	twin, torn, err := slowSeries(data)
	if err != nil || torn {
		t.Fatal(err, torn)
	}
	if d := seriesDifference(want, twin); d != "" {
		t.Error(d)
	}
}
