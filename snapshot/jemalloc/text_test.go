package jemalloc

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decodeText(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(DecodeText, data)
}

// heldAt is what is live by stack, with lines where they are known.
func heldAt(s *snapshot.Snapshot) map[string][2]int64 {
	return totalstest.Held(s, " ", func(f snapshot.Frame) string {
		if f.Line < 0 {
			return f.Function
		}
		return fmt.Sprintf("%s@%s:%d", f.Function, f.File, f.Line)
	})
}

var (
	rowLine  = regexp.MustCompile(`(?m)^ *(\d+): *(\d+) \[ *\d+: *\d+\] @(.*)\n((?:#\t0x.*\n)*)`)
	nameLine = regexp.MustCompile(`(?m)^#\t0x\w+\t+(\S+)\+0x\w+\t+(.+):(\d+)$`)
	rate     = regexp.MustCompile(`@ heap/(\d+)`)
)

// slowText finds rows, names and maps by regular expressions.
func slowText(text string) map[string][2]int64 {
	period := uint64(1)
	if m := rate.FindStringSubmatch(text); m != nil {
		period = number(m[1], 10) / 2
	}
	out := make(map[string][2]int64)
	maps := mapLine.FindAllStringSubmatch(text, -1)
	for _, m := range rowLine.FindAllStringSubmatch(text, -1) {
		var key []string
		for _, n := range nameLine.FindAllStringSubmatch(m[4], -1) {
			key = append(key, fmt.Sprintf("%s@%s:%s", n[1], n[2], n[3]))
		}
		for _, field := range strings.Fields(m[3]) {
			for _, l := range maps {
				if at, start := number(field[2:], 16)-1, number(l[1], 16); at >= start && at < number(l[2], 16) {
					key = append(key, fmt.Sprintf("%s+%#x", path.Base(l[4]), at-start+number(l[3], 16)))
				}
			}
		}
		count, size := float64(number(m[1], 10)), float64(number(m[2], 10))
		if count == 0 {
			continue
		}
		if factor := 1 / (1 - math.Exp(-size/count/float64(period))); period > 1 {
			count, size = math.Round(count*factor), math.Round(size*factor)
		}
		sum := out[strings.Join(key, " ")]
		out[strings.Join(key, " ")] = [2]int64{sum[0] + int64(count), sum[1] + int64(size)}
	}
	return out
}

func TestRealTextsReadAsTheSlowReaderReadsThem(t *testing.T) {
	for _, name := range []string{"gperftools_10.heap", "gperftools_30.heap", "go_10.txt.gz", "go_30.txt.gz"} {
		data := totalstest.Unpacked(t, totalstest.Profile(t, name))
		s, err := decodeText(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slowText(string(data)), heldAt(s)); d != "" {
			t.Errorf("%s (-slow +fast)\n%s", name, d)
		}
		if notes := otherNotes(s); !DetectText(data) || len(notes) > 0 || strings.HasPrefix(name, "gperf") != slices.Contains(s.Notes, nameless) {
			t.Errorf("%s: not detected, or notes %q", name, s.Notes)
		}
	}
}

// otherNotes are the notes but the one on addresses.
func otherNotes(s *snapshot.Snapshot) []string {
	return slices.DeleteFunc(slices.Clone(s.Notes), func(n string) bool { return n == nameless })
}

func TestWhatATextMayHold(t *testing.T) {
	const named = "#\t0x45\tmain.alloc+0x1f\t\tC:/with space/leak.go:5\n#\t0x46\tmain.(*T[...]).Put+0x2\t/t/put.go:7\n"
	for _, c := range []struct {
		name, text string
		want       map[string][2]int64
		producer   string
		note       string // the only one begins so
	}{
		{"places in binaries", "heap profile: 2: 20 [4: 40] @ heapprofile\n  2: 20 [ 4: 40] @ 0x1010 0x1fff\n" + maps_,
			map[string][2]int64{"with space.so+0x300f with space.so+0x3ffe": {2, 20}}, "gperftools", ""},
		{"Go's names", "heap profile: 2: 20 [4: 40] @ heap/2\n2: 20 [4: 40] @ 0x46 0x47\n" + named + "\n\n# runtime.MemStats\n# Alloc = 20\n",
			map[string][2]int64{"main.alloc@C:/with space/leak.go:5 main.(*T[...]).Put@/t/put.go:7": {2, 20}}, "Go heap profile", ""},
		{"samples of Go's", "heap profile: 1: 10 [1: 10] @ heap/2000\n1: 10 [1: 10] @ 0x46\n" + named,
			map[string][2]int64{"main.alloc@C:/with space/leak.go:5 main.(*T[...]).Put@/t/put.go:7": {101, 1005}}, "Go heap profile", "a sampled profile, of about one allocation in 1000 B"},
		{"samples of jemalloc 3", "heap profile: 1: 10 [1: 10] @ heap_v2/1000\n1: 10 [1: 10] @ 0x1010\n" + maps_,
			map[string][2]int64{"with space.so+0x300f": {101, 1005}}, "gperftools or jemalloc", "a sampled profile"},
		{"a frame without a name", "heap profile: 1: 8 [1: 8] @ heap/2\n1: 8 [1: 8] @ 0x46 0x47\n#\t0x45\n" + named,
			map[string][2]int64{" main.alloc@C:/with space/leak.go:5 main.(*T[...]).Put@/t/put.go:7": {1, 8}}, "Go heap profile", ""},
		{"no stack, and what was freed", "heap profile: 1: 8 [2: 16] @ heapprofile\n1: 8 [1: 8] @\n0: 0 [1: 8] @ 0x1010\n" + maps_,
			map[string][2]int64{"": {1, 8}}, "gperftools", ""},
		{"an address of no binary", "heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x9\n" + maps_,
			map[string][2]int64{"<no binary>": {1, 8}}, "gperftools", "some addresses lie in no binary"},
		{"less than it tells at first", "heap profile: 2: 16 [2: 16] @ heapprofile\n1: 8 [1: 8] @ 0x1010\n" + maps_,
			map[string][2]int64{"with space.so+0x300f": {1, 8}}, "gperftools", "its stacks hold 8 B of the 16 B that were live"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := decodeText([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, heldAt(s)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if notes := otherNotes(s); s.Producer != c.producer || len(notes) > 1 || (c.note == "") != (len(notes) == 0) || !strings.HasPrefix(strings.Join(notes, ""), c.note) {
				t.Errorf("by %s, notes %q", s.Producer, s.Notes)
			}
		})
	}
}

func TestBrokenTexts(t *testing.T) {
	const exact = "heap profile: 1: 8 [1: 8] @ heapprofile\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "byte 0: a heap profile as text that tells addresses"},
		{"addresses alone, as old versions of Go wrote", "heap profile: 1: 8 [1: 8] @ heap/1048576\n1: 8 [1: 8] @ 0x4043b55\n", "byte 0: a heap profile as text that tells addresses, and neither names nor binaries"},
		{"how the heap grew", "heap profile: 1: 8 [1: 8] @ growthz\n", "of a kind that memdiag does not read"},
		{"a period of nothing", "heap profile: 1: 8 [1: 8] @ heap_v2/0\n", "of a kind that memdiag does not read"},
		{"a head without figures", "heap profile: x: 8 [1: 8] @ heapprofile\n", "is no count of blocks and bytes"},
		{"no stack", exact + "zebra\n" + maps_, `"zebra" is no stack of a heap profile`},
		{"figures that are none", exact + "x: 8 [1: 8] @ 0x1010\n" + maps_, "is no count of blocks and bytes"},
		{"fewer than none", exact + "1: -8 [1: 8] @ 0x1010\n" + maps_, "is no count of blocks and bytes"},
		{"an address that is none", exact + "1: 8 [1: 8] @ zebra\n" + maps_, `"zebra" is no address`},
		{"a row that is cut", exact + maps_ + "1000-20", "the file ends in the middle of a line"},
		{"a map that is none", exact + "MAPPED_LIBRARIES:\nx-y r-xp 0 0 0 /lib/x.so\n", "is no line of a map"},
		{"more than all memory", exact + "4000000000000000000: 1 [1: 8] @ 0x1010\n4000000000000000000: 1 [1: 8] @ 0x1011\n" + maps_, "more than 2^62"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodeText([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func FuzzDecodeText(f *testing.F) {
	f.Add(totalstest.Profile(f, "gperftools_10.heap"))
	f.Add([]byte("heap profile: 1: 8 [1: 8] @ heap/2\n1: 8 [1: 8] @ 0x46\n#\t0x45\tmain.alloc+0x1f\t\t/t/leak.go:5\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeText(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		for _, n := range heldAt(s) {
			if n[0] < 1 || n[1] < 0 {
				t.Fatalf("a stack holds %v", n)
			}
		}
	})
}

func TestWhatATextAsksForIsBounded(t *testing.T) {
	const head = "heap profile: 1: 8 [1: 8] @ heapprofile\n"
	totalstest.Flooded(t, decodeText, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "maps", Before: head + "MAPPED_LIBRARIES:\n", Piece: "1-2 r 0 0 0 /\n", Count: 200_000})
	totalstest.Flooded(t, decodeText, totalstest.TooManySteps,
		totalstest.Flood{Name: "rows", Before: head, Piece: "1:1@\n", Count: 1_600_000, After: maps_, Packed: true})
}
