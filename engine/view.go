package engine

import (
	"fmt"
	"strings"

	"github.com/memdiag/memdiag/engine/mem"
)

// MaxRank is the most axes that a tensor may have. A fixed bound keeps shapes
// and strides values, so that an operation allocates nothing for them.
const MaxRank = 6

// ElementSize is the size in bytes of every element: float32 or int32.
const ElementSize = 4

// Shape is the extent of every axis, outermost first. The zero value is a
// scalar's. Shapes compare with ==.
type Shape struct {
	Rank int
	Dims [MaxRank]int // zero from Rank on
}

// Strides are the distances in elements between neighbours along each axis; 0
// repeats one element along it.
type Strides [MaxRank]int

// MaxElements bounds a shape: more could not be addressed, and counts of
// elements and of bytes would wrap. Extents of 0 do not count, since views can
// be cut and stretched again.
const MaxElements = 1 << 48

// ShapeOf returns the shape with these extents. It panics with an *Error if
// there are more than MaxRank, one is negative, or they make more than
// MaxElements.
func ShapeOf(dims ...int) Shape {
	s := Shape{Rank: len(dims)}
	if len(dims) > MaxRank {
		panic(&Error{Op: "shape", Reason: fmt.Sprintf("%d axes; at most %d are supported", len(dims), MaxRank)})
	}
	for i, d := range dims {
		if d < 0 {
			panic(&Error{Op: "shape", Reason: fmt.Sprintf("axis %d has the negative extent %d", i, d)})
		}
		s.Dims[i] = d
	}
	s.bounded("shape")
	return s
}

// bounded panics for a shape of more than MaxElements.
func (s Shape) bounded(op string) {
	n := 1
	for _, d := range s.Dims[:s.Rank] {
		if d > 0 && n > MaxElements/d {
			panic(&Error{Op: op, Reason: fmt.Sprintf("%v has more than 2^48 elements", s)})
		}
		n *= max(d, 1)
	}
}

// Elements counts the elements; a scalar has one.
func (s Shape) Elements() int {
	n := 1
	for _, d := range s.Dims[:s.Rank] {
		n *= d
	}
	return n
}

// Slice returns the extents in a slice of their own.
func (s Shape) Slice() []int { return append([]int(nil), s.Dims[:s.Rank]...) }

// With returns the shape with one axis replaced.
func (s Shape) With(axis, extent int) Shape {
	s.Dims[axis] = extent
	return s
}

// String prints the extents in brackets: "[4 3 64 64]".
func (s Shape) String() string {
	return strings.ReplaceAll(fmt.Sprint(s.Dims[:s.Rank]), ",", "")
}

// RowMajor returns the strides of a contiguous tensor of this shape.
func (s Shape) RowMajor() Strides {
	var st Strides
	step := 1
	for i := s.Rank - 1; i >= 0; i-- {
		st[i] = step
		step *= s.Dims[i]
	}
	return st
}

// View is a strided window on a buffer: what kernels read and write. Offset and
// strides count elements.
type View struct {
	Buffer  mem.Buffer
	Shape   Shape
	Strides Strides
	Offset  int
}

// Contiguous reports whether the view's elements lie in row-major order without
// gaps. Axes of extent 1 do not matter.
func (v View) Contiguous() bool { return contiguous(v.Shape, v.Strides) }

func contiguous(s Shape, st Strides) bool {
	step := 1
	for i := s.Rank - 1; i >= 0; i-- {
		if s.Dims[i] != 1 && st[i] != step {
			return false
		}
		step *= s.Dims[i]
	}
	return true
}

// Broadcast returns the shape that two operands meet in, by NumPy's rule: axes
// are matched from the innermost, and an extent of 1 stretches. ok is false
// where extents disagree.
func Broadcast(a, b Shape) (s Shape, ok bool) {
	s.Rank = max(a.Rank, b.Rank)
	for i := 1; i <= s.Rank; i++ {
		da, db := 1, 1
		if i <= a.Rank {
			da = a.Dims[a.Rank-i]
		}
		if i <= b.Rank {
			db = b.Dims[b.Rank-i]
		}
		switch {
		case da == db, db == 1:
			s.Dims[s.Rank-i] = da
		case da == 1:
			s.Dims[s.Rank-i] = db
		default:
			return Shape{}, false
		}
	}
	s.bounded("broadcast")
	return s, true
}

// stretches reports whether a tensor of shape from broadcasts to shape to.
func stretches(from, to Shape) bool {
	_, ok := stretch(from, Strides{}, to)
	return ok
}

// stretch returns the strides that read a tensor of shape from as one of shape
// to; ok is false where to is no broadcast of from.
func stretch(from Shape, st Strides, to Shape) (out Strides, ok bool) {
	lead := to.Rank - from.Rank
	if lead < 0 {
		return out, false
	}
	for i := range from.Rank {
		switch {
		case from.Dims[i] == to.Dims[lead+i]:
			out[lead+i] = st[i]
		case from.Dims[i] != 1:
			return out, false
		}
	}
	return out, true
}
