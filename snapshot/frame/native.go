package frame

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// isNativeSource reports whether a frame is a line of a native program; PyTorch's C++ frames have none.
func isNativeSource(f snapshot.Frame) bool {
	file := Slashed(f.File)
	return f.Line > 0 && slices.Contains(nativeSources, strings.ToLower(path.Ext(file))) &&
		!isRustLibrary(f) && !isSystems(file) && !isStandardCPP(f.Function, file) && !glibcFile.MatchString(file) && f.Function != "(below main)"
}

// isRustLibrary reports whether a function is of Rust's own crates, of its profiler, or of a crate
// that was downloaded: its folder ends in a version.
func isRustLibrary(f snapshot.Frame) bool {
	crate := crateOf(f)
	return crate != "" && (versioned.MatchString(Slashed(f.File)) || slices.Contains(rustCrates, crate))
}

// versioned is a source of a crate from a registry, "rayon-core-1.12.0/src/lib.rs".
var versioned = regexp.MustCompile(`(?:^|/)([\w-]+)-\d+\.\d+\.\d+[^/]*/src/.*\.rs$`)

// ofCrate matches a source path that includes the folder of its crate.
var ofCrate = regexp.MustCompile(`^(?:/|[A-Za-z]:/|[^/]+/src/)`)

// crates are those with a versioned source among the frames, and those that are known to be
// the program's: they have main, or a source below a folder without a version. Paths of others
// say nothing: the crate dhat cuts them to their last elements, massif to the last, and
// heaptrack has those of functions that are not inlined as the compiler was given them.
func crates(frames []snapshot.Frame) (installed, own []string) {
	for _, f := range frames {
		crate := crateOf(f)
		if crate == "" {
			continue
		}
		if m := versioned.FindStringSubmatch(Slashed(f.File)); m != nil {
			installed = append(installed, strings.ReplaceAll(m[1], "-", "_"))
		} else if isNativeSource(f) && (f.Function == crate+"::main" || ofCrate.MatchString(Slashed(f.File))) {
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

// isStandardCPP reports whether a function is of C++'s library. Valgrind places those in headers
// without a path, inlined ones without their namespace: "void std::vector<int>::_M_realloc_insert<int>(int&&)",
// "_M_create_node<int>", "allocate" in new_allocator.h.
func isStandardCPP(function, file string) bool {
	return standardName.MatchString(function) || standardHeader.MatchString(file)
}

func isSystems(file string) bool { return containsAny(file, systemPaths) }

// isBinary reports whether nothing but the binary is known of a frame, which is no library.
func isBinary(f snapshot.Frame) bool {
	file := Slashed(f.File)
	if isSystems(file) {
		return false
	}
	binary := path.Base(file) // which pprof calls as it was given
	return f.Line <= 0 && path.Ext(file) == "" && (strings.HasPrefix(file, "/") || binary != "." && strings.HasPrefix(f.Function, binary+"+0x"))
}

// IsNativeMain reports whether a frame is the main function of a native program.
func IsNativeMain(f snapshot.Frame) bool {
	return !Interpreted(f) && (f.Function == "main" || strings.HasSuffix(f.Function, "::main"))
}
