package mem_test

import (
	"runtime"
	"testing"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

func TestHostMemoryIsAlignedZeroedAndWritable(t *testing.T) {
	h := mem.Host()
	m, err := h.Allocate(1<<20 + 1)
	if err != nil {
		t.Fatal(err)
	}
	host := m.(*mem.HostMemory)
	data := host.Bytes()
	if host.Address()%64 != 0 || m.Size() != 1<<20+1 || int64(len(data)) != m.Size() {
		t.Errorf("%d bytes of %d at %#x", len(data), m.Size(), host.Address())
	}
	for i, v := range data {
		if v != 0 {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
	data[0], data[len(data)-1] = 1, 2
	if err := h.Free(m); err != nil {
		t.Error(err)
	}
	if host.Bytes() != nil || host.Size() != 0 {
		t.Error("freed memory is still reachable")
	}
	if err := h.Free(m); err == nil {
		t.Error("a double free passes")
	}
	if err := h.Free(bareMemory(1)); err == nil {
		t.Error("another driver's memory is freed")
	}
}

func TestBlocksOfOneSegmentDoNotShareBytes(t *testing.T) {
	d := newDevice(t, mem.Options{})
	var storages []*mem.Storage
	bytes := func(s *mem.Storage) []byte {
		b := s.Buffer()
		return b.Memory.(*mem.HostMemory).Bytes()[b.Offset : b.Offset+b.Size]
	}
	for i := range 100 {
		s := alloc(t, d, int64(i*100))
		for j := range bytes(s) {
			bytes(s)[j] = byte(i)
		}
		storages = append(storages, s)
	}
	for i, s := range storages {
		for j, v := range bytes(s) {
			if v != byte(i) {
				t.Fatalf("byte %d of block %d is %d", j, i, v)
			}
		}
	}
}

func TestTheProcessItselfShowsWhatTheHostDeviceHolds(t *testing.T) {
	if runtime.GOOS != "linux" {
		if got := mem.Host().Used(); got != snapshot.Unknown {
			t.Errorf("got %s, without a source for it", got)
		}
		return
	}
	const size, slack = 256 * snapshot.MiB, 64 * snapshot.MiB
	d := newDevice(t, mem.Options{})
	before := d.Meters().Driver
	s := alloc(t, d, int64(size))
	held := d.Meters()
	if grown := held.Driver - before; grown < size-slack || held.Driver < held.Reserved {
		t.Errorf("the process grew by %s to %s for a segment of %s", grown, held.Driver, size)
	}
	s.Release(user)
	if cached := d.Meters(); cached.Driver < held.Driver-slack {
		t.Errorf("a freed block is not cached: the process went from %s to %s", held.Driver, cached.Driver)
	}
	if d.Trim() != size {
		t.Error("the segment was not trimmed")
	}
	if after := d.Meters().Driver; after > before+slack {
		t.Errorf("after the trim the process holds %s, %s before", after, before)
	}
}
