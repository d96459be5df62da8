package gpu

import (
	"errors"
	"fmt"
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

const (
	// scratchBytes is device memory for what a reduction makes on the way, half for
	// each of two passes.
	scratchBytes = 2 << 20
	// statusBytes is device memory in which kernels note that an index was wrong.
	statusBytes = statusSlots * statusWords * engine.ElementSize
	statusWords = 4
	statusSlots = 1024
	// groupSize is how many invocations the shaders' groups have.
	groupSize = 64
	// maxGroups is how many groups any device runs along one axis.
	maxGroups = 65535
)

// New returns kernels that run on the device; several may share it. Results are
// those of the processor up to rounding: exponentials, logarithms and powers to a few
// units in the sixth digit, sums as float32 has it.
func New(d *Device) engine.Kernels {
	k := &kernels{device: d, queue: &d.queue, product: productOf(d)}
	k.status = (d.kernels.Add(1) - 1) % statusSlots
	k.queue.fill(k.statusRange(), 0)
	return k
}

type kernels struct {
	device *Device
	queue  *queue
	// product is how matrices are multiplied here.
	product product
	status  uint32 // its place in the device's status memory
	asked   bool   // kernels that may have noted something were queued
	sticky  error
}

var _ engine.Kernels = (*kernels)(nil)

// keep makes err what Sync returns, unless there was one before.
func (k *kernels) keep(err error) {
	if k.sticky == nil {
		k.sticky = err
	}
}

// span is the bytes of its buffer that a view reaches: from the first to after the
// last. A view without elements reaches none.
func span(v engine.View) (from, to int64) {
	last := v.Offset
	for axis, extent := range v.Shape.Dims[:v.Shape.Rank] {
		if extent == 0 {
			return 0, 0
		}
		last += (extent - 1) * v.Strides[axis]
	}
	return v.Buffer.Offset + int64(v.Offset)*engine.ElementSize, v.Buffer.Offset + int64(last+1)*engine.ElementSize
}

// bufferOf is the buffer in which a view lies.
func bufferOf(v engine.View) handle { return v.Buffer.Memory.(*memory).buffer }

// bytesOf is the range of a contiguous view.
func bytesOf(v engine.View) binding {
	from, to := span(v)
	return binding{bufferOf(v), uint64(from), uint64(to - from)}
}

// bind is the range that a kernel has to see of a view, and where in it, in elements,
// the view begins.
func (k *kernels) bind(v engine.View) (b binding, offset uint32) {
	from, to := span(v)
	align := int64(k.device.physical.properties.limits.minStorageBufferOffset)
	base := from / align * align
	if to == base { // Vulkan has no empty ranges
		to += engine.ElementSize
	}
	return binding{bufferOf(v), uint64(base), uint64(to - base)}, uint32((from - base) / engine.ElementSize)
}

// fits reports whether each view can be bound whole, and counted by shaders, which
// divide numbers below 2^31.
func (k *kernels) fits(views ...engine.View) bool {
	limits := k.device.physical.properties.limits
	for _, v := range views {
		from, to := span(v)
		if to-from+int64(limits.minStorageBufferOffset) > int64(limits.maxStorageBufferRange) || v.Shape.Elements() >= math.MaxInt32 {
			return false
		}
	}
	return true
}

// halves cuts an axis of views in two; where a view does not extend along it, both
// halves see all of it.
func halves(axis int, views []engine.View) (first, second []engine.View) {
	extent := 1
	for _, v := range views {
		extent = max(extent, v.Shape.Dims[axis])
	}
	for _, v := range views {
		a, b := v, v
		if v.Shape.Dims[axis] == extent {
			a.Shape.Dims[axis] = extent / 2
			b.Shape.Dims[axis] = extent - extent/2
			b.Offset += extent / 2 * v.Strides[axis]
		}
		first, second = append(first, a), append(second, b)
	}
	return first, second
}

// outermost is the first axis along which a view extends; ok is false for one
// element.
func outermost(v engine.View) (axis int, ok bool) {
	for axis, extent := range v.Shape.Dims[:v.Shape.Rank] {
		if extent > 1 {
			return axis, true
		}
	}
	return 0, false
}

// tooLarge is the sticky error of a kernel whose views cannot be cut further.
func (k *kernels) tooLarge(what string, views ...engine.View) {
	largest := int64(0)
	for _, v := range views {
		from, to := span(v)
		largest = max(largest, to-from)
	}
	limit := snapshot.Bytes(k.device.physical.properties.limits.maxStorageBufferRange)
	k.keep(fmt.Errorf("%s: a kernel of this device sees at most %s of a tensor at once; %s has one over %s that cannot be cut", k.device.Name(), limit, what, snapshot.Bytes(largest)))
}

// run queues a shader, for one invocation a count.
func (k *kernels) run(shader string, count int, params []uint32, bound ...binding) {
	groups := (count + groupSize - 1) / groupSize
	across := min(groups, maxGroups)
	k.runGroups(shader, [3]uint32{uint32(across), uint32((groups + across - 1) / across), 1}, params, bound...)
}

func (k *kernels) runGroups(shader string, groups [3]uint32, params []uint32, bound ...binding) {
	if err := k.queue.dispatch(shader, params, groups, bound...); err != nil {
		k.keep(err)
	}
}

// Upload copies host bytes into dst; see engine.Kernels.
func (k *kernels) Upload(dst engine.View, src []byte) {
	if len(src) > 0 {
		k.queue.upload(bytesOf(dst), src)
	}
}

// Download waits for the device and copies src; see engine.Kernels.
func (k *kernels) Download(dst []byte, src engine.View) {
	if len(dst) > 0 {
		k.queue.download(dst, bytesOf(src))
	}
}

// Copy copies between contiguous views; see engine.Kernels.
func (k *kernels) Copy(dst, src engine.View) {
	to, from := bytesOf(dst), bytesOf(src)
	if to.extent > 0 && to != from {
		k.queue.copy(to, from)
	}
}

// Sync waits for the device; see engine.Kernels. A lost device stays lost.
func (k *kernels) Sync() error {
	if k.asked {
		k.asked = false
		k.keep(k.outside())
	}
	k.queue.finish(k.queue.queued())
	err := k.sticky
	k.sticky = nil
	return errors.Join(k.fault(), err)
}

// fault is the queue's error, with the device's name.
func (k *kernels) fault() error {
	if err := k.queue.fault(); err != nil {
		return fmt.Errorf("%s: %w", k.device.Name(), err)
	}
	return nil
}
