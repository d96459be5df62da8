//go:build !amd64 && !arm64

package mem

import "runtime"

// callers stores the return addresses of the calling goroutine's frames,
// innermost first, and returns how many there were room for.
func callers(pcs []uintptr) int { return runtime.Callers(2, pcs) }
