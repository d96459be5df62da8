package gemm

// The blocking, in elements, by measurement. A slab's panel of b is read from the
// first two caches, 24 KiB with AVX2 and 48 with AVX-512; the rows of a tile are
// 252 KiB, which the second cache keeps; a block of c stays in the third while
// the slabs are added to it: at 2048, blocks of 2048 columns cost 15%.
const (
	slabDepth = 384
	blockRows = 1024
	blockCols = 512
	tileRows  = 168
)

// product is one C = A·B and how it is cut. The columns are cut into blocks, k
// into slabs and the rows into blocks; each such phase packs its parts of a and
// b, where packing pays, and then computes its tiles. Packing the next phase
// goes beside computing this one, hence two of each buffer.
type product struct {
	kern       *kernel
	m, n, k    int
	a, b       Operand
	c          []float32
	ldc        int
	accumulate bool

	packA, packB bool
	depth        int // of a slab
	rows, cols   int // of a block
	tileRows     int // of a tile, in panels
	tileCols     int
	group        int // panels a packing ticket
	left, right  [2][]float32
}

// phase is one block of c and one slab of k.
type phase struct {
	index, slab    int
	i, j, p        int // where it begins
	m, n, k        int // and its extent
	packA, packB   int // packing tickets
	down, across   int // tiles
	first, compute int // the first ticket, the first that computes
	end            int // and the one after the last
}

func ceil(a, b int) int { return (a + b - 1) / b }

// grow returns a buffer of at least n elements.
func grow(buffer []float32, n int) []float32 {
	if cap(buffer) >= n {
		return buffer[:n]
	}
	return make([]float32, n)
}

// plan decides how the product is cut for so many members.
func (d *product) plan(kern *kernel, members, m, n, k int, a, b Operand, c []float32, ldc int, accumulate bool) {
	d.kern, d.m, d.n, d.k, d.a, d.b, d.c, d.ldc, d.accumulate = kern, m, n, k, a, b, c, ldc, accumulate
	d.packA = n > kern.packA
	d.packB = m > kern.packB || b.ColStride != 1
	slabs := ceil(k, slabDepth)
	d.depth = ceil(k, slabs)
	d.rows = min(m, blockRows/kern.rows*kern.rows)
	d.cols = min(n, blockCols/kern.cols*kern.cols)

	down, across := ceil(d.rows, kern.rows), ceil(d.cols, kern.cols)
	d.tileRows, d.tileCols = min(down, tileRows/kern.rows), across
	for members > 1 && ceil(down, d.tileRows)*ceil(across, d.tileCols) < 4*members && d.tileRows*d.tileCols > 1 {
		if d.tileCols*kern.cols >= d.tileRows*kern.rows && d.tileCols > 1 {
			d.tileCols = ceil(d.tileCols, 2)
		} else {
			d.tileRows = ceil(d.tileRows, 2)
		}
	}
	d.group = ceil(max(down, across), 2*members)
	buffers := 2
	if slabs == 1 && d.rows == m && d.cols == n {
		buffers = 1
	}
	for i := range buffers {
		if d.packA {
			d.left[i] = grow(d.left[i], down*panelSize(kern.rows, d.depth))
		}
		if d.packB {
			d.right[i] = grow(d.right[i], across*panelSize(kern.cols, d.depth))
		}
	}
}

// start makes ph the first phase.
func (d *product) start() phase {
	ph := phase{}
	d.measure(&ph)
	return ph
}

// advance makes ph the next phase, or returns false after the last.
func (d *product) advance(ph *phase) bool {
	next := phase{index: ph.index + 1, slab: ph.slab, i: ph.i + d.rows, j: ph.j, p: ph.p, first: ph.end}
	if next.i >= d.m {
		next.i = 0
		next.p += d.depth
		next.slab++
		if next.p >= d.k {
			next.p = 0
			next.j += d.cols
			if next.j >= d.n {
				return false
			}
		}
	}
	d.measure(&next)
	*ph = next
	return true
}

func (d *product) measure(ph *phase) {
	ph.m, ph.n, ph.k = min(d.rows, d.m-ph.i), min(d.cols, d.n-ph.j), min(d.depth, d.k-ph.p)
	down, across := ceil(ph.m, d.kern.rows), ceil(ph.n, d.kern.cols)
	if d.packA {
		ph.packA = ceil(down, d.group)
	}
	if d.packB && ph.i == 0 {
		ph.packB = ceil(across, d.group)
	}
	ph.down, ph.across = ceil(down, d.tileRows), ceil(across, d.tileCols)
	ph.compute = ph.first + ph.packA + ph.packB
	ph.end = ph.compute + ph.down*ph.across
}

// work takes tickets until there are none. They are handed out in order, so that
// whoever waits for earlier ones waits for members that are at work.
func (d *product) work(t *tickets, _ *space) {
	ph := d.start()
	before := 0 // where the tiles of the phase before began
	for {
		ticket := t.take()
		for ticket >= ph.end {
			before = ph.compute
			if !d.advance(&ph) {
				return
			}
		}
		if ticket < ph.compute {
			// The buffers were last read by the tiles of two phases ago.
			t.await(before)
			d.pack(&ph, ticket-ph.first)
		} else {
			t.await(ph.compute)
			d.compute(&ph, ticket-ph.compute)
		}
		t.finished.Add(1)
	}
}

func (d *product) pack(ph *phase, ticket int) {
	if ticket < ph.packB {
		width := d.kern.cols
		for panel := ticket * d.group; panel < min((ticket+1)*d.group, ceil(ph.n, width)); panel++ {
			j := panel * width
			d.kern.pack(d.right[ph.slab&1][panel*panelSize(width, d.depth):], width, min(width, ph.n-j), ph.k,
				d.b.from(ph.p, ph.j+j), d.b.ColStride, d.b.RowStride)
		}
		return
	}
	ticket -= ph.packB
	width := d.kern.rows
	for panel := ticket * d.group; panel < min((ticket+1)*d.group, ceil(ph.m, width)); panel++ {
		i := panel * width
		d.kern.pack(d.left[ph.index&1][panel*panelSize(width, d.depth):], width, min(width, ph.m-i), ph.k,
			d.a.from(ph.i+i, ph.p), d.a.RowStride, d.a.ColStride)
	}
}

func (d *product) compute(ph *phase, ticket int) {
	// Tiles of a phase are of nearly equal size.
	down, across := ceil(ph.m, d.kern.rows), ceil(ph.n, d.kern.cols)
	row, col := ticket/ph.across, ticket%ph.across
	firstRow, endRow := row*down/ph.down, (row+1)*down/ph.down
	firstCol, endCol := col*across/ph.across, (col+1)*across/ph.across

	accumulate := d.accumulate || ph.p > 0
	for panel := firstCol; panel < endCol; panel++ {
		j := panel * d.kern.cols
		cols := min(d.kern.cols, ph.n-j)
		var b []float32
		bStep := d.kern.cols
		if d.packB {
			b = d.right[ph.slab&1][panel*panelSize(d.kern.cols, d.depth):]
		} else {
			b, bStep = d.b.from(ph.p, ph.j+j), d.b.RowStride
		}
		for panel := firstRow; panel < endRow; panel++ {
			i := panel * d.kern.rows
			rows := min(d.kern.rows, ph.m-i)
			var a []float32
			aRow, aStep := 1, d.kern.rows
			if d.packA {
				a = d.left[ph.index&1][panel*panelSize(d.kern.rows, d.depth):]
			} else {
				a, aRow, aStep = d.a.from(ph.i+i, ph.p), d.a.RowStride, d.a.ColStride
			}
			d.kern.tile(rows, cols, ph.k, a, aRow, aStep, b, bStep, d.c[(ph.i+i)*d.ldc+ph.j+j:], d.ldc, accumulate)
		}
	}
}
