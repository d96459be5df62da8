package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

const (
	inPython = "/usr/lib/python3.12/"
	inGo     = "/usr/local/go/src/"
)

func TestWhatAProfilerAllocatesIsToldFromWhatRunsUnderIt(t *testing.T) {
	frame := func(file, function string) snapshot.Frame {
		return snapshot.Frame{File: file, Function: function, Line: 7}
	}
	for name, c := range map[string]struct {
		frames []snapshot.Frame
		want   bool
	}{
		"a call of the program's":                        {[]snapshot.Frame{frame(inPython+"tracemalloc.py", ""), frame("train.py", "")}, true},
		"a thread of its own":                            {[]snapshot.Frame{frame(inPython+"tracemalloc.py", "")}, true},
		"through the language's library":                 {[]snapshot.Frame{frame(inPython+"linecache.py", ""), frame(inPython+"tracemalloc.py", ""), frame("train.py", "")}, true},
		"one that is installed":                          {[]snapshot.Frame{frame("/x/site-packages/pympler/muppy.py", "get_objects"), frame("train.py", "")}, true},
		"Go's":                                           {[]snapshot.Frame{frame(inGo+"compress/flate/deflate.go", "compress/flate.NewWriter"), frame(inGo+"runtime/pprof/proto.go", "runtime/pprof.newProfileBuilder"), frame("/app/main.go", "main.save")}, true},
		"Go's by its address":                            {[]snapshot.Frame{frame(inGo+"runtime/pprof/proto.go", "runtime/pprof.(*profileBuilder).emitLocation"), frame(inGo+"net/http/server.go", "net/http.(*conn).serve")}, true},
		"a function that it calls":                       {[]snapshot.Frame{frame("train.py", "step"), frame("/x/site-packages/memory_profiler.py", "wrapper"), frame("train.py", "main")}, false},
		"a library below a function it calls":            {[]snapshot.Frame{frame("/x/site-packages/torch/nn/linear.py", "forward"), frame("/x/site-packages/memory_profiler.py", "wrapper"), frame("train.py", "main")}, false},
		"a module of the user's of such a name":          {[]snapshot.Frame{frame("/app/tracemalloc.py", "keep"), frame("train.py", "main")}, false},
		"a package of the user's of such a name":         {[]snapshot.Frame{frame("/app/pprof/keep.go", "example.com/app/pprof.Keep"), frame("/app/main.go", "main.main")}, false},
		"an allocation beside a profiler's calls":        {[]snapshot.Frame{frame("/x/site-packages/torch/cuda/memory.py", "caching_allocator_alloc"), frame("train.py", "main")}, false},
		"labels for a profile, and what runs under them": {[]snapshot.Frame{frame(inGo+"bytes/buffer.go", "bytes.growSlice"), frame("/app/main.go", "main.step"), frame(inGo+"runtime/pprof/runtime.go", "runtime/pprof.Do"), frame("/app/main.go", "main.main")}, false},
		"a program that was handed over":                 {[]snapshot.Frame{frame("<string>", "f"), frame("/x/site-packages/memory_profiler.py", "exec_with_profiler")}, false},
		"a program that memray runs":                     {[]snapshot.Frame{frame(inPython+"runpy.py", "run_path"), frame("/x/site-packages/memray/commands/run.py", "run")}, false},
		"nothing":                                        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := byProfiler(c.frames); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestToLookIsNoLeak judges a program of which each snapshot leaves some bytes of the
// profiler's, and one that keeps all that the profiler gave it.
func TestToLookIsNoLeak(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want Verdict
	}{
		"a few bytes each time":  {72, Clean},
		"all that was ever seen": {20_000, Leak},
	} {
		t.Run(name, func(t *testing.T) {
			run := noisy(1, 9, 120, 10, func(t int) int { return t / 10 })
			stacks := run.Snapshots[0].Stacks
			looks := stacks.InternFrames([]snapshot.Frame{{File: inPython + "tracemalloc.py", Line: 558}, {File: "train.py", Line: 99}})
			for _, s := range run.Snapshots {
				b := &s.Blocks
				last := b.Len() - 1
				b.Stack[last] = looks
				b.Size[last] = snapshot.Bytes(c.size) * snapshot.Bytes(b.Count[last])
				b.Requested[last] = b.Size[last]
			}
			r, err := Analyze(run, ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			f := findingOf(r, stacks.Hash(looks))
			if f == nil || f.Verdict != c.want {
				t.Errorf("got %+v", f)
			}
		})
	}
}
