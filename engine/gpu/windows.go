package gpu

import "github.com/memdiag/memdiag/engine"

// Im2Col writes patches as columns; see engine.Kernels.
func (k *kernels) Im2Col(dst, src engine.View, w engine.Window) {
	k.windows("im2col", dst, src, src, w, k.Im2Col)
}

// Col2Im adds columns up; see engine.Kernels.
func (k *kernels) Col2Im(dst, src engine.View, w engine.Window) {
	k.windows("col2im", dst, src, dst, w, k.Col2Im)
}

// windows runs a shader between an image and its columns. Images are cut from each
// other where there are too many to be seen at once.
func (k *kernels) windows(shader string, dst, src, image engine.View, w engine.Window, again func(dst, src engine.View, w engine.Window)) {
	count := dst.Shape.Elements()
	if count == 0 {
		return
	}
	if !k.fits(dst, src) {
		if dst.Shape.Dims[0] == 1 {
			k.tooLarge(shader, dst, src)
			return
		}
		first, second := halves(0, []engine.View{dst, src})
		again(first[0], first[1], w)
		again(second[0], second[1], w)
		return
	}
	d, s := image.Shape.Dims, image.Strides
	oh, ow := w.Out(d[2], d[3])
	to, toAt := k.bind(dst)
	from, fromAt := k.bind(src)
	params := []uint32{uint32(count), uint32(d[1]), uint32(d[2]), uint32(d[3])}
	for _, pair := range [...][2]int{w.Kernel, w.Stride, w.Pad, {oh, ow}} {
		params = append(params, uint32(pair[0]), uint32(pair[1]))
	}
	params = append(params, toAt, fromAt, 0, 0, uint32(s[0]), uint32(s[1]), uint32(s[2]), uint32(s[3]))
	if shader == "im2col" { // eight invocations a row
		count = count / ow * 8
		params[0] = uint32(count)
	}
	k.run(shader, count, params, to, from)
}
