package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// banks are programs that keep keys of batches in a bank, to compare them with later
// ones (He et al. 2020): one program, which leaks under noise, from the start on or
// late.
func banks() []Workload {
	bank := func(id, alias, title string) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Leak, Cause: "activations-kept",
			Truth: func(seed int64) Truth {
				d := draws{id, seed}
				b := bankOf(d)
				g := Growth{
					Marker: id, Event: PerStep, Every: b.beat.every, First: b.beat.first, Base: b.base,
					Blocks: 1, Bytes: snapshot.Bytes(4 * b.elements), Shape: Linear, Owner: snapshot.OwnedByUser,
				}
				g.Rest = g.Live(Count{1, 1}) // the last
				return Truth{Steps: b.steps, Growth: []Growth{g}}
			},
			New: func(c Config) (Instance, error) {
				d := draws{id, c.Seed}
				return attached(c, d, bankOf(d).sizes, newFeatureBank)
			},
		}
	}
	return []Workload{
		bank("L33", "leak-in-noise", "20 KB a step under batches that vary by megabytes"),
		bank("L34", "masked", "a leak, while keys of an earlier training are given back as fast"),
		bank("L35", "live-before", "a line that leaks has live blocks at the first snapshot"),
		bank("L36", "late-start", "a leak that begins in the middle of the run"),
	}
}

// bankDraws is how a bank leaks.
type bankDraws struct {
	sizes    sizes
	elements int // of an entry
	beat     rhythm
	base     int64 // entries before the first step
	ballast  int64 // blocks as large as an entry; each entry replaces one of them
	steps    int64
}

func bankOf(d draws) bankDraws {
	b := bankDraws{sizes: d.sizes(), elements: d.between("elements", 128, 2048), beat: d.rhythm()}
	b.steps = b.beat.runFor(15)
	switch d.id {
	case "L33":
		// An input of half a megabyte to two; three of them wait.
		b.sizes.features, b.sizes.rows = d.between("features", 700, 1300), d.between("rows", 150, 300)
		b.sizes.noise, b.sizes.layers = 0.3, 1
		b.elements = d.between("elements", 4800, 5300)
		b.beat.every = d.everyOf(1, 1, 2)
		b.steps = 120
	case "L34":
		b.ballast = (b.steps-b.beat.first)/b.beat.every + 1
	case "L35":
		b.base = 4
	case "L36":
		b.beat.every = d.everyOf(1, 2, 3, 5)
		b.steps = runFor(40, b.beat.every)
		b.beat.first = b.steps * int64(d.between("start", 40, 60)) / 100
	}
	return b
}

// featureBank keeps the key of some of the batches, to see how far the next is from
// the last.
type featureBank struct {
	*trainer
	bankDraws
	project *engine.Tensor   // [hidden elements]
	entries []*engine.Tensor // [1 elements]
	retired []*engine.Tensor // of an earlier training; each is in use until a new one comes
	// requests are for the worker, which answers each on answers; nil without one.
	requests chan *engine.Tensor
	answers  chan error
	ended    chan struct{}
}

func newFeatureBank(t *trainer) (any, error) {
	b := &featureBank{trainer: t, bankDraws: bankOf(t.draws)}
	t.on.step = b.step
	t.on.close = b.release
	r := engine.NewRandom(uint64(t.config.Seed) + 1)
	b.project = t.ops.Rand(r.Draw(), t.sizes.hidden, b.elements)
	for range b.ballast {
		b.retired = append(b.retired, t.ops.Rand(r.Draw(), 1, b.elements))
	}
	if b.base == 0 {
		return b, nil
	}
	// A worker's stack is the same whoever asks, so the line is one site before the
	// first step and after.
	b.requests, b.answers, b.ended = make(chan *engine.Tensor), make(chan error), make(chan struct{})
	go b.work()
	for i := range b.base {
		err := engine.Run(t.ops, func(*engine.Scope) error { return b.ask(t.data.heldOut(i).upload(t.ops).x) })
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *featureBank) step(batch *batch, _ *engine.Tensor) error {
	if !b.beat.due(b.trainer.steps) {
		return nil
	}
	if err := b.ask(batch.x); err != nil {
		return err
	}
	b.adds(b.draws.id)
	last := len(b.entries) - 1
	if last > 0 {
		b.compare(b.entries[last-1])
	}
	if len(b.retired) > 0 {
		b.compare(b.retired[0])
		b.retired[0].Release()
		b.retired = b.retired[1:]
	}
	if b.config.Fixed {
		old := b.entries[:last]
		b.entries = []*engine.Tensor{b.entries[last]}
		releaseAll(&old)
	}
	return nil
}

// compare measures how far an older key is from the last.
func (b *featureBank) compare(older *engine.Tensor) {
	v := b.ops.Valid()
	b.measure(float64(v.Floats(engine.L1(v, b.entries[len(b.entries)-1], older, engine.Average))[0]))
}

// ask has the key of a batch put into the bank, by the worker where there is one. It
// waits for it: operations serve one goroutine at a time.
func (b *featureBank) ask(x *engine.Tensor) error {
	if b.requests == nil {
		return b.remember(x)
	}
	b.requests <- x
	return <-b.answers
}

func (b *featureBank) work() {
	defer close(b.ended)
	for x := range b.requests {
		b.answers <- b.remember(x)
	}
}

func (b *featureBank) remember(x *engine.Tensor) error {
	v := b.ops.Valid()
	return engine.Run(v, func(*engine.Scope) error {
		features := b.model.Features(v, x)
		mean := v.Reshape(engine.Mean(v, features, 0), 1, features.Dim(1))
		b.entries = append(b.entries, v.MatMul(mean, b.project).Keep()) //leak:L33 leak:L34 leak:L35 leak:L36
		return nil
	})
}

// release ends the worker and gives the entries back.
func (b *featureBank) release() {
	if b.requests != nil {
		close(b.requests)
		<-b.ended
	}
	releaseAll(&b.entries)
	releaseAll(&b.retired)
	b.project.Release()
}
