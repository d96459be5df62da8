package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

func TestHeadlinesOfNativePrograms(t *testing.T) {
	start := []snapshot.Frame{
		{Function: "__libc_start_call_main", File: "../sysdeps/nptl/libc_start_call_main.h", Line: 58},
		{Function: "__libc_start_main_impl", File: "../csu/libc-start.c", Line: 360}, {Function: "_start", Line: -1},
	}
	for _, c := range []struct {
		name   string
		frames []snapshot.Frame
		want   int
	}{
		{"the innermost line of the program's source", []snapshot.Frame{{Function: "remember", File: "./leak.c", Line: 10}, {Function: "main", File: "./leak.c", Line: 30}}, 0},
		{"behind the C++ library", []snapshot.Frame{
			{Function: "operator new(unsigned long)", File: "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", Line: -1},
			{Function: "std::vector<int>::reserve", File: "/usr/include/c++/12/bits/vector.tcc", Line: 80},
			{Function: "Cache::add", File: "src/cache.cpp", Line: 7},
		}, 2},
		{"a place in the program's binary, where no source is known", []snapshot.Frame{
			{Function: "libjemalloc.so.2+0xa2630", File: "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", Line: -1},
			{Function: "leak+0x119c", File: "/home/user/leak", Line: -1},
		}, 1},
		{"none in what starts a program", nil, -1},
		{"none in PyTorch's backward pass", []snapshot.Frame{{Function: "c10::cuda::malloc", Line: -1}, {Function: "AddmmBackward0::apply", File: "engine.cpp", Line: -1}, {Function: "clone", Line: -1}}, -1},
		{"the script's, where there is one", []snapshot.Frame{{Function: "f", File: "ext/kernel.cu", Line: 3}, {Function: "train", File: "train.py", Line: 4}}, 1},
		{"none where Python's own library calls native code", []snapshot.Frame{{Function: "f", File: "ext/kernel.cu", Line: 3}, {Function: "run", File: "/usr/lib/python3.11/threading.py", Line: 4}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Headline(append(c.frames, start...)); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
