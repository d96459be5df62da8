// Package mem is the engine's caching allocator, the one place where device
// memory is taken and given back.
package mem

import "github.com/memdiag/memdiag/snapshot"

// Memory is one segment as its driver gave it. Kernels of that driver's backend
// know the concrete type; nobody else looks inside. If it has a method
// Address() uint64 as well, snapshots show its blocks there, else at made-up
// addresses that are unique in the device.
type Memory interface {
	Size() int64 // bytes
}

// Driver takes segments from a device and gives them back. It keeps nothing:
// what is freed is gone. If it has a method Capacity() snapshot.Bytes as well, that is
// the limit that snapshots and errors show where Options have none.
type Driver interface {
	Kind() snapshot.DeviceKind
	Name() string
	Allocate(size int64) (Memory, error)
	Free(Memory) error
	// Used is the driver's or the process's own figure of memory in use, read
	// apart from any bookkeeping of ours; snapshot.Unknown where there is none.
	Used() snapshot.Bytes
}

// Queued is a Driver whose device lags behind the program: when a block is freed,
// work that was queued before may still use it. Work is counted in tickets, which
// ascend from 1.
type Queued interface {
	Driver
	// Queued is the ticket of the work that was queued last; 0 before any.
	Queued() uint64
	// Finished is a ticket that the device is known to be done with, and with all
	// before it. It rises when somebody waits, not by time alone: so that programs that
	// do the same take the same memory.
	Finished() uint64
	// Finish waits until the device is done with a ticket, or is lost; Finished is not
	// below the ticket afterwards.
	Finish(ticket uint64)
}

// Buffer is a block's piece of a segment: what kernels read and write.
type Buffer struct {
	Memory Memory
	Offset int64 // bytes
	Size   int64 // bytes
}
