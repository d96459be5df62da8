// Package metric measures over many batches: what one step can tell is gathered
// in state on the device and read once, at the end.
//
// Every metric has Update, Compute and Reset. Its state is made by
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

// add takes a scalar up, or panics with the sum as it was where the device is full.
func (s *sum) add(x *engine.Tensor) {
	o := s.ops
	scope := o.Begin()
	defer scope.End()
	if s.total == nil {
		total, lost := o.Copy(x), o.Full(0)
		s.total, s.lost = total.Keep(), lost.Keep()
		return
	}
	total := o.Add(s.total, x)
	added := o.Sub(total, s.total)
	off := o.Add(o.Sub(s.total, o.Sub(total, added)), o.Sub(x, added))
	o.Assign(s.lost, o.Add(s.lost, off))
	o.Assign(s.total, total)
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
