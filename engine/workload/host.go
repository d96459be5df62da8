package workload

import "github.com/memdiag/memdiag/engine/mem"

// hostHeap is memory of the host.
type hostHeap struct{ mem.Driver }

func (hostHeap) Name() string { return "host heap" }

// newHostAccount is a device on which a program accounts for what it keeps on the
// host; see Hosted. Its index tells it from a host that trains.
func newHostAccount() *mem.Device { return mem.NewDevice(hostHeap{mem.Host()}, mem.Options{Index: 1}) }
