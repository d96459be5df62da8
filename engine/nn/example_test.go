package nn_test

import (
	"fmt"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
)

// classifier is a model of one's own: a struct of layers, with Forward, and with
// Parameters and State by way of Parts.
type classifier struct {
	hidden, out *nn.Linear
	norm        *nn.LayerNorm
	dropout     nn.Dropout
}

func (c *classifier) Forward(o engine.Ops, x *engine.Tensor, mode nn.Mode) *engine.Tensor {
	h := c.norm.Forward(o, o.Tanh(c.hidden.Forward(o, x)))
	return c.out.Forward(o, c.dropout.Forward(o, h, mode))
}

func (c *classifier) parts() nn.Parts {
	return nn.Parts{
		{Name: "hidden", Module: c.hidden},
		{Name: "norm", Module: c.norm},
		{Name: "out", Module: c.out},
	}
}

func (c *classifier) Parameters() []*engine.Tensor { return c.parts().Parameters() }
func (c *classifier) State() []engine.Named        { return c.parts().State() }

func ExampleParts() {
	device := mem.NewDevice(mem.Host(), mem.Options{})
	o := engine.NewEager(cpu.New(1), device)
	random := engine.NewRandom(1)
	var model *classifier
	err := engine.Run(o, func(*engine.Scope) error {
		model = &classifier{
			hidden: nn.NewLinear(o, random, 64, 32), out: nn.NewLinear(o, random, 32, 10),
			norm: nn.NewLayerNorm(o, 32), dropout: nn.Dropout{P: 0.1, Random: random},
		}
		fmt.Println(model.Forward(o, o.Full(0.5, 3, 64), nn.Eval))
		nn.Keep(model)
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range model.State() {
		fmt.Println(s.Name, s.Tensor.Shape())
	}
	nn.Release(model)
	fmt.Println(device.Close())
	// Output:
	// float32 [3 10]
	// hidden.weight [64 32]
	// hidden.bias [32]
	// norm.gain [32]
	// norm.bias [32]
	// out.weight [32 10]
	// out.bias [10]
	// <nil>
}
