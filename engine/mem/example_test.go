package mem_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Every block knows where it was allocated and who holds it. What is released
// stays in the device's segments until Trim.
func ExampleDevice() {
	device := mem.NewDevice(mem.Host(), mem.Options{Limit: 4 << 20})
	block, err := device.Alloc(3000, snapshot.OwnedByUser)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := device.Meters()
	fmt.Println(m.Requested, m.Allocated, m.Reserved)

	block.Retain(snapshot.OwnedByCache)
	block.Release(snapshot.OwnedByUser)
	fmt.Println(block.Alive(), block.Owners().Names())
	block.Release(snapshot.OwnedByCache)
	fmt.Println(block.Alive(), device.Trim())

	_, err = device.Alloc(1<<30, snapshot.OwnedByUser)
	fmt.Println(err)
	fmt.Println(device.Close())
	// Output:
	// 2.93 KiB 3.00 KiB 2.00 MiB
	// true [cache]
	// false 2.00 MiB
	// cpu 0: out of memory: 1.00 GiB were asked for, the limit is 4.00 MiB; requested 0 B, allocated 0 B, active 0 B, reserved 0 B
	// <nil>
}
