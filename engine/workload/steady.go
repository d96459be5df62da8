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
			ID: "D21", Alias: "larger-batch", Title: "batches are twice as large from some step on, and the last is kept",
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
			ID: "D24", Alias: "index-rebuilt", Title: "an index is built anew after each epoch, while the old one is in use",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D24", seed}
				s := d.sizes()
				g := Growth{
					Marker: "D24", Event: PerEpoch, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * indexBatches(d) * s.rows * s.hidden), Shape: Linear,
					Owner: snapshot.OwnedByCache,
				}
				g.Bound = Amount{2, 2 * g.Bytes}
				return Truth{Steps: runFor(6, int64(s.epoch)), Growth: []Growth{g}}
			},
			New: shared("D24", newIndex),
		},
		{
			ID: "D25", Alias: "random-walk", Title: "requests are answered beside the training, and their number goes up and down at random",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D25", seed}
				g := queued("D25", d)
				g.Event, g.Owner = PerChance, snapshot.OwnedByUser
				room := int64(walkRoom(d))
				g.Bound = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: 300, Growth: []Growth{g}}
			},
			New: shared("D25", newWalk),
		},
	}
}

// lastBatch keeps a copy of the last batch, to see how far the next is from it.
type lastBatch struct {
	*trainer
	x *engine.Tensor // nil before the first step
}

func newLastBatch(t *trainer) (any, error) {
	l := &lastBatch{trainer: t}
	t.on.step = l.step
	t.on.close = func() { releaseOne(&l.x) }
	return l, nil
}

func (l *lastBatch) step(b *batch, _ *engine.Tensor) error {
	v := l.ops.Valid()
	if l.x != nil {
		off := engine.L1(v, engine.Mean(v, b.x, 0), engine.Mean(v, l.x, 0), engine.Average)
		l.measure(float64(v.Floats(off)[0]))
		l.x.Release()
	}
	l.x = v.Copy(b.x).Keep() //held:D08 held:D21
	l.addsUnits(l.draws.id, b.rows())
	return nil
}

// newLargerBatch is newLastBatch with batches that are twice as large from some
// step on.
func newLargerBatch(t *trainer) (any, error) {
	from := int64(t.draws.between("from", 40, 80))
	t.data.rows = func(step int64, usual int) int {
		if step < from {
			return usual
		}
		return 2 * usual
	}
	return newLastBatch(t)
}

// indexBatches draws of how many batches an index is made.
func indexBatches(d draws) int { return d.between("index", 3, 12) }

// index finds the nearest neighbour of each row in the features of batches held
// out, as the model made them at the end of an epoch.
type index struct {
	*trainer
	now, old *engine.Tensor // [hidden entries]; nil where there is none
}

func newIndex(t *trainer) (any, error) {
	x := &index{trainer: t}
	t.on.step = x.look
	t.on.epoch = x.build
	t.on.close = func() {
		releaseOne(&x.now)
		releaseOne(&x.old)
	}
	return x, nil
}

// look measures how near the neighbours are. Who looked something up in the old
// index is done by now.
func (x *index) look(b *batch, _ *engine.Tensor) error {
	releaseOne(&x.old)
	if x.now != nil {
		v := x.ops.Valid()
		near := v.MaxOver(v.MatMul(x.model.Features(v, b.x), x.now), 1)
		x.measure(float64(v.Floats(engine.Mean(v, near))[0]))
	}
	return nil
}

func (x *index) build() error {
	v := x.ops.Valid()
	var features []*engine.Tensor
	for i := range indexBatches(x.draws) {
		f := x.model.Features(v, x.data.heldOut(int64(i)).upload(v).x)
		features = append(features, v.Permute(f, 1, 0))
	}
	x.old, x.now = x.now, v.Concat(1, features...).Own(snapshot.OwnedByCache) //held:D24
	x.adds("D24")
	return nil
}

// walkRoom draws how many requests are under way at most.
func walkRoom(d draws) int { return d.between("room", 4, 14) }

// walk answers requests from others beside the training, which come and are
// answered as it happens.
type walk struct {
	*trainer
	room     int
	rng      *rand.Rand
	number   int64            // of requests until now
	requests []*engine.Tensor // [rows features]
}

func newWalk(t *trainer) (any, error) {
	w := &walk{trainer: t, room: walkRoom(t.draws), rng: t.draws.stream("walk")}
	t.on.step = w.step
	t.on.close = func() { releaseAll(&w.requests) }
	return w, nil
}

func (w *walk) step(*batch, *engine.Tensor) error {
	v := w.ops.Valid()
	switch comes := w.rng.IntN(2) == 0; {
	case comes && len(w.requests) < w.room:
		w.requests = append(w.requests, w.data.heldOut(w.number).upload(v).x.Keep()) //held:D25
		w.number++
		w.adds("D25")
	case !comes && len(w.requests) > 0:
		answer := engine.Softmax(v, w.model.Forward(v, w.requests[0]))
		w.measure(float64(v.Floats(v.MaxOver(v.MaxOver(answer, 1), 0))[0]))
		w.requests[0].Release()
		w.requests = w.requests[1:]
	}
	return nil
}
