package valgrind

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(DecodeMassif, data)
}

// held is what is live by stack, frames written "function file:line".
func held(s *snapshot.Snapshot) map[string]int64 {
	out := make(map[string]int64)
	for stack, held := range totalstest.Held(s, " < ", totalstest.Place) {
		out[stack] = held[1]
	}
	return out
}

func TestRealFilesTellTheLastTree(t *testing.T) {
	for _, steps := range []int64{10, 30} {
		data := totalstest.Profile(t, fmt.Sprintf("massif_%d.out", steps))
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{
			"remember leak.c:10 < train leak.c:23 < main leak.c:30": steps * 10_000,
			"main leak.c:29": 8_000,
			// The last tree is of the moment in which a step's scratch is live.
			"work leak.c:15 < train leak.c:24 < main leak.c:30": 50_000,
		}
		if d := cmp.Diff(want, held(s)); d != "" {
			t.Errorf("%d steps (-want +got)\n%s", steps, d)
		}
		if m := s.Devices[0].Meters; m.Requested != snapshot.Bytes(steps*10_000+58_000) || m.Allocated-m.Requested != snapshot.Bytes(8*(steps+2)) {
			t.Errorf("meters %+v: malloc adds 8 bytes to each of %d blocks", m, steps+2)
		}
		if !DetectMassif(data) {
			t.Error("not detected")
		}
	}
}

var treeLine = regexp.MustCompile(`^( *)n(\d+): (\d+) (.*)$`)

// slow reads the last tree, indentation by indentation.
func slow(text string) map[string]int64 {
	at := max(strings.LastIndex(text, "heap_tree=detailed"), strings.LastIndex(text, "heap_tree=peak"))
	lines := strings.Split(text[at:], "\n")[1:]
	out := make(map[string]int64)
	type open struct {
		name  string
		bytes int64
	}
	var path []open
	pop := func() {
		var key []string
		for _, p := range path[1:] {
			key = append(key, p.name)
		}
		if own := path[len(path)-1].bytes; own > 0 {
			out[strings.Join(key, " < ")] += own
		}
		path = path[:len(path)-1]
	}
	for _, line := range lines {
		m := treeLine.FindStringSubmatch(line)
		if m == nil {
			break
		}
		for len(path) > len(m[1]) {
			pop()
		}
		size, _ := strconv.ParseInt(m[3], 10, 64)
		if len(path) > 0 {
			path[len(path)-1].bytes -= size
		}
		f := frameOf(m[4])
		path = append(path, open{fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line), size})
	}
	for len(path) > 0 {
		pop()
	}
	return out
}

const usual = `desc: (none)
cmd: ./x
time_unit: i
#-----------
snapshot=0
#-----------
time=0
mem_heap_B=0
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=empty
#-----------
snapshot=1
#-----------
time=500
mem_heap_B=1000
mem_heap_extra_B=24
mem_stacks_B=0
heap_tree=peak
n3: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 600 0x10918B: ns::f(int (*)(char)) (in /usr/lib/libx.so)
  n0: 400 0x1091C8: g (a.c:22)
  n0: 100 0x1091C9: ???
 n0: 300 0x1091EF: main (a.c:28)
 n0: 100 in 7 places, all below massif's threshold (1.00%)
#-----------
snapshot=2
#-----------
time=900
mem_heap_B=10
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=empty
`

func TestTreesAreReadToTheirLeaves(t *testing.T) {
	s, err := decode([]byte(usual))
	if err != nil {
		t.Fatal(err)
	}
	f := "ns::f(int (*)(char)) /usr/lib/libx.so:-1"
	want := map[string]int64{
		f + " < g a.c:22": 400, f + " < ??? :-1": 100, f: 100, "main a.c:28": 300, "<places below massif's threshold> :-1": 100,
	}
	if d := cmp.Diff(want, held(s)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	note := "the last snapshot with stacks, the peak, taken at 500 instructions of 900; in its last of all 10 B were live, at most 1000 B"
	if len(s.Notes) != 2 || s.Notes[1] != note {
		t.Errorf("notes %q", s.Notes)
	}
	long, err := decode([]byte(strings.Replace(usual, "time=900", "time=1945468", 1)))
	if err != nil || !strings.Contains(long.Notes[1], "500 instructions of 1,945,468;") {
		t.Errorf("%v, notes %q", err, long.Notes)
	}
	if d := cmp.Diff(slow(usual), held(s)); d != "" {
		t.Errorf("-slow +fast\n%s", d)
	}
	threads, err := decode([]byte(strings.ReplaceAll(usual, "mem_stacks_B=0\nheap_tree=peak", "mem_stacks_B=1208\nheap_tree=peak")))
	if err != nil || len(threads.Notes) != 3 || threads.Notes[2] != "the stacks of its threads, 1.18 KiB, are not in it" {
		t.Errorf("%v, notes %q", err, threads.Notes)
	}
}

func before(text, mark string) string {
	head, _, _ := strings.Cut(text, mark)
	return head
}

// twinned says whether a file is one that slow reads too.
func twinned(data []byte) bool {
	trees := bytes.Count(data, []byte("heap_tree="))
	usual := bytes.Count(data, []byte("\nheap_tree=detailed\n")) + bytes.Count(data, []byte("\nheap_tree=peak\n")) + bytes.Count(data, []byte("\nheap_tree=empty\n"))
	last := max(bytes.LastIndex(data, []byte("heap_tree=detailed")), bytes.LastIndex(data, []byte("heap_tree=peak")))
	return last >= 0 && trees == usual && !bytes.ContainsAny(data, "\r\x00") && plainTree.Match(data[last:])
}

func TestBrokenFiles(t *testing.T) {
	replaced := func(old, with string) string {
		if !strings.Contains(usual, old) {
			panic(old)
		}
		return strings.Replace(usual, old, with, 1)
	}
	var deep strings.Builder
	deep.WriteString("heap_tree=detailed\n")
	for i := range maxTree + 1 {
		deep.WriteString(strings.Repeat(" ", i) + "n1: 8 0x1: f (a.c:1)\n")
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "none of 0 snapshots tells bytes by stack"},
		{"no tree", before(usual, "#-----------\nsnapshot=1"), "none of 1 snapshots tells bytes by stack"},
		{"a tree that is cut", before(usual, " n0: 300"), "the file ends in the middle of the snapshot"},
		{"a snapshot that is cut", usual + "#-----------\nsnapshot=3\n#-----------\ntime=950\n", "the file ends in the middle of the snapshot"},
		{"a line that is cut", usual[:len(usual)-3], "the file ends in the middle of a line"},
		{"callers of more than their callee", replaced("n0: 400", "n0: 999"), "callers hold more bytes than what they call"},
		{"a line out of place", replaced("\n n0: 300", "\n   n0: 300"), "indented by 3 where 1 belong"},
		{"a line that is none", replaced(" n0: 300", " x0: 300"), `"x0: 300 0x1091EF: main (a.c:28)" is no line of a tree`},
		{"fewer callers than follow", replaced("n3: 1000", "n1: 1000"), "a line of a tree has more callers than it tells"},
		{"more callers than follow", replaced("n3: 1000", "n9: 1000"), "is no line of a tree"},
		{"negative bytes", replaced("n0: 300", "n0: -300"), "is no line of a tree"},
		{"a size that is none", replaced("mem_heap_B=1000", "mem_heap_B=many"), `"many" is no number`},
		{"a tree of all that was ever allocated", "desc: xtree.produce_report" + usual[strings.IndexByte(usual, '\n'):], "a tree of --xtree-memory"},
		{"a tree without end", usual + deep.String(), "deeper than 4096"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

// plainTree is a tree as valgrind writes it.
var plainTree = regexp.MustCompile(`^[^\n]*\n( *n\d+: \d+ (0x[0-9A-F]+: )?[a-z(?][[:print:]]*\n)*(#-|$)`)

func FuzzMassif(f *testing.F) {
	for _, seed := range [][]byte{totalstest.Profile(f, "massif_10.out"), []byte(usual)} {
		if !twinned(seed) {
			f.Error("the slow reader passes over a seed")
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		if !twinned(data) {
			return
		}
		if d := cmp.Diff(slow(string(data)), held(s)); d != "" {
			t.Fatalf("-slow +fast\n%s", d)
		}
	})
}

func TestLinesOfATreeAreSteps(t *testing.T) {
	before, _, _ := strings.Cut(usual, "#-----------")
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "callers", Before: before + "#-----------\nsnapshot=0\nheap_tree=detailed\nn2147483647: 0 x\n", Piece: " n0: 0 0x1: f\n", Count: 2_400_000, Packed: true})
}
