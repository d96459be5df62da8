// Package vec computes on slices of float32, on amd64 eight elements at a time.
//
// A dst may be one of the operands; other overlaps give what nobody asked for.
// The functions panic if lengths differ, and allocate nothing.
package vec

import "math"

// Exp sets dst[i] to e raised to x[i], to within 1.1 units in the last place:
// measured for every float32, as for the functions below. NaN gives NaN,
// overflow +Inf, and results may be subnormal.
func Exp(dst, x []float32) {
	if same(dst, x) {
		exp(dst, x)
	}
}

// Tanh sets dst[i] to the hyperbolic tangent of x[i], to within 2.5 units in the
// last place. The sign is x's, also for zeros.
func Tanh(dst, x []float32) {
	if same(dst, x) {
		tanh(dst, x)
	}
}

// Sigmoid sets dst[i] to 1/(1+exp(-x[i])), to within 2.5 units in the last
// place. Results may be subnormal.
func Sigmoid(dst, x []float32) {
	if same(dst, x) {
		sigmoid(dst, x)
	}
}

// Add sets dst[i] = a[i] + b[i].
func Add(dst, a, b []float32) {
	if same(dst, a, b) {
		add(dst, a, b)
	}
}

// Mul sets dst[i] = a[i] · b[i].
func Mul(dst, a, b []float32) {
	if same(dst, a, b) {
		mul(dst, a, b)
	}
}

// Scale sets dst[i] = factor · x[i].
func Scale(dst, x []float32, factor float32) {
	if same(dst, x) {
		scale(dst, x, factor)
	}
}

// Affine sets dst[i] = factor · x[i] + shift. Product and sum are rounded.
func Affine(dst, x []float32, factor, shift float32) {
	if same(dst, x) {
		affine(dst, x, factor, shift)
	}
}

// Blend sets dst[i] = a · x[i] + b · y[i] + c. Every operation is rounded, from the
// left.
func Blend(dst, x, y []float32, a, b, c float32) {
	if same(dst, x, y) {
		blend(dst, x, y, a, b, c)
	}
}

// AddProduct adds x[i] · y[i] to dst[i]. Product and sum are rounded.
func AddProduct(dst, x, y []float32) {
	if same(dst, x, y) {
		addProduct(dst, x, y)
	}
}

// Rectify sets dst[i] = x[i], or 0 where that is below 0. NaN gives NaN.
func Rectify(dst, x []float32) {
	if same(dst, x) {
		rectify(dst, x)
	}
}

// Gate sets dst[i] = x[i] where y[i] is above 0 or NaN, else 0.
func Gate(dst, x, y []float32) {
	if same(dst, x, y) {
		gate(dst, x, y)
	}
}

// MaxTiles sets dst[i] to the largest of a[2i], a[2i+1], b[2i] and b[2i+1]: of a
// tile of two by two in the rows a and b, which are twice as long. NaN gives NaN.
func MaxTiles(dst, a, b []float32) {
	if twice(dst, a, b) {
		maxTiles(dst, a, b)
	}
}

// MaxTilesGrad is the derivative of MaxTiles: it shares g[i] among da[2i],
// da[2i+1], db[2i] and db[2i+1]. The columns whose larger element is the largest of
// the tile get equal parts, and of a column the elements that are it. In a tile
// with NaN all parts are NaN.
func MaxTilesGrad(da, db, g, a, b []float32) {
	if twice(g, a, b, da, db) {
		maxTilesGrad(da, db, g, a, b)
	}
}

// twice reports whether there is anything to do.
func twice(each []float32, operands ...[]float32) bool {
	for _, o := range operands {
		if len(o) != 2*len(each) {
			panic("vec: slices of different lengths")
		}
	}
	return len(each) > 0
}

// sumBlock is how many elements are summed in float32 before the sum goes on in
// float64.
const sumBlock = 1024

// Sum returns the sum of x, 0 of nothing. It is off by at most 2^-16 of the sum
// of magnitudes, however long x is; the order of the additions depends on the
// processor.
func Sum(x []float32) float32 {
	total := 0.0
	for len(x) > 0 {
		n := min(sumBlock, len(x))
		total += float64(sum(x[:n]))
		x = x[n:]
	}
	return float32(total)
}

// Dot returns the sum of x[i] · (y[i] - off), 0 of nothing, as exact as Sum.
func Dot(x, y []float32, off float32) float32 {
	same(x, y)
	total := 0.0
	for len(x) > 0 {
		n := min(sumBlock, len(x))
		total += float64(dot(x[:n], y[:n], off))
		x, y = x[n:], y[n:]
	}
	return float32(total)
}

// Squares returns the sum of (x[i] - off)², 0 of nothing, as exact as Sum.
func Squares(x []float32, off float32) float32 {
	total := 0.0
	for len(x) > 0 {
		n := min(sumBlock, len(x))
		total += float64(squares(x[:n], off))
		x = x[n:]
	}
	return float32(total)
}

// Max returns the largest of x, -Inf of nothing, NaN if any is NaN. Of zeros
// either sign may come.
func Max(x []float32) float32 {
	if len(x) == 0 {
		return float32(math.Inf(-1))
	}
	return largest(x)
}

// Momentum is a step of gradient descent with momentum over parameters p with
// gradients g: v = keep·v + g, then p -= rate·v. Every operation is rounded, so
// that the bits are those of the operations one by one.
func Momentum(p, g, v []float32, keep, rate float32) {
	if same(p, g, v) {
		momentum(p, g, v, keep, rate)
	}
}

// AdamStep is what a step of Adam does to every element, with gradient g, mean m
// and mean square v:
//
//	m = KeepMean·m + TakeMean·g
//	v = KeepSquare·v + TakeSquare·g²
//	p = Keep·p - Move·(m / (Root·√v + Epsilon))
//
// With betas β1 and β2, step t from 1 and decay as of AdamW, the factors are β1,
// 1-β1, β2, 1-β2, 1-rate·decay, rate/(1-β1^t), 1/√(1-β2^t) and epsilon.
type AdamStep struct {
	KeepMean, TakeMean     float32
	KeepSquare, TakeSquare float32
	Keep, Move             float32
	Root, Epsilon          float32
}

// Adam takes a step over parameters p with gradients g. Every operation is
// rounded, in the order in which AdamStep writes them, so that the bits are
// those of the operations one by one.
func Adam(p, g, m, v []float32, s AdamStep) {
	if same(p, g, m, v) {
		adam(p, g, m, v, s)
	}
}

// same reports whether there is anything to do.
func same(dst []float32, operands ...[]float32) bool {
	for _, o := range operands {
		if len(o) != len(dst) {
			panic("vec: slices of different lengths")
		}
	}
	return len(dst) > 0
}
