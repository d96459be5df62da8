package cpu

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/gemm"
	"github.com/memdiag/memdiag/engine/cpu/vec"
)

// convolution is the geometry of one, whose patches are made into columns a few
// rows of places at a time.
type convolution struct {
	w                     engine.Window
	images, channels      int
	height, width         int
	filters, oh, ow       int
	cells, places, pixels int // of a filter, of a channel of the result, of an image
	rows, tiles           int // of places in a tile, and of tiles in an image
}

// tileFloats is how large the columns of a tile may be: 384 KiB, which leaves room
// for the operands in a second cache of 512 KiB.
const tileFloats = 96 << 10

func convolutionOf(x, filters engine.View, w engine.Window) convolution {
	c := convolution{
		w: w, images: x.Shape.Dims[0], channels: x.Shape.Dims[1], height: x.Shape.Dims[2], width: x.Shape.Dims[3],
		filters: filters.Shape.Dims[0],
	}
	c.oh, c.ow = w.Out(c.height, c.width)
	c.cells, c.places, c.pixels = c.channels*w.Kernel[0]*w.Kernel[1], c.oh*c.ow, c.channels*c.height*c.width
	c.rows = min(c.oh, max(1, tileFloats/max(1, c.cells*c.ow)))
	c.tiles = (c.oh + c.rows - 1) / c.rows
	return c
}

// work is the multiplications of an image, in elements: some 64 take as long as
// one element of other kernels.
func (c *convolution) work() int { return c.filters * c.cells * c.places / 64 }

// tile is the rows [from, to) of places.
func (c *convolution) tile(i int) (from, to int) {
	return i * c.rows, min(c.oh, (i+1)*c.rows)
}

// patch is where one cell of the filters lies on an image, in a tile: rows [y0, y1)
// and columns [x0, x1) of places, whose pixels begin at first.
type patch struct {
	y0, y1, x0, x1 int
	first          int
}

func (c *convolution) patch(cell, from, to int) patch {
	cells := c.w.Kernel[0] * c.w.Kernel[1]
	channel, ky, kx := cell/cells, cell%cells/c.w.Kernel[1], cell%c.w.Kernel[1]
	var p patch
	p.y0, p.y1 = span(ky, c.w.Stride[0], c.w.Pad[0], c.height, c.oh)
	p.x0, p.x1 = span(kx, c.w.Stride[1], c.w.Pad[1], c.width, c.ow)
	p.y0, p.y1 = max(p.y0, from), min(p.y1, to)
	if p.x0 == p.x1 {
		p.y1 = p.y0
	}
	p.first = (channel*c.height+p.y0*c.w.Stride[0]+ky-c.w.Pad[0])*c.width + p.x0*c.w.Stride[1] + kx - c.w.Pad[1]
	return p
}

// even reports whether places lie as pixels do: then all rows of a patch are one
// run; only what hangs over the edges is wrong.
func (c *convolution) even() bool { return c.w.Stride == [2]int{1, 1} && c.ow == c.width }

// run is the places of a patch from its first to its last, in a cell's columns.
func (c *convolution) run(p patch, columns []float32, from int) []float32 {
	return columns[(p.y0-from)*c.ow+p.x0 : (p.y1-1-from)*c.ow+p.x1]
}

// clearEdges clears what hangs over the edges between the rows of a run.
func (c *convolution) clearEdges(p patch, run []float32) {
	gap := c.ow - (p.x1 - p.x0)
	for at := p.x1 - p.x0; gap > 0 && at < len(run); at += c.ow {
		clear(run[at:][:gap])
	}
}

// unfold writes a tile's columns [cells places].
func (c *convolution) unfold(tile int, columns, image []float32) {
	from, to := c.tile(tile)
	n := (to - from) * c.ow
	for cell := range c.cells {
		p, columns := c.patch(cell, from, to), columns[cell*n:][:n]
		switch {
		case p.y1 <= p.y0:
			clear(columns)
		case c.even():
			run := c.run(p, columns, from)
			copy(run, image[p.first:])
			c.clearEdges(p, run)
			clear(columns[:(p.y0-from)*c.ow+p.x0])
			clear(columns[(p.y1-1-from)*c.ow+p.x1:])
		default:
			clear(columns)
			for y := p.y0; y < p.y1; y++ {
				pick(columns[(y-from)*c.ow:][p.x0:p.x1], image[p.first+(y-p.y0)*c.w.Stride[0]*c.width:], c.w.Stride[1])
			}
		}
	}
}

// fold adds a tile's columns to an image. It leaves the columns in disorder.
func (c *convolution) fold(tile int, columns, image []float32) {
	from, to := c.tile(tile)
	n := (to - from) * c.ow
	for cell := range c.cells {
		p, columns := c.patch(cell, from, to), columns[cell*n:][:n]
		switch {
		case p.y1 <= p.y0:
		case c.even():
			run := c.run(p, columns, from)
			c.clearEdges(p, run)
			pixels := image[p.first:][:len(run)]
			vec.Add(pixels, pixels, run)
		default:
			for y := p.y0; y < p.y1; y++ {
				give(columns[(y-from)*c.ow:][p.x0:p.x1], image[p.first+(y-p.y0)*c.w.Stride[0]*c.width:], c.w.Stride[1])
			}
		}
	}
}

// pick copies pixels that lie step apart to columns.
func pick(columns, image []float32, step int) {
	if step == 1 {
		copy(columns, image)
		return
	}
	for i := range columns {
		columns[i] = image[i*step]
	}
}

// give adds columns to pixels that lie step apart.
func give(columns, image []float32, step int) {
	if step == 1 {
		vec.Add(image[:len(columns)], image[:len(columns)], columns)
		return
	}
	for i, v := range columns {
		image[i*step] += v
	}
}

// rowMajor is an operand whose rows lie so many elements apart.
func rowMajor(data []float32, step int) gemm.Operand {
	return gemm.Operand{Data: data, RowStride: step, ColStride: 1}
}

// transposed is the transpose of rowMajor.
func transposed(data []float32, step int) gemm.Operand {
	return gemm.Operand{Data: data, RowStride: 1, ColStride: step}
}

func (k *kernels) Conv2d(dst, x, filters, bias engine.View, w engine.Window) {
	c := convolutionOf(x, filters, w)
	d, image, bank, b := flat[float32](dst), flat[float32](x), flat[float32](filters), flatOrNil(bias)
	k.each(c.images*c.tiles, c.work()/max(1, c.tiles), func(unit int, s *workspace) {
		i, tile := unit/c.tiles, unit%c.tiles
		from, to := c.tile(tile)
		n := (to - from) * c.ow
		columns := s.take(c.cells * n)
		c.unfold(tile, columns, image[i*c.pixels:][:c.pixels])
		out := d[i*c.filters*c.places+from*c.ow:]
		s.products.Multiply(c.filters, n, c.cells, rowMajor(bank, c.cells), rowMajor(columns, n), out, c.places, false)
		for o := range b {
			row := out[o*c.places:][:n]
			vec.Affine(row, row, 1, b[o])
		}
	})
}

const (
	// convGroups is how many groups of images have their share of the filters'
	// gradient summed apart. The shares are then added in order, whoever made them.
	convGroups = 16
	// convShares bounds the shares together, in elements: 16 MiB.
	convShares = 4 << 20
)

func (k *kernels) Conv2dGrad(dx, dfilters, grad, x, filters engine.View, w engine.Window) {
	c := convolutionOf(x, filters, w)
	g, image, bank := flat[float32](grad), flat[float32](x), flat[float32](filters)
	toImage, toBank := flatOrNil(dx), flatOrNil(dfilters)
	groups := max(1, min(c.images, convGroups, convShares/max(1, len(bank))))
	var shares []float32
	if toBank != nil {
		shares = k.take(groups * len(bank))
	}
	clear(toImage)
	k.each(groups, 2*c.work()*c.images/groups, func(group int, s *workspace) {
		first, last := c.images*group/groups, c.images*(group+1)/groups
		for unit := first * c.tiles; unit < last*c.tiles; unit++ {
			i, tile := unit/c.tiles, unit%c.tiles
			from, to := c.tile(tile)
			n := (to - from) * c.ow
			columns := s.take(c.cells * n)
			g := g[i*c.filters*c.places+from*c.ow:]
			if toBank != nil {
				c.unfold(tile, columns, image[i*c.pixels:][:c.pixels])
				s.products.Multiply(c.filters, c.cells, n, rowMajor(g, c.places), transposed(columns, n),
					shares[group*len(bank):], c.cells, unit > first*c.tiles)
			}
			if toImage != nil {
				s.products.Multiply(c.cells, n, c.filters, transposed(bank, c.cells), rowMajor(g, c.places), columns, n, false)
				c.fold(tile, columns, toImage[i*c.pixels:][:c.pixels])
			}
		}
		if toBank != nil && first == last {
			clear(shares[group*len(bank):][:len(bank)])
		}
	})
	total(toBank, shares, len(bank), groups)
}
