package workload

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/metric"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// classifier is a stack of linear layers with ReLU between them.
type classifier struct {
	layers []*nn.Linear
	hooks  []forwardHook
}

// forwardHook sees what a classifier reads and puts out in each forward pass.
type forwardHook interface {
	forward(o engine.Ops, x, logits *engine.Tensor)
}

func newClassifier(o engine.Ops, r *engine.Random, s sizes) *classifier {
	c := &classifier{}
	in := s.features
	for range s.layers {
		c.layers = append(c.layers, nn.NewLinear(o, r, in, s.hidden))
		in = s.hidden
	}
	c.layers = append(c.layers, nn.NewLinear(o, r, in, s.classes))
	return c
}

// Forward maps x [n features] to logits [n classes].
func (c *classifier) Forward(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	logits := c.layers[len(c.layers)-1].Forward(o, c.Features(o, x))
	for _, h := range c.hooks {
		h.forward(o, x, logits)
	}
	return logits
}

// unhook removes a hook.
func (c *classifier) unhook(h forwardHook) {
	c.hooks = slices.DeleteFunc(c.hooks, func(other forwardHook) bool { return other == h })
}

// Features maps x [n features] to what the last layer reads, [n hidden].
func (c *classifier) Features(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	for _, l := range c.layers[:len(c.layers)-1] {
		x = o.ReLU(l.Forward(o, x))
	}
	return x
}

// Parameters lists them from the input to the output.
func (c *classifier) Parameters() []*engine.Tensor {
	var modules []nn.Module
	for _, l := range c.layers {
		modules = append(modules, l)
	}
	return nn.Parameters(modules...)
}

// optimizer is what all optimizers of package optim do.
type optimizer interface {
	Add(parameters ...*engine.Tensor)
	Step()
	Release()
}

// trainer is the training that most programs of the corpus share: a classifier of
// generated clusters, with batches that wait on the device, an optimizer with
// state, an evaluation at an interval, and some of what programs like to keep from
// one step to the next. A workload adds its own at the places.
type trainer struct {
	config  Config
	draws   draws
	sizes   sizes
	ops     *autodiff.Ops
	model   *classifier
	descent optimizer
	data    *clusters
	queue   []*batch // on the device, next ones first
	ahead   int      // how many wait there
	keepers []keeper
	right   *metric.Accuracy // of the evaluation under way
	on      places
	// accumulate is how many batches give their gradients to one step of the
	// optimizer.
	accumulate int64
	// sequences says that the rows of a batch are one sequence, whose length the
	// metrics name.
	sequences bool
	// program is the workload around the trainer.
	program  any
	steps    int64
	counts   map[string]Count
	measured []float64
}

// places are where a workload adds to the training. Each may be nil. What they
// compute on the way is released after the step.
type places struct {
	// input is what the model reads of a batch, in training and in evaluations, where
	// o does not record; the batch's x where it is nil.
	input func(o engine.Ops, b *batch) *engine.Tensor
	// loss is what is to fall, from the loss of the batch; that itself where it is nil.
	loss func(b *batch, logits, loss *engine.Tensor) *engine.Tensor
	// before comes before the forward pass of a training step.
	before func()
	// step comes after the optimizer's, with the logits of the batch.
	step func(b *batch, logits *engine.Tensor) error
	// epoch comes after the last step of each, before the barrier.
	epoch func() error
	// evaluated comes after each batch of an evaluation, with its logits.
	evaluated func(b *batch, logits *engine.Tensor) error
	// evaluation comes after the last of these batches.
	evaluation func() error
	// checkpoint comes every checkpointEvery steps, as a phase of its own.
	checkpoint      func() error
	checkpointEvery int64
	// close releases what the workload holds.
	close func()
}

// shared is the New of a program on the shared training: attach adds to its places
// and returns the program, which Model is. What attach made before an error, its
// close place releases.
func shared(id string, attach func(*trainer) (any, error)) func(Config) (Instance, error) {
	return func(c Config) (Instance, error) {
		d := draws{id, c.Seed}
		return attached(c, d, d.sizes(), attach)
	}
}

// attached is shared for a program that has chosen its sizes.
func attached(c Config, d draws, s sizes, attach func(*trainer) (any, error)) (Instance, error) {
	t, err := newTrainer(c, d, s)
	if err != nil {
		return nil, err
	}
	if t.program, err = attach(t); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// newTrainer makes parameters, and draws all else but the sizes.
func newTrainer(c Config, d draws, s sizes) (*trainer, error) {
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	t := &trainer{
		config: c, draws: d, sizes: s, ops: o, counts: make(map[string]Count), accumulate: 1,
		data: newClusters(d, s), ahead: d.between("ahead", 0, 3), right: metric.NewAccuracy(o.Valid()),
	}
	t.keepers = someKeepers(t)
	err := engine.Run(o, func(*engine.Scope) error {
		t.model = newClassifier(o, engine.NewRandom(uint64(c.Seed)), s)
		nn.Keep(t.model)
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Track(t.model.Parameters()...)
	if d.optimizer() == 0 {
		t.descent = optim.NewSGD(o, t.model.Parameters(), 0.05, 0.9)
	} else {
		t.descent = optim.NewAdam(o, t.model.Parameters(), 0.003)
	}
	return t, nil
}

// Step trains on one batch.
func (t *trainer) Step() (m train.Metrics, err error) {
	err = engine.Run(t.ops, func(*engine.Scope) error {
		b := t.next()
		m = t.metrics(b)
		if t.on.before != nil {
			t.on.before()
		}
		logits := t.forward(t.ops, b)
		loss := engine.CrossEntropy(t.ops, logits, b.labels, nil)
		if t.on.loss != nil {
			loss = t.on.loss(b, logits, loss)
		}
		if err := t.ops.Backward(loss); err != nil { //held:D07
			return err
		}
		if (t.steps+1)%t.accumulate == 0 {
			t.descent.Step() //held:D01 held:D02 held:D14
		}
		m.Loss = float64(t.ops.Floats(loss)[0])
		return t.afterStep(b, logits, m)
	})
	return m, err
}

// forward maps what the model reads of a batch to logits.
func (t *trainer) forward(o engine.Ops, b *batch) *engine.Tensor {
	x := b.x
	if t.on.input != nil {
		x = t.on.input(o, b)
	}
	return t.model.Forward(o, x)
}

// train has more parameters trained, and by the same optimizer.
func (t *trainer) train(parameters ...*engine.Tensor) {
	t.ops.Track(parameters...)
	t.descent.Add(parameters...)
}

// afterStep does what comes after a step.
func (t *trainer) afterStep(b *batch, logits *engine.Tensor, m train.Metrics) error {
	t.steps++
	for _, k := range t.keepers {
		k.step(t.ops.Valid(), b, logits)
	}
	if t.on.step != nil {
		if err := t.on.step(b, logits); err != nil {
			return err
		}
	}
	if m.EpochEnd {
		for _, k := range t.keepers {
			k.epoch(t.ops.Valid())
		}
		if t.on.epoch != nil {
			if err := t.on.epoch(); err != nil {
				return err
			}
		}
	}
	return t.ops.Sync()
}

// metrics are those of the step that is under way; the loss is left out.
func (t *trainer) metrics(b *batch) train.Metrics {
	epoch := int64(t.sizes.epoch)
	m := train.Metrics{
		Epoch: t.steps / epoch, EpochEnd: (t.steps+1)%epoch == 0,
		BatchElements: int64(b.x.Shape().Elements()),
	}
	if t.sequences {
		m.SequenceLength = b.rows()
	}
	return m
}

// next hands the next batch over. Those that wait after it count for the cache.
func (t *trainer) next() *batch {
	for len(t.queue) <= t.ahead {
		b := t.data.batch(t.steps + int64(len(t.queue))).upload(t.ops)
		b.x.Own(snapshot.OwnedByCache)
		b.labels.Own(snapshot.OwnedByCache)
		t.queue = append(t.queue, b)
	}
	b := t.queue[0]
	t.queue = t.queue[1:]
	return b.handOver(t.ops)
}

// Phases is an evaluation at an interval, and a checkpoint where the workload has
// one.
func (t *trainer) Phases() []train.Phase {
	phases := []train.Phase{{
		Name: train.Evaluating, When: train.Interval{Every: int64(t.sizes.evalEvery)}, Steps: int64(t.sizes.evalSteps),
		Step: t.evaluate, Done: t.evaluated,
	}}
	if t.on.checkpoint != nil {
		phases = append(phases, train.Phase{
			Name: train.Checkpointing, When: train.Interval{Every: t.on.checkpointEvery},
			Step: func(int64) (train.Metrics, error) {
				return train.Metrics{}, engine.Run(t.ops, func(*engine.Scope) error { return t.on.checkpoint() })
			},
		})
	}
	return phases
}

// evaluate looks at one batch held out.
func (t *trainer) evaluate(i int64) (m train.Metrics, err error) {
	v := t.ops.Valid()
	err = engine.Run(v, func(*engine.Scope) error {
		b := t.data.heldOut(i).upload(v)
		b.heldOut = true
		m = t.metrics(b)
		logits := t.forward(v, b)
		t.right.Update(logits, b.labels)
		m.Loss = float64(v.Floats(engine.CrossEntropy(v, logits, b.labels, nil))[0])
		if t.on.evaluated != nil {
			if err := t.on.evaluated(b, logits); err != nil {
				return err
			}
		}
		return v.Sync()
	})
	return m, err
}

func (t *trainer) evaluated(snapshot.Mark, float64) error {
	return engine.Run(t.ops, func(*engine.Scope) error {
		t.measure(t.right.Compute())
		t.right.Reset()
		if t.on.evaluation != nil {
			return t.on.evaluation()
		}
		return nil
	})
}

// adds counts one time that a growth adds the usual amount.
func (t *trainer) adds(marker string) { t.addsUnits(marker, 1) }

// addsUnits counts one time that a growth adds so many units.
func (t *trainer) addsUnits(marker string, units int64) {
	n := t.counts[marker]
	t.counts[marker] = Count{n.Times + 1, n.Units + units}
}

// Count is how often a growth has added.
func (t *trainer) Count(marker string) Count { return t.counts[marker] }

// measure notes a metric.
func (t *trainer) measure(value float64) { t.measured = append(t.measured, value) }

// Measured lists the accuracy of each evaluation, and what the workload measures.
func (t *trainer) Measured() []float64 { return slices.Clone(t.measured) }

// Model is the workload around the trainer.
func (t *trainer) Model() any { return t.program }

// Close releases everything.
func (t *trainer) Close() error {
	if t.on.close != nil {
		t.on.close()
	}
	for _, k := range t.keepers {
		k.release()
	}
	for _, b := range t.queue {
		b.x.Release()
		b.labels.Release()
	}
	t.right.Reset()
	t.descent.Release()
	nn.Release(t.model)
	return nil
}

// clusters are points around one centre for each class.
type clusters struct {
	draws   draws
	sizes   sizes
	centres [][]float32
	// rows are those of a step's batch, from those of sizes give or take the noise; nil
	// for these.
	rows func(step int64, usual int) int
}

func newClusters(d draws, s sizes) *clusters {
	rng := d.stream("centres")
	c := &clusters{draws: d, sizes: s}
	for range s.classes {
		centre := make([]float32, s.features)
		for i := range centre {
			centre[i] = rng.Float32()
		}
		c.centres = append(c.centres, centre)
	}
	return c
}

// batch draws the batch of one step, with as many rows as the noise of sizes gives it.
func (c *clusters) batch(step int64) hostBatch {
	rng := rand.New(rand.NewPCG(uint64(c.draws.seed), uint64(step)))
	spread := 2*rng.Float64() - 1
	rows := c.sizes.rows + int(c.sizes.noise*spread*float64(c.sizes.rows))
	if c.rows != nil {
		rows = c.rows(step, rows)
	}
	return c.draw(rng, step, rows)
}

// heldOut draws one of those held out, which have equal sizes.
func (c *clusters) heldOut(i int64) hostBatch {
	return c.draw(rand.New(rand.NewPCG(^uint64(c.draws.seed), uint64(i))), i, c.sizes.rows)
}

func (c *clusters) draw(rng *rand.Rand, step int64, rows int) hostBatch {
	h := hostBatch{step: step, features: c.sizes.features, x: make([]float32, 0, rows*c.sizes.features), labels: make([]int32, rows)}
	for i := range h.labels {
		class := rng.IntN(len(c.centres))
		h.labels[i] = int32(class)
		for _, at := range c.centres[class] {
			h.x = append(h.x, at+0.4*rng.Float32())
		}
	}
	return h
}

// hostBatch is a batch in the machine's own memory.
type hostBatch struct {
	step     int64
	features int
	x        []float32
	labels   []int32
}

func (h hostBatch) upload(o engine.Ops) *batch {
	return &batch{step: h.step, x: o.FromFloats(h.x, len(h.labels), h.features), labels: o.FromInts(h.labels, len(h.labels))}
}

// batch is a batch on the device.
type batch struct {
	step   int64
	x      *engine.Tensor // [rows features]
	labels *engine.Tensor // int32 [rows]
	// heldOut is true in an evaluation.
	heldOut bool
}

func (b *batch) rows() int64 { return int64(b.labels.Dim(0)) }

// handOver moves the batch into the innermost open scope.
func (b *batch) handOver(o engine.Ops) *batch {
	over := &batch{step: b.step, x: o.Detach(b.x), labels: o.Detach(b.labels)}
	b.x.Release()
	b.labels.Release()
	return over
}

// releaseOne gives a tensor back, if there is one, and forgets it.
func releaseOne(t **engine.Tensor) {
	if *t != nil {
		(*t).Release()
	}
	*t = nil
}

// releaseAll gives tensors back and empties the list.
func releaseAll(ts *[]*engine.Tensor) {
	for _, t := range *ts {
		t.Release()
	}
	*ts = nil
}

// releaseMap gives a map's tensors back and empties it.
func releaseMap[K comparable](m map[K]*engine.Tensor) {
	for t := range maps.Values(m) {
		t.Release()
	}
	clear(m)
}
