package engine

// FusedKernels are kernels that do in one or two passes over memory what the
// primitives do in many. Kernels need not have them: Eager uses them where they
// do, and else what Fusions are composed of.
//
// Views are contiguous float32 where nothing else is said, of the shapes named,
// and a result overlaps no operand. A result that is the zero View is not wanted.
// Names that end in Grad are of derivatives: grad is the gradient of the result,
// and they write the operands'.
type FusedKernels interface {
	// ReLUGrad writes grad where out, the result, is above 0 or NaN, else 0.
	ReLUGrad(dst, grad, out View)
	// LogSoftmax normalises the rows of a [m d]. out is its result.
	LogSoftmax(dst, a View)
	LogSoftmaxGrad(dst, grad, out View)
	// LogLikelihood writes log softmax(logits)[label] for each row of logits [m d]
	// with labels, int32 [m], into dst [m]; and into norms [m 2] the row's largest
	// logit, and the sum of the exponentials of what the others lie off it. A label
	// outside the row is the sticky error.
	LogLikelihood(dst, norms, logits, labels View)
	LogLikelihoodGrad(dst, grad, norms, logits, labels View)

	// LayerNorm standardizes the rows of x [m d], then applies gain and bias [d]. It
	// writes the means and the inverse roots of variance + epsilon [m] as well.
	LayerNorm(dst, mean, inverse, x, gain, bias View, epsilon float32)
	LayerNormGrad(dx, dgain, dbias, grad, x, mean, inverse, gain View)
	// BatchNorm standardizes the channels of x [n c h w], then applies gain and bias
	// [c]. It writes the means and the biased variances [c] as well.
	BatchNorm(dst, mean, variance, x, gain, bias View, epsilon float32)
	BatchNormGrad(dx, dgain, dbias, grad, x, mean, variance, gain View, epsilon float32)

	// MaxPool takes the largest element of each tile of src [n c h w], which w tiles
	// without padding or rest. Its derivative goes to the largest column maximum of a
	// tile, and there to the largest element; equals share it, and with NaN in a tile
	// all of it is NaN.
	MaxPool(dst, src View, w Window)
	MaxPoolGrad(dst, grad, src View, w Window)
	// Conv2d correlates x [n c h w] with filters [o c kh kw] and adds bias [o], which
	// may be the zero View.
	Conv2d(dst, x, filters, bias View, w Window)
	Conv2dGrad(dx, dfilters, grad, x, filters View, w Window)

	// Attention writes softmax(scale·q·kᵀ)·v for q [n h t d], k [n h s d] and v
	// [n h s e] into dst [n h t e]. If causal, position i of t sees the first
	// s-t+i+1 of s only. scale is above 0. norms [n h t 2] takes for each row of
	// scaled products what LogLikelihood writes. All but norms may have any strides,
	// but along the innermost axis of results it is 1.
	Attention(dst, norms, q, k, v View, scale float32, causal bool)
	AttentionGrad(dq, dk, dv, grad, norms, q, k, v View, scale float32, causal bool)

	// Momentum sets v = keep·v + g, then p -= rate·v.
	Momentum(p, g, v View, keep, rate float32)
	// Adam takes a step over parameters p with gradients g, means m and mean
	// squares v.
	Adam(p, g, m, v View, s AdamFactors)
}

// None reports whether the view is the zero View, which stands for a tensor that
// is not there.
func (v View) None() bool { return v.Buffer.Memory == nil }

// Fusion is an operation that fused kernels can do at once.
type Fusion interface {
	// Name is what errors and hooks call the operation.
	Name() string
	// Compose computes it of primitives: that is what it means.
	Compose(o Ops, in ...*Tensor) *Tensor
	// Forward computes it by fused kernels. kept is what Backward reads beside the
	// operands; it has no gradient.
	Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor)
	// Backward returns the gradients of the operands, of their shapes; nil for one
	// that is not wanted or has none.
	Backward(e *Eager, grad *Tensor, in, kept []*Tensor, wants []bool) []*Tensor
}

// Fuser is an Ops that can do Fusions at once.
type Fuser interface {
	// Fuse returns the result, and what the Fusion keeps. ok is false where the device
	// lacks the kernels; nothing is done then, and Compose is the way.
	Fuse(f Fusion, in ...*Tensor) (out *Tensor, kept []*Tensor, ok bool)
}

// Fuse runs a Fusion's Forward; see Fuser.
func (e *Eager) Fuse(f Fusion, in ...*Tensor) (out *Tensor, kept []*Tensor, ok bool) {
	if e.fused == nil {
		return nil, nil, false
	}
	e.check(f.Name(), in...)
	out, kept = f.Forward(e, in...)
	return out, kept, true
}

// Apply does a Fusion at once where o can, and else composes it.
func Apply(o Ops, f Fusion, in ...*Tensor) *Tensor {
	return Tidy(o, func() *Tensor {
		if fuser, is := o.(Fuser); is {
			if out, _, ok := fuser.Fuse(f, in...); ok {
				return out
			}
		}
		return f.Compose(o, in...)
	})
}

// fusedOf returns the operations that o is, if nothing decorates it and it has
// fused kernels.
func fusedOf(o Ops) (*Eager, bool) {
	e, ok := o.(*Eager)
	return e, ok && e.fused != nil
}

// packed returns the views of up to four tensors as contiguous ones, copied where
// they are not. The copies are left to the scope.
func (e *Eager) packed(ts ...*Tensor) (views [4]View) {
	for i, t := range ts {
		views[i] = e.dense(t).view()
	}
	return views
}

// float makes a contiguous tensor with undefined contents.
func (e *Eager) float(op string, dims ...int) *Tensor { return e.alloc(op, Float32, ShapeOf(dims...)) }

// wanted is like for a gradient that is wanted, else nil.
func (e *Eager) wanted(want bool, op string, like *Tensor) *Tensor {
	if !want {
		return nil
	}
	return e.alloc(op, Float32, like.shape)
}

// viewOf is the view of a tensor, and the zero View of none.
func viewOf(t *Tensor) View {
	if t == nil {
		return View{}
	}
	return t.view()
}

// ReLUGrad is the gradient of ReLU's operand from its result's gradient, grad,
// and the result, out: grad where out is above 0 or NaN.
func ReLUGrad(o Ops, grad, out *Tensor) *Tensor {
	paired("relu", grad, out)
	e, ok := fusedOf(o)
	if !ok {
		return Tidy(o, func() *Tensor { return o.Where(o.Equal(out, o.Full(0)), o.Full(0), grad) })
	}
	return Tidy(o, func() *Tensor {
		e.check("relu", grad, out)
		v := e.packed(grad, out)
		dst := e.alloc("relu", Float32, out.shape)
		e.fused.ReLUGrad(dst.view(), v[0], v[1])
		return dst
	})
}

// LogSoftmaxGrad is the gradient of LogSoftmax's operand from the gradient of its
// result, grad, and the result, out: grad - softmax·Σgrad.
func LogSoftmaxGrad(o Ops, grad, out *Tensor) *Tensor {
	paired("log-softmax", grad, out)
	e, ok := fusedOf(o)
	if !ok {
		return Tidy(o, func() *Tensor {
			column := out.shape.With(out.shape.Rank-1, 1).Slice()
			return o.Sub(grad, o.Mul(o.Exp(out), o.Reshape(o.Sum(grad, -1), column...)))
		})
	}
	return Tidy(o, func() *Tensor {
		e.check("log-softmax", grad, out)
		v := e.packed(grad, out)
		dst := e.alloc("log-softmax", Float32, out.shape)
		if out.shape.Elements() == 0 {
			return dst
		}
		e.fused.LogSoftmaxGrad(rowsOf(dst.view()), rowsOf(v[0]), rowsOf(v[1]))
		return dst
	})
}

// rowsOf sees a contiguous view as [m d], d being its innermost axis.
func rowsOf(v View) View {
	d := v.Shape.Dims[v.Shape.Rank-1]
	m := 1
	for _, extent := range v.Shape.Dims[:v.Shape.Rank-1] {
		m *= extent
	}
	v.Shape = ShapeOf(m, d)
	v.Strides = v.Shape.RowMajor()
	return v
}
