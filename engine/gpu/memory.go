package gpu

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/memdiag/memdiag/engine/mem"
)

// memory is one allocation and the buffer that covers it.
type memory struct {
	device *Device
	memory handle // 0 once it was freed
	buffer handle
	size   int64
}

// Size is the bytes that can be used.
func (m *memory) Size() int64 { return m.size }

// errNoMemory is a device without memory of a kind that every device has.
var errNoMemory = errors.New("no memory of the device serves a buffer")

// allocate takes memory with these properties for a buffer of this usage.
func (d *Device) allocate(size int64, usage, properties uint32) (*memory, error) {
	m := &memory{device: d, size: size}
	info := &bufferCreateInfo{chained: chained{structure: typeBufferCreateInfo}, size: uint64(size), usage: usage}
	if err := check(call(d.createBuffer, d.handle, uintptr(unsafe.Pointer(info)), 0, uintptr(unsafe.Pointer(&m.buffer)))); err != nil {
		return nil, lost(fmt.Errorf("vkCreateBuffer: %w", err))
	}
	need := &memoryRequirements{}
	call(d.getBufferMemoryRequirements, d.handle, m.buffer, uintptr(unsafe.Pointer(need)))
	kind, ok := d.physical.memoryType(need.types, properties)
	if !ok {
		m.free()
		return nil, errNoMemory
	}
	take := &memoryAllocateInfo{chained: chained{structure: typeMemoryAllocateInfo}, size: need.size, memoryType: kind}
	if err := check(call(d.allocateMemory, d.handle, uintptr(unsafe.Pointer(take)), 0, uintptr(unsafe.Pointer(&m.memory)))); err != nil {
		m.free()
		return nil, lost(fmt.Errorf("vkAllocateMemory: %w", err))
	}
	if err := check(call(d.bindBufferMemory, d.handle, m.buffer, m.memory, 0)); err != nil {
		m.free()
		return nil, lost(fmt.Errorf("vkBindBufferMemory: %w", err))
	}
	return m, nil
}

// free gives back what was taken, as far as it was.
func (m *memory) free() {
	d := m.device
	if m.buffer != 0 {
		call(d.destroyBuffer, d.handle, m.buffer, 0)
	}
	if m.memory != 0 {
		call(d.freeMemory, d.handle, m.memory, 0)
	}
	m.buffer, m.memory = 0, 0
}

// mapped returns host-visible memory as the program sees it, until it is freed.
func (m *memory) mapped() ([]byte, error) {
	d := m.device
	var at unsafe.Pointer
	if err := check(call(d.mapMemory, d.handle, m.memory, 0, uintptr(m.size), 0, uintptr(unsafe.Pointer(&at)))); err != nil {
		return nil, lost(fmt.Errorf("vkMapMemory: %w", err))
	}
	return unsafe.Slice((*byte)(at), m.size), nil
}

// populate touches every page.
func (m *memory) populate() error {
	bytes, err := m.mapped()
	if err != nil {
		return err
	}
	for at := 0; at < len(bytes); at += os.Getpagesize() {
		bytes[at] = 0
	}
	call(m.device.unmapMemory, m.device.handle, m.memory)
	return nil
}

// lost adds mem.ErrDeviceLost to an error that means it.
func lost(err error) error {
	if errors.Is(err, deviceLost) {
		return fmt.Errorf("%w: %w", mem.ErrDeviceLost, err)
	}
	return err
}
