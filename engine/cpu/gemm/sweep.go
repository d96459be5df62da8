package gemm

// sweep is a product with one row: the rows of b are swept over side by side and
// added up, each times its element of a, so that memory is read in order.
type sweep struct {
	kern       *kernel
	n, k       int
	a, b       Operand
	c          []float32
	accumulate bool
	chunk      int // columns a ticket
}

// sweepCols is at most how many columns of c are in work: they stay in the first
// cache.
const sweepCols = 2048

func (d *sweep) plan(kern *kernel, members, n, k int, a, b Operand, c []float32, accumulate bool) {
	d.kern, d.n, d.k, d.a, d.b, d.c, d.accumulate = kern, n, k, a, b, c, accumulate
	d.chunk = min(sweepCols, n)
	if members > 1 {
		d.chunk = min(d.chunk, 64*ceil(n, 128*members))
	}
}

func (d *sweep) work(t *tickets, _ *space) {
	for {
		j := t.take() * d.chunk
		if j >= d.n {
			return
		}
		c := d.c[j:min(j+d.chunk, d.n)]
		if !d.accumulate {
			clear(c)
		}
		for p := 0; p < d.k; p += d.kern.sweepRows {
			d.kern.sweep(min(d.kern.sweepRows, d.k-p), len(c), d.a.from(0, p), d.a.ColStride, d.b.from(p, j), d.b.RowStride, c)
		}
	}
}
