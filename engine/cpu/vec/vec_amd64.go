//go:build !noasm

package vec

import "golang.org/x/sys/cpu"

//go:generate go -C ../asm run . ..

// wide reports whether the processor has what the assembly is made of.
func wide() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

func exp(dst, x []float32) {
	if !wide() {
		expPortable(dst, x)
		return
	}
	expAVX2(&dst[0], &x[0], len(dst))
}

func tanh(dst, x []float32) {
	if !wide() {
		tanhPortable(dst, x)
		return
	}
	tanhAVX2(&dst[0], &x[0], len(dst))
}

func sigmoid(dst, x []float32) {
	if !wide() {
		sigmoidPortable(dst, x)
		return
	}
	sigmoidAVX2(&dst[0], &x[0], len(dst))
}

func add(dst, a, b []float32) {
	if !wide() {
		addPortable(dst, a, b)
		return
	}
	addAVX2(&dst[0], &a[0], &b[0], len(dst))
}

func mul(dst, a, b []float32) {
	if !wide() {
		mulPortable(dst, a, b)
		return
	}
	mulAVX2(&dst[0], &a[0], &b[0], len(dst))
}

func sum(x []float32) float32 {
	if !wide() {
		return sumPortable(x)
	}
	return sumAVX2(&x[0], len(x))
}

func largest(x []float32) float32 {
	if !wide() {
		return maxPortable(x)
	}
	return maxAVX2(&x[0], len(x))
}

func momentum(p, g, v []float32, keep, rate float32) {
	if !wide() {
		momentumPortable(p, g, v, keep, rate)
		return
	}
	momentumAVX2(&p[0], &g[0], &v[0], len(p), keep, rate)
}

func adam(p, g, m, v []float32, s AdamStep) {
	if !wide() {
		adamPortable(p, g, m, v, s)
		return
	}
	adamAVX2(&p[0], &g[0], &m[0], &v[0], len(p), s.KeepMean, s.TakeMean, s.KeepSquare, s.TakeSquare, s.Keep, s.Move, s.Root, s.Epsilon)
}

func scale(dst, x []float32, factor float32) {
	if !wide() {
		scalePortable(dst, x, factor)
		return
	}
	scaleAVX2(&dst[0], &x[0], len(dst), factor)
}

func affine(dst, x []float32, factor, shift float32) {
	if !wide() {
		affinePortable(dst, x, factor, shift)
		return
	}
	affineAVX2(&dst[0], &x[0], len(dst), factor, shift)
}

func blend(dst, x, y []float32, a, b, c float32) {
	if !wide() {
		blendPortable(dst, x, y, a, b, c)
		return
	}
	blendAVX2(&dst[0], &x[0], &y[0], len(dst), a, b, c)
}

func addProduct(dst, x, y []float32) {
	if !wide() {
		addProductPortable(dst, x, y)
		return
	}
	addProductAVX2(&dst[0], &x[0], &y[0], len(dst))
}

func rectify(dst, x []float32) {
	if !wide() {
		rectifyPortable(dst, x)
		return
	}
	rectifyAVX2(&dst[0], &x[0], len(dst))
}

func gate(dst, x, y []float32) {
	if !wide() {
		gatePortable(dst, x, y)
		return
	}
	gateAVX2(&dst[0], &x[0], &y[0], len(dst))
}

func dot(x, y []float32, off float32) float32 {
	if !wide() {
		return dotPortable(x, y, off)
	}
	return dotAVX2(&x[0], &y[0], len(x), off)
}

func squares(x []float32, off float32) float32 {
	if !wide() {
		return squaresPortable(x, off)
	}
	return squaresAVX2(&x[0], len(x), off)
}

// The assembly does whole registers, the loops in Go what is left.

func maxTiles(dst, a, b []float32) {
	n := 0
	if whole := len(dst) &^ 7; wide() && whole > 0 {
		maxTilesAVX2(&dst[0], &a[0], &b[0], whole)
		n = whole
	}
	maxTilesPortable(dst[n:], a[2*n:], b[2*n:])
}

func maxTilesGrad(da, db, g, a, b []float32) {
	n := 0
	if whole := len(g) &^ 3; wide() && whole > 0 {
		maxTilesGradAVX2(&da[0], &db[0], &g[0], &a[0], &b[0], whole)
		n = whole
	}
	maxTilesGradPortable(da[2*n:], db[2*n:], g[n:], a[2*n:], b[2*n:])
}
