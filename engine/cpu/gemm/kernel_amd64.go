//go:build !noasm

package gemm

import "golang.org/x/sys/cpu"

//go:generate go -C ../asm run . ..

// kernels returns what this processor can run, the fastest first.
func kernels() []*kernel {
	var all []*kernel
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return append(all, portable())
	}
	avx2 := &kernel{
		name: "avx2",
		tile: func(rows, cols, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool) {
			tileAVX2(rows, cols, k, &a[0], aRow, aStep, &b[0], bStep, &c[0], ldc, accumulate)
		},
		rows: 6, cols: 16, packA: 64, packB: 48,
		dot: func(rows, cols, k int, x []float32, xStep int, y []float32, yStep int, out *[16]float32) {
			dotAVX2(rows, cols, k, &x[0], xStep, &y[0], yStep, out)
		},
		dotRows: 2,
		sweep: func(rows, cols int, a []float32, aStep int, b []float32, bStep int, c []float32) {
			sweepAVX2(rows, cols, &a[0], aStep, &b[0], bStep, &c[0])
		},
		sweepRows: 8,
		gather: func(lanes, depth int, src []float32, srcStep int, dst []float32, dstStep int) {
			gatherAVX2(lanes, depth, &src[0], srcStep, &dst[0], dstStep)
		},
		transpose: func(rows, blocks int, src []float32, srcStep int, dst []float32, dstStep int) {
			transposeAVX2(rows, blocks, &src[0], srcStep, &dst[0], dstStep)
		},
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasBMI2 {
		all = append(all, &kernel{
			name: "avx512",
			tile: func(rows, cols, k int, a []float32, aRow, aStep int, b []float32, bStep int, c []float32, ldc int, accumulate bool) {
				tileAVX512(rows, cols, k, &a[0], aRow, aStep, &b[0], bStep, &c[0], ldc, accumulate)
			},
			rows: 14, cols: 32, packA: 256, packB: 128,
			dot: func(rows, cols, k int, x []float32, xStep int, y []float32, yStep int, out *[16]float32) {
				dotAVX512(rows, cols, k, &x[0], xStep, &y[0], yStep, out)
			},
			dotRows: 4,
			sweep: func(rows, cols int, a []float32, aStep int, b []float32, bStep int, c []float32) {
				sweepAVX512(rows, cols, &a[0], aStep, &b[0], bStep, &c[0])
			},
			sweepRows: 8,
			gather:    avx2.gather,
			transpose: avx2.transpose,
		})
	}
	return append(all, avx2, portable())
}
