package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/metric"
)

// keeper is something that a training rightly keeps on the device from one step to
// the next. Whoever looks for leaks must let it be.
type keeper interface {
	// step sees each batch with its logits, and keeps what it likes.
	step(v engine.Ops, b *batch, logits *engine.Tensor)
	epoch()
	release()
}

// someKeepers draws which ones a training has.
func someKeepers(d draws, s sizes) []keeper {
	all := []keeper{
		&lastOutput{},
		&runningAccuracy{},
		&lossWindow{capacity: d.between("loss window", 3, 12)},
		&epochPredictions{},
		&scratch{capacity: d.between("scratch", 3, 8), rng: d.stream("scratch walk"), size: d.between("scratch size", 64, 512)},
		&classCounts{classes: s.classes},
		&scalesBySize{bySize: make(map[int64]*engine.Tensor)},
		&highWater{},
	}
	rng := d.stream("keepers")
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:rng.IntN(len(all)+1)]
}

// lastOutput is a variable of the loop's body: in many languages its value lives
// until the next step has another.
type lastOutput struct{ logits *engine.Tensor }

func (k *lastOutput) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	k.release()
	k.logits = v.Detach(logits).Keep()
}

func (k *lastOutput) epoch() {}

func (k *lastOutput) release() {
	if k.logits != nil {
		k.logits.Release()
		k.logits = nil
	}
}

// runningAccuracy is that of the epoch's batches.
type runningAccuracy struct{ right *metric.Accuracy }

func (k *runningAccuracy) step(v engine.Ops, b *batch, logits *engine.Tensor) {
	if k.right == nil {
		k.right = metric.NewAccuracy(v)
	}
	k.right.Update(logits, b.labels)
}

func (k *runningAccuracy) epoch() { k.release() }

func (k *runningAccuracy) release() {
	if k.right != nil {
		k.right.Reset()
	}
}

// lossWindow is a ring of the confidence in the last batches.
type lossWindow struct {
	capacity int
	ring     []*engine.Tensor
}

func (k *lossWindow) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	if len(k.ring) == k.capacity {
		k.ring[0].Release()
		k.ring = k.ring[1:]
	}
	k.ring = append(k.ring, engine.Mean(v, v.MaxOver(v.LogSoftmax(logits), 1)).Keep())
}

func (k *lossWindow) epoch() {}

func (k *lossWindow) release() { releaseAll(&k.ring) }

// epochPredictions are gathered over an epoch, for a table of confusions at its
// end.
type epochPredictions struct{ predicted []*engine.Tensor }

func (k *epochPredictions) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	k.predicted = append(k.predicted, v.ArgMax(logits, 1).Keep())
}

func (k *epochPredictions) epoch() { releaseAll(&k.predicted) }

func (k *epochPredictions) release() { releaseAll(&k.predicted) }

// scratch is a pool of buffers whose number follows a demand that comes and goes.
type scratch struct {
	capacity, size int
	rng            *rand.Rand
	buffers        []*engine.Tensor
}

func (k *scratch) step(v engine.Ops, _ *batch, _ *engine.Tensor) {
	switch up := k.rng.IntN(2) == 0; {
	case up && len(k.buffers) < k.capacity:
		k.buffers = append(k.buffers, v.Full(0, k.size).Keep())
	case !up && len(k.buffers) > 0:
		last := len(k.buffers) - 1
		k.buffers[last].Release()
		k.buffers = k.buffers[:last]
	}
}

func (k *scratch) epoch() {}

func (k *scratch) release() { releaseAll(&k.buffers) }

// classCounts counts how often each class was predicted, in place.
type classCounts struct {
	classes int
	counts  *engine.Tensor
}

func (k *classCounts) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	ones := v.Full(1, logits.Dim(0), 1)
	seen := v.ScatterAdd(ones, v.ArgMax(logits, 1), k.classes)
	if k.counts == nil {
		k.counts = seen.Keep()
		return
	}
	v.Assign(k.counts, v.Add(k.counts, seen))
}

func (k *classCounts) epoch() {}

func (k *classCounts) release() {
	if k.counts != nil {
		k.counts.Release()
		k.counts = nil
	}
}

// scalesBySize are what batches are weighed by, made once for each size that comes,
// in eights.
type scalesBySize struct{ bySize map[int64]*engine.Tensor }

func (k *scalesBySize) step(v engine.Ops, b *batch, _ *engine.Tensor) {
	const rounded = 8
	size := (b.rows() + rounded - 1) / rounded
	if k.bySize[size] == nil {
		k.bySize[size] = v.Full(1/float32(size*rounded), int(size)*rounded).Keep()
	}
}

func (k *scalesBySize) epoch() {}

func (k *scalesBySize) release() { releaseMap(k.bySize) }

// highWater is a workspace as large as the largest batch until now had use for.
type highWater struct{ space *engine.Tensor }

func (k *highWater) step(v engine.Ops, b *batch, _ *engine.Tensor) {
	need := b.x.Shape().Elements()
	if k.space != nil && k.space.Shape().Elements() >= need {
		return
	}
	k.release()
	k.space = v.Full(0, need).Keep()
}

func (k *highWater) epoch() {}

func (k *highWater) release() {
	if k.space != nil {
		k.space.Release()
		k.space = nil
	}
}
