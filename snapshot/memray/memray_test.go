package memray

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
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

// held is what is live by stack, frames written "function;file;line".
func held(s *snapshot.Snapshot) map[string][2]int64 {
	return totalstest.Held(s, "|", func(f snapshot.Frame) string { return fmt.Sprintf("%s;%s;%d", f.Function, f.File, f.Line) })
}

// slow adds up the columns of a table with encoding/csv, as a whole.
func slow(t testing.TB, data []byte) map[string][2]int64 {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][2]int64)
	for _, row := range rows[1:] {
		count, _ := strconv.ParseInt(row[1], 10, 64)
		size, _ := strconv.ParseInt(row[2], 10, 64)
		sum := out[row[5]]
		if count != 0 || size != 0 {
			out[row[5]] = [2]int64{sum[0] + count, sum[1] + size}
		}
	}
	return out
}

func TestRealTablesTellWhatWasNeverFreed(t *testing.T) {
	for _, steps := range []int64{10, 30} {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "profilers", fmt.Sprintf("memray_%d.csv", steps)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		got := held(s)
		if d := cmp.Diff(slow(t, data), got); d != "" {
			t.Errorf("%d steps (-slow +fast)\n%s", steps, d)
		}
		var leak [2]int64
		for stack, n := range got {
			if strings.HasPrefix(stack, "remember;leak_python.py;13|train;leak_python.py;18|") {
				leak = n
			}
		}
		// A bytearray has a byte more than it holds.
		if want := [2]int64{steps, steps * 10_001}; leak != want {
			t.Errorf("%d steps leak %v, want %v", steps, leak, want)
		}
		if !Detect(data) {
			t.Error("not detected")
		}
	}
}

func TestDrawnTablesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SampledFrom([]string{"f;a.py;1", "g;a;b.py;2", "<module>;it's \"quoted\", so.py;3", "h;;7"})
		var b bytes.Buffer
		b.WriteString(header + "\n")
		w := csv.NewWriter(&b)
		want := make(map[string][2]int64)
		for range rapid.IntRange(0, 8).Draw(t, "rows") {
			stack := strings.Join(rapid.SliceOfN(frames, 1, 3).Draw(t, "stack"), "|")
			count, size := rapid.Int64Range(1, 5).Draw(t, "count"), rapid.Int64Range(0, 1000).Draw(t, "bytes")
			_ = w.Write([]string{"MALLOC", strconv.FormatInt(count, 10), strconv.FormatInt(size, 10), "1", "main, 0x1", stack})
			sum := want[stack]
			want[stack] = [2]int64{sum[0] + count, sum[1] + size}
		}
		w.Flush()
		s, err := decode(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, held(s)); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
	})
}

func TestBrokenTables(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "byte 0: not a table of memray"},
		{"another table", "a,b,c\n1,2,3\n", `not a table of memray: it begins with "a,b,c"`},
		{"a row that is cut", header + "\nMALLOC,1,2\n", `byte 59: not a row of 6 columns: "MALLOC,1,2"`},
		{"a row that is cut in a name", header + "\nMALLOC,1,2,1,t,f;a;1|g;b", "byte 83: the file ends in the middle of a line"},
		{"a quotation without end", header + "\nMALLOC,1,2,1,\"x,f;a;1\n", "not a row of 6 columns"},
		{"a count that is none", header + "\nMALLOC,x,2,1,t,f;a;1\n", `"x" allocations of "2" bytes`},
		{"fewer bytes than none", header + "\nMALLOC,1,-2,1,t,f;a;1\n", "this is a difference of profiles"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestOddFramesAreKept(t *testing.T) {
	for text, want := range map[string]snapshot.Frame{
		"f":                         {Function: "f", Line: -1},
		"f;a.py":                    {Function: "f", File: "a.py", Line: -1},
		"f;a.py;0":                  {Function: "f", File: "a.py", Line: -1},
		"f;a.py;x":                  {Function: "f", File: "a.py;x", Line: -1},
		"f;a.py;99999999999":        {Function: "f", File: "a.py;99999999999", Line: -1},
		"f;odd;name.py;12":          {Function: "f", File: "odd;name.py", Line: 12},
		"operator new;/lib/x.so;-1": {Function: "operator new", File: "/lib/x.so;-1", Line: -1},
	} {
		if got := frameOf(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "profilers", "memray_10.csv"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[:1500])
	f.Add([]byte(header + "\nMALLOC,1,2,1,t,\"f;a;1|g;b;2\"\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		if bytes.ContainsRune(data, '\r') {
			return // encoding/csv has views of its own on where a line ends
		}
		var want, got int64
		for _, n := range slow(t, data) {
			want += n[1]
		}
		for _, n := range held(s) {
			got += n[1]
		}
		if want != got {
			t.Fatalf("%d bytes, want %d", got, want)
		}
	})
}

func TestWhatATableAsksForIsBounded(t *testing.T) {
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "rows", Before: header + "\n", Piece: "M,1,0,1,t,\n", Count: 2_400_000, Packed: true},
		totalstest.Flood{Name: "quotation marks", Before: header + "\n", Piece: `M,1,0,1,"` + strings.Repeat(`""`, 5000) + `",` + "\n", Count: 3_400, Packed: true})
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		// Texts of equal frames, which are kept once.
		totalstest.Flood{Name: "texts of frames", Before: header + "\n", Piece: "M,1,0,1,t,f;a;%010000d\n", Count: 6_000, Packed: true})
}
