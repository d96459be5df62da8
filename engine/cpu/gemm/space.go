package gemm

// space is what one member has for itself, and the job of a product that begins
// there.
type space struct {
	kern *kernel
	own  tickets

	product product
	dots    dots
	sweep   sweep
	sums    [16]float32
}

// A product with few rows, or columns, is computed as inner products where that
// was measured to be faster than packing the other operand: a row for every
// fewDepth of k, and so many at most. At 8×1024×1024 it is 178 GFLOP/s against
// 101, at 32×1024×1024 equal.
const (
	fewRows  = 32
	fewCols  = 12
	fewDepth = 32

	// fewPacked is at most how many elements of them are packed for that.
	fewPacked = 1 << 18
)

// plan returns the way to compute a product with so many members, ready to be
// worked at. It keeps its operands until release.
func (s *space) plan(members, m, n, k int, a, b Operand, c []float32, ldc int, accumulate bool) job {
	switch {
	case m <= min(fewRows, k/fewDepth) && b.RowStride == 1 && (a.ColStride == 1 || m*k <= fewPacked):
		s.dots.plan(s.kern, members, m, n, k, a, b, c, ldc, 1, accumulate)
		return &s.dots
	case n <= min(fewCols, k/fewDepth) && a.ColStride == 1 && (b.RowStride == 1 || n*k <= fewPacked):
		s.dots.plan(s.kern, members, n, m, k, b.transposed(), a.transposed(), c, 1, ldc, accumulate)
		return &s.dots
	case m == 1 && b.ColStride == 1:
		s.sweep.plan(s.kern, members, n, k, a, b, c, accumulate)
		return &s.sweep
	case n == 1 && a.RowStride == 1 && ldc == 1:
		s.sweep.plan(s.kern, members, m, k, b.transposed(), a.transposed(), c, accumulate)
		return &s.sweep
	}
	s.product.plan(s.kern, members, m, n, k, a, b, c, ldc, accumulate)
	return &s.product
}

// release lets go of the operands, which are the caller's.
func (s *space) release() {
	s.product.a, s.product.b, s.product.c = Operand{}, Operand{}, nil
	s.dots.x, s.dots.y, s.dots.c = nil, nil, nil
	s.sweep.a, s.sweep.b, s.sweep.c = Operand{}, Operand{}, nil
}
