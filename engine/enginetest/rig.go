package enginetest

import (
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
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
