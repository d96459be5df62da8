package cpu

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

// poolCost is what a pixel costs in pooling, in elements.
const poolCost = 2

func (k *kernels) MaxPool(dst, src engine.View, w engine.Window) {
	d, x := flat[float32](dst), flat[float32](src)
	wide, ow := src.Shape.Dims[3], dst.Shape.Dims[3]
	kh, kw := w.Kernel[0], w.Kernel[1]
	k.split(dst.Shape.Elements()/max(1, ow), poolCost*kh*wide, func(from, to int) {
		for row := from; row < to; row++ {
			rows, out := x[row*kh*wide:][:kh*wide], d[row*ow:][:ow]
			if kh == 2 && kw == 2 {
				vec.MaxTiles(out, rows[:wide], rows[wide:])
				continue
			}
			for j := range out {
				best := rows[j*kw]
				for y := range kh {
					for _, v := range rows[y*wide+j*kw:][:kw] {
						best = max(best, v)
					}
				}
				out[j] = best
			}
		}
	})
}

func (k *kernels) MaxPoolGrad(dst, grad, src engine.View, w engine.Window) {
	d, g, x := flat[float32](dst), flat[float32](grad), flat[float32](src)
	wide, ow := src.Shape.Dims[3], grad.Shape.Dims[3]
	kh, kw := w.Kernel[0], w.Kernel[1]
	k.split(grad.Shape.Elements()/max(1, ow), poolCost*kh*wide, func(from, to int) {
		for row := from; row < to; row++ {
			to, g, rows := d[row*kh*wide:][:kh*wide], g[row*ow:][:ow], x[row*kh*wide:][:kh*wide]
			if kh == 2 && kw == 2 {
				vec.MaxTilesGrad(to[:wide], to[wide:], g, rows[:wide], rows[wide:])
				continue
			}
			poolRowGrad(to, g, rows, kh, kw)
		}
	})
}

// poolRowGrad is the derivative for one row of tiles, each kh by kw.
func poolRowGrad(d, g, x []float32, kh, kw int) {
	wide := len(g) * kw
	nan := float32(math.NaN())
	for j := range g {
		best, columns := x[j*kw], float32(0) // the largest, and how many columns reach it
		for c := j * kw; c < (j+1)*kw; c++ {
			largest := x[c]
			for y := 1; y < kh; y++ {
				largest = max(largest, x[y*wide+c])
			}
			if largest > best || largest != largest {
				best, columns = largest, 0
			}
			if largest == best {
				columns++
			}
		}
		for c := j * kw; c < (j+1)*kw; c++ {
			equals := float32(0)
			for y := range kh {
				if x[y*wide+c] == best {
					equals++
				}
			}
			for y := range kh {
				v := float32(0)
				switch {
				case best != best:
					v = nan
				case x[y*wide+c] == best:
					v = g[j] / (columns * equals)
				}
				d[y*wide+c] = v
			}
		}
	}
}
