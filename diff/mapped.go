package diff

import (
	"slices"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// mapped returns steady growth of memory that the process took from the system directly, without malloc, as native
// code with its own allocator does; nil if there is none. Address space counts only as far as it was used: a buffer
// that is reserved at once and filled bit by bit does not grow, nor does a thread's stack. malloc's memory is
// included if malloc gives no figures.
func (r *Result) mapped() *Reserve {
	silent := uncounted(r.Last) // then the rate of a leak on Python's heap is too low
	if !r.Comparable || r.Leaks() > 0 && !silent || r.ProcessGrowth() != nil {
		return nil
	}
	marks := r.run.Snapshots[series.WarmUp(len(r.run.Snapshots)):]
	var x, space, used []float64
	for _, s := range marks {
		at := slices.IndexFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process && d.Mapped > 0 && d.Meters.Driver > 0 })
		if at < 0 {
			return nil
		}
		switch r.Series.Axis.Unit {
		case Step:
			x = append(x, float64(s.Mark.Step))
		case Second:
			x = append(x, float64(series.LastInstant(s)-series.LastInstant(r.First))/1e6)
		default:
			return nil
		}
		d := &s.Devices[at]
		space = append(space, float64(d.Mapped))
		used = append(used, float64(d.Meters.Driver-d.Meters.Reserved))
	}
	if len(x) < series.Testable {
		return nil
	}
	idle := space[0] - used[0] // reserved but unused; growth is not compared with it
	for i := range space {
		space[i] -= idle
	}
	x, grown := risingFloors(x, space)
	if grown == nil || !steadily(r.options.Without, x, grown) {
		return nil
	}
	growth := grown[len(grown)-1] - grown[0]
	if growth < leastGrowth || 2*(used[len(used)-1]-used[0]) < growth || 2*float64(r.explained()) >= growth {
		return nil
	}
	e := r.ofProcess(x, grown)
	e.Mapped, e.Uncounted, e.Graph, e.Frames = true, silent, nil, nil
	r.explainReserve(e)
	return e
}

// uncounted reports whether a snapshot has a process whose malloc gives no figures, as musl's.
func uncounted(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Devices, func(d snapshot.Device) bool {
		return d.Kind == snapshot.Process && d.Mapped > 0 && d.Meters.Allocated == 0 && d.Meters.Reserved == 0
	})
}
