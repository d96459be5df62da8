package enginetest

import (
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// NewEager returns operations on a fresh host device, and the device. The test
// fails if blocks are still live when it ends.
func NewEager(t testing.TB) (*engine.Eager, *mem.Device) {
	t.Helper()
	d := mem.NewDevice(mem.Host(), mem.Options{})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine.NewEager(cpu.New(0), d), d
}

// Live counts a device's live blocks.
func Live(d *mem.Device) int64 {
	var n int64
	for _, s := range d.Counters(nil) {
		n += s.Count
	}
	return n
}

// Owners counts a device's live blocks by the set of classes that hold them.
func Owners(d *mem.Device) map[snapshot.Owners]int {
	count := make(map[snapshot.Owners]int)
	s := mem.Take(snapshot.Mark{}, d)
	for i, state := range s.Blocks.State {
		if state == snapshot.Live {
			count[s.Blocks.Owners[i]]++
		}
	}
	return count
}
