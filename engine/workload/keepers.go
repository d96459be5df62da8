package workload

import (
	"math/bits"
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/metric"
)

// keeper is something that a training rightly keeps on the device from one step to
// the next. Whoever looks for leaks must let it be.
type keeper interface {
	// step sees each batch with its logits, and keeps what it likes.
	step(v engine.Ops, b *batch, logits *engine.Tensor)
	// epoch comes after the last step of each.
	epoch(v engine.Ops)
	release()
}

// report takes a figure that a keeper has of its training.
type report func(value float64)

// someKeepers draws which ones a training has.
func someKeepers(t *trainer) []keeper {
	d, report := t.draws, report(t.measure)
	all := []keeper{
		&lastOutput{report: report},
		&runningAccuracy{report: report},
		&confidences{report: report, capacity: d.between("loss window", 3, 12)},
		&epochPredictions{report: report, classes: t.sizes.classes},
		&inputMeans{report: report, capacity: d.between("scratch", 3, 8), rng: d.stream("scratch walk")},
		&classCounts{report: report, classes: t.sizes.classes},
		&rowWeights{report: report, bySize: make(map[int]*engine.Tensor)},
		&workspace{report: report},
	}
	rng := d.stream("keepers")
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:rng.IntN(len(all)+1)]
}

// surest is the log of the largest chance in each row of logits.
func surest(v engine.Ops, logits *engine.Tensor) *engine.Tensor {
	return v.MaxOver(v.LogSoftmax(logits), 1)
}

// lastOutput is a variable of the loop's body: in many languages its value lives
// until the next step has another.
type lastOutput struct {
	report report
	logits *engine.Tensor
}

func (k *lastOutput) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	k.release()
	k.logits = v.Detach(logits).Keep()
}

func (k *lastOutput) epoch(v engine.Ops) { k.report(float64(v.Floats(engine.Mean(v, k.logits))[0])) }

func (k *lastOutput) release() { releaseOne(&k.logits) }

// runningAccuracy is the accuracy over the epoch's batches.
type runningAccuracy struct {
	report report
	right  *metric.Accuracy
}

func (k *runningAccuracy) step(v engine.Ops, b *batch, logits *engine.Tensor) {
	if k.right == nil {
		k.right = metric.NewAccuracy(v)
	}
	k.right.Update(logits, b.labels)
}

func (k *runningAccuracy) epoch(engine.Ops) {
	k.report(k.right.Compute())
	k.release()
}

func (k *runningAccuracy) release() {
	if k.right != nil {
		k.right.Reset()
	}
}

// confidences is a ring of how sure the model was of the last batches.
type confidences struct {
	report   report
	capacity int
	ring     []*engine.Tensor
}

func (k *confidences) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	if len(k.ring) == k.capacity {
		k.ring[0].Release()
		k.ring = k.ring[1:]
	}
	k.ring = append(k.ring, engine.Mean(v, surest(v, logits)).Keep())
}

func (k *confidences) epoch(v engine.Ops) {
	var sum float64
	for _, c := range k.ring {
		sum += float64(v.Floats(c)[0])
	}
	k.report(sum / float64(len(k.ring)))
}

func (k *confidences) release() { releaseAll(&k.ring) }

// epochPredictions are gathered over an epoch, for the share of each class at its
// end.
type epochPredictions struct {
	report    report
	classes   int
	predicted []*engine.Tensor
}

func (k *epochPredictions) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	k.predicted = append(k.predicted, v.ArgMax(logits, 1).Keep())
}

func (k *epochPredictions) epoch(v engine.Ops) {
	all := v.Concat(0, k.predicted...)
	k.report(float64(v.Floats(v.MaxOver(countClasses(v, all, k.classes), 0))[0]) / float64(all.Dim(0)))
	releaseAll(&k.predicted)
}

func (k *epochPredictions) release() { releaseAll(&k.predicted) }

// countClasses counts how often each class is among int32 [n]: [classes].
func countClasses(v engine.Ops, labels *engine.Tensor, classes int) *engine.Tensor {
	return v.Reshape(v.ScatterAdd(v.Full(1, labels.Dim(0), 1), labels, classes), classes)
}

// inputMeans are what batches are on average, until a monitor takes them, which now
// is quicker than the training and now slower.
type inputMeans struct {
	report   report
	capacity int
	rng      *rand.Rand
	waiting  []*engine.Tensor // [features]
}

func (k *inputMeans) step(v engine.Ops, b *batch, _ *engine.Tensor) {
	switch more := k.rng.IntN(2) == 0; {
	case more && len(k.waiting) < k.capacity:
		k.waiting = append(k.waiting, engine.Mean(v, b.x, 0).Keep())
	case !more && len(k.waiting) > 0:
		k.report(float64(v.Floats(v.MaxOver(k.waiting[0], 0))[0]))
		k.waiting[0].Release()
		k.waiting = k.waiting[1:]
	}
}

func (k *inputMeans) epoch(engine.Ops) {}

func (k *inputMeans) release() { releaseAll(&k.waiting) }

// classCounts counts how often each class was predicted, in place.
type classCounts struct {
	report  report
	classes int
	counts  *engine.Tensor
}

func (k *classCounts) step(v engine.Ops, _ *batch, logits *engine.Tensor) {
	seen := countClasses(v, v.ArgMax(logits, 1), k.classes)
	if k.counts == nil {
		k.counts = seen.Keep()
		return
	}
	v.Assign(k.counts, v.Add(k.counts, seen))
}

func (k *classCounts) epoch(v engine.Ops) { k.report(float64(v.Floats(v.MaxOver(k.counts, 0))[0])) }

func (k *classCounts) release() { releaseOne(&k.counts) }

// rowWeights are what the rows of a batch are averaged by, later ones more: made
// once for each size that comes, rounded up to a power of two.
type rowWeights struct {
	report report
	bySize map[int]*engine.Tensor // [size]
}

func (k *rowWeights) step(v engine.Ops, b *batch, logits *engine.Tensor) {
	rows := int(b.rows())
	size := 1 << bits.Len(uint(rows-1))
	if k.bySize[size] == nil {
		weights := make([]float32, size)
		for i := range weights {
			weights[i] = float32(i+1) / float32(size)
		}
		k.bySize[size] = v.FromFloats(weights, size).Keep()
	}
	weighted := v.Mul(surest(v, logits), v.Slice(k.bySize[size], 0, 0, rows))
	k.report(float64(v.Floats(v.Sum(weighted))[0]))
}

func (k *rowWeights) epoch(engine.Ops) {}

func (k *rowWeights) release() { releaseMap(k.bySize) }

// workspace is as large as the largest batch until now had use for. Batches are
// squared in it.
type workspace struct {
	report report
	space  *engine.Tensor
}

func (k *workspace) step(v engine.Ops, b *batch, _ *engine.Tensor) {
	need := b.x.Shape().Elements()
	if k.space == nil || k.space.Dim(0) < need {
		k.release()
		k.space = v.Full(0, need).Keep()
	}
	used := v.Slice(k.space, 0, 0, need)
	v.Assign(used, v.Reshape(v.Mul(b.x, b.x), need))
	k.report(float64(v.Floats(v.Sum(used))[0]))
}

func (k *workspace) epoch(engine.Ops) {}

func (k *workspace) release() { releaseOne(&k.space) }
