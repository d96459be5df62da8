package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// banks are programs that keep features in a bank: one program, which leaks under
// noise, from the start on or late.
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
				g.Rest = g.Live(Count{}) // until the first step
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
		bank("L34", "masked", "a leak, while another line gives back as much"),
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
	ballast  int64 // blocks as large as an entry, of which each entry replaces one
	steps    int64
}

func bankOf(d draws) bankDraws {
	b := bankDraws{sizes: d.sizes(), elements: d.between("elements", 128, 2048), beat: d.rhythm()}
	b.steps = b.beat.runFor(15)
	switch d.id {
	case "L33":
		// An input of half a megabyte to two, three of which wait.
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

// featureBank keeps an entry for some of the batches.
type featureBank struct {
	*trainer
	bankDraws
	entries []*engine.Tensor
	reserve []*engine.Tensor
	// requests are for the worker, which answers each on answers; nil without one.
	requests chan float32
	answers  chan error
	ended    chan struct{}
}

func newFeatureBank(t *trainer) (any, error) {
	b := &featureBank{trainer: t, bankDraws: bankOf(t.draws)}
	t.on.step = b.step
	t.on.close = b.release
	for range b.ballast {
		b.reserve = append(b.reserve, t.ops.Full(0, b.elements))
	}
	if b.base == 0 {
		return b, nil
	}
	// A worker's stack is the same whoever asks, so the line is one site before the
	// first step and after.
	b.requests, b.answers, b.ended = make(chan float32), make(chan error), make(chan struct{})
	go b.work()
	for range b.base {
		if err := b.ask(0); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *featureBank) step(_ *batch, logits *engine.Tensor) error {
	if !b.beat.due(b.trainer.steps) {
		return nil
	}
	v := b.ops.Valid()
	if err := b.ask(v.Floats(engine.Mean(v, logits))[0]); err != nil {
		return err
	}
	b.measure(float64(v.Floats(b.entries[len(b.entries)-1])[0]))
	b.adds(b.draws.id)
	if len(b.reserve) > 0 {
		b.reserve[0].Release()
		b.reserve = b.reserve[1:]
	}
	if b.config.Fixed {
		releaseAll(&b.entries)
	}
	return nil
}

// ask has an entry put into the bank, by the worker where there is one. It waits
// for it: operations serve one goroutine at a time.
func (b *featureBank) ask(value float32) error {
	if b.requests == nil {
		return b.remember(value)
	}
	b.requests <- value
	return <-b.answers
}

func (b *featureBank) work() {
	defer close(b.ended)
	for value := range b.requests {
		b.answers <- b.remember(value)
	}
}

func (b *featureBank) remember(value float32) error {
	return engine.Run(b.ops, func(*engine.Scope) error {
		b.entries = append(b.entries, b.ops.Full(value, b.elements).Keep()) //leak:L33 leak:L34 leak:L35 leak:L36
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
	releaseAll(&b.reserve)
}
