package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cast"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/snapshot"
)

// rebuilds are programs that make helpers again and again, and do not let go of
// the old ones.
func rebuilds() []Workload {
	students := func(id, alias, title, cause string) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Leak, Cause: cause,
			Truth: func(seed int64) Truth {
				d := draws{id, seed}
				g := studentGrowth(id, d)
				g.Rest = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: runFor(10, int64(d.sizes().epoch)), Growth: []Growth{g}}
			},
			New: shared(id, newStudents),
		}
	}
	return []Workload{
		students("L10", "hook-module-cycle", "a hook holds the module that holds the hook", "hook-not-removed"),
		students("L20", "method-cache", "a cache of results is keyed by the model, and so keeps it", "cache-without-bound"),
		{
			ID: "L28", Alias: "cast-cache", Title: "a context of lower precision is opened in each step, and never left",
			Label: Leak, Cause: "cast-context-open",
			Truth: func(seed int64) Truth {
				d := draws{"L28", seed}
				s, beat := d.sizes(), d.rhythm()
				tensors, elements := s.parameters()
				biases := s.layers*s.hidden + s.classes
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L28", Event: PerStep, Every: beat.every, First: beat.first,
					// The weights are lowered, the biases not.
					Blocks: int64(tensors / 2), Bytes: snapshot.Bytes(4 * (elements - biases)), Shape: Linear, Owner: snapshot.OwnedByCache,
				}}}
			},
			New: shared("L28", newCasting),
		},
		{
			ID: "L29", Alias: "early-return", Title: "a rare branch returns before a release",
			Label: Leak, Cause: "release-forgotten",
			Truth: func(seed int64) Truth {
				d := draws{"L29", seed}
				return Truth{Steps: 300, Growth: []Growth{{
					Marker: "L29", Event: PerChance, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes), Unit: "row",
					Shape: Linear, Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L29", newEarlyReturn),
		},
	}
}

// studentWidth draws how wide the hidden layer of a student is.
func studentWidth(d draws) int { return d.between("student", 8, 32) }

// studentGrowth is a student's two layers.
func studentGrowth(marker string, d draws) Growth {
	s, width := d.sizes(), studentWidth(d)
	elements := s.features*width + width + width*s.classes + s.classes
	return Growth{
		Marker: marker, Event: PerEpoch, Every: 1, First: 1, Blocks: 4, Bytes: snapshot.Bytes(4 * elements), Shape: Linear,
		Owner: snapshot.OwnedByUser,
	}
}

// student is a smaller model.
type student struct {
	hidden, out *nn.Linear
	onForward   func(x *engine.Tensor) // holds the student itself
	seen        int
}

func (m *student) parts() nn.Parts {
	return nn.Parts{{Name: "hidden", Module: m.hidden}, {Name: "out", Module: m.out}}
}

// students draws a new student behind each epoch and tries it.
type students struct {
	*trainer
	random *engine.Random
	// unhook takes the hooks of students away, which are all that holds these; of L10.
	unhook []func()
	// best is what each student reached; of L20, where nothing else holds them.
	best map[*student]float64
}

func newStudents(t *trainer) (any, error) {
	s := &students{trainer: t, random: engine.NewRandom(uint64(t.config.Seed) + 1), best: make(map[*student]float64)}
	t.on.epoch = s.epoch
	t.on.close = s.release
	return s, nil
}

// release lets go of all students until now.
func (s *students) release() {
	for _, f := range s.unhook {
		f()
	}
	for m := range s.best {
		nn.Release(m.parts())
	}
	s.unhook = nil
	clear(s.best)
}

func (s *students) epoch() error {
	v := s.ops.Valid()
	if s.config.Fixed {
		s.release()
	}
	m := s.draw(v) //leak:L20
	s.adds(s.draws.id)
	if s.draws.id == "L10" {
		s.unhook = append(s.unhook, func() { nn.Release(m.parts()) })
	} else {
		s.best[m] = 0
	}
	x := s.data.heldOut(0).upload(v).x
	hidden := v.ReLU(m.hidden.Forward(v, x))
	m.onForward(hidden)
	reached := float64(v.Floats(v.MaxOver(v.Reshape(m.out.Forward(v, hidden), s.sizes.rows*s.sizes.classes), 0))[0])
	if s.draws.id == "L20" {
		s.best[m] = reached
	}
	s.measure(reached)
	return nil
}

// draw makes a student with a hook that counts what it has seen.
func (s *students) draw(v engine.Ops) *student {
	width := studentWidth(s.draws)
	m := &student{hidden: nn.NewLinear(v, s.random, s.sizes.features, width), out: nn.NewLinear(v, s.random, width, s.sizes.classes)} //leak:L10
	nn.Keep(m.parts())
	m.onForward = func(x *engine.Tensor) { m.seen += x.Dim(0) }
	return m
}

// casting looks at what the model computes in lower precision.
type casting struct {
	*trainer
	beat     rhythm
	contexts []*cast.Ops
}

func newCasting(t *trainer) (any, error) {
	c := &casting{trainer: t, beat: t.draws.rhythm()}
	t.on.step = c.step
	t.on.close = c.leave
	return c, nil
}

func (c *casting) step(b *batch, _ *engine.Tensor) error {
	if !c.beat.due(c.steps) {
		return nil
	}
	context := cast.Open(c.ops, c.model.Parameters())
	c.contexts = append(c.contexts, context)
	lowered := c.model.Forward(context, b.x) //leak:L28
	c.adds("L28")
	c.measure(float64(context.Floats(engine.Mean(context.Valid(), lowered))[0]))
	if c.config.Fixed {
		c.leave()
	}
	return nil
}

func (c *casting) leave() {
	for _, context := range c.contexts {
		context.Close()
	}
	c.contexts = nil
}

// earlyReturn looks at each batch's softmax, unless it is sure of itself.
type earlyReturn struct {
	*trainer
	rng  *rand.Rand
	rare float64
	// forget loses sight of a tensor; Close alone finds it again.
	forget func(*engine.Tensor)
}

func newEarlyReturn(t *trainer) (any, error) {
	e := &earlyReturn{trainer: t, rng: t.draws.stream("branch"), rare: t.draws.share("rare", 0.06, 0.25)}
	t.on.step = e.step
	var lost []*engine.Tensor
	e.forget = func(x *engine.Tensor) { lost = append(lost, x) }
	t.on.close = func() { releaseAll(&lost) }
	return e, nil
}

func (e *earlyReturn) step(b *batch, logits *engine.Tensor) error {
	v := e.ops.Valid()
	chances := engine.Softmax(v, logits).Keep() //leak:L29
	if e.rng.Float64() < e.rare {
		e.addsUnits("L29", b.rows())
		if e.config.Fixed {
			chances.Release()
			return nil
		}
		e.forget(chances)
		return nil
	}
	e.measure(float64(v.Floats(engine.Mean(v, chances))[0]))
	chances.Release()
	return nil
}
