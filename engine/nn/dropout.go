package nn

import "github.com/memdiag/memdiag/engine"

// Dropout zeroes elements at random in training, and scales the others so that
// the mean stays (Srivastava et al. 2014). It has no parameters. The zero value
// passes everything.
type Dropout struct {
	P      float32        // probability of a zero, in [0,1]
	Random *engine.Random // of the draws; each training pass takes one
}

// Forward maps x to its shape. In evaluation, or with P of 0, it is x itself.
func (d Dropout) Forward(o engine.Ops, x *engine.Tensor, mode Mode) *engine.Tensor {
	if mode == Eval || d.P == 0 {
		return x
	}
	if d.Random == nil {
		misuse("dropout", "a layer with P above 0 needs a Random to train", x)
	}
	return engine.Dropout(o, x, d.P, d.Random.Draw())
}
