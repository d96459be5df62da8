package metric

import (
	"cmp"
	"math"
	"slices"

	"github.com/memdiag/memdiag/engine"
)

// AUROC is the area under the receiver's curve of a two-class score: the
// probability that a positive scores above a negative, ties by half. It needs the
// rank of every score among all, so its state is a list.
type AUROC struct {
	scores *List
	labels *List
}

// NewAUROC returns an empty area.
func NewAUROC(o engine.Ops) *AUROC { return &AUROC{NewList(o), NewList(o)} }

// Update takes up scores [m] with labels int32 [m]: 0 is negative, and all
// else positive.
func (a *AUROC) Update(scores, labels *engine.Tensor) {
	if scores.Shape().Rank != 1 || labels.Shape() != scores.Shape() {
		panic(&engine.Error{Op: "auroc", Reason: "scores [m] and labels [m] are needed", Shapes: []engine.Shape{scores.Shape(), labels.Shape()}})
	}
	// Both copies or none: lists of unequal length would pair the wrong rows.
	scope := a.scores.ops.Begin()
	defer scope.End()
	s, l := a.scores.ops.Copy(scores), a.labels.ops.Copy(labels)
	a.scores.keep([]*engine.Tensor{s})
	a.labels.keep([]*engine.Tensor{l})
}

// Compute waits for the device and returns the area, in [0,1]; NaN unless there
// were positives and negatives, and none of the scores is NaN.
func (a *AUROC) Compute() float64 {
	if a.scores.Len() == 0 {
		return math.NaN()
	}
	o := a.scores.ops
	scope := o.Begin()
	defer scope.End()
	return area(o.Floats(a.scores.Compute()), o.Ints(a.labels.Compute()))
}

// area sums the ranks of the positives (Mann and Whitney 1947); equal scores
// share the mean of their ranks.
func area(scores []float32, labels []int32) float64 {
	order := make([]int, len(scores))
	for i := range order {
		if math.IsNaN(float64(scores[i])) {
			return math.NaN()
		}
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(scores[i], scores[j]) })
	positives, ranks := 0.0, 0.0
	for from := 0; from < len(order); {
		to := from
		inTie := 0.0
		for ; to < len(order) && scores[order[to]] == scores[order[from]]; to++ {
			if labels[order[to]] != 0 {
				inTie++
			}
		}
		ranks += inTie * float64(from+1+to) / 2
		positives += inTie
		from = to
	}
	negatives := float64(len(scores)) - positives
	return (ranks - positives*(positives+1)/2) / (positives * negatives)
}

// Reset forgets everything and gives the state back.
func (a *AUROC) Reset() {
	a.scores.Reset()
	a.labels.Reset()
}

// Clone is an area over the same scores with state of its own.
func (a *AUROC) Clone() *AUROC {
	c := NewAUROC(a.scores.ops)
	c.Merge(a)
	return c
}

// Merge takes up what another area was given; see List.
func (a *AUROC) Merge(other *AUROC) {
	scope := a.scores.ops.Begin()
	defer scope.End()
	scores, labels := a.scores.copies(other.scores), a.labels.copies(other.labels)
	a.scores.keep(scores)
	a.labels.keep(labels)
}
