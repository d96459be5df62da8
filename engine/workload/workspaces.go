package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// workspacePrograms are programs whose temporaries leave the allocator with more
// than it can use again.
func workspacePrograms() []Workload {
	return []Workload{{
		ID: "D29", Alias: "reserved-only", Title: "ever longer sequences are looked up in a memory, and what the scores of shorter ones were cut from stays reserved",
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

// Extents of what the program remembers.
const (
	slots    = 4096
	slotsOf  = 4  // numbers, which are compared
	horizons = 80 // over which use is followed
)

// workspaces looks a long sequence up in a memory every so many steps, and follows
// how much each slot of the memory is used, over a number of horizons.
type workspaces struct {
	*trainer
	draws  workspaceDraws
	memory *engine.Tensor // [slotsOf slots]
	decay  *engine.Tensor // [horizons 1]
	use    *engine.Tensor // [horizons slots]; nil before the first
}

func newWorkspaces(t *trainer) (any, error) {
	w := &workspaces{trainer: t, draws: workspaceOf(t.draws)}
	w.memory = t.ops.Rand(engine.NewRandom(uint64(t.config.Seed)+1).Draw(), slotsOf, slots)
	keep := make([]float32, horizons)
	for i := range keep {
		keep[i] = 1 - 1/float32(i+2)
	}
	w.decay = t.ops.FromFloats(keep, horizons, 1)
	t.on.step = w.step
	t.on.close = func() {
		w.memory.Release()
		w.decay.Release()
		releaseOne(&w.use)
	}
	return w, nil
}

// step takes up in use how well each slot fits the element of the sequence that it
// fits best. The new use, of more than a megabyte, is cut from the segment of scores
// that are gone.
func (w *workspaces) step(b *batch, _ *engine.Tensor) error {
	if w.steps%w.draws.every != 0 {
		return nil
	}
	v := w.ops.Valid()
	n := w.steps/w.draws.every - 1
	size := w.draws.bytes(n)
	sequence := v.Add(sinusoids(v, int(size)/(4*slots), slotsOf), engine.Mean(v, v.Slice(b.x, 1, 0, slotsOf), 0))
	largest := engine.Tidy(v, func() *engine.Tensor {
		scores := v.MatMul(sequence, w.memory) //held:D29
		return v.MaxOver(scores, 0)
	})
	if w.draws.reserves(n) {
		w.addsUnits("D29", int64(size))
	}
	past := largest
	if w.use != nil {
		past = w.use
	}
	use := v.Max(v.Mul(past, w.decay), largest).Keep()
	releaseOne(&w.use)
	w.use = use
	w.measure(float64(v.Floats(engine.Mean(v, use))[0]))
	return nil
}
