package gpu

import "github.com/memdiag/memdiag/engine"

// product is how a matmul shader cuts its result: rows and columns of one group.
type product struct {
	shader        string
	rows, columns int
}

func direct() product { return product{"matmul_direct", 32, 64} }
func tiled() product  { return product{"matmul_tiled", 64, 64} }

// productOf chooses the shader for a device. Tiles in shared memory are what pays on a
// real one; a software driver is twenty times slower with the barriers that they need.
func productOf(d *Device) product {
	const invocations = 256 // of a tile's group
	if d.software() || d.physical.properties.limits.maxGroupInvocations < invocations {
		return direct()
	}
	return tiled()
}

// MatMul multiplies matrices; see engine.Kernels.
func (k *kernels) MatMul(dst, a, b engine.View) {
	if dst.Shape.Elements() == 0 {
		return
	}
	batches, m, n, terms := dst.Shape.Dims[0], dst.Shape.Dims[1], dst.Shape.Dims[2], a.Shape.Dims[2]
	if terms == 0 {
		k.Fill(dst, 0)
		return
	}
	by := k.product
	groups := [3]int{(n + by.columns - 1) / by.columns, (m + by.rows - 1) / by.rows, batches}
	if !k.fits(dst, a, b) || max(groups[0], groups[1], groups[2]) > maxGroups {
		k.cutProduct(dst, a, b)
		return
	}
	to, toAt := k.bind(dst)
	left, leftAt := k.bind(a)
	right, rightAt := k.bind(b)
	k.runGroups(by.shader, [3]uint32{uint32(groups[0]), uint32(groups[1]), uint32(groups[2])}, []uint32{
		uint32(m), uint32(n), uint32(terms), uint32(batches),
		toAt, leftAt, rightAt, 0,
		uint32(a.Strides[0]), uint32(a.Strides[1]), uint32(a.Strides[2]), 0,
		uint32(b.Strides[0]), uint32(b.Strides[1]), uint32(b.Strides[2]), 0,
	}, to, left, right)
}

// cutProduct does a product in two: of half of the batch each, or of half of the rows,
// so that results stay contiguous. One row can be cut across its columns, which is for
// more groups than a device runs: of the right operand a half still spans nearly all.
func (k *kernels) cutProduct(dst, a, b engine.View) {
	switch {
	case dst.Shape.Dims[0] > 1:
		first, second := halves(0, []engine.View{dst, a, b})
		k.MatMul(first[0], first[1], first[2])
		k.MatMul(second[0], second[1], second[2])
	case dst.Shape.Dims[1] > 1:
		// The rows of b are the terms: it stays whole.
		first, second := halves(1, []engine.View{dst, a})
		k.MatMul(first[0], first[1], b)
		k.MatMul(second[0], second[1], b)
	case dst.Shape.Dims[2] > 1 && k.fits(dst, a, b):
		first, second := halves(2, []engine.View{dst, b})
		k.MatMul(first[0], a, first[1])
		k.MatMul(second[0], a, second[1])
	default:
		k.tooLarge("matmul", dst, a, b)
	}
}
