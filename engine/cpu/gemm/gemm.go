// Package gemm multiplies float32 matrices on the processor.
package gemm

import "fmt"

// Operand is a matrix: element (i, j) is Data[i*RowStride+j*ColStride]. Strides
// are in elements and not negative: a transpose is the two exchanged, a
// broadcast a stride of 0.
type Operand struct {
	Data                 []float32
	RowStride, ColStride int
}

// from returns the data from element (i, j) on.
func (o Operand) from(i, j int) []float32 { return o.Data[i*o.RowStride+j*o.ColStride:] }

// after is the operand that lies so many elements further on.
func (o Operand) after(elements int) Operand {
	o.Data = o.Data[elements:]
	return o
}

func (o Operand) transposed() Operand { return Operand{o.Data, o.ColStride, o.RowStride} }

// check panics unless o holds batch matrices of rows by cols, step apart.
func (o Operand) check(name string, batch, step, rows, cols int) {
	if o.RowStride < 0 || o.ColStride < 0 || step < 0 {
		panic(fmt.Sprintf("gemm: %s has a negative stride: rows %d, columns %d, batch %d", name, o.RowStride, o.ColStride, step))
	}
	if batch == 0 || rows == 0 || cols == 0 {
		return
	}
	if last := (batch-1)*step + (rows-1)*o.RowStride + (cols-1)*o.ColStride; last >= len(o.Data) {
		panic(fmt.Sprintf("gemm: %s, %d of %d by %d, reaches to element %d of %d", name, batch, rows, cols, last, len(o.Data)))
	}
}

// Multiply sets C = A·B, or C += A·B to accumulate. A is m×k, B is k×n and C,
// whose rows are ldc elements apart, m×n; C may not overlap A or B.
//
// Each element is summed in an order that depends on the shapes, the strides
// and the processor, but not on the number of threads. Nothing is skipped: NaN
// and infinities go where IEEE 754 sends them. Without accumulate, what is in C
// is not read. Multiply allocates nothing once the pool's buffers have grown.
// It panics if an operand is too short for its shape.
func (p *Pool) Multiply(m, n, k int, a, b Operand, c []float32, ldc int, accumulate bool) {
	p.MultiplyBatch(1, m, n, k, a, 0, b, 0, c, ldc, 0, accumulate)
}

// MultiplyBatch is Multiply for count products of one shape, whose operands lie
// aStep, bStep and cStep elements apart. A step of 0 shares an operand; the
// products may not overlap in C. Small products are spread over the threads
// whole, large ones are computed by all threads one after the other.
func (p *Pool) MultiplyBatch(count, m, n, k int, a Operand, aStep int, b Operand, bStep int, c []float32, ldc, cStep int, accumulate bool) {
	if count < 0 || m < 0 || n < 0 || k < 0 {
		panic(fmt.Sprintf("gemm: negative extent: count %d, m %d, n %d, k %d", count, m, n, k))
	}
	a.check("A", count, aStep, m, k)
	b.check("B", count, bStep, k, n)
	Operand{c, ldc, 1}.check("C", count, cStep, m, n)
	if count == 0 || m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if !accumulate {
			for i := range count * m {
				clear(c[i/m*cStep+i%m*ldc:][:n])
			}
		}
		return
	}
	if bStep == 0 && aStep == m*a.RowStride && cStep == m*ldc {
		count, m = 1, count*m
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spaces == nil {
		panic("gemm: the pool is closed")
	}
	if each := p.members(m * n * k); count == 1 || each == len(p.spaces) {
		for i := range count {
			p.run(p.spaces[0].plan(each, m, n, k, a.after(i*aStep), b.after(i*bStep), c[i*cStep:], ldc, accumulate), each)
		}
		p.spaces[0].release()
		return
	}
	members := min(count, p.members(count*m*n*k))
	p.batch = batch{
		count: count, m: m, n: n, k: k,
		a: a, b: b, c: c, ldc: ldc,
		aStep: aStep, bStep: bStep, cStep: cStep,
		accumulate: accumulate,
		group:      max(1, min(count/(4*members), batchWork/(m*n*k))),
	}
	p.run(&p.batch, members)
	p.batch = batch{}
}

// memberWork is how many multiplications are worth another member: they take
// longer than it takes to come.
const memberWork = 1 << 18

// batchWork is about how many multiplications make a ticket of a batch.
const batchWork = 1 << 16

func (p *Pool) members(work int) int {
	return max(1, min(len(p.spaces), work/memberWork))
}
