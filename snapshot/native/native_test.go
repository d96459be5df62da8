package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
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

// difference compares two snapshots by what they say: stacks by their frames,
// as ids belong to a table.
func difference(a, b *snapshot.Snapshot) string {
	frames := func(table *snapshot.Stacks, ids []snapshot.StackID) [][]snapshot.Frame {
		out := make([][]snapshot.Frame, len(ids))
		for i, id := range ids {
			out[i] = table.Frames(id)
		}
		return out
	}
	type view struct {
		Snapshot                 snapshot.Snapshot
		Blocks, Segments, Holder [][]snapshot.Frame
		NoStep, NoTime, NoOwners bool
	}
	look := func(s *snapshot.Snapshot) view {
		v := view{Snapshot: *s}
		v.NoStep, v.NoTime, v.NoOwners = s.Blocks.BirthStep == nil, s.Blocks.BirthTime == nil, s.Blocks.Owners == nil
		v.Blocks = frames(s.Stacks, s.Blocks.Stack)
		v.Snapshot.Blocks.Stack = nil
		v.Snapshot.Stacks = nil
		v.Snapshot.Segments = slices.Clone(s.Segments)
		var ids []snapshot.StackID
		for i := range v.Snapshot.Segments {
			ids = append(ids, s.Segments[i].Stack)
			v.Snapshot.Segments[i].Stack = 0
		}
		v.Segments = frames(s.Stacks, ids)
		ids = nil
		v.Snapshot.Holders = slices.Clone(s.Holders)
		for i := range s.Holders {
			ids = append(ids, s.Holders[i].Stack)
			v.Snapshot.Holders[i].Stack = 0
		}
		v.Holder = frames(s.Stacks, ids)
		return v
	}
	return cmp.Diff(look(a), look(b), cmpopts.EquateEmpty())
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
	wantFormatError(t, err)
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
	wantFormatError(t, err)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// raw builds a file section by section, with right checksums.
type raw struct{ bytes.Buffer }

func newRaw() *raw {
	r := &raw{}
	r.Write(fileHeader(snapshotMagic))
	return r
}

func (r *raw) section(name string, how uint32, rawSize uint64, stored []byte) *raw {
	b := append([]byte(name), make([]byte, 20)...)
	binary.LittleEndian.PutUint32(b[4:], how)
	binary.LittleEndian.PutUint64(b[8:], uint64(len(stored)))
	binary.LittleEndian.PutUint64(b[16:], rawSize)
	b = append(b, stored...)
	r.Write(binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b)))
	return r
}

func (r *raw) plain(name string, content []byte) *raw {
	return r.section(name, 0, uint64(len(content)), content)
}

// contents are the unpacked sections of a file.
func contents(data []byte) (names []string, content map[string][]byte) {
	d := &decoder{name: "test.memdiag", r: bytes.NewReader(data), size: int64(len(data)), offset: fileHeaderSize}
	defer d.close()
	content = make(map[string][]byte)
	for d.offset < d.size {
		k, c, err := d.section()
		if err != nil {
			panic(err)
		}
		names = append(names, string(k[:]))
		content[string(k[:])] = c.data
	}
	return names, content
}

// rebuild is a sample with one section replaced; nil leaves it out.
func rebuild(name string, with []byte) []byte {
	names, content := contents(encode(panics{}, sample(40)))
	return assemble(names, content, name, with)
}

func assemble(names []string, content map[string][]byte, name string, with []byte) []byte {
	r := newRaw()
	sections := byte(0)
	for _, n := range names {
		switch {
		case n == "END." && n != name:
			r.plain(n, []byte{sections})
			continue
		case n != name:
			r.plain(n, content[n])
		case with == nil:
			continue
		default:
			r.plain(n, with)
		}
		sections++
	}
	return r.Bytes()
}

type panics struct{}

func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func TestHostileFilesAreRefused(t *testing.T) {
	_, content := contents(encode(t, sample(40)))
	meta := content["META"]
	many := binary.AppendUvarint(nil, 1<<60)
	header := func(version uint16) []byte {
		b := fileHeader(snapshotMagic)[:8]
		b = binary.LittleEndian.AppendUint16(b, version)
		b = binary.LittleEndian.AppendUint16(b, 0)
		return binary.LittleEndian.AppendUint32(b, uint32(xxhash.Sum64(b)))
	}
	huge := newRaw()
	huge.WriteString("META\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff12345678")
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"an empty file":                       {nil, "too short"},
		"another magic":                       {[]byte("not a snapshot of ours"), "not a snapshot"},
		"a version from the future":           {header(2), "format version 2; this memdiag reads version 1"},
		"a section longer than the file":      {huge.Bytes(), "cut short or damaged"},
		"a bomb that says its size":           {newRaw().section("META", 1, 1<<33, []byte("12345678")).Bytes(), "the limit is"},
		"a size that overflows":               {newRaw().section("META", 1, 1<<63, []byte("12345678")).Bytes(), "the limit is"},
		"garbage for zstd":                    {newRaw().section("META", 1, 100, []byte("12345678")).Bytes(), "does not unpack"},
		"an unknown codec":                    {newRaw().section("META", 9, 8, []byte("12345678")).Bytes(), "unknown codec 9"},
		"a plain section with two sizes":      {newRaw().section("META", 0, 9, []byte("12345678")).Bytes(), "said to be 9"},
		"a section twice":                     {newRaw().plain("META", meta).plain("META", meta).Bytes(), "twice"},
		"a section too early":                 {newRaw().plain("META", meta).plain("BLKS", []byte{0}).Bytes(), `"DEVS" is missing before "BLKS"`},
		"the end too early":                   {newRaw().plain("META", meta).plain("END.", []byte{1}).Bytes(), `"DEVS" is missing before "END."`},
		"no end":                              {rebuild("END.", nil), "cut short"},
		"a wrong count of sections":           {rebuild("END.", []byte{3}), "3 sections"},
		"bytes that no field asks for":        {rebuild("META", append(bytes.Clone(meta), 0)), "1 bytes too many"},
		"more strings than bytes":             {rebuild("STKS", many), "strings, but only"},
		"more blocks than bytes":              {rebuild("BLKS", many), "blocks, but only"},
		"a number of 70 bits":                 {rebuild("BLKS", bytes.Repeat([]byte{0xff}, 11)), "more than 64 bits"},
		"segments of 2^63 blocks":             {rebuild("SEGS", append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0}, binary.AppendUvarint(nil, 1<<63)...)), "blocks in a segment"},
		"blocks where the segments have none": {rebuild("SEGS", []byte{0}), "where the segments have 0"},
		"a segment on a device that is not":   {rebuild("DEVS", []byte{0}), "device 0 of 0"},
		"a stack that is not":                 {rebuild("STKS", []byte{0, 0, 0}), "of 1"},
		"a frame with a string that is not":   {rebuild("STKS", []byte{0, 1, 0, 0, 0}), "string 0 of 0"},
		"a frame with a line that is not":     {rebuild("STKS", append([]byte{1, 0, 1, 0, 0}, binary.AppendUvarint(nil, 1<<32)...)), "line 4294967296"},
		"a stack without frames":              {rebuild("STKS", []byte{0, 0, 1, 0, 0}), "without frames"},
		"owners of too few blocks":            {rebuild("OWNR", []byte{1}), "1 bytes for 40 blocks"},
		"a truth value of 2":                  {rebuild("HIST", []byte{0, 2}), "neither true nor false"},
		"a section that ends inside a value":  {rebuild("HIST", []byte{0x80}), "ends inside a value"},
		"a text longer than what is left":     {rebuild("NOTE", []byte{1, 200, 1}), "bytes of text, but only"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decode(c.data)
			if e := wantFormatError(t, err); !strings.Contains(e.Reason, c.want) {
				t.Errorf("got %q, want %q in it", e.Reason, c.want)
			}
			if _, err := slowDecode(c.data); err == nil {
				t.Error("the slow decoder took it")
			}
		})
	}
}

func TestAnOtherVersionNamesTheWayOut(t *testing.T) {
	data := encode(t, sample(3))
	data[8] = 2
	binary.LittleEndian.PutUint32(data[12:], uint32(xxhash.Sum64(data[:12])))
	_, err := decode(data)
	if e := wantFormatError(t, err); e.Hint == "" || e.Offset != 8 {
		t.Errorf("got %#v", e)
	}
}

func TestSectionsFromALaterVersionArePassedOverAndNoted(t *testing.T) {
	names, content := contents(encode(t, sample(40)))
	r := newRaw()
	for _, n := range names[:len(names)-1] {
		r.plain(n, content[n])
		r.section("NEW!", 7, 1<<40, []byte("a codec and a size that nobody knows"))
	}
	r.plain("END.", []byte{byte(2 * (len(names) - 1))})
	s, err := decode(r.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Notes) != len(names)-1+1 || !strings.Contains(s.Notes[1], `section "NEW!"`) {
		t.Errorf("notes: %q", s.Notes)
	}
	s.Notes = s.Notes[:1]
	if d := difference(sample(40), s); d != "" {
		t.Error(d)
	}
}

func TestReadingCostsNoMoreMemoryThanStated(t *testing.T) {
	for name, data := range map[string][]byte{
		"blocks of five bytes each":   bomb("BLKS", 5),
		"strings of no length":        bomb("STKS", 1),
		"notes of no length":          bomb("NOTE", 1),
		"a section that lies largely": newRaw().section("META", 1, 8<<20, []byte("12345678")).Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = decode(data)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 200<<20 {
				t.Errorf("%d bytes of file took %d MiB", len(data), got>>20)
			}
		})
	}
}

// bomb packs a section of 8 MiB of zeros that says it holds as many elements as
// it can, each of so many bytes.
func bomb(name string, each int) []byte {
	const size = 8 << 20
	count := uint64(size-4) / uint64(each)
	content := make([]byte, size)
	binary.PutUvarint(content, count)
	names, good := contents(encode(panics{}, sample(40)))
	packer, err := newPacker()
	if err != nil {
		panic(err)
	}
	packed := packer.EncodeAll(content, nil)
	r := newRaw()
	for _, n := range names {
		switch n {
		case name:
			return r.section(n, 1, uint64(size), packed).Bytes()
		case "SEGS":
			one := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0}
			r.plain(n, binary.AppendUvarint(one, count))
		default:
			r.plain(n, good[n])
		}
	}
	panic("no section " + name)
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
			at += uint64(size)
			segment.Size += size
		}
		s.Segments = append(s.Segments, segment)
	}
	if n > 2 {
		b.State[1], b.Requested[1], b.Stack[1], b.Owners[1] = snapshot.Free, 0, snapshot.NoStack, 0
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

// FuzzDecode feeds whole files; checksums stop most of what it makes.
func FuzzDecode(f *testing.F) {
	f.Add(encode(f, sample(5)))
	f.Add(encode(f, &snapshot.Snapshot{}))
	f.Add(rebuild("OWNR", nil))
	f.Fuzz(compareDecoders)
}

// FuzzSection puts any content into one section of a file that is whole.
func FuzzSection(f *testing.F) {
	names, content := contents(encode(f, sample(40)))
	for i, n := range names {
		f.Add(byte(i), content[n])
	}
	f.Fuzz(func(t *testing.T, which byte, with []byte) {
		compareDecoders(t, assemble(names, content, names[int(which)%len(names)], append([]byte{}, with...)))
	})
}

func compareDecoders(t *testing.T, data []byte) {
	got, err := decode(data)
	want, slowErr := slowDecode(data)
	if (err == nil) != (slowErr == nil) {
		t.Fatalf("fast: %v; slow: %v", err, slowErr)
	}
	if err != nil {
		wantFormatError(t, err)
		return
	}
	got.Notes, want.Notes = got.Notes[:min(len(got.Notes), 1)], want.Notes[:min(len(want.Notes), 1)]
	if d := difference(got, want); d != "" {
		t.Fatal(d)
	}
	again, err := decode(encode(t, got))
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(got, again); d != "" {
		t.Fatal(d)
	}
}
