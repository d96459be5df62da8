package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// queues are programs that put something aside for another part of them.
func queues() []Workload {
	numbers := func(id string, steps int64) Growth {
		g := Growth{Marker: id, Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: 4, Shape: Linear, Owner: snapshot.OwnedByUser}
		if id == "D26" {
			g.Bound = g.Live(Count{steps, steps})
		}
		return g
	}
	return []Workload{
		{
			ID: "L25", Alias: "prefetch-backlog", Title: "batches are made faster than they are used, and nothing holds them up",
			Label: Leak, Cause: "queue-without-bound",
			Truth: func(seed int64) Truth {
				d := draws{"L25", seed}
				g := queued("L25", d)
				g.Every = d.every()
				g.First = g.Every
				room := int64(queueRoom(d))
				g.Rest = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: runFor(15, g.Every), Growth: []Growth{g}}
			},
			New: shared("L25", newBacklog),
		},
		{
			ID: "D15", Alias: "prefetch-fills", Title: "a queue of batches fills in the first steps",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D15", seed}
				g := queued("D15", d)
				room := int64(queueRoom(d))
				g.Bound = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: shared("D15", newBacklog),
		},
		{
			ID: "D23", Alias: "pipeline-depth", Title: "as many micro-batches as there are stages are under way, always",
			Label: Clean,
			Truth: func(seed int64) Truth {
				d := draws{"D23", seed}
				g := queued("D23", d)
				g.Every, g.First = 1, 1
				room := int64(queueRoom(d))
				g.Base = room
				g.Bound = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: shared("D23", newPipeline),
		},
		{
			ID: "L26", Alias: "logger-keeps-tensors", Title: "a logger's queue keeps a number of each step as a tensor",
			Label: Leak, Cause: "values-kept-as-tensors",
			Truth: func(int64) Truth { return Truth{Steps: 150, Growth: []Growth{numbers("L26", 150)}} },
			New:   shared("L26", newLogger),
		},
		{
			ID: "D26", Alias: "history", Title: "a history of one number a step, which somebody wants",
			Label: Bounded,
			Truth: func(int64) Truth { return Truth{Steps: 150, Growth: []Growth{numbers("D26", 150)}} },
			New:   shared("D26", newLogger),
		},
	}
}

// queueRoom draws how many batches a bounded queue has.
func queueRoom(d draws) int { return d.between("room", 4, 12) }

// queued is a growth of batches that wait, each of the usual size.
func queued(marker string, d draws) Growth {
	s := d.sizes()
	return Growth{
		Marker: marker, Event: PerStep, Every: 1, First: 1,
		Blocks: 1, Bytes: snapshot.Bytes(4 * s.rows * s.features), Shape: Linear, Owner: snapshot.OwnedByCache,
	}
}

// backlog makes extra batches for a student that is to learn from the same data,
// later.
type backlog struct {
	*trainer
	every int64
	room  int // 0 for no end
	made  []*engine.Tensor
}

func newBacklog(t *trainer) (any, error) {
	b := &backlog{trainer: t, every: 1}
	if t.draws.id == "L25" {
		b.every = t.draws.every()
	}
	if t.draws.id == "D15" || t.config.Fixed {
		b.room = queueRoom(t.draws)
	}
	t.on.step = b.step
	t.on.close = func() { releaseAll(&b.made) }
	return b, nil
}

func (b *backlog) step(*batch, *engine.Tensor) error {
	if b.steps%b.every != 0 {
		return nil
	}
	b.adds(b.draws.id) // would, if there was room
	if b.room > 0 && len(b.made) == b.room {
		return nil
	}
	h := b.data.heldOut(b.steps)
	b.made = append(b.made, b.ops.FromFloats(h.x, len(h.labels), h.features).Own(snapshot.OwnedByCache)) //leak:L25 held:D15
	return nil
}

// pipeline has a micro-batch in each stage: one comes in a step, and one goes.
type pipeline struct {
	*trainer
	stages []*engine.Tensor
}

func newPipeline(t *trainer) (any, error) {
	p := &pipeline{trainer: t}
	t.on.step = func(*batch, *engine.Tensor) error {
		p.stages[0].Release()
		p.stages = p.stages[1:]
		p.enter()
		p.adds("D23")
		return nil
	}
	t.on.close = func() { releaseAll(&p.stages) }
	return p, engine.Run(t.ops, func(*engine.Scope) error {
		for range queueRoom(t.draws) {
			p.enter()
		}
		return nil
	})
}

func (p *pipeline) enter() {
	h := p.data.heldOut(p.steps)
	p.stages = append(p.stages, p.ops.FromFloats(h.x, len(h.labels), h.features).Own(snapshot.OwnedByCache)) //held:D23
}

// logger keeps the confidence in each batch.
type logger struct {
	*trainer
	queue []*engine.Tensor // scalars
}

func newLogger(t *trainer) (any, error) {
	l := &logger{trainer: t}
	t.on.step = l.step
	t.on.close = func() { releaseAll(&l.queue) }
	return l, nil
}

func (l *logger) step(_ *batch, logits *engine.Tensor) error {
	v := l.ops.Valid()
	l.queue = append(l.queue, v.MaxOver(v.Reshape(logits, logits.Shape().Elements()), 0).Keep()) //leak:L26 held:D26
	l.adds(l.draws.id)
	l.measure(float64(v.Floats(l.queue[len(l.queue)-1])[0]))
	if l.config.Fixed && l.draws.id == "L26" {
		releaseAll(&l.queue)
	}
	return nil
}
