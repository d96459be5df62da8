package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// workspacePrograms are programs whose temporaries leave the allocator with more
// than it can use again.
func workspacePrograms() []Workload {
	return []Workload{{
		ID: "D29", Alias: "reserved-only", Title: "each workspace is larger than any before, and what the old ones were cut from stays reserved",
		Label: Bounded, Families: []Family{LongSequences}, Cause: "fragmentation",
		Truth: func(seed int64) Truth {
			w := workspaceOf(draws{"D29", seed})
			g := Growth{Marker: "D29", Meter: Reserved, Event: PerShape, Every: 1, First: 1, Blocks: 1, Bytes: 1, Unit: "byte", Shape: Linear}
			for n := range workspaceSteps / w.every {
				if w.reserves(n) {
					g.Bound.Blocks++
					g.Bound.Bytes += w.bytes(n)
				}
			}
			return Truth{Steps: workspaceSteps, Growth: []Growth{g}}
		},
		New: shared("D29", newWorkspaces),
	}}
}

// workspaceSteps is how long the program runs.
const workspaceSteps = 150

// workspaceDraws is how large workspaces are. All are so large that the allocator
// takes a segment of its own for each that fits nowhere, of just this size.
type workspaceDraws struct {
	every, longer int64 // steps for a workspace, and until they get larger
	least         snapshot.Bytes
}

func workspaceOf(d draws) workspaceDraws {
	return workspaceDraws{
		every: int64(d.between("every", 3, 6)), longer: int64(d.between("longer", 20, 35)),
		least: snapshot.Bytes(d.between("least", 5, 7)) * 2 * snapshot.MiB,
	}
}

// bytes is the size of the n-th workspace, counted from 0.
func (w workspaceDraws) bytes(n int64) snapshot.Bytes {
	return w.least + snapshot.Bytes((n+1)*w.every/w.longer)*2*snapshot.MiB
}

// reserves says whether the n-th workspace fits nowhere: the first of its size
// does not, nor the second of all, since what is kept was cut from the first one's
// segment.
func (w workspaceDraws) reserves(n int64) bool { return n < 2 || w.bytes(n) > w.bytes(n-1) }

// workspaces computes in a workspace every so many steps, and keeps a page of what
// came of the last one.
type workspaces struct {
	*trainer
	draws workspaceDraws
	page  *engine.Tensor // nil before the first
}

func newWorkspaces(t *trainer) (any, error) {
	w := &workspaces{trainer: t, draws: workspaceOf(t.draws)}
	t.on.step = w.step
	t.on.close = w.forget
	return w, nil
}

func (w *workspaces) forget() {
	if w.page != nil {
		w.page.Release()
	}
}

// step keeps a page of more than a megabyte, which is cut from the segment of a
// workspace that is gone.
func (w *workspaces) step(*batch, *engine.Tensor) error {
	if w.steps%w.draws.every != 0 {
		return nil
	}
	const columns, pageRows = 4096, 80
	n := w.steps/w.draws.every - 1
	size := w.draws.bytes(n)
	largest := engine.Tidy(w.ops, func() *engine.Tensor {
		scores := w.ops.Full(float32(n), int(size)/(4*columns), columns) //held:D29
		return w.ops.MaxOver(scores, 0)
	})
	if w.draws.reserves(n) {
		w.addsUnits("D29", int64(size))
	}
	page := w.ops.Copy(w.ops.Expand(w.ops.Reshape(largest, 1, columns), pageRows, columns)).Keep()
	w.forget()
	w.page = page
	return nil
}
