package cpu

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

var _ engine.FusedKernels = (*kernels)(nil)

func (k *kernels) ReLUGrad(dst, grad, out engine.View) {
	d, g, y := flat[float32](dst), flat[float32](grad), flat[float32](out)
	k.split(len(d), 1, func(from, to int) { vec.Gate(d[from:to], g[from:to], y[from:to]) })
}

// expCost is what an exponential and its surroundings cost, in elements.
const expCost = 4

// exponentials writes e to the x less its largest, and returns that and the sum.
func exponentials(dst, x []float32) (largest, sum float32) {
	largest = vec.Max(x)
	vec.Affine(dst, x, 1, -largest)
	vec.Exp(dst, dst)
	return largest, vec.Sum(dst)
}

func logOf(x float32) float32 { return float32(math.Log(float64(x))) }

func (k *kernels) LogSoftmax(dst, a engine.View) {
	m, n := dst.Shape.Dims[0], dst.Shape.Dims[1]
	d, x := flat[float32](dst), flat[float32](a)
	k.split(m, expCost*n, func(from, to int) {
		for i := from; i < to; i++ {
			to, row := d[i*n:][:n], x[i*n:][:n]
			largest, sum := exponentials(to, row)
			// In two steps: beside a large number the logarithm would lose its digits.
			vec.Affine(to, row, 1, -largest)
			vec.Affine(to, to, 1, -logOf(sum))
		}
	})
}

func (k *kernels) LogSoftmaxGrad(dst, grad, out engine.View) {
	m, n := dst.Shape.Dims[0], dst.Shape.Dims[1]
	d, g, y := flat[float32](dst), flat[float32](grad), flat[float32](out)
	k.split(m, expCost*n, func(from, to int) {
		for i := from; i < to; i++ {
			to, g := d[i*n:][:n], g[i*n:][:n]
			vec.Exp(to, y[i*n:][:n])
			vec.Blend(to, g, to, 1, -vec.Sum(g), 0)
		}
	})
}

func (k *kernels) LogLikelihood(dst, norms, logits, labels engine.View) {
	m, n := logits.Shape.Dims[0], logits.Shape.Dims[1]
	d, norm, x, label := flat[float32](dst), flat[float32](norms), flat[float32](logits), flat[int32](labels)
	k.checkRows(label, n)
	k.each(m, expCost*n, func(i int, s *workspace) {
		row := x[i*n:][:n]
		norm[2*i], norm[2*i+1] = exponentials(s.take(n), row)
		if at := int(label[i]); at >= 0 && at < n {
			d[i] = row[at] - norm[2*i] - logOf(norm[2*i+1])
		}
	})
}

func (k *kernels) LogLikelihoodGrad(dst, grad, norms, logits, labels engine.View) {
	m, n := logits.Shape.Dims[0], logits.Shape.Dims[1]
	d, g, norm, x, label := flat[float32](dst), flat[float32](grad), flat[float32](norms), flat[float32](logits), flat[int32](labels)
	k.checkRows(label, n)
	k.split(m, expCost*n, func(from, to int) {
		for i := from; i < to; i++ {
			row := d[i*n:][:n]
			vec.Affine(row, x[i*n:][:n], 1, -norm[2*i])
			vec.Exp(row, row)
			vec.Scale(row, row, -g[i]/norm[2*i+1])
			if at := int(label[i]); at >= 0 && at < n {
				row[at] += g[i]
			}
		}
	})
}

// checkRows keeps the error of the first index that lies outside a table.
func (k *kernels) checkRows(index []int32, rows int) {
	for i, at := range index {
		k.row(at, i, rows)
	}
}
