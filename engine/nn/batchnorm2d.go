package nn

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
)

// BatchNorm2d standardizes every channel of an image: by the batch's own moments
// in training, by running ones in evaluation (Ioffe and Szegedy 2015).
type BatchNorm2d struct {
	Gain *engine.Tensor // [c]
	Bias *engine.Tensor // [c]
	// Mean and Variance [c] follow the batches' moments. They are state, not
	// parameters: a training pass writes them in place, outside of any graph.
	Mean     *engine.Tensor
	Variance *engine.Tensor
	Momentum float32 // share of a new batch in the running moments
	Epsilon  float32 // added to the variance
}

// NewBatchNorm2d makes a layer of c channels with gain 1, bias 0, running mean 0
// and variance 1, momentum 0.1 and epsilon 1e-5.
func NewBatchNorm2d(o engine.Ops, c int) *BatchNorm2d {
	return &BatchNorm2d{
		Gain: o.Full(1, c), Bias: o.Full(0, c), Mean: o.Full(0, c), Variance: o.Full(1, c),
		Momentum: 0.1, Epsilon: 1e-5,
	}
}

// Forward maps x [n c h w] to [n c h w]. In training the running variance takes up
// the batch's with n·h·w - 1 as its divisor, so a channel needs two elements.
func (b *BatchNorm2d) Forward(o engine.Ops, x *engine.Tensor, mode Mode) *engine.Tensor {
	if x.Shape().Rank != 4 || x.Dim(1) != b.Gain.Dim(0) {
		misuse("batch norm", fmt.Sprintf("an image [n %d h w] is needed", b.Gain.Dim(0)), x)
	}
	c := x.Dim(1)
	if mode == Eval {
		return engine.Tidy(o, func() *engine.Tensor {
			mean, variance := o.Reshape(b.Mean, 1, c, 1, 1), o.Reshape(b.Variance, 1, c, 1, 1)
			return engine.BatchNorm(o, x, mean, variance, b.Gain, b.Bias, b.Epsilon)
		})
	}
	n := x.Shape().Elements() / max(c, 1)
	if n < 2 {
		misuse("batch norm", "one element a channel has no variance; evaluate, or train on more", x)
	}
	return engine.Tidy(o, func() *engine.Tensor {
		out, mean, variance := engine.BatchNormTraining(o, x, b.Gain, b.Bias, b.Epsilon)
		b.follow(o.Valid(), mean, variance, n)
		return out
	})
}

// follow moves the running moments towards those of a batch of n elements a
// channel.
func (b *BatchNorm2d) follow(v engine.Ops, mean, variance *engine.Tensor, n int) {
	scope := v.Begin()
	defer scope.End()
	flat := func(t *engine.Tensor) *engine.Tensor { return v.Reshape(t, b.Mean.Dim(0)) }
	keep, unbiased := v.Full(1-b.Momentum), engine.Scale(v, flat(variance), float32(n)/float32(n-1))
	// From here on nothing takes memory: a device that is full changes both or none.
	engine.Approach(v, b.Mean, flat(mean), keep)
	engine.Approach(v, b.Variance, unbiased, keep)
}

// Parameters lists gain and bias.
func (b *BatchNorm2d) Parameters() []*engine.Tensor { return []*engine.Tensor{b.Gain, b.Bias} }

// State names gain, bias and the running moments.
func (b *BatchNorm2d) State() []engine.Named {
	return []engine.Named{
		{Name: "gain", Tensor: b.Gain}, {Name: "bias", Tensor: b.Bias},
		{Name: "mean", Tensor: b.Mean}, {Name: "variance", Tensor: b.Variance},
	}
}
