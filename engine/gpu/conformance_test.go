package gpu

import (
	"os"
	"testing"

	"github.com/memdiag/memdiag/engine/enginetest"
)

// open opens a device for a test. Without one the test is skipped, in CI it fails:
// .ci/run installs a software driver there.
func open(t testing.TB) *Device {
	t.Helper()
	d, err := Open()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// tolerance is the error that is allowed, relative to the larger of 1 and the value:
// Vulkan asks for less of exponentials and powers than processors give.
const tolerance = 2e-5

func TestKernels(t *testing.T) {
	enginetest.RunKernels(t, func(t *testing.T) enginetest.Backend {
		d := open(t)
		return enginetest.Backend{Kernels: New(d), Driver: d, Tolerance: tolerance}
	})
}
