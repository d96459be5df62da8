package metric

import "github.com/memdiag/memdiag/engine"

// Accuracy is the share of rows whose largest logit is their label's.
type Accuracy struct {
	right Mean
}

// NewAccuracy returns an empty accuracy; it takes no device memory before Update.
func NewAccuracy(o engine.Ops) *Accuracy { return &Accuracy{right: *NewMean(o)} }

// Update takes up logits [m classes] with labels int32 [m]. Of equal logits the
// first counts. A label outside the classes is an error that Sync returns.
func (a *Accuracy) Update(logits, labels *engine.Tensor) {
	o := a.right.sum.ops
	scope := o.Begin()
	defer scope.End()
	a.right.Update(hits(o, logits, labels))
}

// hits is 1 where the largest logit is the label's, else 0: [m 1]. Numbers are
// compared as floats, since comparing is for those.
func hits(o engine.Ops, logits, labels *engine.Tensor) *engine.Tensor {
	if s := logits.Shape(); s.Rank != 2 || labels.Shape() != engine.ShapeOf(s.Dims[0]) {
		panic(&engine.Error{Op: "accuracy", Reason: "logits [m classes] and labels [m] are needed", Shapes: []engine.Shape{s, labels.Shape()}})
	}
	numbers := make([]float32, logits.Dim(1))
	for i := range numbers {
		numbers[i] = float32(i)
	}
	table := o.FromFloats(numbers, len(numbers), 1)
	return o.Equal(o.Gather(table, o.ArgMax(logits, 1)), o.Gather(table, labels))
}

// Compute waits for the device and returns the share, in [0,1]; NaN of no rows.
func (a *Accuracy) Compute() float64 { return a.right.Compute() }

// Reset forgets everything and gives the state back.
func (a *Accuracy) Reset() { a.right.Reset() }

// Clone is an accuracy of the same rows with state of its own.
func (a *Accuracy) Clone() *Accuracy { return &Accuracy{right: *a.right.Clone()} }

// Merge takes up what another accuracy was given; see Mean.
func (a *Accuracy) Merge(other *Accuracy) { a.right.Merge(&other.right) }
