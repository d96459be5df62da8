package mem

import (
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Witness waits for the proof that a block is lost. The zero Witness waits for
// nothing.
type Witness struct{ cleanup runtime.Cleanup }

// Watch has the collector bear witness: if it takes the handle before Stop, the
// reference that the handle held can never be released, so the block is lost
// and shows in Device.Lost. It frees nothing. The handle may refer to the
// storage, but no storage refers to a handle. A handle must hold a pointer:
// the collector keeps tiny objects without one together, and alive together.
func Watch[T any](handle *T, s *Storage) Witness {
	return Witness{runtime.AddCleanup(handle, (*Storage).lose, s)}
}

// Stop ends the watch: the handle no longer holds a reference. The caller keeps
// the handle alive until then.
func (w Witness) Stop() { w.cleanup.Stop() }

// lose notes that a handle was collected with its reference.
func (s *Storage) lose() {
	d := s.device
	d.mu.Lock()
	defer d.mu.Unlock()
	if !s.Alive() {
		return
	}
	b := s.row()
	if b.lost { // by another of its handles
		return
	}
	b.lost = true
	d.lost = grown(d.lost, s.site)
	d.lost[s.site].add(b.size)
}

// Collect runs the collector and waits until the witnesses have spoken, for a second at
// most, so that what is lost by now is known to be.
func Collect() {
	runtime.GC()
	counts := []metrics.Sample{{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"}}
	metrics.Read(counts)
	queued := counts[0].Value.Uint64()
	for deadline := time.Now().Add(time.Second); counts[1].Value.Uint64() < queued && time.Now().Before(deadline); metrics.Read(counts) {
		time.Sleep(100 * time.Microsecond)
	}
}

// Lost is what one site has lost: blocks whose handle was collected while it
// held its reference, so that nothing in the program can release them any more.
type Lost struct {
	Site   SiteID
	Stack  []snapshot.Frame // where they were allocated, innermost frame first
	Blocks int64
	Bytes  snapshot.Bytes // allocated
}

// Lost returns what is known to be lost, largest first, ties by site. The
// collector decides when that is; Collect before it makes it up to date.
func (d *Device) Lost() []Lost {
	d.mu.Lock()
	var lost []Lost
	for i, t := range d.lost {
		if t.count > 0 {
			lost = append(lost, Lost{Site: SiteID(i), Blocks: t.count, Bytes: t.bytes})
		}
	}
	d.mu.Unlock()
	for i := range lost {
		lost[i].Stack = d.Stack(lost[i].Site)
	}
	slices.SortFunc(lost, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	return lost
}
