package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Eager is the Ops that allocates the result and runs the kernel, at once.
type Eager struct {
	kernels Kernels
	fused   FusedKernels // nil where the kernels have none
	device  *mem.Device
	scopes  scopes
}

var _ Ops = (*Eager)(nil)

// NewEager returns the operations of these kernels over memory of this device,
// whose driver must be the kernels' own. FusedKernels are used if k has them.
func NewEager(k Kernels, d *mem.Device) *Eager {
	fused, _ := k.(FusedKernels)
	return &Eager{kernels: k, fused: fused, device: d}
}

// Begin opens a scope; see Ops.
func (e *Eager) Begin() *Scope { return e.scopes.begin() }

// Device is where tensors live.
func (e *Eager) Device() *mem.Device { return e.device }

// Valid is e: nothing decorates it.
func (e *Eager) Valid() Ops { return e }

// Sync waits for the device; see Ops.
func (e *Eager) Sync() error { return e.device.Explain(e.kernels.Sync()) }

// alloc makes a contiguous tensor with undefined contents.
func (e *Eager) alloc(op string, t DType, shape Shape) *Tensor {
	storage, err := e.device.Alloc(int64(shape.Elements())*ElementSize, snapshot.OwnedByUser)
	if err != nil {
		panic(&Error{Op: op, Shapes: []Shape{shape}, Err: err})
	}
	out := &Tensor{storage: storage, shape: shape, strides: shape.RowMajor(), dtype: t, owner: snapshot.OwnedByUser}
	e.scopes.add(out)
	return out
}

// window makes a view on a tensor's block.
func (e *Eager) window(a *Tensor, shape Shape, strides Strides, offset int) *Tensor {
	a.storage.Retain(snapshot.OwnedByUser)
	out := &Tensor{storage: a.storage, shape: shape, strides: strides, offset: offset, dtype: a.dtype, owner: snapshot.OwnedByUser}
	e.scopes.add(out)
	return out
}

// dense returns a itself if it is contiguous, else a copy; done with it, the
// caller passes both to drop.
func (e *Eager) dense(a *Tensor) *Tensor {
	if contiguous(a.shape, a.strides) {
		return a
	}
	return e.Copy(a)
}

func (*Eager) drop(dense, a *Tensor) {
	if dense != a {
		dense.Release()
	}
}

// fail panics with a misuse of these operands.
func fail(op, reason string, operands ...*Tensor) {
	e := &Error{Op: op, Reason: reason}
	for _, t := range operands {
		e.Shapes = append(e.Shapes, t.shape)
	}
	panic(e)
}

// check panics unless every operand is held and lies on this device.
func (e *Eager) check(op string, operands ...*Tensor) {
	for _, t := range operands {
		t.held(op)
		if !t.storage.Alive() {
			panic(&Error{Op: op, Shapes: []Shape{t.shape}, Reason: "the tensor's memory is gone: its device was closed, or its block was released without it"})
		}
		if d := t.storage.Device(); d != e.device {
			where := d.String()
			if where == e.device.String() {
				where = "another device of that name, which its Options.Index would tell apart"
			}
			panic(&Error{
				Op: op, Shapes: []Shape{t.shape}, Allocated: t.allocated(),
				Reason: fmt.Sprintf("the operation runs on %s, the tensor lies on %s; bring it over with Floats and FromFloats", e.device, where),
			})
		}
	}
}

// typed panics unless an operand has the element type.
func typed(op string, want DType, operands ...*Tensor) {
	for _, t := range operands {
		if t.dtype != want {
			fail(op, fmt.Sprintf("an operand of %s is needed, this one is %s", want, t.dtype), t)
		}
	}
}

// Full fills a new tensor; see Ops.
func (e *Eager) Full(value float32, dims ...int) *Tensor {
	out := e.alloc("full", Float32, ShapeOf(dims...))
	e.kernels.Fill(out.view(), value)
	return out
}

// Rand makes uniform numbers; see Ops.
func (e *Eager) Rand(d Draw, dims ...int) *Tensor {
	out := e.alloc("rand", Float32, ShapeOf(dims...))
	e.kernels.Rand(out.view(), d)
	return out
}

// FromFloats uploads host data; see Ops.
func (e *Eager) FromFloats(data []float32, dims ...int) *Tensor {
	host := make([]byte, len(data)*ElementSize)
	for i, x := range data {
		binary.LittleEndian.PutUint32(host[i*ElementSize:], math.Float32bits(x))
	}
	return e.upload("from floats", Float32, host, ShapeOf(dims...))
}

// FromInts uploads host data; see Ops.
func (e *Eager) FromInts(data []int32, dims ...int) *Tensor {
	host := make([]byte, len(data)*ElementSize)
	for i, x := range data {
		binary.LittleEndian.PutUint32(host[i*ElementSize:], uint32(x))
	}
	return e.upload("from ints", Int32, host, ShapeOf(dims...))
}

func (e *Eager) upload(op string, t DType, host []byte, shape Shape) *Tensor {
	if n := len(host) / ElementSize; n != shape.Elements() {
		panic(&Error{Op: op, Shapes: []Shape{shape}, Reason: fmt.Sprintf("%d elements were given, the shape has %d", n, shape.Elements())})
	}
	out := e.alloc(op, t, shape)
	e.kernels.Upload(out.view(), host)
	return out
}

// Floats brings the elements to the host; see Ops.
func (e *Eager) Floats(a *Tensor) []float32 {
	host := e.download("floats", Float32, a)
	data := make([]float32, len(host)/ElementSize)
	for i := range data {
		data[i] = math.Float32frombits(binary.LittleEndian.Uint32(host[i*ElementSize:]))
	}
	return data
}

// Ints brings the elements to the host; see Ops.
func (e *Eager) Ints(a *Tensor) []int32 {
	host := e.download("ints", Int32, a)
	data := make([]int32, len(host)/ElementSize)
	for i := range data {
		data[i] = int32(binary.LittleEndian.Uint32(host[i*ElementSize:]))
	}
	return data
}

func (e *Eager) download(op string, t DType, a *Tensor) []byte {
	e.check(op, a)
	typed(op, t, a)
	d := e.dense(a)
	defer e.drop(d, a)
	host := make([]byte, a.shape.Elements()*ElementSize)
	e.kernels.Download(host, d.view())
	if err := e.Sync(); err != nil {
		panic(&Error{Op: op, Shapes: []Shape{a.shape}, Err: err})
	}
	return host
}
