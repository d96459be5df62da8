package memtest

import (
	"runtime"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// heap is the Go heap by the runtime's memory profile.
type heap struct{ records []runtime.MemProfileRecord }

// pcs are the 32 innermost calls of an allocation, as the profile has them.
type pcs = [32]uintptr

// openHeap has every allocation recorded until end is called. Those from before were
// sampled, if at all; they can only shrink.
func openHeap() (h *heap, end func()) {
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 1
	return &heap{make([]runtime.MemProfileRecord, 1024)}, func() { runtime.MemProfileRate = rate }
}

// read collects twice before it reads, since pools keep what they have through one
// collection, and so does what has a finalizer.
func (h *heap) read() map[pcs]held {
	runtime.GC()
	runtime.GC()
	n, ok := runtime.MemProfile(h.records, false)
	for !ok {
		h.records = make([]runtime.MemProfileRecord, 2*n)
		n, ok = runtime.MemProfile(h.records, false)
	}
	sum := make(map[pcs]held)
	for _, r := range h.records[:n] { // one for each size, too
		if !aside(&r) {
			s := sum[r.Stack0]
			sum[r.Stack0] = held{s.blocks + r.InUseObjects(), s.bytes + r.InUseBytes()}
		}
	}
	return sum
}

// aside is true for what this package itself allocates, and for what the runtime does
// for itself: descriptors of goroutines are used again, but never freed, so that
// they tell of the most that ever ran at once.
func aside(r *runtime.MemProfileRecord) bool {
	calls := runtime.CallersFrames(r.Stack())
	runtimeOnly := true
	for {
		f, more := calls.Next()
		switch {
		case strings.HasSuffix(f.Function, within):
			return false
		case strings.Contains(f.Function, "/memtest."):
			return true
		case !strings.HasPrefix(f.Function, "runtime."):
			runtimeOnly = false
		}
		if !more {
			return runtimeOnly
		}
	}
}

func (h *heap) frames(at pcs) []snapshot.Frame {
	calls := runtime.CallersFrames((&runtime.MemProfileRecord{Stack0: at}).Stack())
	var frames []snapshot.Frame
	for {
		f, more := calls.Next()
		frames = append(frames, snapshot.Frame{Function: f.Function, File: f.File, Line: f.Line})
		if !more {
			return frames
		}
	}
}
