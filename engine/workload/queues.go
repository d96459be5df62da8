package workload

import (
	"errors"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/snapshot"
)

// queues are programs that put something aside for another part of them.
func queues() []Workload {
	return []Workload{
		{
			ID: "L25", Alias: "prefetch-backlog", Title: "batches without labels are made faster than they are used, and nothing holds them up",
			Label: Leak, Cause: "queue-without-bound",
			Truth: func(seed int64) Truth {
				d := draws{"L25", seed}
				g := queued("L25", d)
				beat := d.rhythm()
				g.Every, g.First = beat.every, beat.first
				room := int64(queueRoom(d))
				g.Rest = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: beat.runFor(max(15, 2*room)), Growth: []Growth{g}}
			},
			New: shared("L25", newBacklog),
		},
		{
			ID: "D15", Alias: "prefetch-fills", Title: "a queue of batches without labels fills in the first steps",
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
			ID: "D23", Alias: "pipeline-depth", Title: "a teacher works as a pipeline: as many micro-batches as it has stages are under way, always",
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
			ID: "L26", Alias: "logger-keeps-tensors", Title: "a logger's queue keeps what it shows of batches as tensors",
			Label: Leak, Cause: "values-kept-as-tensors",
			Truth: func(seed int64) Truth {
				d := draws{"L26", seed}
				beat := d.rhythm()
				return Truth{Steps: beat.runFor(15), Growth: []Growth{{
					Marker: "L26", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L26", newLogger),
		},
		{
			ID: "D26", Alias: "history", Title: "a history of a few numbers a step on the host, which somebody wants",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				const steps = 150
				g := Growth{
					Marker: "D26", Meter: OnHost, Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(8 * historyNumbers(draws{"D26", seed})),
					Shape: Doubling, Owner: snapshot.OwnedByUser,
				}
				g.Bound = g.Live(Count{steps, steps})
				return Truth{Steps: steps, Growth: []Growth{g}}
			},
			// L08 grows more slowly: no rate tells what is wanted.
			Bounds: func(int64) []snapshot.Bound { return []snapshot.Bound{{Where: "history.step", Bytes: snapshot.MiB}} },
			New:    newHistory,
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

// backlog is a queue of batches without labels, by which the model learns to make
// up its mind (Grandvalet and Bengio 2004). Two are made for each that is used.
type backlog struct {
	*trainer
	beat   rhythm
	room   int              // 0 for no end
	made   []*engine.Tensor // [rows features]
	number int64            // of batches until now
}

func newBacklog(t *trainer) (any, error) {
	b := &backlog{trainer: t, beat: rhythm{1, 1}}
	if t.draws.id == "L25" {
		b.beat = t.draws.rhythm()
	}
	if t.draws.id == "D15" || t.config.Fixed {
		b.room = queueRoom(t.draws)
	}
	t.on.loss = b.loss
	t.on.close = func() { releaseAll(&b.made) }
	return b, nil
}

// loss is the batch's loss, and how undecided the model is of one without labels.
func (b *backlog) loss(_ *batch, _, loss *engine.Tensor) *engine.Tensor {
	if !b.beat.due(b.steps + 1) {
		return loss
	}
	for range 2 {
		b.make()
	}
	b.adds(b.draws.id) // would, if there was room
	o, x := b.ops, b.take()
	chances := o.LogSoftmax(b.model.Forward(o, x))
	entropy := o.Neg(engine.Mean(o, o.Sum(o.Mul(o.Exp(chances), chances), 1)))
	return o.Add(loss, engine.Scale(o, entropy, 0.1))
}

// make waits, which is to say that it does nothing, where there is no room.
func (b *backlog) make() {
	if b.room > 0 && len(b.made) == b.room {
		return
	}
	h := b.data.heldOut(b.number)
	b.number++
	b.made = append(b.made, b.ops.FromFloats(h.x, len(h.labels), h.features).Own(snapshot.OwnedByCache)) //leak:L25 held:D15
}

// take hands the oldest batch over to the step.
func (b *backlog) take() *engine.Tensor {
	x := b.ops.Detach(b.made[0])
	b.made[0].Release()
	b.made = b.made[1:]
	return x
}

// pipeline is a teacher with a layer on each stage, which in a step works on what
// the stage before made in the last: a micro-batch comes in, and one comes out.
type pipeline struct {
	*trainer
	layers []*nn.Linear
	stages []*engine.Tensor // what each stage made, [rows features]
	number int64            // of micro-batches until now
}

func newPipeline(t *trainer) (any, error) {
	p := &pipeline{trainer: t}
	t.on.step = func(*batch, *engine.Tensor) error {
		v := t.ops.Valid()
		out := p.stages[len(p.stages)-1]
		p.measure(float64(v.Floats(engine.Mean(v, out))[0]))
		out.Release()
		p.stages = p.stages[:len(p.stages)-1]
		p.advance(v)
		p.adds("D23")
		return nil
	}
	t.on.close = func() {
		releaseAll(&p.stages)
		for _, l := range p.layers {
			nn.Release(l)
		}
	}
	return p, engine.Run(t.ops, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(t.config.Seed) + 1)
		for range queueRoom(t.draws) {
			p.layers = append(p.layers, nn.NewLinear(t.ops, r, t.sizes.features, t.sizes.features))
			nn.Keep(p.layers[len(p.layers)-1])
		}
		for range p.layers {
			p.advance(t.ops.Valid())
		}
		return nil
	})
}

// advance moves every micro-batch on by a stage, and the next one in.
func (p *pipeline) advance(v engine.Ops) {
	inputs := append([]*engine.Tensor{p.data.heldOut(p.number).upload(v).x.Keep()}, p.stages...)
	p.number++
	p.stages = nil
	for i, x := range inputs {
		p.stages = append(p.stages, v.Tanh(p.layers[i].Forward(v, x)).Own(snapshot.OwnedByCache)) //held:D23
		x.Release()
	}
}

// logger keeps the chances of each class, for a table that it shows at the end.
type logger struct {
	*trainer
	beat  rhythm
	queue []*engine.Tensor // [rows classes]
}

func newLogger(t *trainer) (any, error) {
	l := &logger{trainer: t, beat: t.draws.rhythm()}
	t.on.step = l.step
	t.on.close = func() { releaseAll(&l.queue) }
	return l, nil
}

func (l *logger) step(b *batch, logits *engine.Tensor) error {
	if !l.beat.due(l.steps) {
		return nil
	}
	v := l.ops.Valid()
	l.queue = append(l.queue, engine.Softmax(v, logits).Keep()) //leak:L26
	l.addsUnits("L26", b.rows())
	l.measure(float64(v.Floats(engine.Mean(v, v.MaxOver(l.queue[len(l.queue)-1], 1)))[0]))
	if l.config.Fixed {
		releaseAll(&l.queue)
	}
	return nil
}

// historyNumbers draws of how many classes a history has the mean logit.
func historyNumbers(d draws) int { return d.between("numbers", 1, 3) }

// history keeps numbers of each step in an array on the host, which it accounts
// for.
type history struct {
	*trainer
	host   *mem.Device
	values []float64
	block  *mem.Storage // of values; nil before the first step
}

func newHistory(c Config) (Instance, error) {
	h := &history{host: newHostAccount()}
	_, err := shared("D26", func(t *trainer) (any, error) {
		h.trainer = t
		t.on.step = h.step
		return h, nil
	})(c)
	if err != nil {
		return nil, errors.Join(err, h.host.Close())
	}
	return h, nil
}

func (h *history) step(_ *batch, logits *engine.Tensor) error {
	numbers := historyNumbers(h.draws)
	if len(h.values) == cap(h.values) {
		larger := make([]float64, len(h.values), max(numbers, 2*len(h.values)))
		copy(larger, h.values)
		block, err := h.host.Alloc(int64(8*cap(larger)), snapshot.OwnedByUser) //held:D26
		if err != nil {
			return err
		}
		h.release()
		h.values, h.block = larger, block
	}
	for _, x := range h.ops.Floats(engine.Mean(h.ops.Valid(), logits, 0))[:numbers] {
		h.values = append(h.values, float64(x))
	}
	h.adds("D26")
	return nil
}

func (h *history) release() {
	if h.block != nil {
		h.block.Release(snapshot.OwnedByUser)
		h.block = nil
	}
}

// Host accounts for the history.
func (h *history) Host() *mem.Device { return h.host }

// Close releases everything.
func (h *history) Close() error {
	h.release()
	return errors.Join(h.trainer.Close(), h.host.Close())
}
