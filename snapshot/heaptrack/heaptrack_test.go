package heaptrack

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decode(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(Decode, data)
}

// held is what is live by stack, frames written "function file:line".
func held(s *snapshot.Snapshot) map[string][2]int64 {
	return totalstest.Held(s, " < ", totalstest.Place)
}

func TestRealRecordingsTellWhatWasNeverFreed(t *testing.T) {
	for _, steps := range []int64{10, 30} {
		data := totalstest.Profile(t, fmt.Sprintf("heaptrack_%d.zst", steps))
		s, err := decode(data)
		if err != nil {
			t.Fatal(err)
		}
		main := "__libc_start_call_main ../sysdeps/nptl/libc_start_call_main.h:58 < __libc_start_main_impl ../csu/libc-start.c:360 < _start :-1"
		want := map[string][2]int64{
			"remember ./leak.c:10 < train ./leak.c:23 < main ./leak.c:30 < " + main: {steps, steps * 10_000},
			"main ./leak.c:29 < " + main: {1, 8_000},
		}
		got := held(s)
		// The C++ library keeps a pool for exceptions; its frames are not ours.
		maps.DeleteFunc(got, func(stack string, _ [2]int64) bool { return !strings.Contains(stack, "leak.c") })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d steps (-want +got)\n%s", steps, d)
		}
		if !Detect(bounded.Head(data)) {
			t.Error("not detected")
		}
		if h := s.History; h.Events != 3*steps+3 || h.LostFrees != 0 {
			t.Errorf("history %+v: a step allocates one block, and one that it frees", h)
		}
	}
}

var rustHash = regexp.MustCompile(`::h[0-9a-f]{16}$`)

func slowRusts(function string) string {
	if at := rustHash.FindStringIndex(function); at != nil {
		return escapes.Replace(function[:at[0]])
	}
	return function
}

// slow reads a recording that is whole, with the plainest means; it panics on one
// that is not.
func slow(text string) map[string][2]int64 {
	var names []string
	var pointers, traces [][]string
	var sizes, counts []int64
	var of []int64
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 16, 64)
		if err != nil {
			panic(err)
		}
		return v
	}
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 2 || len(f[0]) > 1 {
			continue
		}
		switch f[0] {
		case "s":
			_, name, _ := strings.Cut(line[2:], " ")
			names = append(names, name)
		case "i":
			pointers = append(pointers, f[1:])
		case "t":
			traces = append(traces, f[1:])
		case "a":
			sizes, of, counts = append(sizes, number(f[1])), append(of, number(f[2])), append(counts, 0)
		case "+":
			counts[number(f[1])]++
		case "-":
			if i := number(f[1]); counts[i] > 0 {
				counts[i]--
			}
		}
	}
	name := func(s string) string {
		if i := number(s); i > 0 && i <= int64(len(names)) {
			return names[i-1]
		}
		return ""
	}
	out := make(map[string][2]int64)
	for i, n := range counts {
		if n == 0 {
			continue
		}
		var key []string
		for at := of[i]; at != 0; at = number(traces[at-1][1]) {
			p := number(traces[at-1][0])
			if p == 0 {
				continue
			}
			fields := pointers[p-1]
			for len(fields) < 5 {
				fields = append(slices.Clone(fields), "0")
			}
			for ; len(fields) >= 5; fields = append(fields[:2:2], fields[5:]...) {
				function, line := slowRusts(name(fields[2])), number(fields[4])
				if function == "" {
					parts := strings.Split(name(fields[1]), "/")
					function = strings.TrimSpace("<no symbol> " + parts[len(parts)-1])
				}
				if line == 0 || line > 1<<31-1 {
					line = -1
				}
				key = append(key, fmt.Sprintf("%s %s:%d", function, name(fields[3]), line))
			}
		}
		sum := out[strings.Join(key, " < ")]
		out[strings.Join(key, " < ")] = [2]int64{sum[0] + n, sum[1] + n*sizes[i]}
	}
	return out
}

func TestTheSlowReaderAgrees(t *testing.T) {
	for _, name := range []string{"heaptrack_10.zst", "heaptrack_30.zst"} {
		text := totalstest.Unpacked(t, totalstest.Profile(t, name))
		s, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(slow(string(text)), held(s)); d != "" {
			t.Errorf("%s (-slow +fast)\n%s", name, d)
		}
	}
}

const start = "v 10400 3\ns 1 f\ns 3 a.c\ni 55aa 0 1 2 a\nt 1 0\na 10 1\n"

func TestWhatARecordingMayHold(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string][2]int64
	}{
		{"two live, one freed", start + "+ 0\n+ 0\n+ 0\n- 0\n", map[string][2]int64{"f a.c:10": {2, 32}}},
		{"frees of what was not seen", start + "- 0\n- 0\n+ 0\n", map[string][2]int64{"f a.c:10": {1, 16}}},
		{"strings of older versions go to the end of the line", strings.NewReplacer("v 10400 3", "v 10000 1", "s 1 f", "s operator new(unsigned long)", "s 3 ", "s ").Replace(start) + "+ 0\n", map[string][2]int64{"operator new(unsigned long) a.c:10": {1, 16}}},
		{"inlined calls come after what they call", "v 10400 3\ns 1 f\ns 1 g\ni 1 0 1 0 0 2 0 5\nt 1 0\na 8 1\n+ 0\n", map[string][2]int64{"f :-1 < g :5": {1, 8}}},
		{"no symbol", "v 10400 3\ns c /lib/libx.so\ni 7f00 1\nt 1 0\na 8 1\n+ 0\n", map[string][2]int64{"<no symbol> libx.so :-1": {1, 8}}},
		{"neither symbol nor module", "v 10400 3\ni 7f00 0\nt 1 0\na 8 1\n+ 0\n", map[string][2]int64{"<no symbol> :-1": {1, 8}}},
		{"symbols of Rust", "v 10400 3\ns 40 _$LT$T$u20$as$u20$core..ops..Index$GT$::index::h041d071a1e6c1400\ns 4 a.rs\ni 55aa 0 1 2 a\nt 1 0\na 8 1\n+ 0\n", map[string][2]int64{"<T as core::ops::Index>::index a.rs:10": {1, 8}}},
		{"nothing", start, map[string][2]int64{}},
		{"lines that nobody knows", start + "# note\nR 10\nZ 1 2 3\n\n+ 0\n", map[string][2]int64{"f a.c:10": {1, 16}}},
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

func TestBrokenRecordings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "byte 0: not a recording of heaptrack"},
		{"another version", "v 20000 9\n", "version 9 of heaptrack's format; memdiag reads 1 to 3"},
		{"raw data", "v 10400 3\nm 1 2\n", "raw data of heaptrack"},
		{"a trace that calls itself", start + "t 1 2\n", "byte 52: trace 2 refers to what comes later"},
		{"a trace of a later caller", start + "t 1 3\n", "trace 2 refers to what comes later"},
		{"an address of a later line", start + "t 9 0\n", "trace 2 refers to what comes later"},
		{"an event of nothing", start + "+ 7\n", "an event of allocation 7 of 1"},
		{"an event that says nothing", start + "+ \n", "an event without its allocation"},
		{"a text that is shorter than it says", "v 10400 3\ns ff f\n", "a text of 1 bytes that says otherwise"},
		{"an allocation by nobody", start + "a 10 7\n", "an allocation of 16 bytes by trace 7 of 1"},
		{"an allocation of all memory", start + "a ffffffffffffffff 1\n", "an allocation of 18446744073709551615 bytes"},
		{"numbers that are none", start + "i x y\n", "no hexadecimal number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode([]byte(c.text))
			totalstest.Refused(t, err, c.want)
		})
	}
}

func TestBytesThatAddUpToMoreThanMemoryAreAnError(t *testing.T) {
	text := start + "a 4000000000000 1\n" + strings.Repeat("+ 1\n", 1<<11+1)
	if _, err := decode([]byte(text)); err == nil || !strings.Contains(err.Error(), "more than 2^61 bytes are live") {
		t.Errorf("%v", err)
	}
}

// A chain of 100,000 callers under each of as many allocations would be ten
// thousand million frames.
func TestDeepChainsEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("v 10400 3\ns 1 f\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "i %x 0 1 0 %x\nt %x %x\na 8 %x\n+ %x\n", i+1, i+1, i+1, i, i+1, i)
	}
	if _, err := decode([]byte(b.String())); err == nil {
		t.Error("no bound held")
	}
}

// Each of 100,000 traces was walked to the first, which took minutes: none adds a frame.
func TestChainsOfNoAddressEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("v 10400 3\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "t 0 %x\na 8 %x\n+ %x\n", i, i+1, i)
	}
	if _, err := decode([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "steps") {
		t.Errorf("%v, want an error of the steps that it asks for", err)
	}
}

func TestARecordingIsReadUpToWhereItWasCut(t *testing.T) {
	for rest, whole := range map[string]bool{"+ 0": false, "s 10 half": false, "": false, "# strings: 2\n# ips: 1\n": true, "# strings: 2\n# ips": true} {
		s, err := decode([]byte(start + "+ 0\n+ 0\n" + rest))
		if err != nil {
			t.Fatal(err)
		}
		if s.Blocks.Count[0] != 2 || strings.Contains(s.Notes[len(s.Notes)-1], "the recording has no end") == whole {
			t.Errorf("%q: %d blocks, notes %q", rest, s.Blocks.Count[0], s.Notes)
		}
	}
}

// At its end heaptrack writes what it still holds, and the process's figures after.
func TestARecordingWhoseLastEventsWereNotWrittenSaysSo(t *testing.T) {
	for rest, said := range map[string]bool{"": true, "c 5\nR 3e0\n": false, "c 5\nR 3e0\n+ 0\n": true} {
		s, err := decode([]byte(start + "+ 0\n" + rest + "\n# strings: 2\n# ips: 1\n"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(s.Notes, "; "), "the recording ends with an event") != said {
			t.Errorf("%q: notes %q", rest, s.Notes)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range [][]byte{totalstest.Unpacked(f, totalstest.Profile(f, "heaptrack_10.zst")), []byte(start + "+ 0\n- 0\n+ 0\n"),
		[]byte("v 10400 3\ns 1c a..b$u20$::h041d071a1e6c1400\ns 4 a.rs\ni 55aa 0 1 2 a\nt 1 0\na 8 1\n+ 0\n")} {
		if _, ok := trySlow(seed); !ok {
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
		want, ok := trySlow(data)
		if ok && cmp.Diff(want, held(s)) != "" {
			t.Fatalf("-slow +fast\n%s", cmp.Diff(want, held(s)))
		}
	})
}

// plain are the lines that heaptrack writes; others the fast reader passes over.
var plain = regexp.MustCompile(`^v 10400 3\n(s [0-9a-f]+ [[:print:]]*\n|[it+a-]( [0-9a-f]{1,16})+\n|([XIcR#] [[:print:]]*)?\n)*$`)

// trySlow is not ok for what only the fast reader understands: what is odd, but
// harmless.
func trySlow(data []byte) (got map[string][2]int64, ok bool) {
	defer func() { _ = recover() }()
	if !plain.Match(data) {
		return nil, false
	}
	return slow(string(data)), true
}

func TestTablesAreCharged(t *testing.T) {
	const start = "v 10400 3\n"
	totalstest.Flooded(t, decode, totalstest.TooMuchMemory,
		totalstest.Flood{Name: "texts", Before: start, Piece: "s 0 \n", Count: 1_400_000, Packed: true},
		totalstest.Flood{Name: "addresses", Before: start, Piece: "i 1 1\n", Count: 1_800_000, Packed: true},
		totalstest.Flood{Name: "frames of addresses", Before: start, Piece: "i 1 1" + strings.Repeat(" 0 0 0", 100) + "\n", Count: 27_000, Packed: true},
		totalstest.Flood{Name: "traces", Before: start + "i 1 1\n", Piece: "t 1 0\n", Count: 3_600_000, Packed: true},
		totalstest.Flood{Name: "allocations", Before: start, Piece: "a 8 0\n", Count: 1_400_000, Packed: true},
	)
}

// Traces of one and the same stack have an entry each.
func TestStacksOfTracesAreCharged(t *testing.T) {
	const traces = 1_100_000
	in, err := bounded.Open("f", strings.NewReader(""), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := decoder{in: in}
	d.pointers.Append(pointer{})
	for i := range uint64(traces) {
		d.traces.Append(trace{pointer: 1})
		d.allocations.Append(allocation{size: 1, trace: i + 1, live: 1})
	}
	_, err = d.snapshot(totals.New(in, totals.Options{}))
	totalstest.Refused(t, err, totalstest.TooMuchMemory)
}

func TestSymbolsOfRustAreOneInEachBuild(t *testing.T) {
	for symbol, want := range map[string]string{
		"alloc::alloc::realloc::h041d071a1e6c1400": "alloc::alloc::realloc",
		"core::ops::function::impls::_$LT$impl$u20$core..ops..function..FnOnce$LT$A$GT$$u20$for$u20$$RF$F$GT$::call_once::h6c621dda041d071a": "core::ops::function::impls::<impl core::ops::function::FnOnce<A> for &F>::call_once",
		"std::rt::lang_start::_$u7b$$u7b$closure$u7d$$u7d$::hba41b60a37dd34a2":                                                               "std::rt::lang_start::{{closure}}",
		"Cache::put(int)":  "Cache::put(int)",
		"ns::hash":         "ns::hash",
		"f$LT$g..h":        "f$LT$g..h",
		"_$LT$::h041d071a": "_$LT$::h041d071a",
		"":                 "",
	} {
		if got := rusts(symbol); got != want {
			t.Errorf("%q gives %q, want %q", symbol, got, want)
		}
	}
}
