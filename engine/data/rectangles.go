package data

import "math/rand/v2"

// Rectangles is a generated detection set: on each image of noise lies one bright
// rectangle, in one of three colours, which are its classes.
type Rectangles struct {
	Seed uint64
	Size int // of an image, in pixels, both ways
	Grid int // cells that an image's targets have, both ways; divides Size
}

// Classes counts what a cell can be: Background or one of three colours.
const Classes = 4

// Background is the label of a cell whose centre lies on no rectangle; a
// rectangle's label is 1 plus its colour channel.
const Background int32 = 0

// Detections is a batch of images with the targets of each grid cell.
type Detections struct {
	N      int
	Images []float32 // [n 3 size size], about 0 to 1
	Labels []int32   // [n grid grid]
	// Boxes are the distances from a cell's centre to the rectangle's left, top,
	// right and bottom edge, in image sizes: [n 4 grid grid], 0 on background.
	Boxes []float32
	// Weights even out background and objects: each of the two adds up to 1/2.
	Weights []float32 // [n grid grid]
	Inside  []float32 // [n grid grid], 1 where the cell is no background
	Objects int       // cells that are no background; at least 1
}

// Batch makes the images of one step. It depends on the seed and the step only,
// so that runs can be compared step by step.
func (r Rectangles) Batch(step int64, n int) *Detections {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(step)))
	cells := r.Grid * r.Grid
	b := &Detections{
		N:      n,
		Images: make([]float32, n*3*r.Size*r.Size), Labels: make([]int32, n*cells),
		Boxes: make([]float32, n*4*cells), Weights: make([]float32, n*cells), Inside: make([]float32, n*cells),
	}
	for i := range b.Images {
		b.Images[i] = 0.25 * rng.Float32()
	}
	for i := range n {
		r.draw(b, i, rng)
	}
	for i, inside := range b.Inside {
		if inside == 1 {
			b.Weights[i] = 0.5 / float32(b.Objects)
		} else {
			b.Weights[i] = 0.5 / float32(n*cells-b.Objects)
		}
	}
	return b
}

// draw puts a rectangle on image i and fills the targets of its cells.
func (r Rectangles) draw(b *Detections, i int, rng *rand.Rand) {
	channel := rng.IntN(3)
	// A quarter to a half of the image: it covers cells, and leaves background.
	width, height := r.Size/4+rng.IntN(r.Size/4), r.Size/4+rng.IntN(r.Size/4)
	left, top := rng.IntN(r.Size-width), rng.IntN(r.Size-height)
	plane := b.Images[(i*3+channel)*r.Size*r.Size:][:r.Size*r.Size]
	for y := top; y < top+height; y++ {
		for x := left; x < left+width; x++ {
			plane[y*r.Size+x] = 0.75 + 0.25*rng.Float32()
		}
	}
	cell := r.Size / r.Grid
	for gy := range r.Grid {
		for gx := range r.Grid {
			x, y := gx*cell+cell/2, gy*cell+cell/2
			if x < left || x >= left+width || y < top || y >= top+height {
				continue
			}
			at := gy*r.Grid + gx
			b.Labels[i*r.Grid*r.Grid+at] = int32(1 + channel)
			b.Inside[i*r.Grid*r.Grid+at] = 1
			b.Objects++
			for edge, d := range [4]int{x - left, y - top, left + width - x, top + height - y} {
				b.Boxes[(i*4+edge)*r.Grid*r.Grid+at] = float32(d) / float32(r.Size)
			}
		}
	}
}
