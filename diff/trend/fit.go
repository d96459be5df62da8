package trend

import "math"

// Fit is a linear model by least squares.
type Fit struct {
	Coefficients []float64
	Off          float64 // the largest residual

	deviation float64 // standard deviation of the residuals
	freedom   int
	inverse   [][]float64 // of the normal equations
}

// LeastSquares fits y to the columns of x. Each row is one observation. ok is false if there are not at least two
// more observations than columns, or if the columns depend on each other.
func LeastSquares(x [][]float64, y []float64) (f Fit, ok bool) {
	if len(x) == 0 || len(x) < len(x[0])+2 {
		return f, false
	}
	n := len(x[0])
	scale := make([]float64, n) // scale the columns: one equation may have ones and millions of tokens
	for _, row := range x {
		for j, v := range row {
			scale[j] = max(scale[j], math.Abs(v))
		}
	}
	normal, right := make([][]float64, n), make([]float64, n)
	for i := range n {
		if scale[i] == 0 {
			return f, false
		}
		normal[i] = make([]float64, n)
		for k, row := range x {
			right[i] += row[i] / scale[i] * y[k]
			for j := range n {
				normal[i][j] += row[i] / scale[i] * row[j] / scale[j]
			}
		}
	}
	if f.inverse = inverse(normal); f.inverse == nil {
		return f, false
	}
	f.Coefficients = make([]float64, n)
	for i := range n {
		for j := range n {
			f.inverse[i][j] /= scale[i] * scale[j]
			f.Coefficients[i] += f.inverse[i][j] * right[j] * scale[j]
		}
	}
	squares := 0.0
	for k, row := range x {
		off := math.Abs(y[k] - f.value(row))
		f.Off, squares = max(f.Off, off), squares+off*off
	}
	f.freedom = len(x) - n
	f.deviation = math.Sqrt(squares / float64(f.freedom))
	return f, true
}

func (f Fit) value(row []float64) (sum float64) {
	for i, c := range f.Coefficients {
		sum += c * row[i]
	}
	return sum
}

// At predicts one more observation; off is the half width of its 95 % interval.
func (f Fit) At(row []float64) (value, off float64) {
	far := 1.0
	for i := range row {
		for j := range row {
			far += row[i] * f.inverse[i][j] * row[j]
		}
	}
	return f.value(row), studentQuantile(float64(f.freedom)) * f.deviation * math.Sqrt(far)
}

// inverse returns the inverse of a small matrix by Gauss–Jordan elimination; nil if the matrix is singular.
func inverse(of [][]float64) [][]float64 {
	const singular = 1e-9 // of rows that are scaled to about 1
	n := len(of)
	a := make([][]float64, n)
	for i := range a {
		a[i] = append(append([]float64{}, of[i]...), make([]float64, n)...)
		a[i][n+i] = 1
	}
	for i := range a {
		best := i
		for k := i + 1; k < n; k++ {
			if math.Abs(a[k][i]) > math.Abs(a[best][i]) {
				best = k
			}
		}
		a[i], a[best] = a[best], a[i]
		if math.Abs(a[i][i]) < singular {
			return nil
		}
		for j := 2*n - 1; j >= i; j-- {
			a[i][j] /= a[i][i]
		}
		for k := range a {
			if by := a[k][i]; k != i {
				for j := i; j < 2*n; j++ {
					a[k][j] -= by * a[i][j]
				}
			}
		}
	}
	for i := range a {
		a[i] = a[i][n:]
	}
	return a
}
