package frame

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

const (
	inPython = "/usr/lib/python3.12/"
	inGo     = "/usr/local/go/src/"
)

func TestHeadlineIsTheInnermostFrameOfTheUser(t *testing.T) {
	for _, c := range []struct {
		name   string
		frames []snapshot.Frame
		want   int
	}{
		{"native and installed frames are passed over", []snapshot.Frame{{Function: "at::empty", File: "??"}, {Function: "linear", File: "/usr/lib/python3/site-packages/torch/nn/functional.py"}, {Function: "forward", File: "model.py"}, {Function: "main", File: "train.py"}}, 2},
		{"the engine is a library to its workloads", []snapshot.Frame{{Function: "engine.Conv2d", File: "engine/ops.go"}, {Function: "workload.Forward", File: "engine/workload/pyramid.go"}}, 1},
		{"a folder engine of a program in Python is the program's", []snapshot.Frame{{Function: "linear", File: "/x/site-packages/torch/nn/functional.py"}, {Function: "step", File: "engine/trainer.py"}, {Function: "main", File: "train.py"}}, 1},
		{"the engine is a library to other modules", []snapshot.Frame{{Function: "engine.Conv2d", File: "github.com/memdiag/memdiag/engine/nn/conv.go"}, {Function: "main.step", File: "train.go"}}, 1},
		{"a stack of native frames has none", []snapshot.Frame{{Function: "AddmmBackward0::apply", File: "??"}}, -1},
		{"code that a compiler wrote is none", []snapshot.Frame{{Function: "call", File: "/tmp/torchinductor_ann/ab/cab.py"}, {Function: "launcher", File: "/home/ann/.triton/cache/ab/launch.py"}, {Function: "forward", File: "model.py"}}, 2},
		{"Python's own library on Windows is none", []snapshot.Frame{{Function: "deepcopy", File: `C:\Python311\Lib\copy.py`}, {Function: "keep", File: `C:\work\lib\ema.py`}}, 1},
		{"a file with a Windows path is one", []snapshot.Frame{{Function: "forward", File: `C:\work\model.py`}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Headline(c.frames); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhatAProfilerAllocatesIsToldFromWhatRunsUnderIt(t *testing.T) {
	at := func(file, function string) snapshot.Frame {
		return snapshot.Frame{File: file, Function: function, Line: 7}
	}
	for name, c := range map[string]struct {
		frames []snapshot.Frame
		want   bool
	}{
		"a call of the program's":                        {[]snapshot.Frame{at(inPython+"tracemalloc.py", ""), at("train.py", "")}, true},
		"a thread of its own":                            {[]snapshot.Frame{at(inPython+"tracemalloc.py", "")}, true},
		"through the language's library":                 {[]snapshot.Frame{at(inPython+"linecache.py", ""), at(inPython+"tracemalloc.py", ""), at("train.py", "")}, true},
		"one that is installed":                          {[]snapshot.Frame{at("/x/site-packages/pympler/muppy.py", "get_objects"), at("train.py", "")}, true},
		"Go's":                                           {[]snapshot.Frame{at(inGo+"compress/flate/deflate.go", "compress/flate.NewWriter"), at(inGo+"runtime/pprof/proto.go", "runtime/pprof.newProfileBuilder"), at("/app/main.go", "main.save")}, true},
		"Go's by its address":                            {[]snapshot.Frame{at(inGo+"runtime/pprof/proto.go", "runtime/pprof.(*profileBuilder).emitLocation"), at(inGo+"net/http/server.go", "net/http.(*conn).serve")}, true},
		"a function that it calls":                       {[]snapshot.Frame{at("train.py", "step"), at("/x/site-packages/memory_profiler.py", "wrapper"), at("train.py", "main")}, false},
		"a library below a function it calls":            {[]snapshot.Frame{at("/x/site-packages/torch/nn/linear.py", "forward"), at("/x/site-packages/memory_profiler.py", "wrapper"), at("train.py", "main")}, false},
		"a module of the user's of such a name":          {[]snapshot.Frame{at("/app/tracemalloc.py", "keep"), at("train.py", "main")}, false},
		"a package of the user's of such a name":         {[]snapshot.Frame{at("/app/pprof/keep.go", "example.com/app/pprof.Keep"), at("/app/main.go", "main.main")}, false},
		"an allocation beside a profiler's calls":        {[]snapshot.Frame{at("/x/site-packages/torch/cuda/memory.py", "caching_allocator_alloc"), at("train.py", "main")}, false},
		"labels for a profile, and what runs under them": {[]snapshot.Frame{at(inGo+"bytes/buffer.go", "bytes.growSlice"), at("/app/main.go", "main.step"), at(inGo+"runtime/pprof/runtime.go", "runtime/pprof.Do"), at("/app/main.go", "main.main")}, false},
		"a program that was handed over":                 {[]snapshot.Frame{at("<string>", "f"), at("/x/site-packages/memory_profiler.py", "exec_with_profiler")}, false},
		"a program that memray runs":                     {[]snapshot.Frame{at(inPython+"runpy.py", "run_path"), at("/x/site-packages/memray/commands/run.py", "run")}, false},
		"nothing":                                        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ByProfiler(c.frames); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAnOperationIsNoFunctionThatAllocatesForAll(t *testing.T) {
	own := snapshot.Frame{Function: "app::main", File: "src/main.rs", Line: 44}
	for _, c := range []struct {
		name   string
		frames []snapshot.Frame
		want   string
	}{
		{"of Rust's crates", []snapshot.Frame{
			{Function: "alloc::raw_vec::finish_grow", File: "alloc/src/raw_vec.rs", Line: 781},
			{Function: "<&alloc::vec::Vec<T> as core::ops::Index>::index", File: "/r/alloc/src/vec/mod.rs", Line: 9},
			{Function: "<core::iter::Map<I,F> as core::iter::Iterator>::next", File: "src/iter/map.rs", Line: 9},
			{Function: "gimli::read::abbrev::Abbreviations::insert", File: "gimli-0.31.1/src/read/abbrev.rs", Line: 238},
			own,
		}, "gimli::read::abbrev::Abbreviations::insert"},
		{"of C++", []snapshot.Frame{{Function: "operator new(unsigned long)", File: "new_op.cc", Line: 50}, {Function: "QVector::realloc", File: "/usr/include/qvector.h", Line: 479}, own}, "QVector::realloc"},
		{"but of a program that has no other", []snapshot.Frame{{Function: "alloc::alloc::alloc", File: "alloc/src/alloc.rs", Line: 95}}, "alloc::alloc::alloc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.frames[Operation(c.frames)].Function; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestNoiseIsNoFunctionOfSuchAName(t *testing.T) {
	for function, want := range map[string]bool{
		"_start": true, "std::rt::lang_start": true, "PyEval_EvalFrame": true, "train_start": false, "Loader::on_start": false,
	} {
		if got := Noise(snapshot.Frame{Function: function, Line: -1}); got != want {
			t.Errorf("%s: %t, want %t", function, got, want)
		}
	}
}
