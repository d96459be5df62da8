package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// outputPrograms are programs that keep what an evaluation put out.
func outputPrograms() []Workload {
	outputs := func(marker string, s sizes) Growth {
		return Growth{
			Marker: marker, Event: PerEvaluated, Every: 1, First: 1,
			Blocks: 1, Bytes: snapshot.Bytes(4 * s.rows * s.classes), Shape: Linear, Owner: snapshot.OwnedByUser,
		}
	}
	one := func(s sizes) Amount {
		return Amount{int64(s.evalSteps), snapshot.Bytes(4 * s.rows * s.classes * s.evalSteps)}
	}
	return []Workload{
		{
			ID: "L13", Alias: "outputs-kept", Title: "the evaluation keeps what each of its steps returned",
			Label: Leak, Cause: "outputs-kept",
			Truth: func(seed int64) Truth {
				s := draws{"L13", seed}.sizes()
				return Truth{Steps: runFor(10, int64(s.evalEvery)), Growth: []Growth{outputs("L13", s)}}
			},
			New: shared("L13", newKeptOutputs),
		},
		{
			ID: "D11", Alias: "eval-spikes", Title: "an evaluation's outputs live until the step after it",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				s := draws{"D11", seed}.sizes()
				g := outputs("D11", s)
				g.Bound = one(s)
				return Truth{Steps: runFor(10, int64(s.evalEvery)), Growth: []Growth{g}}
			},
			New: shared("D11", newShownOutputs),
		},
		{
			ID: "D27", Alias: "outputs-replaced", Title: "an evaluation's outputs live until the next evaluation",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				s := draws{"D27", seed}.sizes()
				g := outputs("D27", s)
				g.Bound = one(s)
				return Truth{Steps: runFor(10, int64(s.evalEvery)), Growth: []Growth{g}}
			},
			New: shared("D27", newKeptOutputs),
		},
	}
}

// keptOutputs keeps the logits of evaluations.
type keptOutputs struct {
	*trainer
	outputs []*engine.Tensor
}

func newKeptOutputs(t *trainer) (any, error) {
	k := &keptOutputs{trainer: t}
	t.on.evaluated = k.evaluated
	t.on.evaluation = k.evaluation
	t.on.close = func() { releaseAll(&k.outputs) }
	return k, nil
}

func (k *keptOutputs) evaluated(b *batch, logits *engine.Tensor) error {
	if k.draws.id == "D27" && b.step == 0 {
		releaseAll(&k.outputs)
	}
	k.outputs = append(k.outputs, k.ops.Valid().Copy(logits).Keep()) //leak:L13 held:D27
	k.adds(k.draws.id)
	return nil
}

// evaluation measures how sure the model was of the batches of this one.
func (k *keptOutputs) evaluation() error {
	v := k.ops.Valid()
	all := v.Concat(0, k.outputs[len(k.outputs)-k.sizes.evalSteps:]...)
	k.measure(float64(v.Floats(engine.Mean(v, surest(v, all)))[0]))
	if k.config.Fixed && k.draws.id == "L13" {
		releaseAll(&k.outputs)
	}
	return nil
}

// shownOutputs keeps the logits of an evaluation for a picture, which is drawn in
// the next step and done by the one after it.
type shownOutputs struct {
	*trainer
	outputs []*engine.Tensor
	drawn   bool
}

func newShownOutputs(t *trainer) (any, error) {
	k := &shownOutputs{trainer: t}
	t.on.step = k.step
	t.on.evaluated = k.evaluated
	t.on.close = func() { releaseAll(&k.outputs) }
	return k, nil
}

func (k *shownOutputs) evaluated(_ *batch, logits *engine.Tensor) error {
	k.outputs = append(k.outputs, k.ops.Valid().Copy(logits).Keep()) //held:D11
	k.drawn = false
	k.adds("D11")
	return nil
}

// step draws the share of each class.
func (k *shownOutputs) step(*batch, *engine.Tensor) error {
	if k.drawn || len(k.outputs) == 0 {
		releaseAll(&k.outputs)
		return nil
	}
	v := k.ops.Valid()
	for _, share := range v.Floats(engine.Mean(v, engine.Softmax(v, v.Concat(0, k.outputs...)), 0)) {
		k.measure(float64(share))
	}
	k.drawn = true
	return nil
}
