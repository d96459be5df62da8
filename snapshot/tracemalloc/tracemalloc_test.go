package tracemalloc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(Decode, data)
}

// held is what is live by stack, frames written "file:line".
func held(s *snapshot.Snapshot) map[string][2]int64 {
	return totalstest.Held(s, " < ", func(f snapshot.Frame) string { return fmt.Sprintf("%s:%d", f.File, f.Line) })
}

func TestRealDumpsTellTheLeak(t *testing.T) {
	for _, steps := range []int64{10, 30, 60} {
		data := totalstest.Profile(t, fmt.Sprintf("tracemalloc_%d.pickle", steps))
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		var count, size int64
		for stack, n := range held(s) {
			// Dumps name the file as it was run.
			if strings.Contains(stack, "leak_python.py:13 < ") && strings.HasSuffix(stack, "leak_python.py:24") {
				count, size = n[0], n[1]
			}
		}
		// A step makes a bytearray: an object of 56 bytes and a buffer of 10,001.
		// The list that keeps them grows in the same line.
		if count < 2*steps || count > 2*steps+1 || size < steps*10_057 || size > steps*10_057+1000 {
			t.Errorf("%d steps leak %d blocks of %d bytes", steps, count, size)
		}
		if !Detect(data) {
			t.Error("not detected")
		}
		if len(s.Notes) > 0 {
			t.Errorf("notes %q", s.Notes)
		}
	}
}

// block is what one trace of a dump tells.
type block struct {
	domain, size int64
	stack        []snapshot.Frame // innermost first
	depth        int64            // 0: as an older Python writes it, not at all
}

// dumper writes pickles as Python does, of one protocol.
type dumper struct {
	bytes.Buffer
	protocol int
	memo     map[string]int
	count    int
}

func (d *dumper) memoize() {
	if d.protocol >= 4 {
		d.WriteByte(byte(opMemoize))
	} else {
		d.WriteByte(byte(opPut4))
		_ = binary.Write(d, binary.LittleEndian, uint32(d.count))
	}
	d.count++
}

// once writes something, or a reference to it if it was written before.
func (d *dumper) once(key string, write func()) {
	if at, ok := d.memo[key]; ok {
		d.WriteByte(byte(opGet4))
		_ = binary.Write(d, binary.LittleEndian, uint32(at))
		return
	}
	write()
	d.memo[key] = d.count
	d.memoize()
}

func (d *dumper) text(s string) {
	d.once("text "+s, func() {
		if d.protocol >= 4 && len(s) < 256 {
			d.Write([]byte{byte(opText1), byte(len(s))})
		} else {
			d.WriteByte(byte(opText4))
			_ = binary.Write(d, binary.LittleEndian, uint32(len(s)))
		}
		d.WriteString(s)
	})
}

func (d *dumper) integer(n int64) {
	switch {
	case n >= 0 && n < 1<<8:
		d.Write([]byte{byte(opInt1), byte(n)})
	case n >= 0 && n < 1<<16:
		d.Write([]byte{byte(opInt2), byte(n), byte(n >> 8)})
	case n == int64(int32(n)):
		d.WriteByte(byte(opInt4))
		_ = binary.Write(d, binary.LittleEndian, int32(n))
	default:
		d.Write([]byte{byte(opLong1), 8})
		_ = binary.Write(d, binary.LittleEndian, n)
	}
}

func (d *dumper) class(name string) {
	if d.protocol >= 4 {
		d.text("tracemalloc")
		d.text(name)
		d.WriteByte(byte(opStackGlobal))
	} else {
		d.WriteString("ctracemalloc\n" + name + "\n")
	}
	d.memoize()
	d.Write([]byte{byte(opEmptyTuple), byte(opNewObj)})
	d.memoize()
}

func (d *dumper) tuple(write func(), n int) {
	if n > 3 || n == 0 {
		if n == 0 {
			d.WriteByte(byte(opEmptyTuple))
			return
		}
		d.WriteByte(byte(opMark))
		write()
		d.WriteByte(byte(opTuple))
		return
	}
	write()
	d.WriteByte(byte(opTuple1) + byte(n-1))
}

func dump(protocol, limit int, blocks []block) []byte {
	d := &dumper{protocol: protocol, memo: make(map[string]int)}
	d.Write([]byte{byte(opProto), byte(protocol)})
	d.class("Snapshot")
	d.Write([]byte{byte(opEmptyDict), byte(opMark)})
	d.text("traces")
	d.class("_Traces")
	d.WriteByte(byte(opEmptyDict))
	d.text("_traces")
	d.WriteByte(byte(opEmptyList))
	d.memoize()
	for len(blocks) > 0 {
		batch := blocks[:min(len(blocks), 1000)]
		blocks = blocks[len(batch):]
		d.WriteByte(byte(opMark))
		for _, b := range batch {
			parts := 4
			if b.depth == 0 {
				parts = 3
			}
			d.tuple(func() {
				d.integer(b.domain)
				d.integer(b.size)
				d.once(fmt.Sprint("stack ", b.stack), func() {
					d.tuple(func() {
						for _, f := range b.stack {
							d.once(fmt.Sprint("frame ", f), func() {
								d.tuple(func() { d.text(f.File); d.integer(int64(f.Line)) }, 2)
							})
						}
					}, len(b.stack))
				})
				if b.depth > 0 {
					d.integer(b.depth)
				}
			}, parts)
			d.memoize()
		}
		d.WriteByte(byte(opAppends))
	}
	d.Write([]byte{byte(opSetItem), byte(opBuild)})
	d.text("traceback_limit")
	d.integer(int64(limit))
	d.Write([]byte{byte(opSetItems), byte(opBuild), byte(opStop)})
	return d.Bytes()
}

func TestDrawnDumpsReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frame := rapid.Custom(func(t *rapid.T) snapshot.Frame {
			return snapshot.Frame{File: rapid.SampledFrom([]string{"a.py", "b.py", strings.Repeat("long/", 60) + "c.py"}).Draw(t, "file"), Line: rapid.IntRange(1, 70_000).Draw(t, "line")}
		})
		stacks := rapid.SliceOfN(rapid.SliceOfN(frame, 0, 5), 1, 4).Draw(t, "stacks")
		blocks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) block {
			return block{
				domain: rapid.Int64Range(0, 3).Draw(t, "domain"), size: rapid.Int64Range(0, 1<<40).Draw(t, "size"),
				stack: rapid.SampledFrom(stacks).Draw(t, "stack"), depth: rapid.SampledFrom([]int64{0, 5, 100}).Draw(t, "depth"),
			}
		}), 0, 20).Draw(t, "blocks")
		if rapid.Bool().Draw(t, "several batches") {
			for len(blocks) > 0 && len(blocks) < 2500 {
				blocks = append(blocks, blocks...)
			}
		}
		protocol := rapid.IntRange(2, 5).Draw(t, "protocol")
		s, err := decode(dump(protocol, 5, blocks))
		if err != nil {
			t.Fatal(err)
		}
		want, cut := make(map[string][2]int64), 0
		for _, b := range blocks {
			var key []string
			for _, f := range b.stack {
				key = append(key, fmt.Sprintf("%s:%d", f.File, f.Line))
			}
			sum := want[strings.Join(key, " < ")]
			want[strings.Join(key, " < ")] = [2]int64{sum[0] + 1, sum[1] + b.size}
			if b.depth > int64(len(b.stack)) {
				cut++
			}
		}
		if d := cmp.Diff(want, held(s)); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		if note := fmt.Sprintf("%s of %s blocks have stacks that were cut at 5 frames", snapshot.Grouped(int64(cut)), snapshot.Grouped(int64(len(blocks)))); cut > 0 && (len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], note)) {
			t.Fatalf("notes %q, want %q", s.Notes, note)
		}
	})
}

func TestBrokenDumps(t *testing.T) {
	good := dump(4, 5, []block{{0, 8, []snapshot.Frame{{File: "a.py", Line: 1}}, 1}})
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "the file ends in the middle of the snapshot"},
		{"half a dump", string(good[:len(good)/2]), "the file ends in the middle of the snapshot"},
		{"another pickle", "\x80\x04].", "the pickle holds no snapshot of tracemalloc"},
		{"a call of the system", "\x80\x04\x8c\x05posix\x8c\x06system\x93.", `byte 17: asks for "posix.system"; memdiag does not run pickles`},
		{"the same, in an older way", "\x80\x02cposix\nsystem\n.", `asks for "posix.system"`},
		{"a call of what is known", "\x80\x02ctracemalloc\nSnapshot\n)R.", "0x52 is no instruction of a dump of tracemalloc"},
		{"a list in itself", "\x80\x04]\x94(h\x00e.", "the pickle holds no snapshot"},
		{"values that are not there", "\x80\x04a", "an instruction finds no value to work on"},
		{"a mark that is not there", "\x80\x04t", "an instruction finds no mark"},
		{"values below a mark", "\x80\x04]K\x01(a", "an instruction finds no value to work on"},
		{"a memo entry that is not there", "\x80\x04h\x00", "memo entry 0 is used before it is stored"},
		{"a memo entry out of turn", "\x80\x02]r\xff\xff\xff\x7f", "memo entry 2147483647 is stored out of turn"},
		{"a text that is too long", "\x80\x04X\xff\xff\xff\xff", "a text of 4294967295 bytes"},
		{"an integer that is too long", "\x80\x04\x8a\xff", "an integer of 255 bytes"},
		{"items of a dict", "\x80\x04}K\x01a", "items are added to what is no list"},
		{"attributes of a number", "\x80\x04K\x01}b", "attributes are set in what has none"},
		{"a size below nothing", string(dump(4, 5, []block{{0, -8, nil, 0}})), "this is a difference of profiles"},
		{"marks without end", "\x80\x04" + strings.Repeat("(", maxMarks+1), "marks nest deeper than 1024"},
		{"values without end", "\x80\x04" + strings.Repeat("K\x01", maxStack+1), "more than 262144 values are pending"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestOtherPicklesAreNoDumps(t *testing.T) {
	for name, head := range map[string]string{
		"PyTorch's":       "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x08segments\x94]",
		"of another type": "\x80\x04\x8c\x0btracemalloc\x94\x8c\x05Trace\x94\x93",
		"text":            "tracemalloc Snapshot",
		"nothing":         "",
	} {
		if Detect([]byte(head)) {
			t.Errorf("a pickle %s is taken for a dump", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(totalstest.Profile(f, "tracemalloc_10.pickle"))
	f.Add(dump(2, 5, []block{{0, 8, []snapshot.Frame{{File: "a.py", Line: 1}, {File: "b.py", Line: 2}}, 7}, {1, 1 << 40, nil, 0}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		// What was read can be written, and reads alike.
		var blocks []block
		for _, site := range s.Sites() {
			frames := s.Stacks.Frames(site.Stack)
			for i := range frames {
				if len(frames[i].File) > maxText || site.Count > 1000 {
					return
				}
			}
			each := int64(site.Bytes) / site.Count
			for i := range site.Count {
				b := block{size: each, stack: frames}
				if i == 0 {
					b.size += int64(site.Bytes) % site.Count
				}
				blocks = append(blocks, b)
			}
		}
		again, err := decode(dump(4, 5, blocks))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(held(s), held(again)); d != "" {
			t.Fatalf("-first +again\n%s", d)
		}
	})
}

func TestWhatADumpAsksForIsBounded(t *testing.T) {
	const start = "\x80\x04]"
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "texts", Before: start, Piece: "\x8c\x00a", Count: 1_800_000, Packed: true},
		totalstest.Flood{Name: "the memo", Before: start, Piece: "N\x94a", Count: 2_700_000, Packed: true},
		totalstest.Flood{Name: "traces", Before: start, Piece: "(K\x00K\x01)K\x01ta", Count: 1_800_000, Packed: true})
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "instructions", Before: start, Piece: "Na", Count: 18_000_000, Packed: true})
}
