// Package memtest fails a test whose repeated work leaves memory behind.
package memtest

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// NoLeak fails t if fn leaves more on the Go heap with every call, and names the
// lines that allocated it. fn is called warmup times, so that what is made once is
// made; then runs times, with the heap read after each. What grew in half of the
// runs or more is looked at for as many runs again, and then read until goroutines
// and finalizers have had 127 ms to let go of it: it is a leak if it grew in half of
// the runs again and is still held. Of a slice or map whose storage alone grows,
// by doubling, so little is seen as it doubles: let fn do more of it. Values under 16
// bytes without pointers share blocks, which count as the line's that was first.
//
// Every allocation of the process is recorded meanwhile, and all goroutines count:
// t must not run in parallel with other tests, and it is slower. runs is at least 1.
func NoLeak(t testing.TB, warmup, runs int, fn func()) {
	t.Helper()
	h, end := openHeap()
	defer end()
	check(t, "the Go heap", h, warmup, runs, fn)
}

// NoDeviceLeak is NoLeak for the live blocks of a device of the engine. Blocks that
// the device recorded without a stack count as one line.
func NoDeviceLeak(t testing.TB, d *mem.Device, warmup, runs int, fn func()) {
	t.Helper()
	check(t, d.String(), device{d}, warmup, runs, fn)
}

// held is what one stack holds.
type held struct{ blocks, bytes int64 }

// ledger tells what each stack holds, now that all is freed that can be.
type ledger[K comparable] interface {
	read() map[K]held
	// frames are innermost first; nil where no stack was recorded.
	frames(K) []snapshot.Frame
}

// longest bounds the waits for goroutines that still let go of something:
// 1, 2, 4 … 64 ms.
const longest = 64 * time.Millisecond

// shown is how many leaks a message names.
const shown = 10

func check[K comparable](t testing.TB, where string, l ledger[K], warmup, runs int, fn func()) {
	t.Helper()
	if warmup < 0 || runs < 1 {
		t.Fatalf("memtest: %d warm-ups and %d runs: want at least 0 and 1", warmup, runs)
		return
	}
	for range warmup {
		fn()
	}
	var first, growth map[K]held
	for pass := range 2 { // one call of grown, since what calls is part of a stack
		var now map[K]held
		first, now = grown(l, runs, fn)
		if pass > 0 {
			maps.DeleteFunc(now, func(k K, _ held) bool { return growth[k].bytes == 0 })
		}
		if growth = now; len(growth) == 0 {
			return
		}
	}
	for wait := time.Millisecond; len(growth) > 0 && wait <= longest; wait *= 2 {
		time.Sleep(wait)
		now := l.read()
		maps.DeleteFunc(growth, func(k K, _ held) bool { return now[k].bytes <= first[k].bytes })
	}
	runtime.KeepAlive(fn) // with what it captured, which would else be freed before the last readings
	if len(growth) > 0 {
		t.Errorf("memtest: %s", message(where, l, runs, growth))
	}
}

// call stands on the stack between what this package allocates and what fn does.
func call(fn func()) { fn() }

// within is what call is named on a stack.
const within = "/memtest.call"

// grown calls fn and returns what was held before, and the growth of each stack
// that rose after half of the calls or more, those after which it fell taken off.
func grown[K comparable](l ledger[K], runs int, fn func()) (first, growth map[K]held) {
	first = l.read()
	rises := make(map[K]int)
	last := first
	for range runs {
		call(fn)
		now := l.read()
		for k := range last {
			rises[k] += cmp.Compare(now[k].bytes, last[k].bytes)
		}
		for k := range now {
			if _, old := last[k]; !old {
				rises[k]++
			}
		}
		last = now
	}
	growth = make(map[K]held)
	for k, n := range rises {
		if g := (held{last[k].blocks - first[k].blocks, last[k].bytes - first[k].bytes}); n > 0 && 2*n >= runs && g.bytes > 0 {
			growth[k] = g
		}
	}
	return first, growth
}

// message names the lines that leak, largest first, each with its stack.
func message[K comparable](where string, l ledger[K], runs int, growth map[K]held) string {
	keys := slices.SortedFunc(maps.Keys(growth), func(a, b K) int { return cmp.Compare(growth[b].bytes, growth[a].bytes) })
	var text strings.Builder
	fmt.Fprintf(&text, "%s holds more after each run", where)
	for i, k := range keys {
		if i == shown {
			fmt.Fprintf(&text, "\n… and %d more", len(keys)-i)
			break
		}
		g, frames := growth[k], l.frames(k)
		n := float64(runs)
		fmt.Fprintf(&text, "\n+%s a run, blocks %+.3g, allocated ", snapshot.FormatBytes(float64(g.bytes)/n), float64(g.blocks)/n)
		if len(frames) == 0 {
			text.WriteString("where no stack was recorded")
			continue
		}
		at := frames[max(0, frame.Headline(frames))]
		fmt.Fprintf(&text, "at %s:%d, in:", at.File, at.Line)
		for _, f := range frames {
			if strings.HasSuffix("/"+f.Function, within) { // devices tell packages by their last element
				break
			}
			fmt.Fprintf(&text, "\n\t%s\n\t\t%s:%d", f.Function, f.File, f.Line)
		}
	}
	return text.String()
}
