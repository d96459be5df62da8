package optim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/snapshot"
)

var approximately = cmpopts.EquateApprox(1e-5, 0)

func TestSGDFollowsTheRule(t *testing.T) {
	cases := []struct {
		name     string
		momentum float32
		want     []float32 // the parameter after each step, from 1 with gradient 2p and rate 0.1
		live     int64     // blocks after a step: the parameter, and the state
	}{
		{"without momentum it keeps no state", 0, []float32{0.8, 0.64, 0.512}, 1},
		{"momentum carries a part of the last move", 0.5, []float32{0.8, 0.54, 0.302}, 2},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, d := enginetest.NewEager(t)
			o := autodiff.New(inner)
			p := o.Full(1, 1)
			o.Track(p)
			s := optim.NewSGD(o, []*engine.Tensor{p}, 0.1, c.momentum)
			if got := enginetest.Live(d); got != 1 {
				t.Errorf("%d blocks are live before the first step, want the parameter", got)
			}
			for i, want := range c.want {
				if err := engine.Run(o, func(*engine.Scope) error {
					if err := o.Backward(o.Sum(o.Mul(p, p))); err != nil {
						return err
					}
					s.Step()
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]float32{want}, o.Floats(p), approximately); diff != "" {
					t.Errorf("after step %d: %s", i+1, diff)
				}
				if got := enginetest.Live(d); got != c.live {
					t.Errorf("%d blocks are live after step %d, want %d", got, i+1, c.live)
				}
			}
			owners := enginetest.Owners(d)
			if want := c.momentum != 0; owners[snapshot.OwnedByOptim] == 1 != want || owners[snapshot.OwnedByGrad] != 0 {
				t.Errorf("blocks by owner: %v", owners)
			}
			s.Release()
			s.Release()
			p.Release()
		})
	}
}
