//go:build amd64 || arm64

package mem

// callers stores the return addresses of the calling goroutine's frames,
// innermost first, beginning with its caller's, and returns how many there
// were room for. It follows frame pointers, which Go keeps on these
// architectures: a twelfth of the cost of runtime.Callers, which decodes tables.
// Inlined calls are within their frame's address, wrappers have frames;
// symbolise expands the ones and drops the others.
func callers(pcs []uintptr) int { return walk(&pcs[0], len(pcs)) }

//go:noescape
func walk(pcs *uintptr, n int) int
