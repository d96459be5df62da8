package bounded

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/snapshot"
)

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func zstded(text string) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		panic(err)
	}
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	return b.String()
}

func open(t interface{ Fatal(...any) }, data string, unpacked int64) *Input {
	in, err := Open("f", strings.NewReader(data), int64(len(data)), unpacked)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestLinesComeOutOfAnyWrapping(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[ -~]{0,20}`)).Draw(t, "lines")
		if rapid.Bool().Draw(t, "a line longer than the buffer") {
			lines = append(lines, strings.Repeat("x", bufferLen+3))
		}
		text, want := "", lines
		for _, line := range lines {
			text += line + "\n"
		}
		for _, data := range []string{text, gzipped(text), zstded(text)} {
			in := open(t, data, 0)
			var got []string
			for {
				line, err := in.Line()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(line))
			}
			in.Close()
			if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Fatalf("%q, want %q", got, want)
			}
		}
	})
}

func TestHeadIsWhatTheFileUnpacksTo(t *testing.T) {
	text := "heaptrack\n" + strings.Repeat("a line\n", 10_000)
	for name, data := range map[string]string{"plain": text, "gzip": gzipped(text), "zstd": zstded(text)} {
		head := Head([]byte(data[:min(len(data), HeadLen)]))
		if len(head) == 0 || !strings.HasPrefix(text, string(head)) {
			t.Errorf("%s: %.20q", name, head)
		}
	}
	if head := Head([]byte("\x1f\x8bno gzip")); len(head) != 0 {
		t.Errorf("of what is no gzip: %q", head)
	}
}

// drain reads all lines and returns what ended them.
func drain(in *Input) error {
	for {
		if _, err := in.Line(); err != nil {
			return err
		}
	}
}

func TestBounds(t *testing.T) {
	bomb := strings.Repeat("a line\n", 1<<18) // 1.8 MB in 4 KB
	for _, c := range []struct {
		name, data string
		unpacked   int64
		want       string // in the error; "" for io.EOF
	}{
		{"what fits is read", gzipped("a\n\n"), 3, ""},
		{"one byte more than is allowed is an error", gzipped("a\nbc"), 3, "f: byte 3: it unpacks to more than 3 B"},
		{"a bomb ends at its bound", gzipped(bomb), 1 << 20, "it unpacks to more than 1.00 MiB"},
		{"so does one of zstd", zstded(bomb), 1 << 20, "it unpacks to more than 1.00 MiB"},
		{"the bound is not for plain files", bomb, 1 << 10, ""},
		{"an endless line is no line", strings.Repeat("x", MaxLine+bufferLen), 0, "f: byte 0: a line of more than 1.00 MiB"},
		{"a cut gzip stream says so", gzipped("a line\nand another")[:20], 0, "the file ends in the middle of the snapshot"},
		{"a damaged one too", gzipped("a line")[:14] + "damage" + gzipped("a line")[20:], 0, "f: byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := open(t, c.data, c.unpacked)
			defer in.Close()
			err := drain(in)
			if c.want == "" {
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				return
			}
			var format *snapshot.FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
		})
	}
}

// Half a number or a name passed for a whole one.
func TestALineWithoutItsEndIsCut(t *testing.T) {
	long := strings.Repeat("x", bufferLen)
	for _, text := range []string{"a", "a\nb", "a\r", long + "\n" + long + long} {
		for _, data := range []string{text, gzipped(text), zstded(text)} {
			in := open(t, data, 0)
			err := drain(in)
			if !in.Torn() || !strings.Contains(err.Error(), "the file ends in the middle of a line") {
				t.Errorf("%.9q: torn %t, %v", text, in.Torn(), err)
			}
			in.Close()
		}
	}
	if in := open(t, "a\n\n", 0); !errors.Is(drain(in), io.EOF) || in.Torn() {
		t.Error("what is whole is torn")
	}
}

func TestLinesMayEndAsWindowsEndsThem(t *testing.T) {
	in := open(t, "a\r\nb\r\r\n", 0)
	for _, want := range []string{"a", "b"} {
		if line, err := in.Line(); string(line) != want || err != nil {
			t.Errorf("%q, %v; want %q", line, err, want)
		}
	}
}

func TestAByteOrderMarkIsPassedOver(t *testing.T) {
	for _, data := range []string{byteOrderMark + "a\n", gzipped(byteOrderMark + "a\n")} {
		if head := string(Head([]byte(data))); head != "a\n" {
			t.Errorf("head %q", head)
		}
		in := open(t, data, 0)
		if line, err := in.Line(); string(line) != "a" || err != nil {
			t.Errorf("%q, %v", line, err)
		}
		in.Close()
	}
}

func TestTablesAreBounded(t *testing.T) {
	in := open(t, "text", 0)
	if err := in.Charge(40 << 20); err != nil {
		t.Errorf("40 MiB: %v", err)
	}
	if err := in.Charge(1000); err == nil {
		t.Error("a file of 4 bytes may ask for 40 MiB and 1000 bytes")
	}
	if err := open(t, "text", 1<<30).Charge(1 << 30); err != nil {
		t.Errorf("with the bound lifted: %v", err)
	}
}

func TestTablesOfAPlainFileAreThreeTimesItsSize(t *testing.T) {
	text := string(bytes.Repeat([]byte("x"), 1000))
	if err := open(t, text, 0).Charge(40<<20 + 3000); err != nil {
		t.Error(err)
	}
	if err := open(t, text, 0).Charge(40<<20 + 3001); err == nil {
		t.Error("more is allowed")
	}
}

func TestWorkIsBounded(t *testing.T) {
	in := open(t, "text", 0)
	if err := in.Work(32 << 20); err != nil {
		t.Errorf("32 Mi steps: %v", err)
	}
	if err := in.Work(1); err == nil {
		t.Error("a file of which no byte is read may ask for more than 32 Mi steps")
	}
	if _, err := in.Take(4); err != nil {
		t.Fatal(err)
	}
	if err := in.Work(10); err != nil {
		t.Errorf("after four bytes: %v", err)
	}
}

// A flag lifted the bound of bytes, and then that of steps refused the file.
func TestWorkIsLiftedWithWhatIsUnpacked(t *testing.T) {
	const unpacked, steps = 1 << 20, 35 << 20
	for _, lifted := range []int64{0, unpacked} {
		in := open(t, gzipped(strings.Repeat("a", unpacked)), lifted)
		if err := in.Skip(unpacked); err != nil {
			t.Fatal(err)
		}
		if err := in.Work(steps); (err == nil) != (lifted > 0) {
			t.Errorf("%d steps, %d bytes allowed: %v", steps, lifted, err)
		}
	}
}

// A file that is read twice could ask for twice the steps.
func TestTheWorkOfAnEarlierReadingCounts(t *testing.T) {
	const size = 1000
	text := strings.Repeat("a", size)
	read := func(first *Input) *Input {
		in := open(t, text, 0)
		if first != nil {
			in.After(first)
		}
		if err := in.Skip(size); err != nil {
			t.Fatal(err)
		}
		return in
	}
	first := read(nil)
	if err := first.Work(freeSteps); err != nil {
		t.Fatal(err)
	}
	second := read(first)
	if err := second.Work(stepsPerByte*2*size - 200); err != nil { // reading takes some, too
		t.Errorf("four for each byte of both: %v", err)
	}
	if err := second.Work(200); err == nil {
		t.Error("the first reading's steps do not count")
	}
}

func TestPaceBoundsTheStepsOfACompressedFile(t *testing.T) {
	var numbers strings.Builder
	for i := range 1000 {
		numbers.WriteString(strconv.Itoa(i))
	}
	text := strings.Repeat(numbers.String(), 10)
	data := gzipped(text)
	for pace, want := range map[int64]bool{usualPace: true, 4: false} {
		in := open(t, data, 0)
		in.Pace(pace)
		if err := in.Skip(uint64(len(text))); err != nil {
			t.Fatal(err)
		}
		if err := in.Work(freeSteps + 6*len(data)); (err == nil) != want {
			t.Errorf("%d steps a byte: %v", pace, err)
		}
	}
}

func TestTakeAndSkipStopAtTheEnd(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	in := open(t, long, 0)
	if b, err := in.Take(10); err != nil || string(b) != "0123456789" {
		t.Fatalf("%q, %v", b, err)
	}
	if b, err := in.Take(150_000); err != nil || string(b) != long[:150_000] {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if err := in.Skip(9_990); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Take(1 << 30); err == nil || !strings.Contains(err.Error(), "byte 200000: the file ends") {
		t.Fatalf("took more than there is: %v", err)
	}
	if err := open(t, long, 0).Skip(1 << 60); err == nil {
		t.Error("skipped more than there is")
	}
}

func TestUvarint(t *testing.T) {
	in := open(t, "\x96\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0)
	for _, want := range []uint64{150, 1<<64 - 1} {
		if v, err := in.Uvarint(); v != want || err != nil {
			t.Errorf("%d, %v; want %d", v, err, want)
		}
	}
	if _, err := in.Uvarint(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	for _, broken := range []string{"\x80", strings.Repeat("\xff", 10), strings.Repeat("\xff", 20)} {
		if _, err := open(t, broken, 0).Uvarint(); !asFormat(err) {
			t.Errorf("%q: %v", broken, err)
		}
	}
}
