package workload

import (
	"errors"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
)

// forward is a way to call the model: Pyramid.Forward, or a repair of it.
type forward func(p *Pyramid, o engine.Ops, x *engine.Tensor) (class, box *engine.Tensor)

// withoutGradient is the repair that is often told: no gradient for all but the
// last layer. It keeps memory flat, and trains nothing but that layer.
func withoutGradient(p *Pyramid, o engine.Ops, x *engine.Tensor) (class, box *engine.Tensor) {
	v := o.Valid()
	p.Forward(v, x) // all but the last layer count
	hidden := v.ReLU(p.head.Forward(v, p.features[len(p.features)-1]))
	p.forget()
	return p.class.Forward(o, hidden), p.box.Forward(o, hidden)
}

// gradients returns every parameter's gradient after one backward, nil where
// there is none, and how many features are kept then.
func gradients(t *testing.T, fixed bool, f forward) (all [][]float32, kept int) {
	t.Helper()
	device := mem.NewDevice(mem.Host(), mem.Options{})
	instance, err := newDetection(Config{Seed: 2, Fixed: fixed, Device: device, Kernels: cpu.New(0)})
	if err != nil {
		t.Fatal(err)
	}
	d := instance.(*detection)
	err = engine.Run(d.ops, func(*engine.Scope) error {
		class, box := f(d.model, d.ops, d.ops.Full(0.5, 1, 3, detectionSize, detectionSize))
		if err := d.ops.Backward(d.ops.Add(d.ops.Sum(d.ops.Mul(class, class)), d.ops.Sum(box))); err != nil {
			return err
		}
		for _, p := range d.model.Parameters() {
			var g []float32
			if t := autodiff.Grad(p); t != nil {
				g = d.ops.Floats(t)
			}
			all = append(all, g)
		}
		kept = len(d.model.features)
		return nil
	})
	if err := errors.Join(err, instance.Close(), device.Close()); err != nil {
		t.Fatal(err)
	}
	return all, kept
}

func TestRepairsOfThePyramid(t *testing.T) {
	want, kept := gradients(t, false, (*Pyramid).Forward)
	if kept != 1 {
		t.Fatalf("the leaking variant keeps %d features of one forward pass", kept)
	}
	for i, g := range want {
		if !slices.ContainsFunc(g, func(x float32) bool { return x != 0 }) {
			t.Fatalf("parameter %d has no gradient to lose: %v", i, g)
		}
	}

	t.Run("the repair keeps every gradient, to the bit", func(t *testing.T) {
		got, kept := gradients(t, true, (*Pyramid).Forward)
		if kept != 0 {
			t.Errorf("%d features are kept", kept)
		}
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Errorf("the gradient of parameter %d differs", i)
			}
		}
	})

	t.Run("no gradient for all but the last layer stops the leak and the training of the rest", func(t *testing.T) {
		got, kept := gradients(t, false, withoutGradient)
		if kept != 0 {
			t.Errorf("%d features are kept", kept)
		}
		last := len(want) - 4 // filters and bias of class and box
		for i := range want {
			switch {
			case i < last && got[i] != nil:
				t.Errorf("parameter %d has a gradient still", i)
			case i >= last && !slices.Equal(got[i], want[i]):
				t.Errorf("the gradient of parameter %d, of the last layer, differs", i)
			}
		}
	})
}
