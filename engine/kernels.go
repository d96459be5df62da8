// Package engine is a small training engine: tensors over device memory whose
// every byte is taken and given back on purpose.
//
// Two interfaces carry it. Kernels is what a device must do: some 33 operations
// that write into given buffers. Ops is what a model calls: functions from
// tensors to tensors, which Eager implements over any Kernels and which
// decorators such as autodiff implement around another Ops. FusedKernels are what a
// device may do beside, to do at once what models do most.
//
// A training is put together from the packages below: mem is the device and its
// allocator, cpu its kernels; autodiff records and differentiates; nn has layers,
// model a few models made of them, optim optimizers, metric measures; data brings
// batches, train runs the loop and records it, checkpoint saves and resumes, comm
// trains on several devices, cast in lower precision. The example shows the least
// of it; the example of checkpoint's Writer.Phase a run that stops and goes on.
package engine

import "fmt"

// Kernels computes on one device. A kernel writes into buffers that it is given
// and never takes device memory. Callers promise what each method asks of its
// views; kernels check nothing but indices read from data.
//
// Work may be queued: only Download and Sync wait. An error of the device or of
// an index that lies outside its table is sticky: it is kept until Sync returns
// it, and results computed in between are of no use.
//
// NaN stays: a function of NaN is NaN, but a comparison is false and a condition
// true. The larger of NaN and a number is NaN, and so is the largest of many.
// Infinities and NaN may come from zeros and infinities as IEEE 754 has it. Views
// may have no elements.
//
// One Kernels serves one goroutine at a time.
type Kernels interface {
	// Fill sets every element.
	Fill(dst View, value float32)
	// Rand fills dst, contiguous, with the draw's uniform numbers in [0,1): element
	// i is DrawFloat(d, i) on every device.
	Rand(dst View, d Draw)
	// Upload copies host bytes into dst, contiguous, of as many bytes.
	Upload(dst View, src []byte)
	// Download waits for the device and copies src, contiguous, to the host.
	Download(dst []byte, src View)
	// Copy copies between contiguous views of equal size, of either element type.
	Copy(dst, src View)
	// CopyStrided copies between views of equal shape, of either element type.
	CopyStrided(dst, src View)

	// Unary and Binary work element by element on views of equal shape; operands
	// may have strides of 0. dst may be an operand, seen through equal strides.
	Unary(op UnaryOp, dst, a View)
	Binary(op BinaryOp, dst, a, b View)
	// Where takes a where cond is not zero, else b.
	Where(dst, cond, a, b View)
	// Reduce folds the axes along which dst, contiguous and of equal rank, has the
	// extent 1. ReduceArgMax folds one axis and writes int32: the first index of the
	// largest element, or of NaN.
	Reduce(op ReduceOp, dst, a View)

	// MatMul writes a·b for dst [batch m n], a [batch m k] and b [batch k n]. dst is
	// contiguous; a and b may have any strides: a transpose is a pair of strides
	// exchanged, a shared operand a batch stride of 0. A k of 0 gives zeros.
	MatMul(dst, a, b View)

	// Gather copies the rows of table [r d] that index, int32 [m], names into dst
	// [m d]; ScatterAdd adds the rows of src [m d] to the rows of dst [r d] that
	// index names, in the order of the index. dst is contiguous. A row outside the
	// table is the sticky error.
	Gather(dst, table, index View)
	ScatterAdd(dst, index, src View)

	// Im2Col writes the patches that a window sees in src [n c h w] as columns:
	// dst, contiguous, is [n c·kh·kw oh·ow], zero where the window hangs over the
	// edge. Col2Im is its adjoint: each element of dst [n c h w], contiguous, is the
	// sum of its copies in src, contiguous.
	Im2Col(dst, src View, w Window)
	Col2Im(dst, src View, w Window)

	// Sync waits for the device and returns the sticky error, clearing it.
	Sync() error
}

// UnaryOp is a function of one element.
type UnaryOp uint8

// The unary operations.
const (
	Neg UnaryOp = iota
	Exp
	Log
	Sqrt
	Recip
	Abs
	ReLU
	Tanh
	Sigmoid
	NumUnary = iota
)

func (o UnaryOp) String() string {
	return [...]string{"neg", "exp", "log", "sqrt", "recip", "abs", "relu", "tanh", "sigmoid"}[o]
}

// BinaryOp is a function of two elements. Less and Equal give 1 or 0.
type BinaryOp uint8

// The binary operations.
const (
	Add BinaryOp = iota
	Sub
	Mul
	Div
	Max
	Pow
	Less
	Equal
	NumBinary = iota
)

func (o BinaryOp) String() string {
	return [...]string{"add", "sub", "mul", "div", "max", "pow", "less", "equal"}[o]
}

// ReduceOp folds an axis.
type ReduceOp uint8

// The reductions. Of no elements, the sum is 0; the others have no value.
const (
	ReduceSum ReduceOp = iota
	ReduceMax
	ReduceArgMax
	NumReduce = iota
)

func (o ReduceOp) String() string { return [...]string{"sum", "max", "argmax"}[o] }

// Window slides over the two innermost axes of an image: height, then width.
type Window struct {
	Kernel, Stride, Pad [2]int
}

// Square is a window of k by k.
func Square(k, stride, pad int) Window {
	return Window{Kernel: [2]int{k, k}, Stride: [2]int{stride, stride}, Pad: [2]int{pad, pad}}
}

// Out returns how many places the window takes over an h by w image. It panics
// with an *Error if a stride is below 1.
func (w Window) Out(h, wd int) (oh, ow int) {
	if w.Stride[0] < 1 || w.Stride[1] < 1 {
		panic(&Error{Op: "window", Reason: fmt.Sprintf("strides of %d and %d; at least 1 is needed", w.Stride[0], w.Stride[1])})
	}
	return (h+2*w.Pad[0]-w.Kernel[0])/w.Stride[0] + 1, (wd+2*w.Pad[1]-w.Kernel[1])/w.Stride[1] + 1
}

// fits reports whether the window is well formed and has a place in the image. What
// is beyond MaxElements fits nowhere, and sums of it would wrap.
func (w Window) fits(h, wd int) bool {
	for i, extent := range [2]int{h, wd} {
		if w.Kernel[i] < 1 || w.Stride[i] < 1 || w.Pad[i] < 0 || max(extent, w.Kernel[i], w.Stride[i], w.Pad[i]) > MaxElements ||
			extent+2*w.Pad[i] < w.Kernel[i] {
			return false
		}
	}
	return true
}
