//go:build (amd64 || arm64) && !static

package gpu

import (
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// loaderName is the library through which all drivers are reached.
const loaderName = "libvulkan.so.1"

const loaderHint = "LD_LIBRARY_PATH and ldconfig say which " + loaderName + " is taken; Debian and Ubuntu have it in libvulkan1"

// lookup opens Vulkan's loader and returns the address of the function that finds
// all others. The library stays open: drivers keep threads in it.
func lookup() (getInstanceProcAddr uintptr, err error) {
	// The C library remembers for each thread why it could not load, and purego asks in a second call.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	library, err := purego.Dlopen(loaderName, purego.RTLD_NOW|purego.RTLD_LOCAL)
	switch {
	case err == nil:
	case strings.HasPrefix(err.Error(), loaderName+": cannot open shared object file: No such file"):
		return 0, &Unusable{Reason: "there is no Vulkan loader here (" + loaderName + ")", hint: driverHint}
	default:
		return 0, &Unusable{Reason: "the Vulkan loader cannot be loaded: " + err.Error(), hint: loaderHint}
	}
	if getInstanceProcAddr, err = purego.Dlsym(library, "vkGetInstanceProcAddr"); err != nil {
		return 0, &Unusable{Reason: loaderName + " is no Vulkan loader: " + err.Error(), hint: loaderHint}
	}
	return getInstanceProcAddr, nil
}

// call calls a C function. Pointers are converted in the call itself, as in
// call(f, uintptr(unsafe.Pointer(&x))): the directive keeps x alive and moves it to
// the heap, where no growing stack can take it along. Without it the driver writes
// to where x has been, and vet sees nothing.
//
//go:uintptrescapes
func call(function uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(function, args...)
	return r
}

// returnFreed has the C library give memory of 1 MiB and more back to the operating
// system when it is freed. A software driver takes segments from malloc, which from
// the first large one that was freed on keeps those up to 32 MiB for itself: then
// hundreds of MiB that were given back stay the process's.
func returnFreed() {
	if mallopt, err := purego.Dlsym(purego.RTLD_DEFAULT, "mallopt"); err == nil {
		threshold := int32(-3) // M_MMAP_THRESHOLD
		call(mallopt, uintptr(uint32(threshold)), 1<<20)
	}
}
