package diff

import (
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Headline is the index of the innermost frame of the user's own code: not of a
// framework, an installed package, the language's library or native code. It is
// -1 where the stack has none.
func Headline(frames []snapshot.Frame) int {
	return slices.IndexFunc(frames, func(f snapshot.Frame) bool { return !isLibrary(f) })
}

// libraryPaths mark files of installed or standard code by a part of their path.
var libraryPaths = []string{
	"site-packages/", "dist-packages/", "/lib/python3", "/usr/local/go/src/", "/pkg/mod/",
	"torch/nn/", "torch/optim/", "torch/utils/", "torch/autograd/", "torch/_",
}

// engineRooms are memdiag's own engine, which is a library to the programs that
// train on it; its workloads are such programs.
const (
	engineRoom     = "engine/"
	workloadRoom   = "engine/workload/"
	memdiagPackage = "github.com/memdiag/memdiag/"
)

func isLibrary(f snapshot.Frame) bool {
	file := strings.ReplaceAll(f.File, `\`, "/")
	switch {
	case !strings.HasSuffix(file, ".py") && !strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, ".ipynb") && !strings.HasPrefix(file, "/tmp/ipykernel"):
		return true // C++ frames have "??", "" or a bare .cpp; "<frozen …>" and "<string>" are not a place to edit
	case strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), engineRoom):
		return !strings.HasPrefix(strings.TrimPrefix(file, memdiagPackage), workloadRoom)
	}
	return slices.ContainsFunc(libraryPaths, func(p string) bool { return strings.Contains(file, p) })
}
