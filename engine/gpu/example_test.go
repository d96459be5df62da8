package gpu_test

import (
	"errors"
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/gpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// What runs on the processor runs on a GPU: the driver and the kernels are others.
func Example() {
	driver, err := gpu.Open()
	if err != nil {
		fmt.Println("no GPU:", err) // such as: there is no Vulkan driver here
		return
	}
	device := mem.NewDevice(driver, mem.Options{})
	o := engine.NewEager(gpu.New(driver), device)
	err = engine.Run(o, func(*engine.Scope) error {
		fmt.Println(o.Floats(o.MatMul(o.Full(2, 1, 3), o.Full(1, 3, 1))))
		return o.Sync()
	})
	if err := errors.Join(err, device.Close(), driver.Close()); err != nil {
		fmt.Println(err)
	}
}
