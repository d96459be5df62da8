package gemm

// dots is a product with few rows, as inner products: C[i,j] = x[i]·y[j], where
// both lie contiguous along k. That reads y once, where it is, and never packs
// it. With few columns instead of rows it is the transposed product.
type dots struct {
	kern         *kernel
	m, n, k      int // x has m rows, y has n
	x, y         []float32
	xStep, yStep int
	c            []float32
	cx, cy       int // strides of c along x and y
	accumulate   bool

	chunk  int // rows of y a ticket
	packed []float32
}

// plan prepares C = A·B for a B whose columns are contiguous.
func (d *dots) plan(kern *kernel, members, m, n, k int, a, b Operand, c []float32, cx, cy int, accumulate bool) {
	d.kern, d.m, d.n, d.k, d.c, d.cx, d.cy, d.accumulate = kern, m, n, k, c, cx, cy, accumulate
	d.x, d.xStep = a.Data, a.RowStride
	d.y, d.yStep = b.Data, b.ColStride
	if a.ColStride != 1 {
		d.packed = grow(d.packed, m*k)
		for i := range m {
			kern.pack(d.packed[i*k:], 1, 1, k, a.from(i, 0), 0, a.ColStride)
		}
		d.x, d.xStep = d.packed, k
	}
	d.chunk = n
	if members > 1 {
		d.chunk = 4 * ceil(n, 16*members)
	}
}

func (d *dots) work(t *tickets, s *space) {
	for {
		first := t.take() * d.chunk
		if first >= d.n {
			return
		}
		for j := first; j < min(first+d.chunk, d.n); j += 4 {
			cols := min(4, d.n-j)
			for i := 0; i < d.m; i += d.kern.dotRows {
				rows := min(d.kern.dotRows, d.m-i)
				d.kern.dot(rows, cols, d.k, d.x[i*d.xStep:], d.xStep, d.y[j*d.yStep:], d.yStep, &s.sums)
				d.place(i, rows, j, cols, &s.sums)
			}
		}
	}
}

func (d *dots) place(i, rows, j, cols int, sums *[16]float32) {
	for r := range rows {
		c := d.c[(i+r)*d.cx+j*d.cy:]
		for s, sum := range sums[4*r:][:cols] {
			if d.accumulate {
				sum += c[s*d.cy]
			}
			c[s*d.cy] = sum
		}
	}
}
