package engine

// Momentum is a step of gradient descent with momentum, in place: v becomes
// keep·v + g, then rate·v is taken off p. The three have equal shapes, and o
// records nothing. If it panics, nothing was written.
func Momentum(o Ops, p, g, v *Tensor, keep, rate float32) {
	const op = "momentum"
	paired(op, p, g)
	paired(op, p, v)
	s := o.Begin()
	defer s.finish()
	if e, views, ok := stepped(o, op, p, g, v); ok {
		e.fused.Momentum(views[0], views[1], views[2], keep, rate)
		p.storage.Wrote()
		v.storage.Wrote()
		return
	}
	velocity := o.Add(Scale(o, v, keep), g)
	moved := o.Sub(p, Scale(o, velocity, rate))
	o.Assign(v, velocity)
	o.Assign(p, moved)
}

// AdamFactors is what a step of Adam does to every element, with gradient g, mean
// m and mean square v:
//
//	m = KeepMean·m + TakeMean·g
//	v = KeepSquare·v + TakeSquare·g²
//	p = Keep·p - Move·(m / (Root·√v + Epsilon))
type AdamFactors struct {
	KeepMean, TakeMean     float32
	KeepSquare, TakeSquare float32
	Keep, Move             float32
	Root, Epsilon          float32
}

// Adam is a step of Adam in place, of parameters p by gradients g with means m and
// mean squares v. The four have equal shapes, and o records nothing. If it panics,
// nothing was written.
func Adam(o Ops, p, g, m, v *Tensor, f AdamFactors) {
	const op = "adam"
	for _, t := range []*Tensor{g, m, v} {
		paired(op, p, t)
	}
	s := o.Begin()
	defer s.finish()
	if e, views, ok := stepped(o, op, p, g, m, v); ok {
		e.fused.Adam(views[0], views[1], views[2], views[3], f)
		for _, t := range []*Tensor{p, m, v} {
			t.storage.Wrote()
		}
		return
	}
	mean := o.Add(Scale(o, m, f.KeepMean), Scale(o, g, f.TakeMean))
	square := o.Add(Scale(o, v, f.KeepSquare), Scale(o, o.Mul(g, g), f.TakeSquare))
	root := Shift(o, Scale(o, o.Sqrt(square), f.Root), f.Epsilon)
	kept := p
	if f.Keep != 1 {
		kept = Scale(o, p, f.Keep)
	}
	moved := o.Sub(kept, Scale(o, o.Div(mean, root), f.Move))
	o.Assign(m, mean)
	o.Assign(v, square)
	o.Assign(p, moved)
}

// stepped returns the views for a fused step; ok is false where there is no kernel
// for it, or where what is written does not lie in one piece, or overlaps another.
func stepped(o Ops, op string, p, g *Tensor, state ...*Tensor) (e *Eager, views [4]View, ok bool) {
	e, ok = fusedOf(o)
	if !ok {
		return nil, views, false
	}
	var room [4]*Tensor
	all := append(append(room[:0], p, g), state...)
	e.check(op, all...)
	typed(op, Float32, all...)
	for i, t := range all {
		if t != g && !contiguous(t.shape, t.strides) {
			return nil, views, false
		}
		for _, other := range all[i+1:] {
			if shares(t, other) {
				return nil, views, false
			}
		}
	}
	views = e.packed(all...)
	return e, views, true
}

// Approach moves t in place towards another tensor of its shape, to keep·t +
// (1-keep)·to, with a scalar keep. o records nothing, and takes no memory for it
// unless they overlap. If it panics, nothing was written.
func Approach(o Ops, t, to, keep *Tensor) {
	const op = "approach"
	paired(op, t, to)
	Check(op, keep)
	if keep.shape != (Shape{}) {
		fail(op, "what is kept is a scalar", t, to, keep)
	}
	e, ok := o.(*Eager)
	if !ok || shares(t, to) || shares(t, keep) {
		s := o.Begin()
		defer s.finish()
		o.Assign(t, o.Add(o.Mul(o.Sub(t, to), keep), to))
		return
	}
	e.inPlace(op, t, to, keep)
	e.kernels.Binary(Sub, t.view(), t.view(), to.view())
	e.kernels.Binary(Mul, t.view(), t.view(), stretched(keep, t.shape))
	e.kernels.Binary(Add, t.view(), t.view(), to.view())
	t.storage.Wrote()
}

// inPlace panics unless the first operand can be written by operations on all.
func (e *Eager) inPlace(op string, t *Tensor, others ...*Tensor) {
	e.check(op, t)
	e.check(op, others...)
	typed(op, Float32, t)
	typed(op, Float32, others...)
	t.distinct(op)
}
