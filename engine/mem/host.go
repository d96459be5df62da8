package mem

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/memdiag/memdiag/snapshot"
)

// Host returns the driver of the machine's own memory. Its segments lie outside
// the Go heap, so that the collector neither sees nor moves them, and what is
// freed goes back to the operating system at once.
func Host() Driver { return host{} }

type host struct{}

func (host) Kind() snapshot.DeviceKind { return snapshot.CPU }

func (host) Name() string { return runtime.GOARCH + " host" }

func (host) Allocate(size int64) (Memory, error) {
	data, err := mapMemory(size)
	if err != nil {
		return nil, fmt.Errorf("host: %s of memory were refused: %w", snapshot.Bytes(size), err)
	}
	return &HostMemory{data}, nil
}

func (host) Free(m Memory) error {
	h, ok := m.(*HostMemory)
	if !ok {
		return fmt.Errorf("host: asked to free a %T, which another driver gave", m)
	}
	if h.data == nil {
		return fmt.Errorf("host: a segment was freed twice")
	}
	data := h.data
	h.data = nil
	return unmapMemory(data)
}

// Used is what the process has resident, its Go heap and its code included.
func (host) Used() snapshot.Bytes { return resident() }

// Resident is what the process has in memory, by the operating system's figure;
// snapshot.Unknown where it tells none.
func Resident() snapshot.Bytes { return resident() }

// HostMemory is a segment of the machine's own memory. It starts zeroed, on an
// address that is a multiple of 64.
type HostMemory struct{ data []byte }

// Size is the length in bytes.
func (m *HostMemory) Size() int64 { return int64(len(m.data)) }

// Address is where the segment begins in the process; 0 once it was freed.
func (m *HostMemory) Address() uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.data))))
}

// Bytes is the segment itself, not a copy; nil once it was freed. A kernel works
// on Bytes()[Offset:Offset+Size] of its Buffer.
func (m *HostMemory) Bytes() []byte { return m.data }
