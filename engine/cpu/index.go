package cpu

import "github.com/memdiag/memdiag/engine"

func (k *kernels) Gather(dst, table, index engine.View) {
	d, t, idx := flat[float32](dst), words[float32](table), words[int32](index)
	width := dst.Shape.Dims[1]
	for i := range dst.Shape.Dims[0] {
		row, ok := k.row(idx[i*index.Strides[0]], i, table.Shape.Dims[0])
		if !ok {
			continue
		}
		for j := range width {
			d[i*width+j] = t[row*table.Strides[0]+j*table.Strides[1]]
		}
	}
}

// ScatterAdd keeps to one thread: rows may repeat, and the order of additions is
// part of the result.
func (k *kernels) ScatterAdd(dst, index, src engine.View) {
	d, idx, s := flat[float32](dst), words[int32](index), words[float32](src)
	width := dst.Shape.Dims[1]
	for i := range src.Shape.Dims[0] {
		row, ok := k.row(idx[i*index.Strides[0]], i, dst.Shape.Dims[0])
		if !ok {
			continue
		}
		for j := range width {
			d[row*width+j] += s[i*src.Strides[0]+j*src.Strides[1]]
		}
	}
}

func (k *kernels) row(index int32, i, rows int) (int, bool) {
	if index < 0 || int(index) >= rows {
		if k.sticky == nil {
			k.sticky = outside(i, int(index), rows)
		}
		return 0, false
	}
	return int(index), true
}
