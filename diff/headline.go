package diff

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// Headline is the index of the innermost frame of the user's own code: not of a
// framework, an installed package, the language's library or native code. Where
// the program is native, as no frame is of Python or Go, it is the innermost
// that is not of the system's libraries. It is -1 where the stack has none.
func Headline(frames []snapshot.Frame) int { return slices.IndexFunc(frames, Own(frames)) }

// Own tells frames of the user's own code, in a stack of these frames, from those
// of libraries.
func Own(frames []snapshot.Frame) func(snapshot.Frame) bool {
	if slices.ContainsFunc(frames, isInterpreted) {
		return func(f snapshot.Frame) bool { return !isLibrary(f) }
	}
	if slices.ContainsFunc(frames, isNativeSource) {
		installed, own := crates(frames)
		return func(f snapshot.Frame) bool {
			crate := crateOf(f)
			isForeign := slices.Contains(installed, crate) || crate != "" && len(own) > 0 && !slices.Contains(own, crate) && !ofCrate.MatchString(slashed(f.File))
			return isNativeSource(f) && !isForeign // what has no line beside them starts the program, or is linked into it
		}
	}
	return isBinary
}

// isNativeSource holds for a line of a native program; PyTorch's C++ frames have none.
func isNativeSource(f snapshot.Frame) bool {
	file := slashed(f.File)
	return f.Line > 0 && slices.Contains(nativeSources, strings.ToLower(path.Ext(file))) &&
		!isRustLibrary(f) && !isSystems(file) && !isStandardCPP(f.Function, file) && !glibcFile.MatchString(file) && f.Function != "(below main)"
}

// isRustLibrary holds for functions of Rust's own crates, of its profiler, and of crates that
// were downloaded: their folder ends in a version.
func isRustLibrary(f snapshot.Frame) bool {
	crate := crateOf(f)
	return crate != "" && (versioned.MatchString(slashed(f.File)) || slices.Contains([]string{"alloc", "core", "std", "panic_unwind", "dhat"}, crate))
}

// versioned is a source of a crate from a registry, "rayon-core-1.12.0/src/lib.rs".
var versioned = regexp.MustCompile(`(?:^|/)([\w-]+)-\d+\.\d+\.\d+[^/]*/src/.*\.rs$`)

// ofCrate is a source whose path has the folder of its crate.
var ofCrate = regexp.MustCompile(`^(?:/|[A-Za-z]:/|[^/]+/src/)`)

// crates are those of which a frame has a versioned source, and those that are known to be
// the program's: they have main, or a source below a folder without a version. Paths of others
// tell nothing: the crate dhat cuts them to their last elements, massif to the last, and
// heaptrack has those of functions that are not inlined as the compiler was given them.
func crates(frames []snapshot.Frame) (installed, own []string) {
	for _, f := range frames {
		crate := crateOf(f)
		if crate == "" {
			continue
		}
		if m := versioned.FindStringSubmatch(slashed(f.File)); m != nil {
			installed = append(installed, strings.ReplaceAll(m[1], "-", "_"))
		} else if isNativeSource(f) && (f.Function == crate+"::main" || ofCrate.MatchString(slashed(f.File))) {
			own = append(own, crate)
		}
	}
	return installed, own
}

// crateOf is the crate of a function of Rust, "" for one of another language. A method of a trait
// for a type without a path, "<u8 as alloc::vec::SpecFromElem>::from_elem", is the trait's.
func crateOf(f snapshot.Frame) string {
	if !strings.HasSuffix(f.File, ".rs") {
		return ""
	}
	name := strings.TrimLeft(f.Function, "<&")
	if of, trait, ok := strings.Cut(name, " as "); ok && !strings.Contains(of, "::") {
		name = trait
	}
	crate, _, _ := strings.Cut(name, "::")
	return crate
}

// isStandardCPP holds for functions of C++'s library, which valgrind places in headers
// without a path, inlined ones without their namespace: "void std::vector<int>::_M_realloc_insert<int>(int&&)",
// "_M_create_node<int>", "allocate" in new_allocator.h.
func isStandardCPP(function, file string) bool {
	return standardName.MatchString(function) || standardHeader.MatchString(file)
}

var (
	// standardName may stand behind a result that has no arguments of its own. Names that begin
	// so are the implementation's, but for mangled ones, _Z….
	standardName   = regexp.MustCompile(`^(\w+[ &*]+)?(std::|__gnu_cxx::|_[A-Y_])`)
	standardHeader = regexp.MustCompile(`^(stl_\w+|new_allocator|alloc_traits|allocated_ptr|basic_string|forward_list|hashtable_policy|unordered_(map|set)|unique_ptr|shared_ptr(_base)?|std_(function|thread))\.h$`)
	// glibcFile is a source of the C library's, of which valgrind tells no path either.
	glibcFile = regexp.MustCompile(`^(dl-[\w-]+|rtld|libc-start|libc_start_call_main|pthread_create|allocatestack|malloc|morecore|mmap(64)?|s?brk|iofopen|filedoalloc|fileops|genops|iogetdelim|loadlocale|vfprintf-internal|cxa_atexit)\.[ch]$`)
)

func isSystems(file string) bool {
	return slices.ContainsFunc(systemPaths, func(part string) bool { return strings.Contains(file, part) })
}

// isBinary holds for a frame of which no more is known than the binary, which is no library.
func isBinary(f snapshot.Frame) bool {
	file := slashed(f.File)
	if isSystems(file) {
		return false
	}
	binary := path.Base(file) // which pprof calls as it was given
	return f.Line <= 0 && path.Ext(file) == "" && (strings.HasPrefix(file, "/") || binary != "." && strings.HasPrefix(f.Function, binary+"+0x"))
}

var nativeSources = []string{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".cu", ".cuh", ".rs", ".m", ".mm", ".f90", ".zig"}

// systemPaths mark sources and binaries of the C and C++ libraries, of the
// loader, and of what is installed.
var systemPaths = []string{"/usr/", "/lib/", "/lib64/", "../sysdeps/", "../csu/", "./nptl/", "./csu/", "./malloc/", "./stdlib/", "./elf/", "/glibc-2.", "libstdc++", "/rustc/", "/.cargo/", ".so.", "/heaptrack_preload.cpp"}

// libraryPaths mark files of installed or standard code by a part of their path.
var libraryPaths = []string{
	"site-packages/", "dist-packages/", "/lib/python3", "/pkg/mod/",
	"torch/nn/", "torch/optim/", "torch/utils/", "torch/autograd/", "torch/_",
	"/torchinductor", "/.triton/cache/", // what compilers write
	"/debugpy/",
}

// windowsLibrary is where Python's own library lies on Windows.
var windowsLibrary = regexp.MustCompile(`(?i)/python3\d*/lib/`)

// isGoLibrary holds for frames of Go's own packages, of modules that are depended on, of
// vendored ones, and of the main function that go test writes. Go lies anywhere, and with
// -trimpath nowhere: "sync/waitgroup.go" of sync.(*WaitGroup).Go. A folder of the program's
// that bears the name of a package of Go's is told by its own package, which has a longer path.
func isGoLibrary(f snapshot.Frame) bool {
	file := slashed(f.File)
	if path.Ext(file) != ".go" {
		return false
	}
	if strings.Contains(file, "@v") || vendored.MatchString(file) || path.Base(file) == "_testmain.go" {
		return true
	}
	// A generic function is of the package that it is made for: main.init.OnceFunc.func1.
	if m := goRoot.FindStringSubmatch(file); m != nil && cause.IsGosPackage(m[1]) {
		return true
	}
	pkg := goPackage(f.Function)
	return cause.IsGosPackage(pkg) && (cause.IsGosPackage(file) || strings.HasSuffix(path.Dir(file), "/src/"+pkg))
}

// goRoot is where Go lies: /usr/lib/go-1.17/src, C:/Program Files/Go/src, Cellar/go/1.22.2/libexec/src.
var goRoot = regexp.MustCompile(`(?i)/go[^/]*/(?:[^/]+/libexec/)?src/(.+)`)

// vendored is the copy of a module in the program's folder: its path begins with a host.
var vendored = regexp.MustCompile(`(^|/)vendor/[\w-]+(\.[\w-]+)+/`)

// goPackage is the path of a Go function's package: "net/http" of
// "net/http.(*conn).serve".
func goPackage(function string) string {
	function, _, _ = strings.Cut(function, "[") // type arguments have paths of their own
	from := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[from:], ".")
	return function[:from] + name
}

// engineRooms are memdiag's own engine, which is a library to the programs that
// train on it; its workloads are such programs.
const (
	engineRoom     = "engine/"
	workloadRoom   = "engine/workload/"
	memdiagPackage = "github.com/memdiag/memdiag/"
)

// isInterpreted holds for frames of Python and Go.
func isInterpreted(f snapshot.Frame) bool {
	file := slashed(f.File)
	return strings.HasSuffix(file, ".py") || strings.HasSuffix(file, ".go") || strings.HasSuffix(file, ".ipynb") || strings.HasPrefix(file, "/tmp/ipykernel")
}

func isLibrary(f snapshot.Frame) bool {
	file := slashed(f.File)
	switch {
	case !isInterpreted(f):
		return true // C++ frames have "??", "" or a bare .cpp; "<frozen …>" and "<string>" are not a place to edit
	case strings.HasSuffix(file, ".go") && strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), engineRoom):
		return !strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), workloadRoom)
	}
	return isGoLibrary(f) || slices.ContainsFunc(libraryPaths, func(p string) bool { return strings.Contains(file, p) }) || windowsLibrary.MatchString(file)
}
