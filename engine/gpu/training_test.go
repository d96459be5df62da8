package gpu

import (
	"math"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/model"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

// trainer trains one of the example models on a fixed batch.
type trainer struct {
	o          *autodiff.Ops
	device     *mem.Device
	parameters []*engine.Tensor
	loss       func() *engine.Tensor
	descent    *optim.SGD
}

// newTrainer makes a model and its batch. What it holds is released when the test ends.
func newTrainer(tb testing.TB, k engine.Kernels, d mem.Driver, name string, batch int) *trainer {
	tb.Helper()
	device := mem.NewDevice(d, mem.Options{})
	t := &trainer{o: autodiff.New(engine.NewEager(k, device)), device: device}
	var m nn.Stateful
	err := engine.Run(t.o, func(*engine.Scope) error {
		m, t.loss = build(t.o, name, batch)
		nn.Keep(m)
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	t.parameters = m.Parameters()
	t.o.Track(t.parameters...)
	t.descent = optim.NewSGD(t.o, t.parameters, 0.01, 0.9)
	tb.Cleanup(func() {
		t.descent.Release()
		autodiff.ZeroGrad(t.parameters...)
		for _, p := range m.State() {
			p.Tensor.Release()
		}
		if err := device.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

func (t *trainer) step(tb testing.TB) float64 {
	tb.Helper()
	loss, err := t.try()
	if err != nil {
		tb.Fatal(err)
	}
	return loss
}

// try is a step that may fail.
func (t *trainer) try() (loss float64, err error) {
	err = engine.Run(t.o, func(*engine.Scope) error {
		l := t.loss()
		if err := t.o.Backward(l); err != nil {
			return err
		}
		t.descent.Step()
		loss = float64(t.o.Floats(l)[0])
		return t.o.Sync()
	})
	return loss, err
}

func build(o engine.Ops, name string, batch int) (nn.Stateful, func() *engine.Tensor) {
	r := engine.NewRandom(1)
	floats := func(dims ...int) *engine.Tensor {
		data := make([]float32, engine.ShapeOf(dims...).Elements())
		for i := range data {
			data[i] = float32(i*2654435761%1000)/500 - 1
		}
		return o.FromFloats(data, dims...)
	}
	labels := func(classes int, dims ...int) *engine.Tensor {
		data := make([]int32, engine.ShapeOf(dims...).Elements())
		for i := range data {
			data[i] = int32(i * 7919 % classes)
		}
		return o.FromInts(data, dims...)
	}
	switch name {
	case "mlp":
		m := model.NewMLP(o, r)
		return m, func() *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, floats(batch, 784)), labels(10, batch), nil)
		}
	case "conv":
		m := model.NewConvNet(o, r)
		return m, func() *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, floats(batch, 3, 32, 32), nn.Train), labels(10, batch), nil)
		}
	}
	m := model.NewTransformer(o, r)
	return m, func() *engine.Tensor {
		const length = 16
		logits := m.Forward(o, labels(model.TransformerVocabulary, batch, length), nn.Train, nil)
		flat := o.Reshape(logits, batch*length, model.TransformerVocabulary)
		return engine.CrossEntropy(o, flat, labels(model.TransformerVocabulary, batch*length), nil)
	}
}

func TestModelsLearnAsOnTheProcessor(t *testing.T) {
	for name, batch := range map[string]int{"mlp": 16, "conv": 2, "transformer": 2} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			got, want := newTrainer(t, New(d), d, name, batch), newTrainer(t, cpu.New(1), mem.Host(), name, batch)
			for step := range 4 {
				g, w := got.step(t), want.step(t)
				if math.Abs(g-w) > 1e-4*max(1, math.Abs(w)) {
					t.Errorf("the loss of step %d is %g, on the processor %g", step, g, w)
				}
			}
		})
	}
}

// TestEqualRunsReserveEqually though the device is quicker now and slower then: a run
// that is recorded again shows the same.
func TestEqualRunsReserveEqually(t *testing.T) {
	d := open(t)
	var first []snapshot.Bytes
	for run := range 3 {
		training := newTrainer(t, New(d), d, "conv", 2)
		var reserved []snapshot.Bytes
		for range 3 {
			training.step(t)
			m := training.device.Meters()
			reserved = append(reserved, m.Reserved, m.Active)
		}
		if run == 0 {
			first = reserved
		}
		if !slices.Equal(reserved, first) {
			t.Errorf("run %d reserves and holds %v by step, the first %v", run, reserved, first)
		}
	}
}

// BenchmarkMLP trains the MLP of bench/train at its batch of 64, on this device and
// with the slow and clear kernels of the processor.
func BenchmarkMLP(b *testing.B) {
	d := open(b)
	for name, t := range map[string]*trainer{
		"gpu":       newTrainer(b, New(d), d, "mlp", 64),
		"reference": newTrainer(b, cpu.Reference(), mem.Host(), "mlp", 64),
	} {
		b.Run(name, func(b *testing.B) {
			t.step(b)
			for b.Loop() {
				t.step(b)
			}
		})
	}
}
