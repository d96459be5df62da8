package engine

// Attention is softmax(scale·q·kᵀ)·v, for q [n h t d], k [n h s d] and v [n h s e]:
// [n h t e]. Each of t positions sees all of s, or if causal those that are not
// after it, the last of both being the same moment. scale is above 0.
func Attention(o Ops, q, k, v *Tensor, scale float32, causal bool) *Tensor {
	f := attention{scale, causal}
	Check(f.Name(), q, k, v)
	typed(f.Name(), Float32, q, k, v)
	t, s, e := q.shape.Dims[2], k.shape.Dims[2], v.shape.Dims[3]
	if q.shape.Rank != 4 || k.shape != q.shape.With(2, s) || v.shape != k.shape.With(3, e) {
		fail(f.Name(), "queries [n h t d], keys [n h s d] and values [n h s e] are needed", q, k, v)
	}
	if !(scale > 0) {
		fail(f.Name(), "the scale is not above 0", q, k, v)
	}
	if causal && s < t {
		fail(f.Name(), "the first positions would see none: there are fewer keys than queries", q, k, v)
	}
	return Apply(o, f, q, k, v)
}

// attention is the Fusion behind Attention.
type attention struct {
	scale  float32
	causal bool
}

func (attention) Name() string { return "attention" }

func (f attention) Compose(o Ops, in ...*Tensor) *Tensor {
	// Scaling the queries costs less than scaling the [n h t s] products.
	products := o.MatMul(Scale(o, in[0], f.scale), o.Permute(in[1], 0, 1, 3, 2))
	if t, s := in[0].shape.Dims[2], in[1].shape.Dims[2]; f.causal && t > 1 {
		products = o.Add(products, past(o, t, s))
	}
	return o.MatMul(Softmax(o, products), in[2])
}

// past is what to add to products [t s] so that the last t of s positions see
// nothing that comes after them. Its numbers vanish in a softmax as infinities
// would, without being a trap for whoever looks for those.
func past(o Ops, t, s int) *Tensor {
	const never = -1e9
	mask := make([]float32, t*s)
	for i := range t {
		for j := s - t + i + 1; j < s; j++ {
			mask[i*s+j] = never
		}
	}
	return o.FromFloats(mask, t, s)
}

// byPosition makes a tensor [n h t d] whose heads lie side by side at each
// position, as they do in the products that they come from and go to. It returns
// nil where it is not wanted.
func (e *Eager) byPosition(want bool, op string, s Shape, width int) *Tensor {
	if !want {
		return nil
	}
	return e.Permute(e.float(op, s.Dims[0], s.Dims[2], s.Dims[1], width), 0, 2, 1, 3)
}

func (f attention) Forward(e *Eager, in ...*Tensor) (out *Tensor, kept []*Tensor) {
	s := in[0].shape
	out = e.byPosition(true, f.Name(), s, in[2].shape.Dims[3])
	norms := e.float(f.Name(), s.Dims[0], s.Dims[1], s.Dims[2], 2)
	e.fused.Attention(out.view(), norms.view(), in[0].view(), in[1].view(), in[2].view(), f.scale, f.causal)
	return out, []*Tensor{norms}
}

func (f attention) Backward(e *Eager, grad *Tensor, in, kept []*Tensor, wants []bool) []*Tensor {
	grads := make([]*Tensor, len(in))
	for i, t := range in {
		grads[i] = e.byPosition(wants[i], f.Name(), t.shape, t.shape.Dims[3])
	}
	e.fused.AttentionGrad(viewOf(grads[0]), viewOf(grads[1]), viewOf(grads[2]),
		grad.view(), kept[0].view(), in[0].view(), in[1].view(), in[2].view(), f.scale, f.causal)
	return grads
}
