package native

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

func encode(t interface{ Fatal(...any) }, s *snapshot.Snapshot) []byte {
	var b bytes.Buffer
	if err := Encode(&b, s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func decode(data []byte) (*snapshot.Snapshot, error) {
	return Decode("test.memdiag", bytes.NewReader(data), int64(len(data)), nil)
}

// difference compares two snapshots by what they say: stacks by their frames, each
// once, as ids belong to a table.
func difference(a, b *snapshot.Snapshot) string {
	type view struct {
		Snapshot                                   snapshot.Snapshot
		Stacks                                     [][]snapshot.Frame // in the order in which they are met
		NoStep, NoTime, NoEvent, NoOwners, NoCount bool
		NoCategory                                 bool
	}
	look := func(s *snapshot.Snapshot) view {
		v := view{Snapshot: *s}
		v.NoStep, v.NoTime, v.NoEvent, v.NoOwners = s.Blocks.BirthStep == nil, s.Blocks.BirthTime == nil, s.Blocks.BirthEvent == nil, s.Blocks.Owners == nil
		v.NoCount, v.NoCategory = s.Blocks.Count == nil, s.Blocks.Category == nil
		met := make(map[snapshot.StackID]snapshot.StackID)
		number := func(id *snapshot.StackID) {
			n, ok := met[*id]
			if !ok {
				n = snapshot.StackID(len(met))
				met[*id] = n
				v.Stacks = append(v.Stacks, s.Stacks.Frames(*id))
			}
			*id = n
		}
		v.Snapshot.Stacks = nil
		v.Snapshot.Blocks.Stack = slices.Clone(s.Blocks.Stack)
		for i := range v.Snapshot.Blocks.Stack {
			number(&v.Snapshot.Blocks.Stack[i])
		}
		v.Snapshot.Segments = slices.Clone(s.Segments)
		for i := range v.Snapshot.Segments {
			number(&v.Snapshot.Segments[i].Stack)
		}
		v.Snapshot.Holders = slices.Clone(s.Holders)
		for i := range v.Snapshot.Holders {
			number(&v.Snapshot.Holders[i].Stack)
		}
		return v
	}
	x, y := look(a), look(b)
	if reflect.DeepEqual(x, y) { // a tenth of the time of Diff
		return ""
	}
	return cmp.Diff(x, y, cmpopts.EquateEmpty())
}

func TestDecodingWhatWasEncodedGivesItBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		data := encode(t, s)
		got, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(s, got); d != "" {
			t.Fatal(d)
		}
		if again := encode(t, got); !bytes.Equal(data, again) {
			t.Fatal("the same snapshot has two encodings")
		}
		twin, err := slowDecode(data)
		if err != nil {
			t.Fatal("the slow decoder:", err)
		}
		if d := difference(got, twin); d != "" {
			t.Fatal("the slow decoder differs:", d)
		}
	})
}

func TestARequestForMoreThanItsBlockHasIsNoted(t *testing.T) {
	s := sample(5)
	s.Blocks.Requested[0] = s.Blocks.Size[0] + 1<<57
	got, err := decode(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if got.Blocks.Requested[0] != s.Blocks.Size[0] || !strings.HasPrefix(got.Notes[len(got.Notes)-1], "requests for more than their blocks have: 1;") {
		t.Errorf("%v of %v; notes: %q", got.Blocks.Requested[0], s.Blocks.Size[0], got.Notes)
	}
}

func TestStackIDsStayWhereAllStacksAreInUse(t *testing.T) {
	s := sample(40)
	got, err := decode(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Blocks, got.Blocks); d != "" {
		t.Error(d)
	}
	for id := range snapshot.StackID(s.Stacks.Len()) {
		if s.Stacks.Hash(id) != got.Stacks.Hash(id) {
			t.Errorf("stack %d changed its hash", id)
		}
	}
}

func TestSnapshotsOfARunShareOneTable(t *testing.T) {
	table := snapshot.NewStacks()
	table.InternFrames([]snapshot.Frame{{Function: "before", File: "x.go", Line: 1}})
	data := encode(t, sample(40))
	for range 2 {
		s, err := Decode("test.memdiag", bytes.NewReader(data), int64(len(data)), table)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(sample(40), s); d != "" {
			t.Fatal(d)
		}
	}
	if want := sample(40).Stacks.Len() + 1; table.Len() != want {
		t.Errorf("the table has %d stacks, not %d", table.Len(), want)
	}
}

// The id after the last one is a guess at what a file says next; files in one table
// whose stacks have nothing in common, or another order, must not be led astray by it.
func TestSnapshotsInAnyOrderShareOneTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := snapshot.NewStacks()
		for range rapid.IntRange(2, 4).Draw(t, "files") {
			want := drawSnapshot(t)
			data := encode(t, want)
			got, err := Decode("test.memdiag", bytes.NewReader(data), int64(len(data)), table)
			if err != nil {
				t.Fatal(err)
			}
			if d := difference(want, got); d != "" {
				t.Fatal(d)
			}
		}
	})
}

// Where the list of stacks is the last file's, byte by byte, it is not read again; where
// only its header, its length and all bytes but one are, it is, and so is what is broken.
func TestAListOfStacksIsTakenForTheLastOneOnlyIfAllItsBytesAre(t *testing.T) {
	names, content := contents(encode(t, sample(40)))
	file := func(stacks []byte) []byte { return assemble(names, content, "STKS", stacks) }
	same := content["STKS"]
	other := bytes.Replace(same, []byte(".go"), []byte(".gp"), 1)
	broken := slices.Clone(same)
	broken[len(broken)-1] = 0x7f // a frame that there is not
	if bytes.Equal(same, other) {
		t.Fatal("the sample has no file that ends in .go")
	}
	reader := NewReader(snapshot.NewStacks())
	for i, stacks := range [][]byte{same, same, other, same, broken, broken, same} {
		data := file(stacks)
		got, err := reader.Decode("test.memdiag", bytes.NewReader(data), int64(len(data)))
		want, alone := decode(data)
		if (err == nil) != (alone == nil) || (err == nil) == bytes.Equal(stacks, broken) {
			t.Fatalf("file %d: %v; read alone: %v", i, err, alone)
		}
		if err != nil {
			continue
		}
		if d := difference(want, got); d != "" {
			t.Errorf("file %d: %s", i, d)
		}
	}
}

func TestStacksThatNothingUsesAreNotWritten(t *testing.T) {
	s := sample(40)
	before := len(encode(t, s))
	for i := range 1000 {
		s.Stacks.InternFrames([]snapshot.Frame{{Function: fmt.Sprint("unused", i)}})
	}
	if after := len(encode(t, s)); after != before {
		t.Errorf("%d bytes, and %d with unused stacks in the table", before, after)
	}
}

func TestAnUnknownTimeStaysUnknownAndTheEpochStaysKnown(t *testing.T) {
	for _, at := range []time.Time{{}, time.Unix(0, 0)} {
		s := &snapshot.Snapshot{Mark: snapshot.Mark{Time: at}}
		got, err := decode(encode(t, s))
		if err != nil || !got.Mark.Time.Equal(at) || got.Mark.Time.IsZero() != at.IsZero() {
			t.Errorf("%v became %v, %v", at, got.Mark.Time, err)
		}
	}
}

func TestEncodeRefusesASnapshotThatBreaksTheModel(t *testing.T) {
	for name, breakIt := range map[string]func(*snapshot.Snapshot){
		"a column that is too short":              func(s *snapshot.Snapshot) { s.Blocks.State = s.Blocks.State[1:] },
		"an optional column that is too short":    func(s *snapshot.Snapshot) { s.Blocks.Owners = []snapshot.Owners{} },
		"a segment on no device":                  func(s *snapshot.Snapshot) { s.Segments[0].Device = 7 },
		"a segment with more rows than there are": func(s *snapshot.Snapshot) { s.Segments[1].NumBlocks++ },
		"blocks of no segment":                    func(s *snapshot.Snapshot) { s.Segments[1].NumBlocks-- },
		"segments that overlap":                   func(s *snapshot.Snapshot) { s.Segments[1].FirstBlock-- },
		"a block that names another segment":      func(s *snapshot.Snapshot) { s.Blocks.Segment[0] = 1 },
		"a category that is none":                 func(s *snapshot.Snapshot) { s.Blocks.Category[3] = snapshot.Category(snapshot.Categories) },
		"a state that is none":                    func(s *snapshot.Snapshot) { s.Blocks.State[3] = 3 },
		"a pool that is none":                     func(s *snapshot.Snapshot) { s.Segments[0].Pool = 2 },
		"a block's stack out of range":            func(s *snapshot.Snapshot) { s.Blocks.Stack[0] = 1 << 30 },
		"a segment's stack out of range":          func(s *snapshot.Snapshot) { s.Segments[0].Stack = 1 << 30 },
		"a holder's stack out of range":           func(s *snapshot.Snapshot) { s.Holders[0].Stack = 1 << 30 },
		"stacks without a table":                  func(s *snapshot.Snapshot) { s.Stacks = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := sample(40)
			breakIt(s)
			var b bytes.Buffer
			if err := Encode(&b, s); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v", err)
			}
			if b.Len() > 0 {
				t.Error("something was written")
			}
		})
	}
}

func TestEncodeReturnsTheErrorOfItsWriter(t *testing.T) {
	whole := len(encode(t, sample(40)))
	for room := range whole {
		if err := Encode(&full{room: room}, sample(40)); !errors.Is(err, errFull) {
			t.Fatalf("with room for %d of %d bytes: %v", room, whole, err)
		}
	}
}

var errFull = errors.New("no space left")

// full is a writer with little room.
type full struct {
	room int
	got  []byte
}

func (f *full) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	f.got = append(f.got, b[:n]...)
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}

func wantFormatError(t *testing.T, err error) *snapshot.FormatError {
	t.Helper()
	var e *snapshot.FormatError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, not a format error", err)
	}
	if e.File != "test.memdiag" || e.Reason == "" || strings.Contains(e.Error(), "\n") {
		t.Fatalf("got %#v", e)
	}
	return e
}

func TestAFileCutAnywhereIsAnError(t *testing.T) {
	data := encode(t, sample(40))
	for n := range data {
		_, err := decode(data[:n])
		if e := wantFormatError(t, err); e.Offset > int64(n) {
			t.Fatalf("cut at %d, the fault is said to be at %d", n, e.Offset)
		}
	}
	_, err := decode(append(bytes.Clone(data), 0))
	_ = wantFormatError(t, err)
}

func TestAnyByteThatChangesIsNoticed(t *testing.T) {
	data := encode(t, sample(40))
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x10
		if _, err := decode(damaged); err == nil {
			t.Fatalf("byte %d was changed, and nobody noticed", i)
		}
	}
}

func TestAnErrorOfTheDiskIsReported(t *testing.T) {
	data := encode(t, sample(40))
	_, err := Decode("test.memdiag", bytes.NewReader(data[:100]), int64(len(data)), nil)
	_ = wantFormatError(t, err)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// sample is a made-up snapshot of n blocks on two segments: all fields are set.
func sample(n int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{
			Step: 50, Epoch: 2, Phase: "train", BatchElements: 4096, SequenceLength: 128,
			Time: time.Date(2026, 11, 21, 4, 30, 0, 123456000, time.UTC),
		},
		Rank: 3, Producer: "memdiag engine", Stacks: snapshot.NewStacks(),
		Devices: []snapshot.Device{
			{Kind: snapshot.CPU, Name: "host", Limit: snapshot.Unknown, Meters: snapshot.Meters{Requested: 90, Allocated: 100, Active: 110, Reserved: 4 << 20, Driver: snapshot.Unknown}},
			{Kind: snapshot.CUDA, Index: 1, Name: "H200", Limit: 80 * snapshot.GiB, Meters: snapshot.Meters{Driver: 1}},
		},
		History: snapshot.History{Events: 12, First: time.UnixMicro(1).UTC(), Last: time.UnixMicro(2).UTC(), LostFrees: 1},
		Notes:   []string{"made up"},
	}
	var stacks []snapshot.StackID
	for i := range min(n, 200) {
		frames := []snapshot.Frame{{Function: fmt.Sprint("op", i), File: "engine/ops.go", Line: 10 + i}}
		for depth := range 12 {
			frames = append(frames, snapshot.Frame{Function: fmt.Sprint("caller", (i+depth)%40), File: "engine/train.go", Line: (i + depth) % 40})
		}
		stacks = append(stacks, s.Stacks.InternFrames(frames))
	}
	b := &s.Blocks
	noise := uint64(1)
	for g := range 2 {
		segment := snapshot.Segment{
			Device: g, Address: 0x7f00_0000_0000 + uint64(g)<<32, Stream: uint64(g) * 7, Pool: snapshot.Pool(g),
			Private: strings.Repeat("1,", g), Expandable: g == 1, FirstBlock: b.Len(),
			NumBlocks: n/2 + g*(n%2),
		}
		at := segment.Address
		for range segment.NumBlocks {
			// A linear congruence serves as noise that is the same everywhere.
			noise = noise*6364136223846793005 + 1442695040888963407
			size := snapshot.Bytes(512 * (1 + (noise>>33)%64))
			i := b.Len()
			b.Segment = append(b.Segment, int32(g))
			b.Address = append(b.Address, at)
			b.Size = append(b.Size, size)
			b.Requested = append(b.Requested, size-snapshot.Bytes((noise>>40)%512))
			b.State = append(b.State, snapshot.Live)
			b.Stack = append(b.Stack, stacks[i%len(stacks)])
			b.BirthStep = append(b.BirthStep, int64(i/2000))
			b.BirthTime = append(b.BirthTime, 1_790_000_000_000_000+int64(i)*int64(37+noise>>60))
			b.Owners = append(b.Owners, snapshot.Owners(1<<(noise>>50%3)))
			b.Category = append(b.Category, snapshot.Category(noise>>55%4))
			at += uint64(size)
			segment.Size += size
		}
		s.Segments = append(s.Segments, segment)
	}
	if n > 2 {
		b.State[1], b.Requested[1], b.Stack[1], b.Owners[1], b.Category[1] = snapshot.Free, 0, snapshot.NoStack, 0, snapshot.NoCategory
		b.State[2] = snapshot.Pending
		b.BirthStep[1] = snapshot.NoStep
		s.Holders = []snapshot.Holder{{Stack: stacks[0], Path: "Pyramid.features", Kind: "list", Items: 50}}
		s.Segments[1].Stack = stacks[1] // row 1 no longer holds it up
	}
	return s
}

func TestASnapshotOfAHundredThousandBlocksIsBelowTwoMegabytes(t *testing.T) {
	if n := len(encode(t, sample(100_000))); n >= 2_000_000 {
		t.Errorf("%d bytes", n)
	} else {
		t.Logf("%d bytes", n)
	}
}

func TestMillionsOfEqualBlocksCanBeReadBack(t *testing.T) {
	// They pack better than a reader would believe.
	const n = 2_000_000
	s := &snapshot.Snapshot{
		Devices: make([]snapshot.Device, 1), Segments: []snapshot.Segment{{NumBlocks: n}},
		Blocks: snapshot.Blocks{
			Segment: make([]int32, n), Address: make([]uint64, n), Size: make([]snapshot.Bytes, n),
			Requested: make([]snapshot.Bytes, n), State: make([]snapshot.State, n), Stack: make([]snapshot.StackID, n),
		},
	}
	got, err := decode(encode(t, s))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Blocks.Address, s.Blocks.Address) || got.Blocks.Len() != n {
		t.Error("they differ")
	}
}

func BenchmarkEncode(b *testing.B) {
	s := sample(100_000)
	b.SetBytes(int64(len(encode(b, s))))
	b.ReportAllocs()
	for b.Loop() {
		if err := Encode(io.Discard, s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data := encode(b, sample(100_000))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
