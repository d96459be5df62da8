package native

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
)

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
	d := &decoder{name: "test.memdiag", r: bytes.NewReader(data), size: int64(len(data)), offset: fileHeaderSize, room: maxMemory(int64(len(data))), last: &stackList{}}
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
	endless := newRaw()
	for range maxSections + 1 {
		endless.plain("NEW!", nil)
	}
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
		"categories of too few blocks":        {rebuild("CTGY", []byte{1}), "1 bytes for 40 blocks"},
		"a category that is none":             {rebuild("CTGY", bytes.Repeat([]byte{200}, 40)), "category 200 of"},
		"a truth value of 2":                  {rebuild("HIST", []byte{0, 2}), "neither true nor false"},
		"a section that ends inside a value":  {rebuild("HIST", []byte{0x80}), "ends inside a value"},
		"a text longer than what is left":     {rebuild("NOTE", []byte{1, 200, 1}), "bytes of text, but only"},
		"sections without number":             {endless.Bytes(), "more than 1000 sections"},
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
	if len(s.Notes) != 2 || !strings.Contains(s.Notes[1], fmt.Sprintf(`%d sections of format version 1.0, the first of them "NEW!"`, len(names)-1)) {
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
		"a section that lies largely": newRaw().section("META", 1, maxFree, []byte("12345678")).Bytes(),
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

// A section may unpack to 16 times its size, and its elements take up to 40 times as much
// again: a file of 1 MB took 300 MB.
func TestMemoryIsBoundedByTheSizeOfTheFile(t *testing.T) {
	const unpacked, padding = 20 << 20, 2 << 20
	packer, err := newPacker()
	if err != nil {
		t.Fatal(err)
	}
	skipped := binary.LittleEndian.AppendUint32([]byte("\x50\x2a\x4d\x18"), padding)
	names, good := contents(encode(t, sample(40)))
	for name, each := range map[string]int{"STKS": 1, "SEGS": 9, "HOLD": 4, "NOTE": 1, "DEVS": 9} {
		content := make([]byte, unpacked)
		binary.PutUvarint(content, uint64(unpacked-4)/uint64(each))
		r := newRaw()
		for _, n := range names {
			if n == name {
				r.section(n, 1, unpacked, append(packer.EncodeAll(content, nil), append(skipped, make([]byte, padding)...)...))
				break
			}
			r.plain(n, good[n])
		}
		const want = "takes more memory than a file of its size may ask for"
		if _, err := decode(r.Bytes()); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", name, err)
		}
		lifted := NewReader(snapshot.NewStacks())
		lifted.MaxMemory = 4 << 30
		if _, err := lifted.Decode("test.memdiag", bytes.NewReader(r.Bytes()), int64(r.Len())); err == nil || strings.Contains(err.Error(), want) {
			t.Errorf("%s, with the bound lifted: %v", name, err)
		}
	}
}

// bomb packs a section of 4 MiB of zeros that says it holds as many elements as
// it can, each of so many bytes.
func bomb(name string, each int) []byte {
	const size = maxFree
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
		_ = wantFormatError(t, err)
		return
	}
	got.Notes, want.Notes = got.Notes[:min(len(got.Notes), 1)], want.Notes[:min(len(want.Notes), 1)]
	if d := difference(got, want); d != "" {
		t.Fatal(d)
	}
	reader := NewReader(snapshot.NewStacks())
	for range 2 { // the second time its stacks are known
		again, err := reader.Decode("test.memdiag", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		again.Notes = again.Notes[:min(len(again.Notes), 1)]
		if d := difference(want, again); d != "" {
			t.Fatal(d)
		}
	}
	again, err := decode(encode(t, got))
	if err != nil {
		t.Fatal(err)
	}
	if d := difference(got, again); d != "" {
		t.Fatal(d)
	}
}
