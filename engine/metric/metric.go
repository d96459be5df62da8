// Package metric measures over many batches: what one step can tell is gathered
// in state on the device and read once, at the end.
//
// Every metric has Update, Compute, Reset, Clone and Merge. Its state is made by
// the first Update and outlives scopes; whoever made the metric owes a Reset, which
// gives it back. Nothing of it is tracked: updates keep no graph alive. Sum-state
// metrics (Mean, Accuracy) hold two numbers; list-state metrics (List, AUROC) hold
// a copy of all that they were given until they are reset.
package metric

import (
	"math"

	"github.com/memdiag/memdiag/engine"
)

// sum adds numbers up on the device without losing the small ones: float32 alone
// stops counting at 2^24. What each addition rounds off is found exactly (Knuth,
// "The art of computer programming", 4.2.2) and added up apart, which leaves about
// 48 bits. The zero value with ops is empty.
type sum struct {
	ops   engine.Ops
	total *engine.Tensor // scalar; nil while nothing was added
	lost  *engine.Tensor // scalar, what was rounded off total
}

// add takes scalars up: all of them, or none where the device is full.
func (s *sum) add(terms ...*engine.Tensor) {
	o := s.ops
	scope := o.Begin()
	defer scope.End()
	sum, lost := s.total, s.lost
	for _, x := range terms {
		if sum == nil {
			sum, lost = o.Copy(x), o.Full(0)
			continue
		}
		total := o.Add(sum, x)
		added := o.Sub(total, sum)
		off := o.Add(o.Sub(sum, o.Sub(total, added)), o.Sub(x, added))
		sum, lost = total, o.Add(lost, off)
	}
	if s.total == nil {
		s.total, s.lost = sum.Keep(), lost.Keep()
		return
	}
	o.Assign(s.lost, lost)
	o.Assign(s.total, sum)
}

// value reads the sum; it waits for the device.
func (s *sum) value() float64 {
	if s.total == nil {
		return 0
	}
	total := float64(s.ops.Floats(s.total)[0])
	if math.IsInf(total, 0) { // and what it lost is NaN
		return total
	}
	return total + float64(s.ops.Floats(s.lost)[0])
}

// reset gives the state back.
func (s *sum) reset() {
	if s.total != nil {
		s.total.Release()
		s.lost.Release()
		s.total, s.lost = nil, nil
	}
}

// clone is a sum of the same value with state of its own.
func (s *sum) clone() sum {
	c := sum{ops: s.ops}
	if s.total != nil {
		scope := s.ops.Begin()
		defer scope.End()
		total, lost := s.ops.Copy(s.total), s.ops.Copy(s.lost)
		c.total, c.lost = total.Keep(), lost.Keep()
	}
	return c
}

// merge adds another sum up, which may lie on another device: it comes by way of
// the host, in two numbers, so that it keeps its digits.
func (s *sum) merge(other *sum) {
	if other.total == nil {
		return
	}
	v := other.value()
	large, small := float32(v), float32(0)
	if !math.IsInf(float64(large), 0) {
		small = float32(v - float64(large))
	}
	scope := s.ops.Begin()
	defer scope.End()
	s.add(s.ops.Full(large), s.ops.Full(small))
}
