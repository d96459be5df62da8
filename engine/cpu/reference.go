package cpu

import (
	"fmt"
	"math"

	"github.com/memdiag/memdiag/engine"
)

// Reference returns kernels that are slow and clear: one index at a time, sums
// in float64. They are what every other backend is held against.
func Reference() engine.Kernels { return &reference{} }

type reference struct{ sticky error }

// each calls f with every index of a shape, the innermost axis fastest.
func each(s engine.Shape, f func(index [engine.MaxRank]int)) {
	var index [engine.MaxRank]int
	for range s.Elements() {
		f(index)
		for axis := s.Rank - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < s.Dims[axis] {
				break
			}
			index[axis] = 0
		}
	}
}

// at returns the element of a view at an index.
func at[T word](v engine.View, index ...int) *T {
	i := 0
	for axis, x := range index[:v.Shape.Rank] {
		i += x * v.Strides[axis]
	}
	return &words[T](v)[i]
}

func (*reference) Fill(dst engine.View, value float32) {
	each(dst.Shape, func(i [engine.MaxRank]int) { *at[float32](dst, i[:]...) = value })
}

func (*reference) Rand(dst engine.View, d engine.Draw) {
	for i := range flat[float32](dst) {
		flat[float32](dst)[i] = engine.DrawFloat(d, i)
	}
}

func (*reference) Upload(dst engine.View, src []byte)   { copy(raw(dst), src) }
func (*reference) Download(dst []byte, src engine.View) { copy(dst, raw(src)) }
func (*reference) Copy(dst, src engine.View)            { copy(raw(dst), raw(src)) }

func (*reference) CopyStrided(dst, src engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) { *at[int32](dst, i[:]...) = *at[int32](src, i[:]...) })
}

func (*reference) Unary(op engine.UnaryOp, dst, a engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) {
		*at[float32](dst, i[:]...) = unary(op, *at[float32](a, i[:]...))
	})
}

func (*reference) Binary(op engine.BinaryOp, dst, a, b engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) {
		*at[float32](dst, i[:]...) = binary(op, *at[float32](a, i[:]...), *at[float32](b, i[:]...))
	})
}

func (*reference) Where(dst, cond, a, b engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) {
		from := b
		if *at[float32](cond, i[:]...) != 0 {
			from = a
		}
		*at[float32](dst, i[:]...) = *at[float32](from, i[:]...)
	})
}

func (*reference) Reduce(op engine.ReduceOp, dst, a engine.View) {
	folded := a.Shape
	for axis := range folded.Rank {
		if dst.Shape.Dims[axis] == a.Shape.Dims[axis] {
			folded.Dims[axis] = 1
		}
	}
	each(dst.Shape, func(i [engine.MaxRank]int) {
		sum, largest, where := 0.0, float32(math.Inf(-1)), int32(0)
		n := int32(0)
		each(folded, func(j [engine.MaxRank]int) {
			for axis := range j {
				j[axis] += i[axis]
			}
			x := *at[float32](a, j[:]...)
			sum += float64(x)
			if x > largest || x != x && largest == largest { // the first NaN is the largest
				largest, where = x, n
			}
			n++
		})
		switch op {
		case engine.ReduceSum:
			*at[float32](dst, i[:]...) = float32(sum)
		case engine.ReduceMax:
			*at[float32](dst, i[:]...) = largest
		case engine.ReduceArgMax:
			*at[int32](dst, i[:]...) = where
		}
	})
}

func (*reference) MatMul(dst, a, b engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) {
		batch, row, column := i[0], i[1], i[2]
		sum := 0.0
		for k := range a.Shape.Dims[2] {
			sum += float64(*at[float32](a, batch, row, k)) * float64(*at[float32](b, batch, k, column))
		}
		*at[float32](dst, batch, row, column) = float32(sum)
	})
}

func (r *reference) Gather(dst, table, index engine.View) {
	each(dst.Shape, func(i [engine.MaxRank]int) {
		if row := r.row(table, index, i[0]); row >= 0 {
			*at[float32](dst, i[0], i[1]) = *at[float32](table, row, i[1])
		}
	})
}

func (r *reference) ScatterAdd(dst, index, src engine.View) {
	each(src.Shape, func(i [engine.MaxRank]int) {
		if row := r.row(dst, index, i[0]); row >= 0 {
			*at[float32](dst, row, i[1]) += *at[float32](src, i[0], i[1])
		}
	})
}

// row reads one index of a table, or returns -1 and keeps the error.
func (r *reference) row(table, index engine.View, i int) int {
	row := int(*at[int32](index, i))
	if row < 0 || row >= table.Shape.Dims[0] {
		if r.sticky == nil {
			r.sticky = outside(i, row, table.Shape.Dims[0])
		}
		return -1
	}
	return row
}

func outside(i, row, rows int) error {
	return fmt.Errorf("index %d is %d, outside a table of %d rows", i, row, rows)
}

func (*reference) Im2Col(dst, src engine.View, w engine.Window) {
	r := &reference{}
	r.Fill(dst, 0)
	patches(dst, src, w, func(column, pixel *float32) { *column = *pixel })
}

func (*reference) Col2Im(dst, src engine.View, w engine.Window) {
	r := &reference{}
	r.Fill(dst, 0)
	patches(src, dst, w, func(column, pixel *float32) { *pixel += *column })
}

// patches calls f for every element of the columns that lies on the image.
func patches(columns, image engine.View, w engine.Window, f func(column, pixel *float32)) {
	height, width := image.Shape.Dims[2], image.Shape.Dims[3]
	_, ow := w.Out(height, width)
	each(columns.Shape, func(i [engine.MaxRank]int) {
		kernel, place := i[1], i[2]
		c, ky, kx := kernel/(w.Kernel[0]*w.Kernel[1]), kernel/w.Kernel[1]%w.Kernel[0], kernel%w.Kernel[1]
		y := place/ow*w.Stride[0] + ky - w.Pad[0]
		x := place%ow*w.Stride[1] + kx - w.Pad[1]
		if y >= 0 && y < height && x >= 0 && x < width {
			f(at[float32](columns, i[0], kernel, place), at[float32](image, i[0], c, y, x))
		}
	})
}

func (r *reference) Sync() error {
	err := r.sticky
	r.sticky = nil
	return err
}

func unary(op engine.UnaryOp, x float32) float32 {
	switch op {
	case engine.Neg:
		return -x
	case engine.Exp:
		return float32(math.Exp(float64(x)))
	case engine.Log:
		return float32(math.Log(float64(x)))
	case engine.Sqrt:
		return float32(math.Sqrt(float64(x)))
	case engine.Recip:
		return 1 / x
	case engine.Abs:
		return float32(math.Abs(float64(x)))
	case engine.ReLU:
		return max(x, 0)
	case engine.Tanh:
		return float32(math.Tanh(float64(x)))
	case engine.Sigmoid:
		return float32(1 / (1 + math.Exp(-float64(x))))
	}
	panic("no such unary operation: " + op.String())
}

func binary(op engine.BinaryOp, a, b float32) float32 {
	switch op {
	case engine.Add:
		return a + b
	case engine.Sub:
		return a - b
	case engine.Mul:
		return a * b
	case engine.Div:
		return a / b
	case engine.Max:
		return max(a, b)
	case engine.Pow:
		return float32(math.Pow(float64(a), float64(b)))
	case engine.Less:
		return truth(a < b)
	case engine.Equal:
		return truth(a == b)
	}
	panic("no such binary operation: " + op.String())
}

func truth(b bool) float32 {
	if b {
		return 1
	}
	return 0
}
