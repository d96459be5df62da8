package engine

// layerNorm is the Fusion behind LayerNorm: of a [… d], gain and bias [d].
type layerNorm struct{ epsilon float32 }

func (layerNorm) Name() string { return "layer norm" }

func (f layerNorm) Compose(o Ops, in ...*Tensor) *Tensor {
	a, gain, bias := in[0], in[1], in[2]
	_, off, variance := centre(o, a, -1)
	return o.Add(o.Mul(o.Mul(off, inverseRoot(o, variance, f.epsilon)), gain), bias)
}

func (f layerNorm) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	typed(f.Name(), Float32, in...)
	v := e.packed(in...)
	x := rowsOf(v[0])
	out = e.alloc(f.Name(), Float32, in[0].shape)
	mean, inverse := e.float(f.Name(), x.Shape.Dims[0]), e.float(f.Name(), x.Shape.Dims[0])
	e.fused.LayerNorm(rowsOf(out.view()), mean.view(), inverse.view(), x, v[1], v[2], f.epsilon)
	return out, []*Tensor{mean, inverse}
}

func (f layerNorm) Backward(e *Eager, grad *Tensor, in, kept []*Tensor, wants []bool) []*Tensor {
	v := e.packed(grad, in[0], in[1])
	dx, dgain, dbias := e.wanted(wants[0], f.Name(), in[0]), e.wanted(wants[1], f.Name(), in[1]), e.wanted(wants[2], f.Name(), in[2])
	to := viewOf(dx)
	if dx != nil {
		to = rowsOf(to)
	}
	e.fused.LayerNormGrad(to, viewOf(dgain), viewOf(dbias), rowsOf(v[0]), rowsOf(v[1]), kept[0].view(), kept[1].view(), v[2])
	return []*Tensor{dx, dgain, dbias}
}

// batchNorm is the Fusion behind BatchNormTraining: of x [n c h w], gain and bias
// [c]. It keeps the batch's mean and variance, [1 c 1 1].
type batchNorm struct{ epsilon float32 }

func (batchNorm) Name() string { return "batch norm" }

func (f batchNorm) Compose(o Ops, in ...*Tensor) *Tensor {
	out, _, _ := BatchNormMoments(o, in[0], in[1], in[2], f.epsilon)
	return out
}

func (f batchNorm) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	typed(f.Name(), Float32, in...)
	v := e.packed(in...)
	c := in[1].shape.Dims[0]
	out = e.alloc(f.Name(), Float32, in[0].shape)
	mean, variance := e.float(f.Name(), 1, c, 1, 1), e.float(f.Name(), 1, c, 1, 1)
	e.fused.BatchNorm(out.view(), mean.view(), variance.view(), v[0], v[1], v[2], f.epsilon)
	return out, []*Tensor{mean, variance}
}

func (f batchNorm) Backward(e *Eager, grad *Tensor, in, kept []*Tensor, wants []bool) []*Tensor {
	v := e.packed(grad, in[0], in[1])
	dx, dgain, dbias := e.wanted(wants[0], f.Name(), in[0]), e.wanted(wants[1], f.Name(), in[1]), e.wanted(wants[2], f.Name(), in[2])
	e.fused.BatchNormGrad(viewOf(dx), viewOf(dgain), viewOf(dbias), v[0], v[1], kept[0].view(), kept[1].view(), v[2], f.epsilon)
	return []*Tensor{dx, dgain, dbias}
}

// BatchNormTraining is BatchNormMoments without a gradient through the moments
// that it returns beside the result: for layers that only follow them.
func BatchNormTraining(o Ops, x, gain, bias *Tensor, epsilon float32) (out, mean, variance *Tensor) {
	image(x, gain, bias)
	s := o.Begin()
	defer s.finish()
	if fuser, is := o.(Fuser); is {
		if out, kept, ok := fuser.Fuse(batchNorm{epsilon}, x, gain, bias); ok {
			s.promote(out)
			s.promote(kept[0])
			s.promote(kept[1])
			return out, kept[0], kept[1]
		}
	}
	out, mean, variance = BatchNormMoments(o, x, gain, bias, epsilon)
	mean, variance = o.Detach(mean), o.Detach(variance)
	s.promote(out)
	s.promote(mean)
	s.promote(variance)
	return out, mean, variance
}
