package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// ranks is how many train together in the distributed programs.
const ranks = 3

// distributedPrograms are programs of several ranks.
func distributedPrograms() []Workload {
	distributed := func(id, alias, title string, label Label, cause string, growth func(d draws) Growth) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: label, Families: []Family{Distributed}, Ranks: ranks, Cause: cause,
			Truth: func(seed int64) Truth {
				g := growth(draws{id, seed})
				return Truth{Steps: rhythm{g.Every, g.First}.runFor(15), Growth: []Growth{g}}
			},
			New: func(c Config) (Instance, error) { return newFleet(c, id) },
		}
	}
	return []Workload{
		distributed("L22", "gathered-targets", "each rank weighs classes by the targets of all, and keeps the targets that it gathered", Leak, "collective-buffers-kept", func(d draws) Growth {
			beat := d.rhythm()
			return Growth{
				Marker: "L22", Event: PerStep, Every: beat.every, First: beat.first, Blocks: ranks, Bytes: snapshot.Bytes(4 * ranks * ranks * fleetOf(d).rows),
				Shape: Linear, Owner: snapshot.OwnedByComm,
			}
		}),
		distributed("L37", "one-rank", "one rank of several keeps its predictions, for a log that the others have not", Leak, "values-kept-as-tensors", func(d draws) Growth {
			beat, f := d.rhythm(), fleetOf(d)
			return Growth{
				Marker: "L37", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * f.rows * f.outputs),
				Shape: Linear, Owner: snapshot.OwnedByUser,
			}
		}),
		distributed("D20", "buckets-rebuilt", "gradients are averaged through a bucket, which is rebuilt in the second step, larger", Bounded, "", func(d draws) Growth {
			g := Growth{
				Marker: "D20", Event: PerRebuild, Every: 1, First: 1, Blocks: ranks, Bytes: snapshot.Bytes(4 * ranks * fleetOf(d).bucket()), Unit: "half",
				Shape: Linear, Owner: snapshot.OwnedByComm,
			}
			g.Bound = Amount{ranks, 2 * g.Bytes}
			return g
		}),
	}
}

// fleetSizes are the extents of a layer and of each rank's batch.
type fleetSizes struct{ rows, inputs, outputs, epoch int }

func fleetOf(d draws) fleetSizes {
	return fleetSizes{
		rows: d.between("rows", 4, 32), inputs: 4 * d.between("inputs", 2, 6), outputs: d.between("outputs", 3, 8),
		epoch: d.between("epoch", 9, 31),
	}
}

// bucket is the room of a bucket in the first step: half of the layer's gradients.
func (s fleetSizes) bucket() int { return (s.inputs*s.outputs + s.outputs + 1) / 2 }

// fleet trains one layer on several ranks, each on its own data.
type fleet struct {
	id      string
	config  Config
	sizes   fleetSizes
	beat    rhythm
	members []*member
	// ended carries what became of the ranks, once all have ended.
	ended  chan error
	broken error // of a step: the ranks have ended
	steps  int64
	times  int64 // that the growth has added
	// measured is what the first rank logs.
	measured []float64
}

// member is one rank, which works in a goroutine of its own from start to end.
type member struct {
	fleet    *fleet
	rank     *comm.Rank
	ops      *autodiff.Ops
	layer    *nn.Linear
	descent  *optim.SGD
	loss     float64
	gathered []*engine.Tensor // targets of all ranks, [ranks rows]
	weights  *engine.Tensor   // of classes, [outputs 1]; nil for equal ones
	logged   []*engine.Tensor // chances, [rows outputs]
	bucket   *engine.Tensor   // room for gradients; nil before the first step

	work chan bool // one for each step; closed at the end
	done chan error
}

func newFleet(c Config, id string) (Instance, error) {
	if len(c.Peers) != ranks-1 {
		return nil, fmt.Errorf("%s trains on %d ranks; %d peers are given", id, ranks, len(c.Peers))
	}
	d := draws{id, c.Seed}
	f := &fleet{id: id, config: c, sizes: fleetOf(d), beat: d.rhythm(), ended: make(chan error, 1)}
	devices := []*mem.Device{c.Device}
	kernels := []engine.Kernels{c.Kernels}
	for _, p := range c.Peers {
		devices, kernels = append(devices, p.Device), append(kernels, p.Kernels)
	}
	for range ranks {
		f.members = append(f.members, &member{fleet: f, work: make(chan bool), done: make(chan error, 1)})
	}
	next := 0
	group := comm.NewGroup(func() engine.Kernels {
		next++
		return kernels[next-1]
	}, devices...)
	go func() {
		f.ended <- group.Run(context.Background(), func(r *comm.Rank) error { return f.members[r.Index()].run(r) })
	}()
	if f.broken = f.wait(); f.broken != nil {
		return nil, errors.Join(f.broken, f.Close())
	}
	return f, nil
}

// wait returns when every rank has done what it was asked last.
func (f *fleet) wait() error {
	var wrong []error
	for _, m := range f.members {
		wrong = append(wrong, <-m.done)
	}
	return errors.Join(wrong...)
}

// Step trains one step on every rank.
func (f *fleet) Step() (train.Metrics, error) {
	epoch := int64(f.sizes.epoch)
	metrics := train.Metrics{
		Epoch: f.steps / epoch, EpochEnd: (f.steps+1)%epoch == 0,
		BatchElements: int64(ranks * f.sizes.rows * f.sizes.inputs),
	}
	if f.broken != nil {
		return metrics, f.broken
	}
	f.steps++
	for _, m := range f.members {
		m.work <- true
	}
	f.broken = f.wait()
	for _, m := range f.members {
		metrics.Loss += m.loss / ranks
	}
	return metrics, f.broken
}

// Count is how often the growth has added, on each rank that it is on.
func (f *fleet) Count(string) Count { return Count{f.times, f.times} }

// Measured lists how sure the first rank was of the batches that it logged.
func (f *fleet) Measured() []float64 { return f.measured }

// Model is the program itself.
func (f *fleet) Model() any { return f }

// Close ends the ranks, which release what they hold.
func (f *fleet) Close() error {
	for _, m := range f.members {
		close(m.work)
	}
	if err := <-f.ended; f.broken == nil {
		return err
	}
	return nil // Step has returned it
}

// run is a rank's life. It ends with an error, since other ranks would wait in a
// collective for one that goes on elsewhere.
func (m *member) run(r *comm.Rank) error {
	m.rank, m.ops = r, autodiff.New(r.Ops())
	err := engine.Run(m.ops, func(*engine.Scope) error {
		m.layer = nn.NewLinear(m.ops, engine.NewRandom(uint64(m.fleet.config.Seed)), m.fleet.sizes.inputs, m.fleet.sizes.outputs)
		nn.Keep(m.layer)
		return nil
	})
	if err == nil {
		defer m.release()
		m.ops.Track(m.layer.Parameters()...)
		m.descent = optim.NewSGD(m.ops, m.layer.Parameters(), 0.05, 0.9)
	}
	m.done <- err
	if err != nil {
		return err
	}
	for range m.work {
		err := engine.Run(m.ops, func(*engine.Scope) error { return m.step() })
		m.done <- err
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *member) release() {
	releaseAll(&m.gathered)
	releaseAll(&m.logged)
	releaseOne(&m.weights)
	releaseOne(&m.bucket)
	m.descent.Release()
	nn.Release(m.layer)
}

// step trains on a batch of the rank's own.
func (m *member) step() error {
	f := m.fleet
	rng := rand.New(rand.NewPCG(uint64(f.config.Seed), uint64(f.steps*ranks+int64(m.rank.Index()))))
	h := hostBatch{features: f.sizes.inputs, labels: make([]int32, f.sizes.rows)}
	for i := range h.labels {
		h.labels[i] = int32(rng.IntN(f.sizes.outputs))
		for k := range f.sizes.inputs {
			h.x = append(h.x, rng.Float32()+float32((k+int(h.labels[i]))%2))
		}
	}
	b := h.upload(m.ops)
	logits := m.layer.Forward(m.ops, b.x)
	loss := engine.CrossEntropy(m.ops, logits, b.labels, m.rowWeights(b))
	if err := m.ops.Backward(loss); err != nil {
		return err
	}
	average := m.rank.AverageGradients
	if f.id == "D20" {
		average = m.averageInBuckets
	}
	if err := average(m.layer.Parameters()); err != nil {
		return err
	}
	m.descent.Step()
	m.loss = float64(m.ops.Floats(loss)[0])
	return m.afterStep(b, logits)
}

// afterStep is what a workload does after a step, where it is due.
func (m *member) afterStep(b *batch, logits *engine.Tensor) error {
	f := m.fleet
	first := m.rank.Index() == 0
	switch {
	case f.id == "L22" && f.beat.due(f.steps):
		if err := m.weigh(b); err != nil {
			return err
		}
	case f.id == "L37" && f.beat.due(f.steps) && first:
		m.log(logits)
	case f.id == "D20" && f.steps <= 2:
	default:
		return m.ops.Sync()
	}
	if first {
		f.times++
	}
	return m.ops.Sync()
}

// weigh makes rare classes count for more, by the targets of all ranks.
func (m *member) weigh(b *batch) error {
	all, err := m.rank.AllGather(b.labels) //leak:L22
	if err != nil {
		return err
	}
	v, classes := m.ops.Valid(), m.fleet.sizes.outputs
	counts := countClasses(v, v.Reshape(all, all.Shape().Elements()), classes)
	releaseOne(&m.weights)
	m.weights = v.Recip(engine.Shift(v, v.Reshape(counts, classes, 1), 1)).Keep()
	if m.fleet.config.Fixed {
		all.Release()
	} else {
		m.gathered = append(m.gathered, all)
	}
	return nil
}

// rowWeights are those of a batch's classes; nil for equal ones.
func (m *member) rowWeights(b *batch) *engine.Tensor {
	if m.weights == nil {
		return nil
	}
	return m.ops.Reshape(m.ops.Gather(m.weights, b.labels), int(b.rows()))
}

// log notes how sure the rank is of a batch.
func (m *member) log(logits *engine.Tensor) {
	v := m.ops.Valid()
	chances := engine.Softmax(v, logits).Keep() //leak:L37
	m.logged = append(m.logged, chances)
	m.fleet.measured = append(m.fleet.measured, float64(v.Floats(engine.Mean(v, v.MaxOver(chances, 1)))[0]))
	if m.fleet.config.Fixed {
		releaseAll(&m.logged)
	}
}

// averageInBuckets puts the mean over all ranks in place of each gradient, as much at
// a time as the bucket has room for: half in the first step, and all once it is known
// in which order gradients come.
func (m *member) averageInBuckets(parameters []*engine.Tensor) error {
	f, v := m.fleet, m.ops.Valid()
	if f.steps <= 2 {
		releaseOne(&m.bucket)
		m.bucket = m.ops.Full(0, int(f.steps)*f.sizes.bucket()).Own(snapshot.OwnedByComm) //held:D20
	}
	var parts []*engine.Tensor
	for _, p := range parameters {
		parts = append(parts, v.Reshape(autodiff.Grad(p), p.Shape().Elements()))
	}
	flat := v.Concat(0, parts...)
	for from, room := 0, m.bucket.Dim(0); from < flat.Dim(0); from += room {
		chunk := v.Slice(flat, 0, from, min(from+room, flat.Dim(0)))
		filled := v.Slice(m.bucket, 0, 0, chunk.Dim(0))
		v.Assign(filled, chunk)
		if err := m.rank.AllReduce(filled); err != nil {
			return err
		}
		v.Assign(chunk, engine.Scale(v, filled, 1/float32(ranks)))
	}
	from := 0
	for _, part := range parts { // views of the gradients
		v.Assign(part, v.Slice(flat, 0, from, from+part.Dim(0)))
		from += part.Dim(0)
	}
	return nil
}
