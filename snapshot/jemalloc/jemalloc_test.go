package jemalloc

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(Decode, data)
}

// held is what is live by stack.
func held(s *snapshot.Snapshot) map[string][2]int64 {
	return totalstest.Held(s, " ", func(f snapshot.Frame) string { return f.Function })
}

var (
	stackLine = regexp.MustCompile(`(?m)^@ (.*)\n  t\*: (\d+): (\d+) `)
	mapLine   = regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+ +(/.*)$`)
)

func number(s string, base int) uint64 {
	v, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// slow finds stacks and maps by regular expressions.
func slow(text string) map[string][2]int64 {
	period := number(strings.TrimPrefix(strings.SplitN(text, "\n", 2)[0], magic), 10)
	out := make(map[string][2]int64)
	for _, m := range stackLine.FindAllStringSubmatch(text, -1) {
		var key []string
		for _, field := range strings.Fields(m[1]) {
			address, name := number(field[2:], 16), "<no binary>"
			if address > 0 {
				address-- // the call is before where it returns to
			}
			for _, l := range mapLine.FindAllStringSubmatch(text, -1) {
				if start := number(l[1], 16); address >= start && address < number(l[2], 16) {
					name = fmt.Sprintf("%s+%#x", filepath.Base(l[4]), address-start+number(l[3], 16))
				}
			}
			key = append(key, name)
		}
		count, size := float64(number(m[2], 10)), float64(number(m[3], 10))
		if factor := 1 / (1 - math.Exp(-size/count/float64(period))); period > 1 {
			count, size = math.Round(count*factor), math.Round(size*factor)
		}
		sum := out[strings.Join(key, " ")]
		out[strings.Join(key, " ")] = [2]int64{sum[0] + int64(count), sum[1] + int64(size)}
	}
	return out
}

func TestRealProfilesReadAsTheSlowReaderReadsThem(t *testing.T) {
	for _, name := range []string{"jemalloc_10.heap", "jemalloc_30.heap", "jemalloc_sampled.heap"} {
		data := totalstest.Profile(t, name)
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow(string(data)), held(s)); d != "" {
			t.Errorf("%s (-slow +fast)\n%s", name, d)
		}
		if !Detect(data) {
			t.Error("not detected")
		}
	}
}

// leak is what the toy program's leaking line holds: 10 KiB a step, which is
// jemalloc's size for 10,000 bytes.
func leak(t *testing.T, name string) (stack string, held_ [2]int64) {
	t.Helper()
	s, err := decode(totalstest.Profile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	for k, n := range held(s) {
		if strings.Contains(k, "leak+") && n[1] > held_[1] && n[0] > 1 {
			stack, held_ = k, n
		}
	}
	return stack, held_
}

func TestStacksOfTwoProcessesAreEqual(t *testing.T) {
	a, x := leak(t, "jemalloc_10.heap")
	b, y := leak(t, "jemalloc_30.heap")
	if a == "" || a != b {
		t.Errorf("%q in one process, %q in another", a, b)
	}
	if x != [2]int64{10, 10 * 10240} || y != [2]int64{30, 30 * 10240} {
		t.Errorf("%v after 10 steps, %v after 30", x, y)
	}
}

func TestSampledFiguresAreEstimates(t *testing.T) {
	_, got := leak(t, "jemalloc_sampled.heap")
	// 46 % of the blocks were sampled, so that one standard deviation is 36 of 900.
	if got[0] < 900-3*36 || got[0] > 900+3*36 || got[1] < 10_240*(900-3*36) || got[1] > 10_240*(900+3*36) {
		t.Errorf("estimated %v; the truth is 900 blocks, %d bytes", got, 900*10240)
	}
	s, err := decode(totalstest.Profile(t, "jemalloc_sampled.heap"))
	if err != nil || len(s.Notes) != 2 || s.Notes[0] != nameless || !strings.HasPrefix(s.Notes[1], "a sampled profile, of about one allocation in 16.0 KiB") {
		t.Errorf("notes %q, %v", s.Notes, err)
	}
}

const maps_ = "\nMAPPED_LIBRARIES:\n1000-2000 r-xp 00003000 fe:00 844260    /lib/with space.so\n3000-4000 rw-p 00000000 00:00 0 \n"

func TestWhatAProfileMayHold(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string][2]int64
	}{
		{"places in binaries", "heap_v2/1\n@ 0x1010 0x1fff\n  t*: 2: 20 [0: 0]\n  t7: 2: 20 [0: 0]\n" + maps_, map[string][2]int64{"with space.so+0x300f with space.so+0x3ffe": {2, 20}}},
		{"addresses of no binary", "heap_v2/1\n@ 0x2001 0x3000 0x1 0x0\n  t*: 1: 8 [0: 0]\n" + maps_, map[string][2]int64{"<no binary> <no binary> <no binary> <no binary>": {1, 8}}},
		{"no maps", "heap_v2/1\n@ 0x1010\n  t*: 1: 8 [0: 0]\n", map[string][2]int64{"<no binary>": {1, 8}}},
		{"what was freed is not live", "heap_v2/1\n  t*: 0: 0 [9: 99]\n@ 0x1010\n  t*: 0: 0 [9: 99]\n" + maps_, map[string][2]int64{}},
		{"small blocks are scaled most", "heap_v2/1000\n@ 0x1010\n  t*: 1: 10 [0: 0]\n" + maps_, map[string][2]int64{"with space.so+0x300f": {101, 1005}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := decode([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, held(s)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestAProfileWithoutMapsSaysSo(t *testing.T) {
	s, err := decode([]byte("heap_v2/1\n@ 0x1010\n  t*: 1: 8 [0: 0]\n"))
	if err != nil || len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], "the profile lists no binaries") {
		t.Errorf("%v, notes %q", err, s.Notes)
	}
}

func TestBrokenProfiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "byte 0: not a heap profile of jemalloc"},
		{"another version", "heap_v9/512\n", "not a heap profile of jemalloc"},
		{"a period of nothing", "heap_v2/0\n", "not a heap profile of jemalloc"},
		{"an address that is none", "heap_v2/1\n@ 0x10 zebra\n", `byte 10: "zebra" is no address`},
		{"figures that are none", "heap_v2/1\n@ 0x10\n  t*: x: 8 [0: 0]\n", "is no count of blocks and bytes"},
		{"figures that are cut", "heap_v2/1\n@ 0x10\n  t*: 1\n", "is no count of blocks and bytes"},
		{"fewer than none", "heap_v2/1\n@ 0x10\n  t*: 1: -8 [0: 0]\n", "is no count of blocks and bytes"},
		{"more than all memory", "heap_v2/1\n@ 0x10\n  t*: 9000000000000000000: 1 [0: 0]\n", "more than 2^62"},
		{"a stack without figures", "heap_v2/1\n@ 0x10\n", "the file ends in the middle of the snapshot"},
		{"a stack without figures, and maps", "heap_v2/1\n@ 0x10\n" + maps_, "the file ends in the middle of the snapshot"},
		{"less than it tells at first", "heap_v2/1\n  t*: 2: 20 [0: 0]\n@ 0x10\n  t*: 1: 8 [0: 0]\n", "the file ends in the middle of the snapshot"},
		{"a map that is cut", "heap_v2/1\n" + maps_ + "5000-60", "the file ends in the middle of a line"},
		{"a map that is none", "heap_v2/1\nMAPPED_LIBRARIES:\nx-y r-xp 0 0 0 /lib/x.so\n", "is no line of a map"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(totalstest.Profile(f, "jemalloc_10.heap"))
	f.Add([]byte("heap_v2/1000\n@ 0x1010 0x1fff\n  t*: 2: 20 [0: 0]\n" + maps_))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			totalstest.Refused(t, err, "")
			return
		}
		for _, n := range held(s) {
			if n[0] < 1 || n[1] < 0 {
				t.Fatalf("a stack holds %v", n)
			}
		}
	})
}

// TestAFrameIsThePlaceOfTheCall compares with return addresses: addr2line named the
// line after the call: of leak.c's call in line 23 the one in line 24.
func TestAFrameIsThePlaceOfTheCall(t *testing.T) {
	stack, _ := leak(t, "jemalloc_30.heap")
	if want := "leak+0x119b leak+0x120b leak+0x1255"; !strings.Contains(stack, want) {
		t.Errorf("%s, want %s", stack, want)
	}
}

func TestWhatAProfileAsksForIsBounded(t *testing.T) {
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "maps", Before: "heap_v2/1\nMAPPED_LIBRARIES:\n", Piece: "1-2 r 0 0 0 /\n", Count: 200_000})
	totalstest.Flooded(t, decode, totalstest.TooManySteps,
		totalstest.Flood{Name: "figures", Before: "heap_v2/1\n", Piece: "@\n  t*: 1: 1 [0: 0]\n", Count: 1_600_000, Packed: true})
}
