package nn_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/nn"
)

func TestLayersOfOnes(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	err := engine.Run(o, func(*engine.Scope) error {
		l := nn.NewLinear(o, engine.NewRandom(1), 3, 2)
		o.Assign(l.Weight, o.Full(1))
		o.Assign(l.Bias, o.FromFloats([]float32{0, 10}, 2))
		if diff := cmp.Diff([]float32{6, 16}, o.Floats(l.Forward(o, o.Full(2, 1, 3)))); diff != "" {
			t.Error("linear", diff)
		}
		c := nn.NewConv2d(o, engine.NewRandom(1), 2, 2, engine.Square(3, 2, 1))
		o.Assign(c.Filters, o.Full(1))
		o.Assign(c.Bias, o.FromFloats([]float32{0, 100}, 2))
		out := c.Forward(o, o.Full(1, 1, 2, 4, 4))
		if diff := cmp.Diff([]float32{8, 12, 12, 18, 108, 112, 112, 118}, o.Floats(out)); diff != "" {
			t.Error("conv2d", diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestLayersKeepTheVarianceOfTheirInput(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	err := engine.Run(o, func(*engine.Scope) error {
		l := nn.NewLinear(o, engine.NewRandom(4), 256, 256)
		x := o.Rand(engine.Draw{Key: 9}, 64, 256)
		x = engine.Scale(o, engine.Shift(o, x, -0.5), float32(math.Sqrt(12)))
		_, variance := engine.Moments(o, l.Forward(o, x), 0, 1)
		if diff := cmp.Diff([]float32{1}, o.Floats(variance), cmpopts.EquateApprox(0.1, 0)); diff != "" {
			t.Error(diff)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestParametersAreTheScopesUntilTheyAreKept(t *testing.T) {
	o, d := enginetest.NewEager(t)
	var kept *nn.Linear
	err := engine.Run(o, func(*engine.Scope) error {
		r := engine.NewRandom(1)
		nn.NewLinear(o, r, 3, 2)
		kept = nn.NewLinear(o, r, 3, 2)
		nn.Keep(kept)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := enginetest.Live(d); got != 2 {
		t.Errorf("%d blocks are live, want weight and bias of the kept layer", got)
	}
	nn.Release(kept)
}

// Releasing a model with tied weights once released them twice.
func TestWhatPartsShareIsOneParameter(t *testing.T) {
	o, d := enginetest.NewEager(t)
	var tied *nn.Linear
	var model nn.Parts
	err := engine.Run(o, func(*engine.Scope) error {
		r := engine.NewRandom(1)
		tied = nn.NewLinear(o, r, 3, 3)
		model = nn.Parts{{Name: "in", Module: tied}, {Name: "between", Module: nn.NewLinear(o, r, 3, 3)}, {Name: "out", Module: tied}}
		nn.Keep(model)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := model.Parameters(); len(got) != 4 || got[0] != tied.Weight || got[1] != tied.Bias {
		t.Errorf("%d parameters are listed, want the shared layer's and two more", len(got))
	}
	if got := nn.Parameters(tied, tied); len(got) != 2 {
		t.Errorf("of one layer twice %d parameters are listed, want 2", len(got))
	}
	var names []string
	for _, s := range model.State() {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"in.weight", "in.bias", "between.weight", "between.bias", "out.weight", "out.bias"}, names); diff != "" {
		t.Error(diff)
	}
	nn.Release(model)
	if got := enginetest.Live(d); got != 0 {
		t.Errorf("%d blocks are live", got)
	}
}
