package frame

import (
	"regexp"
	"strings"
)

// packageFolders are the folders of installed packages of Python and modules of Go.
var packageFolders = []string{"site-packages/", "dist-packages/", "/pkg/mod/"}

// libraryPaths mark files of installed or standard code by a part of their path.
var libraryPaths = append([]string{
	"/lib/python3",
	"torch/nn/", "torch/optim/", "torch/utils/", "torch/autograd/", "torch/_",
	"/torchinductor", "/.triton/cache/", // what compilers write
	"/debugpy/",
}, packageFolders...)

// windowsLibrary is the place of Python's standard library on Windows.
var windowsLibrary = regexp.MustCompile(`(?i)/python3\d*/lib/`)

// nativeSources are the endings of sources of native programs.
var nativeSources = []string{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".cu", ".cuh", ".rs", ".m", ".mm", ".f90", ".zig"}

// systemPaths mark sources and binaries of the C and C++ libraries, of the loader, and of installed packages.
var systemPaths = []string{"/usr/", "/lib/", "/lib64/", "../sysdeps/", "../csu/", "./nptl/", "./csu/", "./malloc/", "./stdlib/", "./elf/", "/glibc-2.", "libstdc++", "/rustc/", "/.cargo/", ".so.", "/heaptrack_preload.cpp"}

var (
	// standardName may follow a result type without arguments of its own. Names that begin like this belong to the implementation,
	// except mangled ones, _Z….
	standardName   = regexp.MustCompile(`^(\w+[ &*]+)?(std::|__gnu_cxx::|_[A-Y_])`)
	standardHeader = regexp.MustCompile(`^(stl_\w+|new_allocator|alloc_traits|allocated_ptr|basic_string|forward_list|hashtable_policy|unordered_(map|set)|unique_ptr|shared_ptr(_base)?|std_(function|thread))\.h$`)
	// glibcFile is a source of the C library's. Valgrind gives no path for it either.
	glibcFile = regexp.MustCompile(`^(dl-[\w-]+|rtld|libc-start|libc_start_call_main|pthread_create|allocatestack|malloc|morecore|mmap(64)?|s?brk|iofopen|filedoalloc|fileops|genops|iogetdelim|loadlocale|vfprintf-internal|cxa_atexit)\.[ch]$`)
)

// rustCrates are Rust's own, and its profiler's.
var rustCrates = []string{"alloc", "core", "std", "panic_unwind", "dhat"}

// goRoots are the first elements of the paths of Go's own packages.
var goRoots = strings.Fields("archive arena bufio bytes cmp compress container context crypto database debug embed encoding errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime simd slices sort strconv strings structs sync syscall testing text time unicode unique unsafe vendor weak")

// goRoot is the place of Go: /usr/lib/go-1.17/src, C:/Program Files/Go/src, Cellar/go/1.22.2/libexec/src.
var goRoot = regexp.MustCompile(`(?i)/go[^/]*/(?:[^/]+/libexec/)?src/(.+)`)

// vendored is the copy of a module in the program's folder: its path begins with a host.
var vendored = regexp.MustCompile(`(^|/)vendor/[\w-]+(\.[\w-]+)+/`)

// engineRoom is memdiag's own engine, which is a library to the programs that
// train on it; its workloads are such programs.
const (
	engineRoom     = "engine/"
	workloadRoom   = "engine/workload/"
	memdiagPackage = "github.com/memdiag/memdiag/"
)

// profilerModules are Python's modules that a program calls to look at memory, as parts of
// their files' paths. Those that run the program, such as memray, are below all of its calls.
var profilerModules = []string{
	"/tracemalloc.py", "/memory_profiler.py", "/pympler/", "/objgraph.py", "/guppy/", "/psutil/",
	"/torch/profiler/", "/torch/cuda/_memory_viz.py", "/jax/_src/profiler.py",
}

// profilerPackages are Go's.
var profilerPackages = []string{"runtime/pprof", "net/http/pprof"}

// tensors are the names of functions of libraries of tensors in Go, C++ and Rust.
var tensors = regexp.MustCompile(`(^|[ <(&*])(at|c10|torch|tensorflow|xla|mlx|tch|burn(_\w+)?|candle_\w+)::|(^|/)ggml_|^gorgonia\.org/|^github\.com/memdiag/memdiag/engine/`)

// noisyNames and noisyFiles are parts of the functions and files of native calls that are in every stack: the unwinder, the
// interpreter's own calls, and a program's start. PyTorch's viewer hides the same ones.
var (
	noisyNames = []string{
		"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "__libc_start", "lang_start",
		"PyEval_", "PyObject_", "PyFunction_", "PyMethod_", "PyVectorcall", "method_vectorcall", "PyRun_", "Py_Run", "Py_Bytes",
	}
	noisyFiles = []string{
		"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c",
		"Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h",
	}
)

// memrayRun is the file of memray that runs a program.
const memrayRun = "/memray/commands/run.py"

// between are parts of the functions from an operation to the allocator: dispatch, shape
// inference, and the making of an empty result.
var between = []string{
	"Allocator", "StorageImpl", "at::detail::", "::empty", "new_empty", ").empty", "malloc",
	"wrap_kernel_functor", "wrapper_CUDA", "wrapper_Composite", "::redispatch", "create_out", "set_output", "at::meta::",
	"structured_", "TensorIteratorBase", "autograd::VariableType::", "runtime.", "operator new",
}

// allocatorRoom is the allocator of memdiag's engine.
const allocatorRoom = "engine/mem/"

// rustsOwn are the functions of the crates that come with Rust, which allocate for whoever
// calls them: "alloc::raw_vec::finish_grow".
var rustsOwn = regexp.MustCompile(`^[<&]*(alloc|core|std)::`)

// runners are parts of the paths of code that calls a program's functions, whatever they do: it runs tests, or tasks in processes and
// threads, or a step with Lightning's plugin for numeric precision.
var runners = []string{"/_pytest/", "/pluggy/", "/unittest/", "/multiprocessing/", "/concurrent/futures/", "/plugins/precision/"}

// machinery are parts of the paths of frameworks' files through which any call may go: code that runs a compiled graph, the queue of a
// loader's batches, and JAX's entry to each call, which filters tracebacks and handles a cache miss.
var machinery = []string{
	"/torch/_ops.py", "/torch/_compile.py", "/torch/_dynamo/", "/torch/_functorch/", "/torch/utils/data/",
	"/jax/_src/traceback_util.py", "/jax/_src/pjit.py", "/jax/_src/api.py",
}

// wrappers are what libraries call the function that a decorator of theirs puts around another one.
var wrappers = strings.Fields("wrapper _wrapper inner_wrapper wrapped _wrapped wrapped_fn wrapped_func inner _inner _fn decorate_context")

// dispatcher are parts of the functions by which PyTorch finds an operation's kernel.
var dispatcher = []string{"c10::impl::", "wrap_kernel_functor"}

// clones are the suffixes that compilers add to copies of a function.
var clones = regexp.MustCompile(`\.(llvm\.\d+|localalias(\.\d+)?|cold(\.\d+)?|constprop\.\d+|isra\.\d+|part\.\d+)`)

// literal is the name of a function without one of its own: "more.func2" or
// "more.func2.1" of Go, and "<lambda>".
var literal = regexp.MustCompile(`\.func\d+(\.\d+)*$|<lambda>$`)

// eventLoops are the functions, each with its file, that call what is due.
var eventLoops = [][2]string{{"/asyncio/base_events.py", "_run_once"}, {"/trio/_core/_run.py", "unrolled_run"}}
