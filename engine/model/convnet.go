package model

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
)

// ConvNet classifies images of 3 by 32 by 32 into 10 classes:
//
//	Conv2d(3, 32, 3x3, stride 1, pad 1, with bias), BatchNorm2d(32), ReLU, MaxPool2d(2, stride 2)
//	Conv2d(32, 64, 3x3, stride 1, pad 1, with bias), BatchNorm2d(64), ReLU, MaxPool2d(2, stride 2)
//	flatten [n 64 8 8] to [n 4096], Linear(4096, 10)
//
// Batch norm has momentum 0.1 and epsilon 1e-5.
type ConvNet struct {
	Convs []*nn.Conv2d
	Norms []*nn.BatchNorm2d
	Head  *nn.Linear
}

// NewConvNet draws the parameters; see package nn for who owns them.
func NewConvNet(o engine.Ops, r *engine.Random) *ConvNet {
	m := &ConvNet{}
	in := 3
	for _, out := range []int{32, 64} {
		m.Convs = append(m.Convs, nn.NewConv2d(o, r, in, out, engine.Square(3, 1, 1)))
		m.Norms = append(m.Norms, nn.NewBatchNorm2d(o, out))
		in = out
	}
	m.Head = nn.NewLinear(o, r, in*8*8, 10)
	return m
}

// Forward maps x [n 3 32 32] to logits [n 10].
func (m *ConvNet) Forward(o engine.Ops, x *engine.Tensor, mode nn.Mode) *engine.Tensor {
	for i, conv := range m.Convs {
		x = o.ReLU(m.Norms[i].Forward(o, conv.Forward(o, x), mode))
		x = engine.MaxPool2d(o, x, engine.Square(2, 2, 0))
	}
	return m.Head.Forward(o, o.Reshape(x, x.Dim(0), m.Head.Weight.Dim(0)))
}

func (m *ConvNet) parts() nn.Parts {
	var p nn.Parts
	for i := range m.Convs {
		p = append(p,
			nn.Part{Name: fmt.Sprintf("convs.%d", i), Module: m.Convs[i]},
			nn.Part{Name: fmt.Sprintf("norms.%d", i), Module: m.Norms[i]})
	}
	return append(p, nn.Part{Name: "head", Module: m.Head})
}

// Parameters lists those of the layers, in the order of computation.
func (m *ConvNet) Parameters() []*engine.Tensor { return m.parts().Parameters() }

// State names those of the layers, running statistics included.
func (m *ConvNet) State() []engine.Named { return m.parts().State() }
