package engine

import "github.com/memdiag/memdiag/engine/mem"

// Ops is what models call. Every operation allocates its result, which joins the
// innermost scope, and leaves its operands as they are; Assign alone writes to
// one. Views (Permute, Slice, Expand, Detach, and where they can Reshape, Unfold
// and Fold) share their operand's block.
//
// A misuse, such as shapes that do not go together, a tensor that was released
// or that lies on another device, and a device that is full panic with an
// *Error; Run makes an error of it. Axes count from the outermost, or with -1
// from the innermost.
//
// One Ops, with everything that decorates it, serves one goroutine at a time.
type Ops interface {
	// Begin opens a scope inside the one that is open.
	Begin() *Scope
	// Device is where tensors live.
	Device() *mem.Device
	// Valid is the Ops without its decorators: what is computed with it is neither
	// recorded nor differentiated.
	Valid() Ops
	// Sync waits for the device and returns its error, if one came up.
	Sync() error

	// Full fills a new tensor.
	Full(value float32, dims ...int) *Tensor
	// Rand makes uniform numbers in [0,1), equal on every device.
	Rand(d Draw, dims ...int) *Tensor
	// FromFloats and FromInts upload host data in row-major order.
	FromFloats(data []float32, dims ...int) *Tensor
	FromInts(data []int32, dims ...int) *Tensor
	// Floats and Ints wait for the device and bring a tensor's elements to the host
	// in row-major order.
	Floats(a *Tensor) []float32
	Ints(a *Tensor) []int32

	Neg(a *Tensor) *Tensor
	Exp(a *Tensor) *Tensor
	Log(a *Tensor) *Tensor
	Sqrt(a *Tensor) *Tensor
	Recip(a *Tensor) *Tensor
	Abs(a *Tensor) *Tensor
	ReLU(a *Tensor) *Tensor
	Tanh(a *Tensor) *Tensor
	Sigmoid(a *Tensor) *Tensor

	// Two operands meet by Broadcast. Less and Equal give 1 or 0 and have no
	// gradient.
	Add(a, b *Tensor) *Tensor
	Sub(a, b *Tensor) *Tensor
	Mul(a, b *Tensor) *Tensor
	Div(a, b *Tensor) *Tensor
	Max(a, b *Tensor) *Tensor
	Pow(a, b *Tensor) *Tensor
	Less(a, b *Tensor) *Tensor
	Equal(a, b *Tensor) *Tensor
	// Where takes a where cond is not zero, else b; all three meet by Broadcast.
	Where(cond, a, b *Tensor) *Tensor

	// Sum folds the axes named, which fall out of the shape; without any, all.
	Sum(a *Tensor, axes ...int) *Tensor
	// MaxOver and ArgMax fold one axis, which falls out of the shape. NaN is the
	// largest. ArgMax gives int32, the first of equals, and has no gradient.
	MaxOver(a *Tensor, axis int) *Tensor
	ArgMax(a *Tensor, axis int) *Tensor

	// MatMul multiplies [… m k] by [… k n]; the axes before meet by Broadcast.
	MatMul(a, b *Tensor) *Tensor

	// Copy is a contiguous copy; Detach a view without history.
	Copy(a *Tensor) *Tensor
	Detach(a *Tensor) *Tensor
	// Reshape keeps the elements and their order; it copies where strides force it.
	Reshape(a *Tensor, dims ...int) *Tensor
	// Permute makes axis i of the result of axis order[i].
	Permute(a *Tensor, order ...int) *Tensor
	// Slice takes [from, to) of one axis.
	Slice(a *Tensor, axis, from, to int) *Tensor
	// Expand stretches axes of extent 1, and leading axes that are missing.
	Expand(a *Tensor, dims ...int) *Tensor
	// Concat joins tensors along an axis.
	Concat(axis int, parts ...*Tensor) *Tensor
	// Assign copies src, stretched to its shape, into dst, which must not repeat
	// elements as Expand makes it. The two may overlap: src is then copied first.
	Assign(dst, src *Tensor)

	// Gather picks rows of table [r d] by index [m], int32, into [m d]. ScatterAdd
	// is its adjoint: zeros of [rows d] to which the rows of src [m d] are added.
	Gather(table, index *Tensor) *Tensor
	ScatterAdd(src, index *Tensor, rows int) *Tensor

	// Conv2d correlates x [n c h w] with filters [o c kh kw]: [n o oh ow].
	Conv2d(x, filters *Tensor, w Window) *Tensor
	// Unfold makes columns [n c·kh·kw oh·ow] of the patches of x [n c h w]. Fold is
	// its adjoint, back to c by h by wd.
	Unfold(x *Tensor, w Window) *Tensor
	Fold(columns *Tensor, w Window, c, h, wd int) *Tensor

	// LogSoftmax normalises the innermost axis.
	LogSoftmax(a *Tensor) *Tensor
}
