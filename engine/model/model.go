// Package model holds example models made of layers: what the benchmarks train.
//
// Each doc comment gives the architecture exactly, so that a twin in another
// framework computes the same from the same parameters.
package model

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
)

// MLP classifies vectors of 784 numbers, such as handwritten digits, into 10
// classes:
//
//	Linear(784, 512), ReLU, Linear(512, 512), ReLU, Linear(512, 10)
type MLP struct {
	Layers []*nn.Linear
}

// NewMLP draws the parameters; see package nn for who owns them.
func NewMLP(o engine.Ops, r *engine.Random) *MLP {
	return &MLP{Layers: []*nn.Linear{nn.NewLinear(o, r, 784, 512), nn.NewLinear(o, r, 512, 512), nn.NewLinear(o, r, 512, 10)}}
}

// Forward maps x [n 784] to logits [n 10].
func (m *MLP) Forward(o engine.Ops, x *engine.Tensor) *engine.Tensor {
	last := len(m.Layers) - 1
	for _, l := range m.Layers[:last] {
		x = o.ReLU(l.Forward(o, x))
	}
	return m.Layers[last].Forward(o, x)
}

func (m *MLP) parts() nn.Parts {
	var p nn.Parts
	for i, l := range m.Layers {
		p = append(p, nn.Part{Name: fmt.Sprintf("layers.%d", i), Module: l})
	}
	return p
}

// Parameters lists weight and bias of each layer.
func (m *MLP) Parameters() []*engine.Tensor { return m.parts().Parameters() }

// State names weight and bias of each layer.
func (m *MLP) State() []engine.Named { return m.parts().State() }
