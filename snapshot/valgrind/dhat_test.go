package valgrind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decodeDHAT(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(DecodeDHAT, data)
}

func TestRealFilesOfDHATTellWhatLivesAtTheEnd(t *testing.T) {
	for _, steps := range []int64{10, 30} {
		data := totalstest.Profile(t, fmt.Sprintf("dhat_%d.json", steps))
		s, err := decodeDHAT(data)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{
			"remember leak.c:10 < train leak.c:23 < main leak.c:30": steps * 10_000,
			"main leak.c:29": 8_000,
		}
		if d := cmp.Diff(want, held(s)); d != "" {
			t.Errorf("%d steps (-want +got)\n%s", steps, d)
		}
		if blocks := s.Sites()[0].Count; blocks != steps {
			t.Errorf("%d blocks, want %d", blocks, steps)
		}
		peak := snapshot.Bytes(steps*10_000 + 8_000 + 50_000) // a step's scratch
		if note := "what was live when the program ended; the peak was " + peak.String(); !slices.Contains(s.Notes, note) {
			t.Errorf("notes %q, want %q", s.Notes, note)
		}
		if !DetectDHAT(data) {
			t.Error("not detected")
		}
	}
}

// testdata/rust.json was made by Rust's crate dhat 0.3.3 in a program that keeps 30
// vectors of 10,000 bytes.
func TestDHATOfRustHasColumnsAndAWrapperOfItsOwn(t *testing.T) {
	data, err := os.ReadFile("testdata/rust.json")
	if err != nil {
		t.Fatal(err)
	}
	s, err := decodeDHAT(data)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"alloc::raw_vec::RawVecInner<A>::with_capacity_in src/raw_vec/mod.rs:433 < alloc::raw_vec::RawVec<T,A>::with_capacity_in src/raw_vec/mod.rs:177 < " +
			"alloc::vec::Vec<T,A>::with_capacity_in src/vec/mod.rs:965 < <u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem src/vec/spec_from_elem.rs:53 < " +
			"alloc::vec::from_elem src/vec/mod.rs:3651 < leak::remember rs/src/main.rs:4 < leak::main rs/src/main.rs:8": 300_000,
		"alloc::raw_vec::RawVecInner<A>::with_capacity_in src/raw_vec/mod.rs:433 < alloc::raw_vec::RawVec<T,A>::with_capacity_in src/raw_vec/mod.rs:177 < " +
			"alloc::vec::Vec<T,A>::with_capacity_in src/vec/mod.rs:965 < alloc::vec::Vec<T>::with_capacity src/vec/mod.rs:524 < leak::main rs/src/main.rs:7": 24_000,
	}
	got := make(map[string]int64)
	for stack, n := range held(s) {
		got[strings.TrimPrefix(stack, "<alloc::raw_vec::RawVecInner>::try_allocate_in ???:-1 < ")] = n
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

const usualDHAT = `{"dhatFileVersion":2
,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":false,"te":9,"tg":5
,"pps":
 [{"tb":99,"tbk":9,"eb":40,"ebk":2,"gb":60,"fs":[1,3]}
 ,{"eb":5,"ebk":1,"fs":[2,1,1]}
 ,{"eb":0,"ebk":0,"fs":[3]}
 ,{"eb":7,"ebk":1,"fs":[2]}
 ]
,"ftbl":
 ["[root]"
 ,"0x10919B: f (a.c:10)"
 ,"0x48417B4: malloc (in /usr/libexec/valgrind/vgpreload_dhat-amd64-linux.so)"
 ,"0x10919C: main (b.c:3)"
 ]
}
`

func TestAProgramThatFreesAllHasANoteOfIt(t *testing.T) {
	for _, c := range []struct {
		end  string
		want int
	}{{`"eb":0,"ebk":0,"gb":1000`, 2}, {`"eb":99,"ebk":1,"gb":1000`, 2}, {`"eb":100,"ebk":1,"gb":1000`, 1}, {`"eb":0,"ebk":0,"gb":0`, 1}} {
		s, err := decodeDHAT([]byte(`{"dhatFileVersion":2,"mode":"heap","pps":[{` + c.end + `,"fs":[0]}],"ftbl":["f"]}`))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Notes) != c.want || c.want == 2 && !strings.Contains(s.Notes[1], "--tool=massif") {
			t.Errorf("%s: notes %q", c.end, s.Notes)
		}
	}
}

func TestBrokenFilesOfDHAT(t *testing.T) {
	s, err := decodeDHAT([]byte(usualDHAT))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int64{"f a.c:10 < main b.c:3": 40, "f a.c:10 < f a.c:10": 5, "": 7}, held(s)); d != "" {
		t.Fatalf("the file that is broken below is not read (-want +got)\n%s", d)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a file that is cut", "[root]", "", "a.c:10"},
		{"another version", `Version":2`, `Version":3`, "version 3 of DHAT's format; memdiag reads 2"},
		{"a profile of copies", `"mode":"heap"`, `"mode":"copy"`, `mode "copy", which tells no live bytes`},
		{"a place that is not there", "[1,3]", "[1,4]", "a frame at place 4 of 4"},
		{"a place below none", "[1,3]", "[1,-3]", "a frame at place -3"},
		{"less than nothing", `"eb":40`, `"eb":-40`, "this is a difference of profiles"},
		{"bytes beyond all memory", `"eb":40`, `"eb":9223372036854775807`, "more than 2^62"},
		{"a number that is none", `"eb":40`, `"eb":"40"`, "where a whole number should be"},
		{"a list without end", `[1,3]}`, `[1,3}`, "where ',' should be: no file of DHAT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(usualDHAT, c.old, c.new, 1)
			if c.new == "" {
				text, _, _ = strings.Cut(usualDHAT, c.old)
				c.want = "ends in the middle"
			}
			_, err := decodeDHAT([]byte(text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

var preloaded = regexp.MustCompile(`(^|/)vgpreload_[^/]*/*$`)

// slowDHAT reads a file as a whole, with encoding/json.
func slowDHAT(data []byte) (map[string]int64, bool) {
	var file struct {
		Sites []struct {
			Bytes  int64 `json:"eb"`
			Blocks int64 `json:"ebk"`
			Frames []int `json:"fs"`
		} `json:"pps"`
		Places []string `json:"ftbl"`
	}
	if json.NewDecoder(bytes.NewReader(data)).Decode(&file) != nil {
		return nil, false
	}
	out := make(map[string]int64)
	for _, site := range file.Sites {
		var key []string
		for _, place := range site.Frames {
			f := frameOf(file.Places[place])
			if len(key) == 0 && (preloaded.MatchString(f.File) || strings.HasPrefix(f.Function, "<dhat::Alloc as ")) {
				continue
			}
			key = append(key, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
		}
		if site.Bytes > 0 || site.Blocks > 0 {
			out[strings.Join(key, " < ")] += site.Bytes
		}
	}
	return out, true
}

// once reports whether keys of a file are there once in each of its objects, as far as
// their number tells; others mean one thing to encoding/json, and another to us.
func once(data []byte) bool {
	sites := bytes.Count(data, []byte("{")) - 1
	lower := strings.ToLower(string(data))
	return bytes.Count(data, []byte(`"pps"`)) == 1 && bytes.Count(data, []byte(`"ftbl"`)) == 1 &&
		bytes.Count(data, []byte(`"fs"`)) == sites && bytes.Count(data, []byte(`"eb"`)) == sites && bytes.Count(data, []byte(`"ebk"`)) <= sites &&
		!bytes.ContainsAny(bytes.ToLower(data), "\\") && bytes.Equal(bytes.ToValidUTF8(data, nil), data) &&
		strings.Count(lower, `"eb"`) == sites && strings.Count(lower, `"fs"`) == sites && strings.Count(lower, `"ebk"`) == bytes.Count(data, []byte(`"ebk"`))
}

func FuzzDHAT(f *testing.F) {
	for _, seed := range [][]byte{[]byte(usualDHAT), totalstest.Profile(f, "dhat_10.json")} {
		if _, ok := slowDHAT(seed); !ok || !once(seed) {
			f.Error("the slow reader passes over a seed")
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeDHAT(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		if !once(data) {
			return
		}
		if want, ok := slowDHAT(data); ok && cmp.Diff(want, held(s)) != "" {
			t.Fatalf("-slow +fast\n%s", cmp.Diff(want, held(s)))
		}
	})
}

func TestWhatAFileOfDHATAsksForIsBounded(t *testing.T) {
	totalstest.Flooded(t, decodeDHAT, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "sites", Before: `{"pps":[`, Piece: `{},`, Count: 1_400_000, Packed: true},
		totalstest.Flood{Name: "calls", Before: `{"pps":[{"fs":[`, Piece: `1,`, Count: 10_600_000, Packed: true},
		totalstest.Flood{Name: "places", Before: `{"ftbl":[`, Piece: `"",`, Count: 1_400_000, Packed: true})
}
