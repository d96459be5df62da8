package vec

import "math"

// These are the loops in Go, for processors without others, and what the others
// are held against. A conversion of a product keeps a compiler from fusing it
// with the sum: every operation is rounded.

func expPortable(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Exp(float64(v)))
	}
}

func tanhPortable(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(math.Tanh(float64(v)))
	}
}

func sigmoidPortable(dst, x []float32) {
	for i, v := range x {
		dst[i] = float32(1 / (1 + math.Exp(-float64(v))))
	}
}

func addPortable(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func mulPortable(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

// sumPortable adds in eight parts: one sum would wait for itself, and err more.
func sumPortable(x []float32) float32 {
	var parts [8]float32
	for len(x) >= len(parts) {
		for i := range parts {
			parts[i] += x[i]
		}
		x = x[len(parts):]
	}
	for i, v := range x {
		parts[i] += v
	}
	return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
}

func maxPortable(x []float32) float32 {
	most := x[0]
	for _, v := range x[1:] {
		most = max(most, v)
	}
	return most
}

func momentumPortable(p, g, v []float32, keep, rate float32) {
	for i := range p {
		v[i] = float32(keep*v[i]) + g[i]
		p[i] -= float32(rate * v[i])
	}
}

func adamPortable(p, g, m, v []float32, s AdamStep) {
	for i := range p {
		m[i] = float32(s.KeepMean*m[i]) + float32(s.TakeMean*g[i])
		v[i] = float32(s.KeepSquare*v[i]) + float32(s.TakeSquare*float32(g[i]*g[i]))
		root := float32(float32(math.Sqrt(float64(v[i])))*s.Root) + s.Epsilon
		p[i] = float32(s.Keep*p[i]) - float32(s.Move*(m[i]/root))
	}
}

func scalePortable(dst, x []float32, factor float32) {
	for i, v := range x {
		dst[i] = factor * v
	}
}

func affinePortable(dst, x []float32, factor, shift float32) {
	for i, v := range x {
		dst[i] = float32(factor*v) + shift
	}
}

func blendPortable(dst, x, y []float32, a, b, c float32) {
	for i := range dst {
		dst[i] = float32(a*x[i]) + float32(b*y[i]) + c
	}
}

func addProductPortable(dst, x, y []float32) {
	for i := range dst {
		dst[i] += float32(x[i] * y[i])
	}
}

func rectifyPortable(dst, x []float32) {
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

func gatePortable(dst, x, y []float32) {
	for i := range dst {
		v := x[i]
		if y[i] <= 0 {
			v = 0
		}
		dst[i] = v
	}
}

func dotPortable(x, y []float32, off float32) float32 {
	var parts [8]float32
	for len(x) >= len(parts) {
		for i := range parts {
			parts[i] += x[i] * (y[i] - off)
		}
		x, y = x[len(parts):], y[len(parts):]
	}
	for i, v := range x {
		parts[i] += v * (y[i] - off)
	}
	return sumPortable(parts[:])
}

func squaresPortable(x []float32, off float32) float32 {
	var parts [8]float32
	for len(x) >= len(parts) {
		for i := range parts {
			d := x[i] - off
			parts[i] += d * d
		}
		x = x[len(parts):]
	}
	for i, v := range x {
		parts[i] += (v - off) * (v - off)
	}
	return sumPortable(parts[:])
}

func maxTilesPortable(dst, a, b []float32) {
	for i := range dst {
		dst[i] = max(a[2*i], a[2*i+1], b[2*i], b[2*i+1])
	}
}

func maxTilesGradPortable(da, db, g, a, b []float32) {
	for i, share := range g {
		left, right := max(a[2*i], b[2*i]), max(a[2*i+1], b[2*i+1])
		switch {
		case left == right:
			share *= 0.5
		case left != left || right != right:
			share = float32(math.NaN())
			da[2*i], da[2*i+1], db[2*i], db[2*i+1] = share, share, share, share
			continue
		}
		columnGrad(&da[2*i], &db[2*i], share, a[2*i], b[2*i], left >= right)
		columnGrad(&da[2*i+1], &db[2*i+1], share, a[2*i+1], b[2*i+1], right >= left)
	}
}

func columnGrad(da, db *float32, share, a, b float32, largest bool) {
	*da, *db = 0, 0
	switch {
	case !largest:
	case a == b:
		*da, *db = share*0.5, share*0.5
	case a > b:
		*da = share
	default:
		*db = share
	}
}
