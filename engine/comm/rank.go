package comm

import (
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// Rank is one member of a group, for the goroutine that Run calls with it. Its
// collectives are called by every rank, in the same order and with tensors of the
// same shapes; each returns when all have come. Their errors say who was elsewhere,
// or had ended. They compute on the rank's device, record no gradient, and panic
// as operations do.
type Rank struct {
	group *Group
	index int
	ops   *engine.Eager
}

// Index counts from 0.
func (r *Rank) Index() int { return r.index }

// Size is how many ranks there are.
func (r *Rank) Size() int { return len(r.group.devices) }

// Ops are the rank's operations, on its device.
func (r *Rank) Ops() engine.Ops { return r.ops }

// Device is the rank's own.
func (r *Rank) Device() *mem.Device { return r.ops.Device() }

// parcel is what a rank brings to a collective: which one it is, and the elements
// of its tensors, one after the other.
type parcel struct {
	op     string
	shapes []engine.Shape
	dtype  engine.DType
	floats []float32
	ints   []int32
}

func (p parcel) String() string { return fmt.Sprintf("%s of %v", p.op, p.shapes) }

func (p parcel) matches(other parcel) bool {
	return p.op == other.op && p.dtype == other.dtype && slices.Equal(p.shapes, other.shapes)
}

// Barrier returns when every rank has come.
func (r *Rank) Barrier() error {
	_, err := r.meet(parcel{op: "barrier"})
	return err
}

// AllReduce puts the sum over all ranks in place of each tensor, float32. Terms
// are added in the order of the ranks, so that all ranks get the same bits. While
// it goes on, two buffers as large as all tensors together are on the device.
func (r *Rank) AllReduce(tensors ...*engine.Tensor) error {
	return r.reduce("all-reduce", 1, tensors)
}

// AverageGradients puts the mean over all ranks in place of each parameter's
// gradient, which is what a step on the batches of all ranks together would have
// given, if each batch is of equal size and the loss a mean. Parameters without a
// gradient are left out, and must have none on any rank.
func (r *Rank) AverageGradients(parameters []*engine.Tensor) error {
	var gradients []*engine.Tensor
	for _, p := range parameters {
		engine.Check("average gradients", p)
		if g := autodiff.Grad(p); g != nil {
			gradients = append(gradients, g)
		}
	}
	return r.reduce("all-reduce of gradients", 1/float32(r.Size()), gradients)
}

func (r *Rank) reduce(op string, scale float32, tensors []*engine.Tensor) error {
	all, err := r.share(op, engine.Float32, tensors)
	if err != nil {
		return err
	}
	sum := make([]float32, len(all[0].floats))
	for _, p := range all {
		for i, x := range p.floats {
			sum[i] += x
		}
	}
	for i := range sum {
		sum[i] *= scale
	}
	r.spread(parcel{floats: sum}, tensors)
	return nil
}

// AllGather returns every rank's tensor, stacked by rank along a new outermost
// axis: [ranks …]. It is a buffer of the collective's, in no scope: the caller
// owes its Release.
func (r *Rank) AllGather(t *engine.Tensor) (*engine.Tensor, error) {
	engine.Check("all-gather", t)
	all, err := r.share("all-gather", t.DType(), []*engine.Tensor{t})
	if err != nil {
		return nil, err
	}
	var joined parcel
	for _, p := range all {
		joined.floats = append(joined.floats, p.floats...)
		joined.ints = append(joined.ints, p.ints...)
	}
	return r.buffer(joined, t.DType(), append([]int{r.Size()}, t.Shape().Slice()...)...), nil
}

// share brings tensors to a collective and returns what all ranks brought.
func (r *Rank) share(op string, dtype engine.DType, tensors []*engine.Tensor) ([]parcel, error) {
	engine.Check(op, tensors...)
	p := parcel{op: op, dtype: dtype}
	for _, t := range tensors {
		p.shapes = append(p.shapes, t.Shape())
	}
	if len(tensors) > 0 {
		p.floats, p.ints = r.bucket(dtype, tensors)
	}
	return r.meet(p)
}

// bucket joins tensors in one buffer on the device and brings it to the host.
func (r *Rank) bucket(dtype engine.DType, tensors []*engine.Tensor) (floats []float32, ints []int32) {
	o := r.ops
	scope := o.Begin()
	defer scope.End()
	flat := make([]*engine.Tensor, len(tensors))
	for i, t := range tensors {
		flat[i] = o.Reshape(t, t.Shape().Elements())
	}
	joined := o.Concat(0, flat...).Own(snapshot.OwnedByComm)
	defer joined.Release()
	if dtype == engine.Int32 {
		return nil, o.Ints(joined)
	}
	return o.Floats(joined), nil
}

// spread writes elements that came from other ranks over those of the tensors.
func (r *Rank) spread(p parcel, tensors []*engine.Tensor) {
	if len(tensors) == 0 {
		return
	}
	o := r.ops
	scope := o.Begin()
	defer scope.End()
	received := r.buffer(p, tensors[0].DType(), len(p.floats)+len(p.ints))
	defer received.Release()
	from := 0
	for _, t := range tensors {
		n := t.Shape().Elements()
		o.Assign(t, o.Reshape(o.Slice(received, 0, from, from+n), t.Shape().Slice()...))
		from += n
	}
}

// buffer uploads elements to a tensor that the collective owns, in no scope.
func (r *Rank) buffer(p parcel, dtype engine.DType, dims ...int) *engine.Tensor {
	if dtype == engine.Int32 {
		return r.ops.FromInts(p.ints, dims...).Own(snapshot.OwnedByComm)
	}
	return r.ops.FromFloats(p.floats, dims...).Own(snapshot.OwnedByComm)
}
