package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// steadyPrograms are programs whose memory goes up and down with what they do.
func steadyPrograms() []Workload {
	return []Workload{
		{
			ID: "D08", Alias: "variable-batch", Title: "the last batch is kept, and batches differ in size",
			Label: Clean, Families: []Family{DynamicGraphs},
			Truth: func(seed int64) Truth {
				s := planSizes(draws{"D08", seed})
				return Truth{Steps: 120, Growth: []Growth{{
					Marker: "D08", Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * s.features), Unit: "row", Shape: Linear,
					Bound: Amount{1, snapshot.Bytes(4 * s.features * s.maxRows())}, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: func(c Config) (Instance, error) {
				d := draws{"D08", c.Seed}
				return attached(c, d, planSizes(d), newLastBatch)
			},
		},
		{
			ID: "D21", Alias: "larger-batch", Title: "batches are larger from some step on, and the last is kept",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D21", seed}
				s := d.sizes()
				return Truth{Steps: 150, Growth: []Growth{{
					Marker: "D21", Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * s.features), Unit: "row", Shape: Linear,
					Bound: Amount{1, snapshot.Bytes(4 * s.features * s.maxRows() * 2)}, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("D21", newLargerBatch),
		},
		{
			ID: "D24", Alias: "index-rebuilt", Title: "an index is built anew behind each epoch, while the old one is in use",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D24", seed}
				g := Growth{
					Marker: "D24", Event: PerEpoch, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * indexElements(d)), Shape: Linear,
					Owner: snapshot.OwnedByCache,
				}
				g.Bound = Amount{2, 2 * g.Bytes}
				return Truth{Steps: runFor(6, int64(d.sizes().epoch)), Growth: []Growth{g}}
			},
			New: shared("D24", newIndex),
		},
		{
			ID: "D25", Alias: "random-walk", Title: "a pool of buffers whose number goes up and down at random",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D25", seed}
				room, size := walkDraws(d)
				return Truth{Steps: 300, Growth: []Growth{{
					Marker: "D25", Event: PerChance, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * size), Shape: Linear,
					Bound: Amount{int64(room), snapshot.Bytes(4 * size * room)}, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("D25", newWalk),
		},
	}
}

// lastBatch keeps a copy of the last batch, for a look at it after a crash.
type lastBatch struct {
	*trainer
	x *engine.Tensor // nil before the first step
}

func newLastBatch(t *trainer) (any, error) {
	l := &lastBatch{trainer: t}
	t.on.step = func(b *batch, _ *engine.Tensor) error {
		l.forget()
		l.x = l.ops.Valid().Copy(b.x).Keep() //held:D08
		l.addsUnits("D08", b.rows())
		return nil
	}
	t.on.close = l.forget
	return l, nil
}

func (l *lastBatch) forget() {
	if l.x != nil {
		l.x.Release()
		l.x = nil
	}
}

// newLargerBatch keeps the last batch, once over, and from some step on twice.
func newLargerBatch(t *trainer) (any, error) {
	l := &lastBatch{trainer: t}
	from := int64(t.draws.between("from", 40, 80))
	t.on.step = func(b *batch, _ *engine.Tensor) error {
		l.forget()
		v := l.ops.Valid()
		parts := []*engine.Tensor{b.x}
		if t.steps >= from {
			parts = append(parts, b.x) // with its mirror images, say
		}
		l.x = v.Concat(0, parts...).Keep() //held:D21
		l.addsUnits("D21", b.rows()*int64(len(parts)))
		return nil
	}
	t.on.close = l.forget
	return l, nil
}

// indexElements draws how large an index is.
func indexElements(d draws) int { return d.between("index", 1024, 16384) }

// index finds neighbours in features, as they were at the end of an epoch.
type index struct {
	*trainer
	now, old *engine.Tensor // nil where there is none
}

func newIndex(t *trainer) (any, error) {
	x := &index{trainer: t}
	t.on.step = func(*batch, *engine.Tensor) error {
		// Who looked something up in the old one is done by now.
		if x.old != nil {
			x.old.Release()
			x.old = nil
		}
		return nil
	}
	t.on.epoch = func() error {
		x.old, x.now = x.now, t.ops.Full(0, indexElements(t.draws)).Own(snapshot.OwnedByCache) //held:D24
		t.adds("D24")
		return nil
	}
	t.on.close = func() {
		for _, i := range []*engine.Tensor{x.now, x.old} {
			if i != nil {
				i.Release()
			}
		}
	}
	return x, nil
}

// walkDraws draws how many buffers a pool has at most, and their elements.
func walkDraws(d draws) (room, size int) {
	return d.between("room", 4, 14), d.between("size", 128, 2048)
}

// walk keeps as many buffers as a demand that comes and goes has had use for.
type walk struct {
	*trainer
	room, size int
	rng        *rand.Rand
	buffers    []*engine.Tensor
}

func newWalk(t *trainer) (any, error) {
	w := &walk{trainer: t, rng: t.draws.stream("walk")}
	w.room, w.size = walkDraws(t.draws)
	t.on.step = w.step
	t.on.close = func() { releaseAll(&w.buffers) }
	return w, nil
}

func (w *walk) step(*batch, *engine.Tensor) error {
	switch up := w.rng.IntN(2) == 0; {
	case up && len(w.buffers) < w.room:
		w.buffers = append(w.buffers, w.ops.Full(0, w.size).Keep()) //held:D25
		w.adds("D25")
	case !up && len(w.buffers) > 0:
		last := len(w.buffers) - 1
		w.buffers[last].Release()
		w.buffers = w.buffers[:last]
	}
	return nil
}
