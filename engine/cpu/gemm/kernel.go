package gemm

// kernel is the inner loops for one instruction set. Slices begin at the first
// element and reach to the last one that is touched, or further.
type kernel struct {
	name string

	// tile is documented at tileAVX512; a tile has at most rows by cols elements.
	tile       func(rows, cols, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool)
	rows, cols int
	// Packing a, or b, pays for more columns, or rows, than this.
	packA, packB int

	// dot is documented at dotAVX512.
	dot     func(rows, cols, k int, x []float32, xStep int, y []float32, yStep int, out *[16]float32)
	dotRows int

	// sweep is documented at sweepAVX512.
	sweep     func(rows, cols int, a []float32, aStep int, b []float32, bStep int, c []float32)
	sweepRows int

	// gather is documented at gatherAVX2, transpose at transposeAVX2.
	gather    func(lanes, depth int, src []float32, srcStep int, dst []float32, dstStep int)
	transpose func(rows, blocks int, src []float32, srcStep int, dst []float32, dstStep int)
}

// portable is the kernel in Go, for processors without one of their own. Its
// tile is as large as amd64 has registers for.
func portable() *kernel {
	return &kernel{
		name: "portable",
		tile: tilePortable, rows: 2, cols: 4, packA: 64, packB: 48,
		dot: dotPortable, dotRows: 4,
		sweep: sweepPortable, sweepRows: 4,
		gather: gatherPortable, transpose: transposePortable,
	}
}

func tilePortable(rows, cols, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool) {
	if rows == 2 && cols == 4 {
		tilePortableFull(k, a, aRow, aStep, b, bStep, c, ldc, accumulate)
		return
	}
	for i := range rows {
		for j := range cols {
			var sum float32
			for p := range k {
				sum += a[i*aRow+p*aStep] * b[p*bStep+j]
			}
			if accumulate {
				sum += c[i*ldc+j]
			}
			c[i*ldc+j] = sum
		}
	}
}

func tilePortableFull(k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	for p := range k {
		a0, a1 := a[p*aStep], a[aRow+p*aStep]
		b := b[p*bStep:][:4]
		s00 += a0 * b[0]
		s01 += a0 * b[1]
		s02 += a0 * b[2]
		s03 += a0 * b[3]
		s10 += a1 * b[0]
		s11 += a1 * b[1]
		s12 += a1 * b[2]
		s13 += a1 * b[3]
	}
	c0, c1 := c[:4], c[ldc:][:4]
	if accumulate {
		s00, s01, s02, s03 = s00+c0[0], s01+c0[1], s02+c0[2], s03+c0[3]
		s10, s11, s12, s13 = s10+c1[0], s11+c1[1], s12+c1[2], s13+c1[3]
	}
	c0[0], c0[1], c0[2], c0[3] = s00, s01, s02, s03
	c1[0], c1[1], c1[2], c1[3] = s10, s11, s12, s13
}

func dotPortable(rows, cols, k int, x []float32, xStep int, y []float32, yStep int, out *[16]float32) {
	for i := range rows {
		x := x[i*xStep:][:k]
		for j := range cols {
			y := y[j*yStep:][:k]
			// Four sums: an addition takes longer than the next may wait.
			var s0, s1, s2, s3 float32
			p := 0
			for ; p+4 <= k; p += 4 {
				s0 += x[p] * y[p]
				s1 += x[p+1] * y[p+1]
				s2 += x[p+2] * y[p+2]
				s3 += x[p+3] * y[p+3]
			}
			for ; p < k; p++ {
				s0 += x[p] * y[p]
			}
			out[4*i+j] = (s0 + s1) + (s2 + s3)
		}
	}
}

func gatherPortable(lanes, depth int, src []float32, srcStep int, dst []float32, dstStep int) {
	for p := range depth {
		copy(dst[p*dstStep:][:lanes], src[p*srcStep:])
	}
}

func transposePortable(rows, blocks int, src []float32, srcStep int, dst []float32, dstStep int) {
	for i := range rows {
		for p, v := range src[i*srcStep:][:8*blocks] {
			dst[p*dstStep+i] = v
		}
	}
}

func sweepPortable(rows, cols int, a []float32, aStep int, b []float32, bStep int, c []float32) {
	c = c[:cols]
	if rows == 4 {
		a0, a1, a2, a3 := a[0], a[aStep], a[2*aStep], a[3*aStep]
		b0, b1, b2, b3 := b[:cols], b[bStep:][:cols], b[2*bStep:][:cols], b[3*bStep:][:cols]
		for j := range c {
			c[j] += a0*b0[j] + a1*b1[j] + a2*b2[j] + a3*b3[j]
		}
		return
	}
	for p := range rows {
		a := a[p*aStep]
		for j, v := range b[p*bStep:][:cols] {
			c[j] += a * v
		}
	}
}
