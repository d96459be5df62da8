package engine

// logLikelihood is the Fusion behind CrossEntropy: log softmax(logits)[label] for
// each row of logits [m classes], with int32 labels [m].
type logLikelihood struct{}

func (logLikelihood) Name() string { return "log-likelihood" }

func (logLikelihood) Compose(o Ops, in ...*Tensor) *Tensor {
	v := o.Valid()
	// A label is found by comparing: rows of an identity would be classes² numbers.
	classes := in[0].shape.Dims[1]
	numbers := make([]float32, classes)
	for i := range numbers {
		numbers[i] = float32(i)
	}
	named := v.Gather(v.FromFloats(numbers, classes, 1), in[1]) // [m 1]
	chosen := v.Equal(named, v.FromFloats(numbers, 1, classes)) // [m classes]
	// Not times 0, which makes NaN of a class that a logit of -Inf rules out.
	return o.Sum(o.Where(chosen, o.LogSoftmax(in[0]), v.Full(0)), 1)
}

func (f logLikelihood) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	typed(f.Name(), Float32, in[0])
	typed(f.Name(), Int32, in[1])
	v := e.packed(in...)
	m := in[0].shape.Dims[0]
	out = e.float(f.Name(), m)
	norms := e.float(f.Name(), m, 2)
	e.fused.LogLikelihood(out.view(), norms.view(), v[0], v[1])
	return out, []*Tensor{norms}
}

func (f logLikelihood) Backward(e *Eager, grad *Tensor, in, kept []*Tensor, _ []bool) []*Tensor {
	v := e.packed(grad, in[0], in[1])
	dst := e.alloc(f.Name(), Float32, in[0].shape)
	e.fused.LogLikelihoodGrad(dst.view(), v[0], kept[0].view(), v[1], v[2])
	return []*Tensor{dst, nil}
}
