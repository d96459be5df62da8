package workload

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/data/digits"
	"github.com/memdiag/memdiag/engine/metric"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// readDigits is an ordinary training on real data, with all that has a rightful
// claim on memory: workers, a prefetch queue, momentum, an evaluation after each
// epoch. Nothing of it grows.
func readDigits() Workload {
	return Workload{
		ID: "digits", Alias: "optdigits", Title: "handwritten digits, read by a small convolutional network",
		Label: Clean, Truth: func(int64) Truth { return Truth{Steps: 100} }, New: newReader,
	}
}

// Sizes of the training; 22 steps make an epoch.
const (
	readerBatch = 64
	readerAhead = 2 // batches that wait on the device
)

// Reader is a small convolutional network that reads a digit:
//
//	Conv2d(1, 16, 3x3, pad 1), ReLU, MaxPool2d(2), Conv2d(16, 32, 3x3, pad 1), ReLU,
//	flatten [n 32 4 4] to [n 512], Linear(512, 10)
type Reader struct {
	strokes *nn.Conv2d
	shapes  *nn.Conv2d
	digit   *nn.Linear
}

// NewReader draws the parameters; see nn for who owns them.
func NewReader(o engine.Ops, r *engine.Random) *Reader {
	return &Reader{
		strokes: nn.NewConv2d(o, r, 1, 16, engine.Square(3, 1, 1)),
		shapes:  nn.NewConv2d(o, r, 16, 32, engine.Square(3, 1, 1)),
		digit:   nn.NewLinear(o, r, 32*4*4, digits.Classes),
	}
}

// Parameters lists them from the image to the output.
func (r *Reader) Parameters() []*engine.Tensor {
	return nn.Parameters(r.strokes, r.shapes, r.digit)
}

// Forward maps images [n 64] to logits [n 10].
func (r *Reader) Forward(o engine.Ops, images *engine.Tensor) *engine.Tensor {
	n := images.Dim(0)
	x := o.ReLU(r.strokes.Forward(o, o.Reshape(images, n, 1, 8, 8)))
	x = o.ReLU(r.shapes.Forward(o, engine.MaxPool2d(o, x, engine.Square(2, 2, 0))))
	return r.digit.Forward(o, o.Reshape(x, n, 32*4*4))
}

// reading trains a Reader.
type reading struct {
	ops     *autodiff.Ops
	model   *Reader
	descent *optim.SGD
	loader  *data.Loader
	heldOut []*data.Host
	right   *metric.Accuracy // of the pass over heldOut that is under way
}

func newReader(c Config) (Instance, error) {
	training, test, err := digits.Load()
	if err != nil {
		return nil, err
	}
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	r := &reading{ops: o, right: metric.NewAccuracy(o.Valid())}
	for b, err := range data.Pass(test, data.Options{Batch: readerBatch, Partial: true}) {
		if err != nil {
			return nil, err
		}
		r.heldOut = append(r.heldOut, b)
	}
	err = engine.Run(o, func(*engine.Scope) error {
		r.model = NewReader(o, engine.NewRandom(uint64(c.Seed)))
		nn.Keep(r.model)
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Track(r.model.Parameters()...)
	r.descent = optim.NewSGD(o, r.model.Parameters(), 0.05, 0.9)
	r.loader, err = data.NewLoader(training, data.Options{
		Batch: readerBatch, Order: data.Shuffled, Seed: uint64(c.Seed), Workers: 2, Prefetch: readerAhead,
	})
	if err != nil {
		nn.Release(r.model)
		return nil, err
	}
	return r, nil
}

// Step trains on one batch.
func (r *reading) Step() (m train.Metrics, err error) {
	err = engine.Run(r.ops, func(*engine.Scope) error {
		b, err := r.loader.Next(r.ops)
		if err != nil {
			return err
		}
		m = b.Metrics()
		loss := r.loss(r.ops, b)
		if err := r.ops.Backward(loss); err != nil {
			return err
		}
		r.descent.Step()
		m.Loss = float64(r.ops.Floats(loss)[0])
		return r.ops.Sync()
	})
	return m, err
}

func (r *reading) loss(o engine.Ops, b *data.Batch) *engine.Tensor {
	return engine.CrossEntropy(o, r.model.Forward(o, b.Tensors[0]), b.Tensors[1], nil)
}

// Phases is an evaluation after each epoch.
func (r *reading) Phases() []train.Phase {
	return []train.Phase{{
		Name: train.Evaluating, When: train.Interval{EpochEnd: true}, Steps: int64(len(r.heldOut)),
		Step: r.evaluate,
		Done: func(snapshot.Mark, float64) error {
			r.right.Reset()
			return nil
		},
	}}
}

// evaluate looks at one batch held out.
func (r *reading) evaluate(i int64) (m train.Metrics, err error) {
	v := r.ops.Valid()
	err = engine.Run(v, func(*engine.Scope) error {
		b := data.Upload(v, r.heldOut[i])
		m = b.Metrics()
		r.right.Update(r.model.Forward(v, b.Tensors[0]), b.Tensors[1])
		m.Loss = float64(v.Floats(r.loss(v, b))[0])
		return v.Sync()
	})
	return m, err
}

// Summary is the accuracy on all images held out.
func (r *reading) Summary() (string, error) {
	defer r.right.Reset()
	for i := range r.heldOut {
		if _, err := r.evaluate(int64(i)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("test accuracy %.3f", r.right.Compute()), nil
}

// Model is the *Reader.
func (r *reading) Model() any { return r.model }

// Close ends the workers and releases parameters and optimizer state.
func (r *reading) Close() error {
	r.loader.Close()
	r.right.Reset()
	r.descent.Release()
	nn.Release(r.model)
	return nil
}
