package memtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/memtest"
	"github.com/memdiag/memdiag/snapshot"
)

// recorder is a test that remembers what was said of it.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

type node struct {
	next *node
	data [6]int64
}

// line is where it was called.
func line() string {
	_, _, at, _ := runtime.Caller(1)
	return fmt.Sprintf("memtest_test.go:%d", at+1)
}

func TestHeap(t *testing.T) {
	var list *node
	var words, cache []*int32
	var buffer []byte
	var pool sync.Pool
	var at string
	never := make(chan int)
	defer close(never)
	for _, c := range []struct {
		name string
		runs int
		fn   func()
		want string // of the message; "" for none
	}{
		{"a block a run leaks", 6, func() {
			at = line()
			list = &node{next: list}
		}, "the Go heap holds more after each run\n+64 B a run, blocks +1, allocated at "},
		{"one run is enough for a leak", 1, func() {
			at = line()
			list = &node{next: list}
		}, "+64 B a run"},
		{"a buffer that is replaced by a larger one leaks", 6, func() {
			at = line()
			buffer = make([]byte, len(buffer)+8192)
		}, "+8.00 KiB a run, blocks +0"},
		{"small words that share a block leak", 12, func() {
			words = append(words, new(int32))
		}, "B a run"},
		{"a goroutine that never ends leaks what it holds", 6, func() {
			kept := new([512]int64)
			go func() { kept[0] = int64(<-never) }()
		}, "+4.00 KiB a run, blocks +1"},
		{"what is dropped is no leak", 6, func() { _ = fmt.Sprint([]int{1, 2, 3}) }, ""},
		{"a pool is no leak", 6, func() {
			for range 100 {
				pool.Put(new(node))
			}
		}, ""},
		{"what a goroutine still holds for a while is no leak", 6, func() {
			kept := new([512]int64)
			go func() { time.Sleep(5 * time.Millisecond); kept[0]++ }()
		}, ""},
		{"what has a finalizer is no leak", 6, func() { runtime.SetFinalizer(new(node), func(n *node) { n.data[0]++ }) }, ""},
		{"a cache that is full after the warm-up is no leak", 6, func() {
			if len(cache) < 300 {
				for range 100 {
					cache = append(cache, new(int32))
				}
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			at = ""
			r := &recorder{TB: t}
			memtest.NoLeak(r, 3, c.runs, c.fn)
			if c.want == "" && r.said != "" || !strings.Contains(r.said, c.want) || !strings.Contains(r.said, at) {
				t.Errorf("want %q at %q, got %q", c.want, at, r.said)
			}
			if c.want != "" && !strings.Contains(r.said, "memtest_test.TestHeap.func") {
				t.Errorf("no stack in %q", r.said)
			}
		})
	}
	runtime.KeepAlive(list)
	runtime.KeepAlive(buffer)
	runtime.KeepAlive(cache)
}

func TestTheRateIsGivenBack(t *testing.T) {
	before := runtime.MemProfileRate
	memtest.NoLeak(t, 0, 1, func() {
		if runtime.MemProfileRate != 1 {
			t.Error("not every allocation is recorded")
		}
	})
	if runtime.MemProfileRate != before {
		t.Errorf("rate %d, it was %d", runtime.MemProfileRate, before)
	}
}

func TestDevice(t *testing.T) {
	for _, untracked := range []bool{false, true} {
		d := mem.NewDevice(mem.Host(), mem.Options{Untracked: untracked})
		var kept []*mem.Storage
		leak := func() {
			block, err := d.Alloc(1000, snapshot.OwnedByUser)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, block)
		}
		clean := func() {
			leak()
			kept[len(kept)-1].Release(snapshot.OwnedByUser)
			kept = kept[:len(kept)-1]
		}
		want := "cpu 0 holds more after each run\n+1.00 KiB a run, blocks +1, allocated at "
		if untracked {
			want = "+1.00 KiB a run, blocks +0, allocated where no stack was recorded"
		}
		r := &recorder{TB: t}
		memtest.NoDeviceLeak(r, d, 2, 5, leak)
		if !strings.Contains(r.said, want) || !untracked && !strings.Contains(r.said, "memtest_test.go:") {
			t.Errorf("untracked %v: want %q, got %q", untracked, want, r.said)
		}
		memtest.NoDeviceLeak(t, d, 2, 5, clean)
		for _, block := range kept {
			block.Release(snapshot.OwnedByUser)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFiftyRepetitionsSayTheSame(t *testing.T) {
	var list, latest *node
	for i := range 50 {
		r := &recorder{TB: t}
		memtest.NoLeak(r, 1, 2, func() { list = &node{next: list} })
		if !strings.Contains(r.said, "+64 B a run, blocks +1") {
			t.Errorf("repetition %d missed the leak: %q", i, r.said)
		}
		memtest.NoLeak(t, 1, 4, func() { latest = new(node) })
	}
	runtime.KeepAlive(latest)
}

func TestRunsAreAtLeastOne(t *testing.T) {
	r := &recorder{TB: t}
	memtest.NoLeak(r, 0, 0, func() { t.Error("it ran") })
	if !strings.Contains(r.said, "want at least 0 and 1") {
		t.Errorf("got %q", r.said)
	}
}
