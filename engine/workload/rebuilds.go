package workload

import (
	"math/rand/v2"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cast"
	"github.com/memdiag/memdiag/engine/metric"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
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
		students("L10", "hook-module-cycle", "a student hooks the model that it imitates, and the hook holds it", "hook-not-removed"),
		students("L20", "method-cache", "a cache of scores is keyed by the student, and so keeps it", "cache-without-bound"),
		{
			ID: "L28", Alias: "cast-cache", Title: "a context of lower precision is opened for each look, and never left",
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

// student is a smaller model that imitates a larger one.
type student struct {
	teacher     *classifier // whose forward passes it sees, once it is hooked
	hidden, out *nn.Linear
	off         float64 // of the teacher's logits in the last pass
}

func (m *student) parts() nn.Parts {
	return nn.Parts{{Name: "hidden", Module: m.hidden}, {Name: "out", Module: m.out}}
}

// distance is how far the student is from the teacher's logits: a scalar.
func (m *student) distance(o engine.Ops, x, logits *engine.Tensor) *engine.Tensor {
	own := m.out.Forward(o, o.ReLU(m.hidden.Forward(o, x)))
	return engine.MSE(o, own, o.Detach(logits), engine.Average)
}

// forward is the hook.
func (m *student) forward(o engine.Ops, x, logits *engine.Tensor) {
	v := o.Valid()
	m.off = float64(v.Floats(m.distance(v, x, logits))[0])
}

// students are taught what the model has learnt, a new one after each epoch.
type students struct {
	*trainer
	random *engine.Random
	// current is the last student, and scores are those of all that were asked for, at
	// each evaluation; of L20.
	current *student
	scores  map[*student]float64
}

func newStudents(t *trainer) (any, error) {
	s := &students{trainer: t, random: engine.NewRandom(uint64(t.config.Seed) + 1), scores: make(map[*student]float64)}
	t.on.epoch, t.on.evaluation = s.epoch, s.evaluation
	t.on.close = s.release
	return s, nil
}

// release lets go of all students until now.
func (s *students) release() {
	for _, h := range slices.Clone(s.model.hooks) {
		if m, ok := h.(*student); ok {
			s.model.unhook(m)
			nn.Release(m.parts())
		}
	}
	for m := range s.scores {
		nn.Release(m.parts())
	}
	clear(s.scores)
}

func (s *students) epoch() error {
	if n := len(s.model.hooks); n > 0 { // how far the last student is by now
		s.measure(s.model.hooks[n-1].(*student).off)
	}
	if s.config.Fixed {
		s.release()
	}
	m := s.draw() //leak:L10 leak:L20
	s.adds(s.draws.id)
	if err := s.teach(m); err != nil {
		return err
	}
	if s.draws.id == "L10" {
		m.teacher.hooks = append(m.teacher.hooks, m)
		return nil
	}
	s.current = m
	return s.evaluation()
}

func (s *students) evaluation() error {
	if s.current != nil {
		s.measure(s.score(s.current))
	}
	return nil
}

// draw makes a student.
func (s *students) draw() *student {
	width := studentWidth(s.draws)
	m := &student{teacher: s.model}
	m.hidden, m.out = nn.NewLinear(s.ops, s.random, s.sizes.features, width), nn.NewLinear(s.ops, s.random, width, s.sizes.classes)
	nn.Keep(m.parts())
	return m
}

// teach trains a student for a few steps.
func (s *students) teach(m *student) error {
	parameters := m.parts().Parameters()
	s.ops.Track(parameters...)
	defer s.ops.Untrack(parameters...)
	descent := optim.NewSGD(s.ops, parameters, 0.05, 0)
	defer descent.Release()
	for i := range int64(3) {
		x := s.data.heldOut(i).upload(s.ops).x
		logits := s.model.Forward(s.ops.Valid(), x)
		if err := s.ops.Backward(m.distance(s.ops, x, logits)); err != nil {
			return err
		}
		descent.Step()
	}
	return nil
}

// score is how far a student is from the model on a batch held out, looked up where
// it is known.
func (s *students) score(m *student) float64 {
	if known, ok := s.scores[m]; ok {
		return known
	}
	v := s.ops.Valid()
	x := s.data.heldOut(3).upload(v).x
	s.scores[m] = float64(v.Floats(m.distance(v, x, s.model.Forward(v, x)))[0])
	return s.scores[m]
}

// casting measures the accuracy in lower precision, on a batch held out.
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

func (c *casting) step(*batch, *engine.Tensor) error {
	if !c.beat.due(c.steps) {
		return nil
	}
	v := c.ops.Valid()
	context := cast.Open(v, c.model.Parameters())
	c.contexts = append(c.contexts, context)
	b := c.data.heldOut(c.steps).upload(v)
	right := metric.NewAccuracy(v)
	right.Update(c.model.Forward(context, b.x), b.labels) //leak:L28
	c.measure(right.Compute())
	right.Reset()
	c.adds("L28")
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

// earlyReturn reports how sure the model was of a sample of the batches. What it
// computes for that is borrowed from the step, to be read after it, and so is to be
// given back.
type earlyReturn struct {
	*trainer
	rng      *rand.Rand
	skipped  float64          // share of the batches
	borrowed []*engine.Tensor // that were not given back yet
}

func newEarlyReturn(t *trainer) (any, error) {
	e := &earlyReturn{trainer: t, rng: t.draws.stream("branch"), skipped: t.draws.share("rare", 0.06, 0.25)}
	t.on.step = e.step
	t.on.close = func() { releaseAll(&e.borrowed) }
	return e, nil
}

func (e *earlyReturn) borrow(t *engine.Tensor) *engine.Tensor {
	e.borrowed = append(e.borrowed, t.Keep())
	return t
}

func (e *earlyReturn) giveBack(t *engine.Tensor) {
	e.borrowed = slices.DeleteFunc(e.borrowed, func(other *engine.Tensor) bool { return other == t })
	t.Release()
}

func (e *earlyReturn) step(b *batch, logits *engine.Tensor) error {
	v := e.ops.Valid()
	chances := e.borrow(engine.Softmax(v, logits)) //leak:L29
	if e.rng.Float64() < e.skipped {
		e.addsUnits("L29", b.rows())
		if e.config.Fixed {
			e.giveBack(chances)
		}
		return nil
	}
	e.measure(float64(v.Floats(engine.Mean(v, v.MaxOver(chances, 1)))[0]))
	e.giveBack(chances)
	return nil
}
