//go:build linux && (amd64 || arm64) && !static

package gpu

import (
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// tellBudget has the driver tell figures as VK_EXT_memory_budget has them, which Mesa's
// software driver of Debian 12 does not: what it gave and did not get back, counted at
// its own door. They stand in the second heap, beside other figures in the first.
func tellBudget(d *Device, budget uint64) {
	p := d.physical
	instance := *p.instance // the process has one, which other tests use
	p.instance, p.budget, p.heap = &instance, true, 1
	given, total := make(map[handle]uint64), uint64(0)
	allocate, free, describe := d.allocateMemory, d.freeMemory, p.instance.getPhysicalDeviceMemoryProperties2
	d.allocateMemory = purego.NewCallback(func(device handle, info *memoryAllocateInfo, _ uintptr, memory *handle) uintptr {
		r := call(allocate, device, uintptr(unsafe.Pointer(info)), 0, uintptr(unsafe.Pointer(memory)))
		if check(r) == nil {
			given[*memory] = info.size
			total += info.size
		}
		return r
	})
	d.freeMemory = purego.NewCallback(func(device, memory handle, _ uintptr) uintptr {
		total -= given[memory]
		delete(given, memory)
		return call(free, device, memory, 0)
	})
	p.instance.getPhysicalDeviceMemoryProperties2 = purego.NewCallback(func(device handle, properties *memoryProperties2) uintptr {
		call(describe, device, uintptr(unsafe.Pointer(properties)))
		if figures := (*memoryBudgetProperties)(properties.next); figures != nil && figures.structure == typeMemoryBudgetProperties {
			figures.budget[0], figures.usage[0] = 1, 2
			figures.budget[1], figures.usage[1] = budget, total
		}
		return 0
	})
}

func TestTheBudgetsFigureIsWhatIsReserved(t *testing.T) {
	d := open(t)
	tellBudget(d, 3<<30)
	agree(t, d, snapshot.GiB/4, 0)
}

func TestABudgetIsInSnapshotsAndInTheList(t *testing.T) {
	d := open(t)
	tellBudget(d, 3<<30)
	device := mem.NewDevice(d, mem.Options{})
	block, err := device.Alloc(96<<20, snapshot.OwnedByUser)
	if err != nil {
		t.Fatal(err)
	}
	if got := mem.Take(snapshot.Mark{}, device).Devices[0].Meters.Driver; got != 96*snapshot.MiB {
		t.Errorf("the snapshot has %s of the driver's, want the 96 MiB that it gave", got)
	}
	if i := d.Info(); i.Used != 96*snapshot.MiB || i.Budget != 3*snapshot.GiB {
		t.Errorf("the list has %s used of %s", i.Used, i.Budget)
	}
	block.Release(snapshot.OwnedByUser)
	if err := device.Close(); err != nil {
		t.Error(err)
	}
	if got := d.Used(); got != 0 {
		t.Errorf("%s are used at the end", got)
	}
}
