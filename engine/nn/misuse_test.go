package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/nn"
)

func TestALayerSaysWhatItLacks(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		f    func(o engine.Ops)
		want string
	}{
		{"dropout without a source of draws", func(o engine.Ops) { nn.Dropout{P: 0.5}.Forward(o, o.Full(1, 3), nn.Train) }, "dropout of [3]: a layer with P above 0 needs a Random"},
		{"dropout with a probability that is none", func(o engine.Ops) {
			nn.Dropout{P: nan, Random: engine.NewRandom(1)}.Forward(o, o.Full(1, 3), nn.Train)
		}, "dropout of [3]: the probability NaN is not in [0,1]"},
		{"a bias for each row", func(o engine.Ops) {
			(&nn.Linear{Weight: o.Full(1, 3, 2), Bias: o.Full(1, 4, 2)}).Forward(o, o.Full(1, 4, 3))
		}, "linear of [4 3] and [3 2] and [4 2]: rows [… in]"},
		{"a state of one row for a batch of two", func(o engine.Ops) {
			nn.NewRNNCell(o, engine.NewRandom(1), 3, 4).Forward(o, o.Full(1, 2, 3), o.Full(1, 1, 4))
		}, "rnn cell of [2 3] and [1 4]: x [n in] and a state [n 4] are needed"},
		{"a state of another width", func(o engine.Ops) {
			nn.NewRNNCell(o, engine.NewRandom(1), 3, 4).Forward(o, o.Full(1, 2, 3), o.Full(1, 2, 1))
		}, "rnn cell of [2 3] and [2 1]: x [n in] and a state [n 4] are needed"},
		{"a layer that is drawn from nothing", func(o engine.Ops) { nn.NewLinear(o, nil, 1, 2) }, "draw: the Random is nil"},
		{"a layer of nothing", func(o engine.Ops) { nn.NewLinear(o, engine.NewRandom(1), 1, 2).Forward(o, nil) }, "linear: operand 1 of 3 is nil"},
		{"attention to nothing", func(o engine.Ops) {
			nn.NewMultiHeadAttention(o, engine.NewRandom(1), 4, 2, true).Forward(o, nil, nil)
		}, "shape: the tensor is nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			err := engine.Run(o, func(*engine.Scope) error { c.f(o); return nil })
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if n := enginetest.Live(d); n != 0 {
				t.Errorf("%d blocks are live", n)
			}
		})
	}
}
