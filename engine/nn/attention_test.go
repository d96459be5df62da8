package nn_test

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/nn"
)

func TestMisuseOfAttentionIsAnError(t *testing.T) {
	cases := []struct {
		name string
		f    func(o *autodiff.Ops, a *nn.MultiHeadAttention)
		want string
	}{
		{"sequences of another width", func(o *autodiff.Ops, a *nn.MultiHeadAttention) {
			a.Forward(o, o.Full(1, 1, 1, 6))
		}, "sequences [n t 8] are needed"},
		{"heads that do not part the width", func(o *autodiff.Ops, _ *nn.MultiHeadAttention) {
			nn.NewMultiHeadAttention(o, engine.NewRandom(1), 8, 3, false)
		}, "a width of 8 does not part into 3 heads"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, _ := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				a := nn.NewMultiHeadAttention(o, engine.NewRandom(1), 8, 2, true)
				c.f(o, a)
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}
