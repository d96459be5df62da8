package cpu

import "github.com/memdiag/memdiag/engine"

// span returns the window's places along one axis at which kernel cell k lies on
// the image: [from, to) of out places.
func span(k, stride, pad, extent, out int) (from, to int) {
	if k < pad {
		from = (pad - k + stride - 1) / stride
	}
	to = (extent - 1 + pad - k + stride) / stride
	return min(from, out), max(min(to, out), min(from, out))
}

func (k *kernels) Im2Col(dst, src engine.View, w engine.Window) {
	k.columns(dst, src, w, func(columns, image []float32, step int) {
		if step == 1 {
			copy(columns, image)
			return
		}
		for i := range columns {
			columns[i] = image[i*step]
		}
	}, true)
}

func (k *kernels) Col2Im(dst, src engine.View, w engine.Window) {
	clear(flat[float32](dst))
	k.columns(src, dst, w, func(columns, image []float32, step int) {
		if step == 1 {
			image = image[:len(columns)]
			for i := range columns {
				image[i] += columns[i]
			}
			return
		}
		for i := range columns {
			image[i*step] += columns[i]
		}
	}, false)
}

// columns calls f for every run of columns that lies on one row of the image;
// step is the distance of the run's pixels. Each thread has channels of its own.
// pad asks for zeros in the columns that hang over the edge.
func (k *kernels) columns(columns, image engine.View, w engine.Window, f func(columns, image []float32, step int), pad bool) {
	channels, height, width := image.Shape.Dims[1], image.Shape.Dims[2], image.Shape.Dims[3]
	oh, ow := w.Out(height, width)
	places, cells := oh*ow, w.Kernel[0]*w.Kernel[1]
	col, img, st := flat[float32](columns), words[float32](image), image.Strides
	k.split(image.Shape.Dims[0]*channels, cells*places, func(from, to int) {
		for plane := from; plane < to; plane++ {
			origin := plane/channels*st[0] + plane%channels*st[1]
			for cell := range cells {
				out := col[(plane*cells+cell)*places:][:places]
				ky, kx := cell/w.Kernel[1], cell%w.Kernel[1]
				y0, y1 := span(ky, w.Stride[0], w.Pad[0], height, oh)
				x0, x1 := span(kx, w.Stride[1], w.Pad[1], width, ow)
				if pad && (y1-y0)*(x1-x0) < places {
					clear(out)
				}
				if x0 == x1 {
					continue
				}
				left := x0*w.Stride[1] + kx - w.Pad[1]
				for y := y0; y < y1; y++ {
					row := origin + (y*w.Stride[0]+ky-w.Pad[0])*st[2] + left*st[3]
					f(out[y*ow+x0:y*ow+x1], img[row:], w.Stride[1]*st[3])
				}
			}
		}
	})
}
