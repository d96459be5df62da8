package model_test

import (
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/model"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
)

// BenchmarkStep is a training step of each model on a batch that lies on the device
// already, so that what it allocates on the Go heap is the engine's own: handles,
// scopes, nodes and closures.
func BenchmarkStep(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(o engine.Ops, r *engine.Random) (nn.Stateful, func() *engine.Tensor)
	}{
		{"mlp", func(o engine.Ops, r *engine.Random) (nn.Stateful, func() *engine.Tensor) {
			m, x, y := model.NewMLP(o, r), o.Full(0.5, 64, 784).Keep(), o.FromInts(make([]int32, 64), 64).Keep()
			return m, func() *engine.Tensor { return engine.CrossEntropy(o, m.Forward(o, x), y, nil) }
		}},
		{"conv", func(o engine.Ops, r *engine.Random) (nn.Stateful, func() *engine.Tensor) {
			m, x, y := model.NewConvNet(o, r), o.Full(0.5, 32, 3, 32, 32).Keep(), o.FromInts(make([]int32, 32), 32).Keep()
			return m, func() *engine.Tensor { return engine.CrossEntropy(o, m.Forward(o, x, nn.Train), y, nil) }
		}},
		{"transformer", func(o engine.Ops, r *engine.Random) (nn.Stateful, func() *engine.Tensor) {
			m, x := model.NewTransformer(o, r), o.FromInts(make([]int32, 8*64), 8, 64).Keep()
			y := o.Reshape(x, 8*64).Keep()
			return m, func() *engine.Tensor {
				return engine.CrossEntropy(o, o.Reshape(m.Forward(o, x, nn.Train, nil), 8*64, model.TransformerVocabulary), y, nil)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := autodiff.New(engine.NewEager(cpu.New(1), mem.NewDevice(mem.Host(), mem.Options{})))
			m, loss := c.make(o, engine.NewRandom(1))
			o.Track(m.Parameters()...)
			descent := optim.NewSGD(o, m.Parameters(), 0.01, 0.9)
			b.ReportAllocs()
			for b.Loop() {
				if err := engine.Run(o, func(*engine.Scope) error {
					if err := o.Backward(loss()); err != nil {
						return err
					}
					descent.Step()
					return o.Sync()
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
