//go:build !linux || !(amd64 || arm64) || static

package gpu

// lookup finds nothing: either no loader was tried on this system, or the build
// gave it up so as to need no library at all.
func lookup() (getInstanceProcAddr uintptr, err error) {
	return 0, &Unusable{Reason: "this build has no GPU backend", hint: "there is one on Linux, amd64 and arm64, when built without the tag static"}
}

func call(uintptr, ...uintptr) uintptr { panic("nothing was loaded that could be called") }

func returnFreed() {}
