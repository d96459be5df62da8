package checkpoint_test

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
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/checkpoint"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// sealed puts the right checksum after contents.
func sealed(contents []byte) []byte {
	return binary.LittleEndian.AppendUint64(slices.Clone(contents), xxhash.Sum64(contents))
}

// contents builds a file by hand: the counts of counters and tensors, then what
// follows.
func contents(counters, tensors uint32, rest ...any) []byte {
	b := bytes.NewBufferString("MDCKPT1\n")
	for _, v := range append([]any{int64(1), int64(0), counters, tensors}, rest...) {
		if s, ok := v.(string); ok {
			v = append(binary.LittleEndian.AppendUint16(nil, uint16(len(s))), s...)
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func TestHostileFilesAreNamedByOffsetAndReason(t *testing.T) {
	big := uint32(1<<31 - 1)
	for _, c := range []struct {
		name     string
		contents []byte
		want     string
	}{
		{"more counters than there is room for", contents(1<<30, 0), "byte 32: 1073741824 counters, and only 0 bytes are left"},
		{"more tensors than there is room for", contents(0, big), "2147483647 tensors"},
		{"a name without a letter", contents(0, 1, "", byte(0), byte(0), uint32(0)), "byte 32: a name that is empty"},
		{"a name that is not UTF-8", contents(0, 1, "\xff", byte(0), byte(0), uint32(0)), "byte 32: a name that is empty or not UTF-8"},
		{"a counter twice", contents(2, 0, "a", uint64(1), "a", uint64(2)), `a second counter "a"`},
		{"a tensor twice", contents(0, 2, "a", byte(0), byte(1), uint32(0), "a", byte(0), byte(1), uint32(0)), `a second tensor "a"`},
		{"an unknown type", contents(0, 1, "a", byte(2), byte(0), uint32(0)), "unknown type 2"},
		{"too many axes", contents(0, 1, "a", byte(0), byte(7), [7]uint32{}), "7 axes; at most 6"},
		{"an extent that no tensor has", contents(0, 1, "a", byte(0), byte(1), uint32(1<<31)), "the extent 2147483648"},
		{"a product that overflows", contents(0, 1, "a", byte(0), byte(6), [6]uint32{big, big, big, big, big, big}), "more elements than the file has room for"},
		{"extents that overflow beside one of 0", contents(0, 1, "a", byte(0), byte(3), [3]uint32{big, 0, big}), "more elements than the file has room for"},
		{"elements that are not there", contents(0, 1, "a", byte(0), byte(1), uint32(4), [3]float32{}), "16 bytes are needed, and 12 are left"},
		{"elements too many", contents(0, 1, "a", byte(0), byte(1), uint32(1), [2]float32{}), "4 bytes too many"},
		{"a header that ends early", contents(0, 1, "abc", byte(0)), "bytes are needed"},
		{"another format", append([]byte("PK\x03\x04"), make([]byte, 60)...), "byte 0: not a checkpoint"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(sealed(c.contents))
			if !isFault(err) || !strings.HasPrefix(err.Error(), "c: byte ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
	if f, err := decode(sealed(contents(0, 1, "a", byte(0), byte(3), [3]uint32{1 << 20, 0, 1 << 20}))); err != nil || len(f.Names()) != 1 {
		t.Errorf("a tensor without elements is one: %v", err)
	}
}

// sparse is a file of so few bytes and then zeros, however many.
type sparse []byte

func (s sparse) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	if at < int64(len(s)) {
		copy(p, s[at:])
	}
	return len(p), nil
}

// A sparse file of 64 TiB once ended the process: room for all of it was taken
// before its first byte was read.
func TestAFileTakesNoMemoryBeforeItsHeaderSaysSo(t *testing.T) {
	for _, c := range []struct {
		name string
		file sparse
		want string
	}{
		{"of zeros", nil, "byte 0: not a checkpoint"},
		{"with nothing in it", contents(0, 0), "bytes too many"},
		{"with a name of nothing", contents(0, 1), "byte 32: a name that is empty"},
		{"with counters of nothing", contents(1<<32-1, 0), "byte 32: a name that is empty"},
		{"with a tensor that is smaller", contents(0, 1, "a", byte(0), byte(1), uint32(4)), "bytes too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := checkpoint.Decode("c", c.file, 1<<46)
			runtime.ReadMemStats(&after)
			if !isFault(err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
				t.Errorf("%d bytes were taken", taken)
			}
		})
	}
}

// slowFile is what slowDecode reads.
type slowFile struct {
	Step, Epoch int64
	Counters    map[string]uint64
	Names       []string
	Shapes      []engine.Shape
	Data        [][]byte
}

// slowDecode reads a file as its description says, value by value. It allocates
// only what it has read.
func slowDecode(b []byte) (f slowFile, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	if len(b) < 40 || string(b[:8]) != "MDCKPT1\n" || xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return f, errors.New("not a checkpoint")
	}
	r := bytes.NewReader(b[8 : len(b)-8])
	read := func(v any) {
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			panic(err)
		}
	}
	take := func(n uint64) []byte {
		if n > uint64(r.Len()) {
			panic("short")
		}
		p := make([]byte, n)
		_, _ = io.ReadFull(r, p)
		return p
	}
	name := func() string {
		var n uint16
		read(&n)
		s := string(take(uint64(n)))
		if s == "" || !utf8.ValidString(s) {
			panic("name")
		}
		return s
	}
	var counters, tensors uint32
	for _, v := range []any{&f.Step, &f.Epoch, &counters, &tensors} {
		read(v)
	}
	if f.Step < 0 || f.Epoch < 0 {
		panic("below 0")
	}
	f.Counters = map[string]uint64{}
	for range counters {
		n, v := name(), uint64(0)
		read(&v)
		if _, twice := f.Counters[n]; twice {
			panic("twice")
		}
		f.Counters[n] = v
	}
	var lengths []uint64
	for range tensors {
		n := name()
		if slices.Contains(f.Names, n) {
			panic("twice")
		}
		var kind, rank uint8
		read(&kind)
		read(&rank)
		if kind > 1 || rank > 6 {
			panic("type or rank")
		}
		var shape []int
		extents := make([]uint32, rank)
		read(extents)
		for _, e := range extents {
			if e >= 1<<31 {
				panic("extent")
			}
			shape = append(shape, int(e))
		}
		bytes := uint64(4)
		if slices.Contains(extents, 0) {
			bytes = 0
		}
		stretched := uint64(1)
		for _, e := range extents {
			if bytes *= uint64(e); bytes > uint64(len(b)) {
				panic("large")
			}
			if stretched *= uint64(max(e, 1)); stretched > engine.MaxElements {
				panic("large")
			}
		}
		f.Names, f.Shapes, lengths = append(f.Names, n), append(f.Shapes, engine.ShapeOf(shape...)), append(lengths, bytes)
	}
	for _, n := range lengths {
		f.Data = append(f.Data, take(n))
	}
	if r.Len() > 0 {
		panic("too many")
	}
	return f, nil
}

// FuzzDecode holds the reader against its slow twin. Contents are sealed first, or
// the checksum would keep all else from being tried.
func FuzzDecode(f *testing.F) {
	whole := sample(f)
	f.Add(whole[:len(whole)-8])
	f.Add(contents(0, 1, "a", byte(0), byte(3), [3]uint32{1 << 30, 0, 1 << 30}))
	f.Add(contents(2, 0, "a", uint64(1), "b", uint64(2)))
	f.Add(contents(0, 1, "a", byte(1), byte(2), [2]uint32{2, 1}, [2]uint32{1, 2}))
	o, _ := enginetest.NewEager(f)
	f.Fuzz(func(t *testing.T, unsealed []byte) {
		b := sealed(unsealed)
		want, slowErr := slowDecode(b)
		got, err := decode(b)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("reader: %v; slow twin: %v", err, slowErr)
		}
		if err != nil {
			if !isFault(err) {
				t.Fatalf("not a format error: %v", err)
			}
			return
		}
		if diff := cmp.Diff(want.Counters, got.Counters); diff != "" || want.Step != got.Step || want.Epoch != got.Epoch || !slices.Equal(want.Names, got.Names()) {
			t.Fatalf("step %d, names %v; %s", got.Step, got.Names(), diff)
		}
		defer o.Begin().End()
		for i, name := range want.Names {
			tensor, _ := got.Upload(o, name)
			var data []byte
			if tensor.DType() == engine.Int32 {
				data, _ = binary.Append(nil, binary.LittleEndian, o.Ints(tensor))
			} else {
				data, _ = binary.Append(nil, binary.LittleEndian, o.Floats(tensor))
			}
			if tensor.Shape() != want.Shapes[i] || !bytes.Equal(data, want.Data[i]) {
				t.Fatalf("tensor %q is %v with %v, want %v with %v", name, tensor, data, want.Shapes[i], want.Data[i])
			}
		}
	})
}
