package heaptrack

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals/totalstest"
)

func decodePrinted(data []byte) (*snapshot.Snapshot, error) {
	return totalstest.Decode(DecodePrinted, data)
}

func TestPrintedLeaksAreThoseOfTheRecording(t *testing.T) {
	for _, steps := range []int{10, 30} {
		data := totalstest.Profile(t, fmt.Sprintf("heaptrack_print_%d.txt", steps))
		if !DetectPrinted(data) {
			t.Error("not detected")
		}
		s, err := decodePrinted(data)
		if err != nil {
			t.Fatal(err)
		}
		recording, err := decode(totalstest.Profile(t, fmt.Sprintf("heaptrack_%d.zst", steps)))
		if err != nil {
			t.Fatal(err)
		}
		want := make(map[string][2]int64)
		for stack, n := range held(recording) {
			stack, _, _ = strings.Cut(stack, " < __libc_start_call_main") // heaptrack_print leaves it off
			want[stack] = [2]int64{1, n[1]}
		}
		got := held(s)
		// The C++ library keeps a pool for exceptions, which heaptrack_print holds back.
		maps.DeleteFunc(want, func(stack string, _ [2]int64) bool { return !strings.Contains(stack, "leak.c") })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d steps (-recording +text)\n%s", steps, d)
		}
	}
}

// text is what heaptrack_print writes, with merged backtraces.
const text = `reading file "a.zst" - please wait, this might take some time...
Debuggee command was: ./a
finished reading file, now analyzing data:

PEAK MEMORY CONSUMERS
9.00M peak memory consumed over 128 calls from
peak
  at ./a.cpp:1

MEMORY LEAKS
53.21M leaked over 128 calls from
void leak<>(int)
  at ./a.cpp:6
  in /home/me/a
52.43M leaked over 50 calls from:
    0x7fdd154a57b9
      in /lib/libstdc++.so.6
    inlined
      at ./rtld.c:0
    main
      at ./a.cpp:10
      in /home/me/a
78.00K leaked over 3 calls from:
  and 702.27K from 13 other places

12B leaked over 1 calls from
main
  at ./a.cpp:9
12B leaked over 1 calls from:


total runtime: 0.01s.
peak heap memory consumption: 55.62M
total memory leaked: 55.55M
`

func TestPrintedPlacesHaveTheirCallersBelow(t *testing.T) {
	s, err := decodePrinted([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	leak := "void leak<>(int) ./a.cpp:6"
	want := map[string][2]int64{
		leak + " < <no symbol> libstdc++.so.6 :-1 < inlined ./rtld.c:-1 < main ./a.cpp:10": {1, 52_430_000},
		leak:             {1, 78_000 + 702_270},
		"main ./a.cpp:9": {1, 12},
	}
	if d := cmp.Diff(want, held(s)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, note := range []string{
		"the text lists 50.7 MiB of the 53.0 MiB that were live: heaptrack_print -n and -s list more",
		"what was live when recording ended; the peak was 53.0 MiB",
	} {
		if !slices.Contains(s.Notes, note) {
			t.Errorf("notes %q, want %q", s.Notes, note)
		}
	}
}

func TestPrintedStacksThatAreNotMerged(t *testing.T) {
	s, err := decodePrinted([]byte(before(text, "53.21M leaked") + "1.5K leaked over 2 calls from\n  f\n    at ./a.c:6\n  main\n    at ./a.c:9\n\n" +
		"2KB leaked over 1 calls from\n  main\n    at ./a.c:8\n\n\n" + temporaryTitle + "\n1 leaked over nothing\n\ntotal memory leaked: 3.50K\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"f ./a.c:6 < main ./a.c:9": {1, 1500}, "main ./a.c:8": {1, 2000}}, held(s)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func before(text, mark string) string {
	head, _, _ := strings.Cut(text, mark)
	return head
}

func TestBrokenPrintedTexts(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no leaks", leaksTitle, "LEAKS", "a text of heaptrack_print without leaks"},
		{"a text that is cut", "\ntotal runtime", "", "ends in the middle"},
		{"figures that are cut", "total memory leaked: 55.55M\n", "", "ends in the middle of the snapshot"},
		{"a figure that is cut", "5.55M\n", "5.", "ends in the middle of a line"},
		{"a difference", "Debuggee", "reading diff file \"b.zst\"\nDebuggee", "a difference of two recordings"},
		{"a size that is none", "78.00K", "many", `"many" where a number of bytes should be`},
		{"a size of two units", "78.00K", "78.00MK", "where a number of bytes should be"},
		{"a size without end", "78.00K", "1e30K", "where a number of bytes should be"},
		{"a size that is no number", "78.00K", "NaNK", "where a number of bytes should be"},
		{"less than nothing", "78.00K", "-900.00M", "this is a difference of profiles"},
		{"a line of no file", "./a.cpp:10", "./a.cpp", "is no line of a file"},
		{"a line out of place", "      at ./a.cpp:10", "     at ./a.cpp:10", "is no line of a stack"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decodePrinted([]byte(strings.Replace(text, c.old, c.new, 1)))
			totalstest.Refused(t, err, c.want)
		})
	}
}

var (
	plainLeaks = regexp.MustCompile(`^reading file "[[:print:]]*\nDebuggee command was: [[:print:]]*\n(?:[[:print:]]*\n)*?MEMORY LEAKS\n((?:` + plainPlace + `)*)\ntotal runtime: [[:print:]]*\n(?:[[:print:]]*\n)*total memory leaked: [[:print:]]+\n$`)
	plainPlace = plainHead + `from\n((?:` + plainFrame(0) + `)+)((?:` + plainHead + `from:\n(?:` + plainFrame(4) + `)*)+)(  and \d{1,3}\.\d\dK from \d+ other places\n)?\n`
	onePlace   = regexp.MustCompile(plainPlace)
	oneCaller  = regexp.MustCompile(`(` + plainHead + `)from:\n((?:` + plainFrame(4) + `)*)`)
	oneFrame   = regexp.MustCompile(`([a-z_]+)\n +at ([a-z./]+):(\d{1,4})\n`)
	oneSize    = regexp.MustCompile(`\d+\.\d\d`)
)

const plainHead = `\d{1,3}\.\d\dK leaked over \d+ calls `

func plainFrame(indent int) string {
	space := strings.Repeat(" ", indent)
	return space + `[a-z_]+\n` + space + `  at [a-z./]+:\d{1,4}\n`
}

// slowPrinted reads plain texts, of kB only.
func slowPrinted(data []byte) (map[string][2]int64, bool) {
	leaks := plainLeaks.FindSubmatch(data)
	if leaks == nil {
		return nil, false
	}
	out := make(map[string][2]int64)
	add := func(size string, frames ...string) {
		kilo, _ := strconv.ParseFloat(oneSize.FindString(size), 64)
		var stack []string
		for _, f := range oneFrame.FindAllStringSubmatch(strings.Join(frames, ""), -1) {
			line, _ := strconv.Atoi(f[3])
			if line == 0 {
				line = -1
			}
			stack = append(stack, fmt.Sprintf("%s %s:%d", slowRusts(f[1]), f[2], line))
		}
		if kilo > 0 {
			key := strings.Join(stack, " < ")
			out[key] = [2]int64{1, out[key][1] + int64(math.Round(kilo*1000))}
		}
	}
	for _, place := range onePlace.FindAllStringSubmatch(string(leaks[1]), -1) {
		for _, caller := range oneCaller.FindAllStringSubmatch(place[2], -1) {
			add(caller[1], place[1], caller[2])
		}
		add(place[3], place[1])
	}
	return out, true
}

func FuzzDecodePrinted(f *testing.F) {
	plain := before(text, "53.21M leaked") + "8.10K leaked over 9 calls from\nf\n  at ./a.c:6\n5.00K leaked over 6 calls from:\n    g\n      at ./a.c:7\n    main\n      at ./a.c:9\n" +
		"1.10K leaked over 6 calls from:\n    main\n      at ./a.c:10\n  and 2.00K from 2 other places\n\n0.50K leaked over 1 calls from\nmain\n  at ./a.c:0\n0.50K leaked over 1 calls from:\n\n\ntotal runtime: 1s\ntotal memory leaked: 9.10K\n"
	if _, ok := slowPrinted([]byte(plain)); !ok {
		f.Error("the slow reader passes over a seed")
	}
	f.Add([]byte(plain))
	f.Add([]byte(text))
	f.Add(totalstest.Profile(f, "heaptrack_print_30.txt"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodePrinted(data)
		want, ok := slowPrinted(data)
		if err != nil {
			var format *snapshot.FormatError
			if !errors.As(err, &format) || ok && !strings.Contains(err.Error(), "difference") {
				t.Fatalf("an error of no file, or of one that is whole: %v", err)
			}
			return
		}
		if d := cmp.Diff(want, held(s)); ok && d != "" {
			t.Fatalf("-slow +fast\n%s", d)
		}
	})
}
