package frame

import (
	"path"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// IsGo reports whether a frame is of Go.
func IsGo(f snapshot.Frame) bool { return strings.HasSuffix(f.File, ".go") }

// isGoLibrary reports whether a frame is of Go's own packages, of a module that is depended on or
// vendored, or of the main function that go test writes. Go lies anywhere, and with
// -trimpath nowhere: "sync/waitgroup.go" of sync.(*WaitGroup).Go. If a folder of the program's
// bears the name of a package of Go's, its own package has a longer path.
func isGoLibrary(f snapshot.Frame) bool {
	if !IsGo(f) {
		return false
	}
	file := Slashed(f.File)
	if strings.Contains(file, "@v") || vendored.MatchString(file) || path.Base(file) == "_testmain.go" {
		return true
	}
	// A generic function is of the package that it is made for: main.init.OnceFunc.func1.
	if m := goRoot.FindStringSubmatch(file); m != nil && isGosPackage(m[1]) {
		return true
	}
	pkg := goPackage(f.Function)
	return isGosPackage(pkg) && (isGosPackage(file) || strings.HasSuffix(path.Dir(file), "/src/"+pkg))
}

// goPackage is the path of a Go function's package: "net/http" of
// "net/http.(*conn).serve".
func goPackage(function string) string {
	function, _, _ = strings.Cut(function, "[") // type arguments have paths of their own
	from := strings.LastIndexByte(function, '/') + 1
	name, _, _ := strings.Cut(function[from:], ".")
	return function[:from] + name
}

// isGosPackage reports whether the path of a package, or of a file in it, is one of Go's own.
func isGosPackage(path string) bool {
	root, _, _ := strings.Cut(path, "/")
	return slices.Contains(goRoots, root)
}
