package cpu

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/gemm"
)

func (k *kernels) MatMul(dst, a, b engine.View) {
	batches, rows, columns, depth := dst.Shape.Dims[0], dst.Shape.Dims[1], dst.Shape.Dims[2], a.Shape.Dims[2]
	left := gemm.Operand{Data: words[float32](a), RowStride: a.Strides[1], ColStride: a.Strides[2]}
	right := gemm.Operand{Data: words[float32](b), RowStride: b.Strides[1], ColStride: b.Strides[2]}
	k.pool.MultiplyBatch(batches, rows, columns, depth, left, a.Strides[0], right, b.Strides[0], flat[float32](dst), columns, rows*columns, false)
}
