// Package gpu computes on a graphics processor, through Vulkan and without cgo: a
// driver of its memory for package mem, and the engine's kernels on it.
//
// A Device takes segments from its driver one allocation each, so that nobody hides an
// allocator under ours. Work is queued in batches; what the program frees meanwhile is
// pending, as mem.Queued has it. Nothing is loaded before Open or List.
package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// deviceFunctions are what is called on an open device.
type deviceFunctions struct {
	destroyDevice, getDeviceQueue,
	allocateMemory, freeMemory, mapMemory, unmapMemory,
	createBuffer, destroyBuffer, getBufferMemoryRequirements, bindBufferMemory,
	createShaderModule, destroyShaderModule, createComputePipelines, destroyPipeline,
	createDescriptorSetLayout, destroyDescriptorSetLayout, createPipelineLayout, destroyPipelineLayout,
	createDescriptorPool, destroyDescriptorPool, allocateDescriptorSets, updateDescriptorSets,
	createCommandPool, destroyCommandPool, allocateCommandBuffers, beginCommandBuffer, endCommandBuffer,
	cmdBindPipeline, cmdBindDescriptorSets, cmdDispatch, cmdPipelineBarrier, cmdCopyBuffer, cmdFillBuffer,
	createFence, destroyFence, resetFences, waitForFences, queueSubmit uintptr
}

func (f *deviceFunctions) names() map[string]*uintptr {
	return map[string]*uintptr{
		"vkDestroyDevice": &f.destroyDevice, "vkGetDeviceQueue": &f.getDeviceQueue,
		"vkAllocateMemory": &f.allocateMemory, "vkFreeMemory": &f.freeMemory,
		"vkMapMemory": &f.mapMemory, "vkUnmapMemory": &f.unmapMemory,
		"vkCreateBuffer": &f.createBuffer, "vkDestroyBuffer": &f.destroyBuffer,
		"vkGetBufferMemoryRequirements": &f.getBufferMemoryRequirements, "vkBindBufferMemory": &f.bindBufferMemory,
		"vkCreateShaderModule": &f.createShaderModule, "vkDestroyShaderModule": &f.destroyShaderModule,
		"vkCreateComputePipelines": &f.createComputePipelines, "vkDestroyPipeline": &f.destroyPipeline,
		"vkCreateDescriptorSetLayout":  &f.createDescriptorSetLayout,
		"vkDestroyDescriptorSetLayout": &f.destroyDescriptorSetLayout,
		"vkCreatePipelineLayout":       &f.createPipelineLayout, "vkDestroyPipelineLayout": &f.destroyPipelineLayout,
		"vkCreateDescriptorPool": &f.createDescriptorPool, "vkDestroyDescriptorPool": &f.destroyDescriptorPool,
		"vkAllocateDescriptorSets": &f.allocateDescriptorSets, "vkUpdateDescriptorSets": &f.updateDescriptorSets,
		"vkCreateCommandPool": &f.createCommandPool, "vkDestroyCommandPool": &f.destroyCommandPool,
		"vkAllocateCommandBuffers": &f.allocateCommandBuffers,
		"vkBeginCommandBuffer":     &f.beginCommandBuffer, "vkEndCommandBuffer": &f.endCommandBuffer,
		"vkCmdBindPipeline": &f.cmdBindPipeline, "vkCmdBindDescriptorSets": &f.cmdBindDescriptorSets,
		"vkCmdDispatch": &f.cmdDispatch, "vkCmdPipelineBarrier": &f.cmdPipelineBarrier,
		"vkCmdCopyBuffer": &f.cmdCopyBuffer, "vkCmdFillBuffer": &f.cmdFillBuffer,
		"vkCreateFence": &f.createFence, "vkDestroyFence": &f.destroyFence, "vkResetFences": &f.resetFences,
		"vkWaitForFences": &f.waitForFences, "vkQueueSubmit": &f.queueSubmit,
	}
}

// Device is an open device: the mem.Driver of its memory, which keeps nothing for
// itself, and what the kernels of New run on. Ranks may share it. Beside segments it
// holds a fixed amount from Open to Close, less than Overhead. All methods but Close
// are safe for concurrent use.
type Device struct {
	deviceFunctions
	physical *physicalDevice
	handle   handle
	queue    queue
	segments atomic.Int64 // taken and not given back
	kernels  atomic.Uint32
}

var _ mem.Queued = (*Device)(nil)

// Open opens the machine's best device: a real one before a software driver. The
// error is an *Unusable if there is none.
func Open() (*Device, error) { return OpenNamed("") }

// OpenNamed is Open for the device that which names: by its place in List's order,
// from 0, or by a part of its name in any case; "" for the best.
func OpenNamed(which string) (*Device, error) {
	i, err := load()
	if err != nil {
		return nil, err
	}
	devices, err := i.physicalDevices()
	if err != nil {
		return nil, err
	}
	p, err := choose(devices, which)
	if err != nil {
		return nil, err
	}
	d := &Device{physical: p}
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", d.Name(), err), d.Close())
	}
	return d, nil
}

func (d *Device) open() error {
	p := d.physical
	if d.software() {
		returnFreed()
	}
	priority := float32(1)
	queue := &deviceQueueCreateInfo{chained: chained{structure: typeDeviceQueueCreateInfo}, family: p.family, count: 1, priorities: &priority}
	info := &deviceCreateInfo{chained: chained{structure: typeDeviceCreateInfo}, queueCount: 1, queues: queue}
	if p.budget {
		name := cstring(budgetExtension)
		info.extensionCount, info.extensions = 1, &name
	}
	if err := check(call(p.instance.createDevice, p.handle, uintptr(unsafe.Pointer(info)), 0, uintptr(unsafe.Pointer(&d.handle)))); err != nil {
		return fmt.Errorf("vkCreateDevice: %w", err)
	}
	for name, f := range d.names() {
		var err error
		if *f, err = find(p.instance.getDeviceProcAddr, d.handle, name); err != nil {
			return err
		}
	}
	return d.queue.open(d)
}

// Close waits for the device and gives back all that it took for itself. It is an
// error if segments were not given back before; they are gone all the same.
func (d *Device) Close() error {
	if d.destroyDevice != 0 {
		d.queue.close()
		call(d.destroyDevice, d.handle, 0)
	}
	if n := d.segments.Load(); n > 0 {
		return fmt.Errorf("%s: closed with %d segments that were not given back", d.Name(), n)
	}
	return nil
}

// Kind is snapshot.Vulkan.
func (d *Device) Kind() snapshot.DeviceKind { return snapshot.Vulkan }

// Name is the device's own, such as "NVIDIA H200".
func (d *Device) Name() string { return gostring(d.physical.properties.name[:]) }

// Info describes the device, with the driver's figures now.
func (d *Device) Info() Info { return d.physical.info() }

// Used is what the driver says that this process uses of the heap that segments come
// from, what other Devices of the process took included. The memory of a software
// driver is the process's own; where such a driver tells nothing, it is what the
// process has resident.
func (d *Device) Used() snapshot.Bytes {
	if _, used, ok := d.physical.figures(); ok {
		return snapshot.Bytes(used)
	}
	if d.software() {
		return mem.Resident()
	}
	return snapshot.Unknown
}

// Capacity is what the device has of the memory that segments come from. A software
// driver's figure is made up, and it is Unknown there.
func (d *Device) Capacity() snapshot.Bytes {
	if d.software() {
		return snapshot.Unknown
	}
	return d.physical.info().Memory
}

func (d *Device) software() bool { return typeOf(d.physical) == Software }

// Queued is the ticket of the work that was queued last; see mem.Queued.
func (d *Device) Queued() uint64 { return d.queue.queued() }

// Finished is the last ticket that was waited for; see mem.Queued.
func (d *Device) Finished() uint64 { return d.queue.done() }

// Finish waits for a ticket's work; see mem.Queued.
func (d *Device) Finish(ticket uint64) { d.queue.finish(ticket) }

// Allocate takes a segment: one allocation of the driver's with one buffer over it.
// The error has mem.ErrDeviceLost in its chain if the device is lost.
func (d *Device) Allocate(size int64) (mem.Memory, error) {
	if limit := d.physical.maxAllocation; limit > 0 && uint64(size) > limit {
		return nil, fmt.Errorf("%s: one allocation has at most %s on this device, not %s", d.Name(), snapshot.Bytes(limit), snapshot.Bytes(size))
	}
	m, err := d.allocate(size, bufferStorage|bufferTransferSource|bufferTransferTarget, memoryDeviceLocal)
	if err != nil {
		return nil, fmt.Errorf("%s: %s were refused: %w", d.Name(), snapshot.Bytes(size), err)
	}
	if d.software() {
		// Pages that were never touched are not the process's yet, and its own figure
		// would not know of the segment.
		if err := m.populate(); err != nil {
			m.free()
			return nil, fmt.Errorf("%s: %s: %w", d.Name(), snapshot.Bytes(size), err)
		}
	}
	d.segments.Add(1)
	return m, nil
}

// Free gives a segment back, once the device is done with what was queued.
func (d *Device) Free(m mem.Memory) error {
	own, ok := m.(*memory)
	switch {
	case !ok || own.device != d:
		return fmt.Errorf("%s: asked to free a %T, which another driver gave", d.Name(), m)
	case own.memory == 0:
		return fmt.Errorf("%s: a segment was freed twice", d.Name())
	}
	d.queue.finish(d.queue.queued())
	own.free()
	d.segments.Add(-1)
	return nil
}
