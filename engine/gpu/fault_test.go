//go:build linux && (amd64 || arm64) && !static

package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/mem"
)

// refuse makes a function of the driver return a result until undo is called.
func refuse(function *uintptr, r result) (undo func()) {
	driver := *function
	// Vulkan's functions have at most as many arguments, and C lets more be ignored.
	*function = purego.NewCallback(func(_, _, _, _ uintptr) uintptr { return uintptr(uint32(r)) })
	return func() { *function = driver }
}

func TestADriverWithoutMemoryIsAnErrorThatNamesTheTopSites(t *testing.T) {
	for name, r := range map[string]result{
		"the device has no more":               outOfDeviceMemory,
		"the host has no more":                 outOfHostMemory,
		"as many segments as the driver takes": tooManyObjects,
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			o, _ := eager(t, d, mem.Options{})
			held := o.Full(1, 1<<20)
			defer held.Release()
			undo := refuse(&d.allocateMemory, r)
			err := caught(func() { o.Full(1, 1<<23) })
			undo()
			var full *mem.OutOfMemoryError
			if !errors.As(err, &full) || len(full.Top) != 1 || !errors.Is(err, r) {
				t.Errorf("got %v", err)
			}
			o.Full(1, 1<<23).Release()
		})
	}
}

// TestADeviceLostInMidStepEndsTheStep, at its first, second and third batch of kernels,
// and leaves nothing live but what was before.
func TestADeviceLostInMidStepEndsTheStep(t *testing.T) {
	for batches := range 3 {
		t.Run(fmt.Sprintf("after %d batches", batches), func(t *testing.T) {
			d := open(t)
			training := newTrainer(t, New(d), d, "transformer", 2)
			training.step(t)
			autodiff.ZeroGrad(training.parameters...)
			before := training.device.Meters().Allocated
			driver, submitted := d.queueSubmit, 0
			d.queueSubmit = purego.NewCallback(func(queue handle, count uintptr, submits *submitInfo, fence handle) uintptr {
				if submitted++; submitted > batches {
					r := deviceLost
					return uintptr(uint32(r))
				}
				return call(driver, queue, count, uintptr(unsafe.Pointer(submits)), fence)
			})
			_, err := training.try()
			d.queueSubmit = driver
			var lost *mem.DeviceLostError
			if !errors.As(err, &lost) || len(lost.Top) == 0 {
				t.Fatalf("got %v", err)
			}
			autodiff.ZeroGrad(training.parameters...)
			if after := training.device.Meters().Allocated; after != before {
				t.Errorf("%s are allocated after the step, %s before", after, before)
			}
		})
	}
}

func TestALostDeviceIsAnErrorThatNamesTheTopSites(t *testing.T) {
	for name, function := range map[string]func(*Device) *uintptr{
		"when work is handed over": func(d *Device) *uintptr { return &d.queueSubmit },
		"when it is waited for":    func(d *Device) *uintptr { return &d.waitForFences },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			o, device := eager(t, d, mem.Options{})
			a := o.Full(1, 1<<20)
			defer a.Release()
			if err := o.Sync(); err != nil {
				t.Fatal(err)
			}
			undo := refuse(function(d), deviceLost)
			o.Add(a, a).Release()
			err := o.Sync()
			undo()
			if name == "when it is waited for" { // it is not really lost, and still works
				b := &d.queue.batches[d.queue.last%depth]
				call(d.waitForFences, d.handle, 1, uintptr(unsafe.Pointer(&b.fence)), 1, waitForever)
			}
			var lost *mem.DeviceLostError
			if !errors.As(err, &lost) || len(lost.Top) != 1 || !strings.Contains(err.Error(), "vulkan 0: ") {
				t.Fatalf("got %v", err)
			}
			// It stays lost, nothing waits, and the memory can be given back.
			b := o.Mul(a, a)
			if err := caught(func() { o.Floats(b) }); !errors.Is(err, mem.ErrDeviceLost) {
				t.Errorf("a download of the lost device gives %v", err)
			}
			b.Release()
			if device.Trim(); device.Meters().Active != device.Meters().Allocated {
				t.Error("blocks are pending on a lost device")
			}
		})
	}
}
