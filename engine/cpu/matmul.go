package cpu

import "github.com/memdiag/memdiag/engine"

// Block sizes of the product, in elements: a packed block of b, chunkK rows by
// chunkN columns, is 256 KiB and stays in the second-level cache while every row
// of a passes by.
const (
	chunkK = 512
	chunkN = 128
	panel  = 4 // columns that lie side by side in a packed block
)

// scratch is one worker's packed operands.
type scratch struct{ a, b []float32 }

// matrix is a two-dimensional operand: element (i, j) is data[i*row+j*column].
type matrix struct {
	data        []float32
	row, column int
}

func (k *kernels) MatMul(dst, a, b engine.View) {
	d, x, y := flat[float32](dst), words[float32](a), words[float32](b)
	batches, rows, columns, depth := dst.Shape.Dims[0], dst.Shape.Dims[1], dst.Shape.Dims[2], a.Shape.Dims[2]
	// The unit of work is a strip of rows of one chunk of columns of one product.
	chunks := (columns + chunkN - 1) / chunkN
	strips := 1
	if batches*chunks < 2*k.threads {
		strips = max(1, min(k.threads, rows/8))
	}
	units := batches * chunks * strips
	k.split(units, rows*min(columns, chunkN)*depth/(4*strips), func(worker, from, to int) {
		for unit := from; unit < to; unit++ {
			strip, chunk, batch := unit%strips, unit/strips%chunks, unit/strips/chunks
			top, bottom := rows*strip/strips, rows*(strip+1)/strips
			left := chunk * chunkN
			out := matrix{d[batch*rows*columns+top*columns+left:], columns, 1}
			left0 := matrix{x[batch*a.Strides[0]+top*a.Strides[1]:], a.Strides[1], a.Strides[2]}
			right := matrix{y[batch*b.Strides[0]+left*b.Strides[2]:], b.Strides[1], b.Strides[2]}
			gemm(&k.scratch[worker], out, left0, right, bottom-top, min(chunkN, columns-left), depth)
		}
	})
}

// gemm writes out = a·b for a of m by depth and b of depth by n, with n at most
// chunkN and out.column 1. The order of additions depends on depth only.
func gemm(s *scratch, out, a, b matrix, m, n, depth int) {
	for i := range m {
		clear(out.data[i*out.row:][:n])
	}
	for from := 0; from < depth; from += chunkK {
		k := min(chunkK, depth-from)
		s.packB(matrix{b.data[from*b.row:], b.row, b.column}, k, n)
		rows := matrix{a.data[from*a.column:], a.row, a.column}
		if a.column != 1 {
			rows = s.packA(rows, m, k)
		}
		for j := 0; j < n; j += panel {
			right := s.b[j*k:][:panel*k]
			width := min(panel, n-j)
			i := 0
			for ; i+1 < m; i += 2 {
				var sum [2 * panel]float32
				dot2(&sum, rows.data[i*rows.row:][:k], rows.data[(i+1)*rows.row:][:k], right)
				add(out.data[i*out.row+j:][:width], sum[:panel])
				add(out.data[(i+1)*out.row+j:][:width], sum[panel:])
			}
			if i < m {
				var sum [2 * panel]float32
				row := rows.data[i*rows.row:][:k]
				dot2(&sum, row, row, right)
				add(out.data[i*out.row+j:][:width], sum[:panel])
			}
		}
	}
}

func add(to, from []float32) {
	for i := range to {
		to[i] += from[i]
	}
}

// packB lays k rows of n columns out in panels: panel p holds columns 4p … 4p+3
// row by row, zero where there is no such column.
func (s *scratch) packB(b matrix, k, n int) {
	panels := (n + panel - 1) / panel
	s.b = grown(s.b, panels*panel*k)
	for p := range panels {
		out := s.b[p*panel*k:][:panel*k]
		width := min(panel, n-p*panel)
		if width == panel && b.column == 1 {
			for i := range k {
				copy(out[i*panel:][:panel], b.data[i*b.row+p*panel:][:panel])
			}
			continue
		}
		clear(out)
		for j := range width {
			column := b.data[(p*panel+j)*b.column:]
			for i := range k {
				out[i*panel+j] = column[i*b.row]
			}
		}
	}
}

// packA lays m rows of k elements out densely.
func (s *scratch) packA(a matrix, m, k int) matrix {
	s.a = grown(s.a, m*k)
	for j := range k {
		column := a.data[j*a.column:]
		for i := range m {
			s.a[i*k+j] = column[i*a.row]
		}
	}
	return matrix{s.a, k, 1}
}

func grown(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// dot2 multiplies two rows with a panel of four columns: eight sums and their
// six operands are what sixteen registers hold.
func dot2(sum *[2 * panel]float32, a0, a1, b []float32) {
	var c00, c01, c02, c03, c10, c11, c12, c13 float32
	a1 = a1[:len(a0)]
	for i, x := range a0 {
		y := a1[i]
		q := b[:panel:panel]
		c00 += x * q[0]
		c01 += x * q[1]
		c02 += x * q[2]
		c03 += x * q[3]
		c10 += y * q[0]
		c11 += y * q[1]
		c12 += y * q[2]
		c13 += y * q[3]
		b = b[panel:]
	}
	*sum = [2 * panel]float32{c00, c01, c02, c03, c10, c11, c12, c13}
}
