package cpu

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

// normCost is what standardizing an element costs, in elements.
const normCost = 2

func inverseRoot(variance, epsilon float32) float32 {
	return float32(1 / math.Sqrt(float64(variance)+float64(epsilon)))
}

func (k *kernels) LayerNorm(dst, mean, inverse, x, gain, bias engine.View, epsilon float32) {
	m, n := x.Shape.Dims[0], x.Shape.Dims[1]
	d, from := flat[float32](dst), flat[float32](x)
	mu, inv, a, b := flat[float32](mean), flat[float32](inverse), flat[float32](gain), flat[float32](bias)
	k.split(m, normCost*n, func(first, last int) {
		for i := first; i < last; i++ {
			row, to := from[i*n:][:n], d[i*n:][:n]
			mu[i] = vec.Sum(row) / float32(n)
			inv[i] = inverseRoot(vec.Squares(row, mu[i])/float32(n), epsilon)
			vec.Affine(to, row, inv[i], -mu[i]*inv[i])
			vec.Mul(to, to, a)
			vec.Add(to, to, b)
		}
	})
}

// normRows is how many rows of a layer norm have their share of the parameters'
// gradients summed by one thread. The shares are then added in order, whoever made
// them.
const normRows = 64

func (k *kernels) LayerNormGrad(dx, dgain, dbias, grad, x, mean, inverse, gain engine.View) {
	m, n := x.Shape.Dims[0], x.Shape.Dims[1]
	g, from, mu, inv, a := flat[float32](grad), flat[float32](x), flat[float32](mean), flat[float32](inverse), flat[float32](gain)
	to, toGain, toBias := flatOrNil(dx), flatOrNil(dgain), flatOrNil(dbias)
	pieces := (m + normRows - 1) / normRows
	shares := k.take(pieces * 2 * n)
	k.each(pieces, 2*normCost*normRows*n, func(piece int, s *workspace) {
		room := s.take(2 * n)
		standard, scaled := room[:n], room[n:]
		gainShare, biasShare := shares[2*piece*n:][:n], shares[(2*piece+1)*n:][:n]
		clear(gainShare)
		clear(biasShare)
		for i := piece * normRows; i < min(m, (piece+1)*normRows); i++ {
			g := g[i*n:][:n]
			vec.Affine(standard, from[i*n:][:n], inv[i], -mu[i]*inv[i])
			vec.AddProduct(gainShare, g, standard)
			vec.Add(biasShare, biasShare, g)
			if to != nil {
				vec.Mul(scaled, g, a)
				level, tilt := vec.Sum(scaled)/float32(n), vec.Dot(scaled, standard, 0)/float32(n)
				vec.Blend(to[i*n:][:n], scaled, standard, inv[i], -inv[i]*tilt, -inv[i]*level)
			}
		}
	})
	total(toGain, shares, 2*n, pieces)
	total(toBias, shares[min(n, len(shares)):], 2*n, pieces)
}

// total adds up shares that lie step apart; dst may be nil.
func total(dst, shares []float32, step, count int) {
	clear(dst)
	for i := 0; i < count && dst != nil; i++ {
		vec.Add(dst, dst, shares[i*step:][:len(dst)])
	}
}

// flatOrNil is flat, nil for the zero View.
func flatOrNil(v engine.View) []float32 {
	if v.None() {
		return nil
	}
	return flat[float32](v)
}

// channels are the planes of an image batch.
type channels struct{ count, channels, plane int }

func channelsOf(v engine.View) channels {
	s := v.Shape
	return channels{s.Dims[0], s.Dims[1], s.Dims[2] * s.Dims[3]}
}

// of returns the plane of a channel in image i.
func (c channels) of(x []float32, i, channel int) []float32 {
	return x[(i*c.channels+channel)*c.plane:][:c.plane]
}

func (k *kernels) BatchNorm(dst, mean, variance, x, gain, bias engine.View, epsilon float32) {
	at := channelsOf(x)
	d, from := flat[float32](dst), flat[float32](x)
	mu, v, a, b := flat[float32](mean), flat[float32](variance), flat[float32](gain), flat[float32](bias)
	n := float64(at.count * at.plane)
	k.each(at.channels, normCost*at.count*at.plane, func(c int, _ *workspace) {
		sum, squares := 0.0, 0.0
		for i := range at.count {
			sum += float64(vec.Sum(at.of(from, i, c)))
		}
		mu[c] = float32(sum / n)
		for i := range at.count {
			squares += float64(vec.Squares(at.of(from, i, c), mu[c]))
		}
		v[c] = float32(squares / n)
		factor := a[c] * inverseRoot(v[c], epsilon)
		for i := range at.count {
			vec.Affine(at.of(d, i, c), at.of(from, i, c), factor, b[c]-mu[c]*factor)
		}
	})
}

func (k *kernels) BatchNormGrad(dx, dgain, dbias, grad, x, mean, variance, gain engine.View, epsilon float32) {
	at := channelsOf(x)
	g, from, mu, v, a := flat[float32](grad), flat[float32](x), flat[float32](mean), flat[float32](variance), flat[float32](gain)
	to, toGain, toBias := flatOrNil(dx), flatOrNil(dgain), flatOrNil(dbias)
	n := float64(at.count * at.plane)
	k.each(at.channels, 2*normCost*at.count*at.plane, func(c int, _ *workspace) {
		level, tilt := 0.0, 0.0 // Σ grad and Σ grad·(x - mean)
		for i := range at.count {
			level += float64(vec.Sum(at.of(g, i, c)))
			tilt += float64(vec.Dot(at.of(g, i, c), at.of(from, i, c), mu[c]))
		}
		inverse := float64(inverseRoot(v[c], epsilon))
		if toGain != nil {
			toGain[c] = float32(tilt * inverse)
		}
		if toBias != nil {
			toBias[c] = float32(level)
		}
		if to == nil {
			return
		}
		factor := float64(a[c]) * inverse
		slope := -factor * inverse * inverse * tilt / n
		shift := -factor*level/n - slope*float64(mu[c])
		for i := range at.count {
			vec.Blend(at.of(to, i, c), at.of(g, i, c), at.of(from, i, c), float32(factor), float32(slope), float32(shift))
		}
	})
}
