package frame

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
			{Function: "leak+0x119b", File: "/home/user/leak", Line: -1},
		}, 1},
		{"a place in a binary with a path of its own", []snapshot.Frame{{Function: "libc.so.6+0xa2630", File: "./libc.so.6", Line: -1}, {Function: "leak+0x119b", File: "./leak", Line: -1}}, 1},
		{"the line, not what starts the program or is linked into it", []snapshot.Frame{{Function: "leak+0x10a0", File: "/home/user/leak", Line: -1}, {Function: "main", File: "leak.c", Line: 30}, {Function: "leak+0x10b0", File: "/home/user/leak", Line: -1}}, 1},
		{"valgrind tells C++'s headers without a path", []snapshot.Frame{
			{Function: "allocate", File: "new_allocator.h", Line: 137},
			{Function: "_M_create_node<int const&>", File: "map.h", Line: 611},
			{Function: "std::vector<double, std::allocator<double> >::_M_default_append(unsigned long)", File: "vector.h", Line: 650},
			{Function: "void std::vector<int>::_M_realloc_insert<int>(int&&)", File: "vector.h", Line: 440},
			{Function: "shared_ptr<std::allocator<void>, int>", File: "shared_ptr.h", Line: 464},
			{Function: "operator[]", File: "unordered_map.h", Line: 980},
			{Function: "Cache::put(int)", File: "cache.h", Line: 5},
			{Function: "main", File: "main.cc", Line: 7},
		}, 6},
		{"a mangled name is nobody's namespace", []snapshot.Frame{
			{Function: "_ZN5Cache3putEi", File: "cache.cc", Line: 5},
			{Function: "main", File: "main.cc", Line: 7},
		}, 0},
		{"the line of a Rust program, behind Rust's own crates", []snapshot.Frame{
			{Function: "<alloc::alloc::Global as core::alloc::Allocator>::allocate", File: "alloc/src/alloc.rs", Line: 429},
			{Function: "alloc::raw_vec::RawVecInner<A>::with_capacity_in", File: "src/raw_vec/mod.rs", Line: 433},
			{Function: "panic_unwind::__rust_start_panic", File: `panic_unwind\src\lib.rs`, Line: 103},
			{Function: "<u8 as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", File: "src/vec/spec_from_elem.rs", Line: 53},
			{Function: "<leak::Kept as core::iter::Extend>::extend", File: "src/main.rs", Line: 4},
			{Function: "leak::main", File: "src/main.rs", Line: 8},
		}, 4},
		{"behind crates that were downloaded, of which some paths are cut", []snapshot.Frame{
			{Function: "gimli::read::abbrev::Abbreviations::parse", File: "src/read/abbrev.rs", Line: 207},
			{Function: "gimli::read::dwarf::Unit<R>::new", File: "gimli-0.28.0/src/dwarf.rs", Line: 5},
			{Function: "rayon_core::registry::Registry::new", File: "src/registry.rs", Line: 255},
			{Function: "rayon_core::current_num_threads", File: `C:\Users\u\.cargo\registry\src\index\rayon-core-1.12.0\src\lib.rs`, Line: 138},
			{Function: "<app::Row as rayon_core::Job>::run", File: "rayon-core-1.12.0/src/job.rs", Line: 9},
			{Function: "app::solve", File: "app/src/solve.rs", Line: 6},
			{Function: "app::main", File: "app/src/main.rs", Line: 6},
		}, 5},
		{"behind crates of which no path is whole, where the program's own are", []snapshot.Frame{
			{Function: "winit::platform_impl::window::create", File: `platform_impl\windows\window.rs`, Line: 716},
			{Function: "<rayon::iter::map::Map<I,F> as rayon::iter::ParallelIterator>::drive", File: "src/iter/map.rs", Line: 49},
			{Function: "engine::mesh::load", File: "engine/src/mesh.rs", Line: 4},
			{Function: "app::day::solve", File: "src/day/solve.rs", Line: 6},
			{Function: "app::main", File: "src/main.rs", Line: 6},
		}, 2},
		{"a module of the program's, deep below its folder", []snapshot.Frame{
			{Function: "alloc::alloc::alloc", File: "alloc/src/alloc.rs", Line: 95},
			{Function: "app::day::solve", File: "src/day/solve.rs", Line: 6},
			{Function: "app::main", File: "src/main.rs", Line: 6},
		}, 1},
		{"a crate that is cut, where nothing tells which is the program's", []snapshot.Frame{{Function: "app::day::solve", File: "src/day/solve.rs", Line: 6}}, 0},
		{"behind the C library and the loader, of which valgrind tells no paths", []snapshot.Frame{
			{Function: "mmap", File: "mmap64.c", Line: 52},
			{Function: "sysmalloc", File: "malloc.c", Line: 2590},
			{Function: "_dl_map_object_from_fd", File: "dl-load.c", Line: 1287},
			{Function: "plug", File: "plugins.c", Line: 12},
			{Function: "(below main)", File: "libc-start.c", Line: 226},
		}, 3},
		{"none in what only the loader asked for", []snapshot.Frame{
			{Function: "???", File: "/usr/lib/libstdc++.so.6.0.30", Line: -1},
			{Function: "call_init.part.0", File: "dl-init.c", Line: 70},
			{Function: "(below main)", File: "main.c", Line: 1},
		}, -1},
		{"behind heaptrack's own", []snapshot.Frame{
			{Function: "operator()<char const*, int>", File: "/build/heaptrack/src/track/heaptrack_preload.cpp", Line: 61},
			{Function: "load", File: "/home/user/app/load.cpp", Line: 35},
		}, 1},
		{"none in a file of no known kind", []snapshot.Frame{{Function: "f", File: "leak", Line: -1}}, -1},
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

func TestFramesOfGosLibraries(t *testing.T) {
	for _, c := range []struct {
		name  string
		frame snapshot.Frame
		want  int
	}{
		{"a package of Go's", snapshot.Frame{Function: "sync.(*WaitGroup).Go.func1", File: "sync/waitgroup.go", Line: 239}, -1},
		{"a package of Go's in a folder", snapshot.Frame{Function: "net/http.(*conn).serve", File: "net/http/server.go", Line: 2}, -1},
		{"a generic function of Go's", snapshot.Frame{Function: "slices.Grow[go.shape.[]example.com/app/model.Row,go.shape.int]", File: "slices/slices.go", Line: 2}, -1},
		{"a module that is depended on", snapshot.Frame{Function: "golang.org/x/net/http2.(*Transport).RoundTrip", File: "golang.org/x/net@v0.30.0/http2/transport.go", Line: 2}, -1},
		{"Go of Debian", snapshot.Frame{Function: "runtime.allocm", File: "/usr/lib/go-1.17/src/runtime/proc.go", Line: 1875}, -1},
		{"Go of Windows", snapshot.Frame{Function: "database/sql.(*DB).conn", File: "C:/Program Files/Go/src/database/sql/sql.go", Line: 1423}, -1},
		{"Go of Homebrew", snapshot.Frame{Function: "bufio.NewWriterSize", File: "/opt/homebrew/Cellar/go/1.22.2/libexec/src/bufio/bufio.go", Line: 596}, -1},
		{"a module that Go has in itself", snapshot.Frame{Function: "vendor/golang.org/x/net/http/httpguts.init", File: "/usr/lib/go-1.17/src/vendor/golang.org/x/net/http/httpguts/guts.go", Line: 28}, -1},
		{"a generic function of Go's, made for the program", snapshot.Frame{Function: "main.init.OnceFunc.func1", File: "/usr/local/go/src/sync/oncefunc.go", Line: 33}, -1},
		{"one made for another package of Go's, trimmed", snapshot.Frame{Function: "hash/crc32.init.OnceFunc.func4.1", File: "sync/oncefunc.go", Line: 33}, -1},
		{"Go where its folder has another name", snapshot.Frame{Function: "net/http.(*conn).serve", File: "/opt/toolchain/src/net/http/server.go", Line: 2}, -1},
		{"a vendored module", snapshot.Frame{Function: "github.com/a/b.New", File: "/home/user/app/vendor/github.com/a/b/new.go", Line: 2}, -1},
		{"the main function of a test", snapshot.Frame{Function: "main.main", File: "_testmain.go", Line: 42}, -1},
		{"a program below GOPATH", snapshot.Frame{Function: "sync-photos/image.Load", File: "/home/user/go/src/sync-photos/image/load.go", Line: 2}, 0},
		{"a program of vendors", snapshot.Frame{Function: "shop/vendor.List", File: "/home/user/shop/vendor/list.go", Line: 2}, 0},
		{"the program's main package", snapshot.Frame{Function: "main.main", File: "example.com/app/main.go", Line: 2}, 0},
		{"a package of the program's with a name of Go's", snapshot.Frame{Function: "example.com/app/sync.Pull", File: "sync/pull.go", Line: 2}, 0},
		{"a module without a dot", snapshot.Frame{Function: "trainer/model.New", File: "trainer/model/new.go", Line: 2}, 0},
		{"a file without a folder", snapshot.Frame{Function: "main.remember", File: "leak.go", Line: 23}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Headline([]snapshot.Frame{c.frame}); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
