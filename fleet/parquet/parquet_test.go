package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// table draws columns of one length.
func table(t *rapid.T) []Column {
	rows := rapid.IntRange(0, 400).Draw(t, "rows")
	distinct := rapid.IntRange(1, 300).Draw(t, "distinct")
	columns := []Column{{Name: "text", Kind: Text}, {Name: "int", Kind: Int}, {Name: "float", Kind: Float}, {Name: "time", Kind: Time}}
	for range rows {
		n := rapid.IntRange(0, distinct).Draw(t, "value")
		repeat := 1
		if rapid.IntRange(0, 20).Draw(t, "run") == 0 {
			repeat = 30
		}
		for range repeat {
			columns[0].Texts = append(columns[0].Texts, strings.Repeat("é", n%7)+fmt.Sprint(n))
			columns[1].Ints = append(columns[1].Ints, int64(n)*math.MaxInt64/400-1)
			columns[2].Floats = append(columns[2].Floats, float64(n)/3)
			columns[3].Ints = append(columns[3].Ints, int64(n)*1_000_000)
		}
	}
	return columns
}

// written is a file of columns.
func written(t interface{ Fatal(...any) }, columns []Column) []byte {
	var b bytes.Buffer
	if err := Write(&b, columns, map[string]string{"memdiag.fleet": "1"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readAll reads every value, one by one.
func readAll(data []byte) ([]Column, error) {
	f, err := NewFile("test", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	out := make([]Column, len(f.Schema))
	for i := range out {
		out[i].Name, out[i].Kind = f.Schema[i].Name, f.Schema[i].Kind
		for g := range f.Groups() {
			v, err := f.Read(g, i)
			if err != nil {
				return nil, err
			}
			for row := range f.GroupRows(g) {
				switch out[i].Kind {
				case Text:
					out[i].Texts = append(out[i].Texts, v.Text(row))
				case Float:
					out[i].Floats = append(out[i].Floats, v.Float(row))
				default:
					out[i].Ints = append(out[i].Ints, v.Int(row))
				}
			}
		}
	}
	return out, nil
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := table(t)
		got, err := readAll(written(t, columns))
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(columns) {
			t.Fatalf("read\n%v\nwritten\n%v", got, columns)
		}
	})
}

func TestSeveralRowGroupsAreRead(t *testing.T) {
	columns := []Column{{Name: "n", Kind: Int}, {Name: "t", Kind: Text}}
	for i := range groupRows*2 + 5 {
		columns[0].Ints = append(columns[0].Ints, int64(i))
		columns[1].Texts = append(columns[1].Texts, fmt.Sprint(i%1000))
	}
	data := written(t, columns)
	got, err := readAll(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range columns[0].Ints {
		if got[0].Ints[i] != columns[0].Ints[i] || got[1].Texts[i] != columns[1].Texts[i] {
			t.Fatalf("row %d: %d %s", i, got[0].Ints[i], got[1].Texts[i])
		}
	}
}

// slowHybrid is decodeHybrid bit by bit.
func slowHybrid(in []byte, n, limit int) ([]uint32, bool) {
	if len(in) == 0 || in[0] > 32 {
		return nil, false
	}
	width, in := int(in[0]), in[1:]
	var out []uint32
	for len(out) < n {
		head, shift := uint64(0), 0
		for {
			if len(in) == 0 || shift > 63 || shift == 63 && in[0] > 1 { // more than 64 bits
				return nil, false
			}
			b := in[0]
			in = in[1:]
			head |= uint64(b&0x7f) << shift
			if shift += 7; b < 0x80 {
				break
			}
		}
		bit := func(i int) uint32 { return uint32(in[i/8]>>(i%8)) & 1 }
		value := func(from int) (v uint32) {
			for i := range width {
				v |= bit(from+i) << i
			}
			return v
		}
		if head&1 == 0 {
			size := (width + 7) / 8
			if len(in) < size || head>>1 == 0 {
				return nil, false
			}
			v := uint32(0)
			for i := range size {
				v |= uint32(in[i]) << (8 * i)
			}
			for i := uint64(0); i < head>>1 && len(out) < n; i++ {
				out = append(out, v)
			}
			in = in[size:]
			continue
		}
		groups := head >> 1
		if groups == 0 || groups > uint64(n-len(out)+7)/8 || uint64(len(in)) < groups*uint64(width) {
			return nil, false
		}
		for i := 0; i < int(groups)*8 && len(out) < n; i++ {
			out = append(out, value(i*width))
		}
		in = in[groups*uint64(width):]
	}
	for _, v := range out {
		if int64(v) >= int64(limit) {
			return nil, false
		}
	}
	return out, true
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{3, 0x03, 0x88, 0xc6, 0xfa}, 8, 8)
	f.Add(appendHybrid(nil, []uint32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2, 3}, 4), 13, 4)
	f.Fuzz(func(t *testing.T, in []byte, n, limit int) {
		if n < 0 || n > 1000 || limit < 0 {
			return
		}
		out := make([]uint32, n)
		err := decodeHybrid(in, out, limit)
		want, ok := slowHybrid(in, n, limit)
		if n == 0 {
			return
		}
		if ok != (err == nil) || ok && fmt.Sprint(out) != fmt.Sprint(want) {
			t.Fatalf("%v %v, slowly %v %v", out, err, want, ok)
		}
	})
}

// FuzzFile reads files that are damaged or made to harm: there may be an error, and no panic.
func FuzzFile(f *testing.F) {
	f.Add(written(f, []Column{{Name: "a", Kind: Text, Texts: []string{"x", "y", "x"}}, {Name: "b", Kind: Float, Floats: []float64{1, 2, 3}}}))
	f.Add(written(f, []Column{{Name: "n", Kind: Int, Ints: []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}}))
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = readAll(data)
	})
}

func TestAFileThatIsCutOrChangedIsAnErrorOrStillATable(t *testing.T) {
	columns := []Column{{Name: "a", Kind: Text}, {Name: "b", Kind: Float}}
	for i := range 300 {
		columns[0].Texts = append(columns[0].Texts, fmt.Sprint(i%9))
		columns[1].Floats = append(columns[1].Floats, float64(i))
	}
	data := written(t, columns)
	footer := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	for n := range data {
		if _, err := readAll(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are read as a file", n, len(data))
		}
		for _, flip := range []byte{1, 0x80, 0xff} {
			changed := bytes.Clone(data)
			changed[n] ^= flip
			got, err := readAll(changed) // which may not panic
			if err == nil && n < footer && fmt.Sprint(got) != fmt.Sprint(columns) {
				t.Errorf("byte %d changed by %#x is not noticed", n, flip)
			}
		}
	}
}

func TestAFileThatClaimsTooMuchIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Writer){
		"more rows than a group may have":    func(f *Writer) { f.groups[0].rows = maxRows + 1 },
		"less than no rows":                  func(f *Writer) { f.groups[0].rows = -1 },
		"a column before the file":           func(f *Writer) { f.groups[0].chunks[0].pages = -5 },
		"a column beyond the file":           func(f *Writer) { f.groups[0].chunks[0].packed = 1 << 40 },
		"a codec that is not read":           func(f *Writer) { f.groups[0].chunks[0].codec = 1 },
		"fewer rows than in its row groups":  func(f *Writer) { f.rows = 1 },
		"a row group without all columns":    func(f *Writer) { f.groups[0].chunks = nil },
		"a hundred million rows of no bytes": func(f *Writer) { huge(f, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			columns := []Column{{Name: "a", Kind: Int, Ints: []int64{1, 2, 3}}}
			f, err := NewWriter(&b, columns)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Append(columns); err != nil {
				t.Fatal(err)
			}
			change(f)
			if err := f.Close(nil); err != nil {
				t.Fatal(err)
			}
			if _, err := readAll(b.Bytes()); err == nil {
				t.Error("it was read")
			}
		})
	}
}

// huge claims many row groups of as many rows as may be, all in the same bytes.
func huge(f *Writer, n int) {
	g := f.groups[0]
	g.rows, g.chunks[0].values = maxRows, maxRows
	f.groups, f.rows = nil, 0
	for range n {
		f.groups = append(f.groups, g)
		f.rows += g.rows
	}
}

func BenchmarkRead(b *testing.B) {
	columns := []Column{{Name: "site", Kind: Text}, {Name: "rate", Kind: Float}}
	for i := range groupRows {
		columns[0].Texts = append(columns[0].Texts, fmt.Sprint(i*7919%2000))
		columns[1].Floats = append(columns[1].Floats, math.Sqrt(float64(i)))
	}
	data := written(b, columns)
	f, err := NewFile("bench", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		b.Fatal(err)
	}
	for c, name := range []string{"text", "float"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(8 * groupRows)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Read(0, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
