package main

import (
	"math"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	expPromise = `expAVX2 sets dst[i] = e^x[i] for i < n. n is at least 1.`

	tanhPromise = `tanhAVX2 sets dst[i] to the hyperbolic tangent of x[i] for i < n. n is at
least 1.`

	sigmoidPromise = `sigmoidAVX2 sets dst[i] = 1/(1+e^-x[i]) for i < n. n is at least 1.`
)

// exponential is what the functions share: e^x = 2^n · e^r, with n the nearest
// integer to x·log2(e), so that r is at most half of ln 2.
type exponential struct {
	*lanes
	coefficients []operand.Mem // of (e^r - 1 - r)/r², from the highest
	r, n, poly   reg.VecPhysical
}

func exponentials(ctx *build.Context) {
	l := newLanes(ctx, "expMask")
	e := &exponential{lanes: l, r: reg.Y8, n: reg.Y9, poly: reg.Y10}
	names := []string{"expC6", "expC5", "expC4", "expC3", "expC2"}
	for i, c := range expCoefficients() {
		e.coefficients = append(e.coefficients, e.float(names[i], c))
	}
	streams := []stream{{"dst", false, true}, {"x", true, false}}
	l.loop("expAVX2", "", expPromise, streams, nil, func(r []reg.VecPhysical) { e.exp(r[1], r[0]) })
	l.loop("tanhAVX2", "", tanhPromise, streams, nil, func(r []reg.VecPhysical) { e.tanh(r[1], r[0]) })
	l.loop("sigmoidAVX2", "", sigmoidPromise, streams, nil, func(r []reg.VecPhysical) { e.sigmoid(r[1], r[0]) })
}

// expCoefficients returns the polynomial through (e^r - 1 - r)/r² at the
// Chebyshev points of |r| ≤ ln(2)/2, highest power first. Its part in e^r is
// right to 2^-28.
func expCoefficients() []float64 {
	const n = 5
	var rows [n][n + 1]float64
	for i := range rows {
		r := math.Ln2 / 2 * math.Cos(math.Pi*(float64(i)+0.5)/n)
		power := 1.0
		for j := range n {
			rows[i][j] = power
			power *= r
		}
		term := 0.5
		for k := 3.0; k < 20; k++ {
			rows[i][n] += term
			term *= r / k
		}
	}
	// Gauss and Jordan. The powers rise with the columns, so that each square of
	// the first columns is of full rank.
	for c := range rows {
		for i := range rows {
			if i == c {
				continue
			}
			factor := rows[i][c] / rows[c][c]
			for j := range rows[i] {
				rows[i][j] -= factor * rows[c][j]
			}
		}
	}
	var coefficients []float64
	for i := n - 1; i >= 0; i-- {
		coefficients = append(coefficients, rows[i][n]/rows[i][i])
	}
	return coefficients
}

func (l *lanes) float(name string, v float64) operand.Mem {
	return l.bits(name, math.Float32bits(float32(v)))
}

// reduce leaves n, as integers, and r of x, and in poly e^r - 1 - r over r².
func (e *exponential) reduce(x reg.VecPhysical) {
	high := float64(float32(math.Ln2))
	e.VMULPS(e.float("log2e", math.Log2E), x, e.n)
	e.VCVTPS2DQ(e.n, e.n)
	e.VCVTDQ2PS(e.n, e.poly)
	e.VMOVAPS(x, e.r)
	e.VFNMADD231PS(e.float("ln2High", high), e.poly, e.r)
	e.VFNMADD231PS(e.float("ln2Low", math.Ln2-high), e.poly, e.r)
	e.VMOVUPS(e.coefficients[0], e.poly)
	for _, c := range e.coefficients[1:] {
		e.VFMADD213PS(c, e.r, e.poly)
	}
}

// grown leaves e^r - 1 in poly.
func (e *exponential) grown() {
	scratch := reg.Y11
	e.VMULPS(e.r, e.r, scratch)
	e.VFMADD213PS(e.r, scratch, e.poly)
}

// power leaves 2^n of integers n in r.
func (e *exponential) power(n, r reg.VecPhysical) {
	e.VPADDD(e.bits("bias", 127), n, r)
	e.VPSLLD(operand.Imm(23), r, r)
}

// exp destroys x.
func (e *exponential) exp(x, dst reg.VecPhysical) {
	// The limits give infinity and 0. NaN stays: it is the second operand.
	e.VMOVUPS(e.float("expMost", 89), dst)
	e.VMINPS(x, dst, x)
	e.VMOVUPS(e.float("expLeast", -104), dst)
	e.VMAXPS(x, dst, x)
	e.reduce(x)
	e.grown()
	e.VADDPS(e.float("one", 1), e.poly, dst)
	// In two steps, as 2^128 is no number and 2^-140 none of full precision.
	half := reg.Y11
	e.VPSRAD(operand.Imm(1), e.n, half)
	e.VPSUBD(half, e.n, e.n)
	e.power(half, half)
	e.power(e.n, e.n)
	e.VMULPS(half, dst, dst)
	e.VMULPS(e.n, dst, dst)
}

// tanh is (e^2|x| - 1) / (e^2|x| + 1), with the sign of x. The numerator is found
// without the 1, which keeps it exact near 0.
func (e *exponential) tanh(x, dst reg.VecPhysical) {
	sign := reg.Y12
	e.VANDPS(e.bits("signBit", 1<<31), x, sign)
	e.VXORPS(sign, x, x)
	e.VADDPS(x, x, x)
	e.VMOVUPS(e.float("tanhMost", 20), dst) // tanh(10) rounds to 1
	e.VMINPS(x, dst, x)
	e.reduce(x)
	e.grown()
	e.power(e.n, e.n)
	e.VSUBPS(e.float("one", 1), e.n, dst)
	e.VFMADD231PS(e.n, e.poly, dst)
	e.VADDPS(e.float("two", 2), dst, x)
	e.VDIVPS(x, dst, dst)
	e.VORPS(sign, dst, dst)
}

// sigmoid is 1/(1+e^-|x|), times e^-|x| where x is negative: what would become
// infinite is never computed.
func (e *exponential) sigmoid(x, dst reg.VecPhysical) {
	sign, one := reg.Y12, reg.Y13
	e.VMOVAPS(x, sign)
	e.VORPS(e.bits("signBit", 1<<31), x, x)
	e.exp(x, dst)
	e.VMOVUPS(e.float("one", 1), one)
	e.VADDPS(one, dst, x)
	e.VBLENDVPS(sign, dst, one, dst)
	e.VDIVPS(x, dst, dst)
}
