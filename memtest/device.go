package memtest

import (
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// device is a device of the engine by its counters.
type device struct{ of *mem.Device }

// read counts what was allocated without a stack by what the counters lack, so that a
// device that tracks none is judged as well.
func (d device) read() map[mem.SiteID]held {
	sum := make(map[mem.SiteID]held)
	rest := int64(d.of.Meters().Allocated)
	for _, s := range d.of.Counters(nil) {
		sum[s.Site] = held{s.Count, int64(s.Bytes)}
		rest -= int64(s.Bytes)
	}
	if rest > 0 {
		sum[mem.NoSite] = held{bytes: rest}
	}
	return sum
}

func (d device) frames(at mem.SiteID) []snapshot.Frame { return d.of.Stack(at) }
