package cpu

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/gemm"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

// heads are the extents of an attention. Its products are made for a few queries
// at a time, so that they stay in a cache however long the sequence is.
type heads struct {
	count, of  int // sequences, and heads of each
	t, s, d, e int // queries, keys, width of both, width of values
	rows       int // queries at a time
	scale      float32
	causal     bool
}

// scoreFloats is how many products are made at a time: 256 KiB.
const scoreFloats = 64 << 10

func headsOf(q, k, v engine.View, scale float32, causal bool) heads {
	h := heads{
		count: q.Shape.Dims[0], of: q.Shape.Dims[1], t: q.Shape.Dims[2], s: k.Shape.Dims[2], d: q.Shape.Dims[3], e: v.Shape.Dims[3],
		scale: scale, causal: causal,
	}
	h.rows = min(h.t, max(1, scoreFloats/max(1, h.s)))
	return h
}

// work is the multiplications of a head, in elements, as for a convolution.
func (h *heads) work() int { return h.t * h.s * (h.d + h.e) / 64 }

// sees is how many keys query i sees.
func (h *heads) sees(i int) int {
	if h.causal {
		return h.s - h.t + i + 1
	}
	return h.s
}

// one is the matrix of one head.
func one(v engine.View, head int) gemm.Operand {
	n, h := head/v.Shape.Dims[1], head%v.Shape.Dims[1]
	return gemm.Operand{Data: words[float32](v)[n*v.Strides[0]+h*v.Strides[1]:], RowStride: v.Strides[2], ColStride: v.Strides[3]}
}

// from is the matrix without its first rows.
func from(m gemm.Operand, row int) gemm.Operand {
	m.Data = m.Data[row*m.RowStride:]
	return m
}

func turned(m gemm.Operand) gemm.Operand {
	return gemm.Operand{Data: m.Data, RowStride: m.ColStride, ColStride: m.RowStride}
}

func (k *kernels) Attention(dst, norms, q, keys, v engine.View, scale float32, causal bool) {
	h := headsOf(q, keys, v, scale, causal)
	norm := flat[float32](norms)
	k.each(h.count*h.of, h.work(), func(head int, s *workspace) {
		out, q, keys, v := one(dst, head), one(q, head), one(keys, head), one(v, head)
		norm := norm[head*h.t*2:][:h.t*2]
		for first := 0; first < h.t; first += h.rows {
			last := min(h.t, first+h.rows)
			n, seen := last-first, h.sees(last-1)
			p := s.take(n * seen)
			s.products.Multiply(n, seen, h.d, from(q, first), turned(keys), p, seen, false)
			for i := first; i < last; i++ {
				row, rest := h.row(p, i, first, seen)
				norm[2*i], norm[2*i+1] = h.softmax(row)
				clear(rest)
			}
			s.products.Multiply(n, h.e, seen, rowMajor(p, seen), v, from(out, first).Data, out.RowStride, false)
		}
	})
}

// row is what query i sees in the products of the queries from first on, and what
// it does not see.
func (h *heads) row(p []float32, i, first, seen int) (row, rest []float32) {
	all := p[(i-first)*seen:][:seen]
	return all[:h.sees(i)], all[h.sees(i):]
}

// softmax normalises scaled products in place. It returns the largest, and the sum
// of the exponentials of what the others lie off it.
func (h *heads) softmax(row []float32) (largest, sum float32) {
	vec.Scale(row, row, h.scale)
	largest, sum = exponentials(row, row)
	vec.Scale(row, row, 1/sum)
	return largest, sum
}

func (k *kernels) AttentionGrad(dq, dk, dv, grad, norms, q, keys, v engine.View, scale float32, causal bool) {
	h := headsOf(q, keys, v, scale, causal)
	norm := flat[float32](norms)
	k.each(h.count*h.of, 3*h.work(), func(head int, s *workspace) {
		h.gradient(s, oneOrNone(dq, head), oneOrNone(dk, head), oneOrNone(dv, head),
			one(grad, head), norm[head*h.t*2:][:h.t*2], one(q, head), one(keys, head), one(v, head))
	})
}

func oneOrNone(v engine.View, head int) gemm.Operand {
	if v.None() {
		return gemm.Operand{}
	}
	return one(v, head)
}

// gradient is the derivative of one head. The softmax is made again.
func (h *heads) gradient(s *workspace, dq, dk, dv, g gemm.Operand, norm []float32, q, keys, v gemm.Operand) {
	// Where the keys outnumber the queries in no tile, the first tile leaves the
	// gradients of the last keys unwritten: they are cleared for all.
	for _, m := range []struct {
		to    gemm.Operand
		width int
	}{{dk, h.d}, {dv, h.e}} {
		for j := 0; j < h.s && m.to.Data != nil; j++ {
			clear(m.to.Data[j*m.to.RowStride:][:m.width])
		}
	}
	for first := 0; first < h.t; first += h.rows {
		last := min(h.t, first+h.rows)
		n, seen := last-first, h.sees(last-1)
		room := s.take(2 * n * seen)
		p, dp := room[:n*seen], room[n*seen:]
		s.products.Multiply(n, seen, h.d, from(q, first), turned(keys), p, seen, false)
		for i := first; i < last; i++ {
			row, rest := h.row(p, i, first, seen)
			vec.Scale(row, row, h.scale)
			vec.Affine(row, row, 1, -norm[2*i])
			vec.Exp(row, row)
			vec.Scale(row, row, 1/norm[2*i+1])
			clear(rest)
		}
		if dv.Data != nil {
			s.products.Multiply(seen, h.e, n, transposed(p, seen), from(g, first), dv.Data, dv.RowStride, true)
		}
		if dq.Data == nil && dk.Data == nil {
			continue
		}
		s.products.Multiply(n, seen, h.e, from(g, first), turned(v), dp, seen, false)
		for i := first; i < last; i++ {
			// The derivative of a softmax: p·(dp - Σ p·dp), and of the scale.
			row, rest := h.row(p, i, first, seen)
			to := dp[(i-first)*seen:][:seen]
			vec.Affine(to[:len(row)], to[:len(row)], h.scale, -h.scale*vec.Dot(row, to[:len(row)], 0))
			vec.Mul(to[:len(row)], to[:len(row)], row)
			copy(to[len(row):], rest) // zeros
		}
		if dq.Data != nil {
			s.products.Multiply(n, h.d, seen, rowMajor(dp, seen), keys, from(dq, first).Data, dq.RowStride, false)
		}
		if dk.Data != nil {
			s.products.Multiply(seen, h.d, n, transposed(dp, seen), from(q, first), dk.Data, dk.RowStride, true)
		}
	}
}
