package gemm

// panelSlack is how many elements past a panel's end transpose may write.
const panelSlack = 16

// panelSize is the room for a packed panel of width lanes over depth.
func panelSize(width, depth int) int { return width*depth + panelSlack }

// pack interleaves lanes of src into a panel of the given width:
// dst[p*width+i] = src[i*lane+p*step] for i < lanes and p < depth. What lies at
// i >= lanes is of no use.
func (kern *kernel) pack(dst []float32, width, lanes, depth int, src []float32, lane, step int) {
	switch {
	case lane == 1:
		kern.gather(lanes, depth, src, step, dst, width)
	case step == 1:
		// From the last lanes to the first: transpose writes eight lanes, and those
		// beyond width are the next element's first, which are then still to come.
		blocks := depth / 8
		for first := (lanes - 1) &^ 7; first >= 0; first -= 8 {
			count := min(8, lanes-first)
			if blocks > 0 {
				kern.transpose(count, blocks, src[first*lane:], lane, dst[first:], width)
			}
			interleave(dst[first:], width, count, 8*blocks, depth, src[first*lane:], lane, 1)
		}
	default:
		interleave(dst, width, lanes, 0, depth, src, lane, step)
	}
}

// interleave is pack from element p0 on, for any strides.
func interleave(dst []float32, width, lanes, p0, depth int, src []float32, lane, step int) {
	for p := p0; p < depth; p++ {
		row := dst[p*width:][:lanes]
		for i := range row {
			row[i] = src[i*lane+p*step]
		}
	}
}
