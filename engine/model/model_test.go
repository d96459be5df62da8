package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/model"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
)

// subject is one model with a loss on a fixed batch.
type subject struct {
	name string
	rate float32
	make func(o engine.Ops, r *engine.Random) (m nn.Stateful, loss func(o engine.Ops, mode nn.Mode) *engine.Tensor)
	// parameters is the count of numbers that the architecture has.
	parameters int
}

var subjects = []subject{
	{"the MLP", 0.05, func(o engine.Ops, r *engine.Random) (nn.Stateful, func(engine.Ops, nn.Mode) *engine.Tensor) {
		m := model.NewMLP(o, r)
		return m, func(o engine.Ops, _ nn.Mode) *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, noise(o, 4, 784)), o.FromInts([]int32{1, 7, 0, 9}, 4), nil)
		}
	}, 784*512 + 512 + 512*512 + 512 + 512*10 + 10},
	{"the conv net", 0.01, func(o engine.Ops, r *engine.Random) (nn.Stateful, func(engine.Ops, nn.Mode) *engine.Tensor) {
		m := model.NewConvNet(o, r)
		return m, func(o engine.Ops, mode nn.Mode) *engine.Tensor {
			return engine.CrossEntropy(o, m.Forward(o, noise(o, 4, 3, 32, 32), mode), o.FromInts([]int32{1, 7, 0, 9}, 4), nil)
		}
	}, 3*32*9 + 3*32 + 32*64*9 + 3*64 + 4096*10 + 10},
	{"the transformer", 0.1, func(o engine.Ops, r *engine.Random) (nn.Stateful, func(engine.Ops, nn.Mode) *engine.Tensor) {
		m := model.NewTransformer(o, r)
		return m, func(o engine.Ops, mode nn.Mode) *engine.Tensor {
			logits := m.Forward(o, o.FromInts(sentence, 2, 8), mode, nil)
			return engine.CrossEntropy(o, o.Reshape(logits, 16, model.TransformerVocabulary), o.FromInts(sentence, 16), nil)
		}
	}, 1000*128 + 64*128 + 2*(4*(128*128+128)+2*2*128+128*512+512+512*128+128) + 2*128 + 128*1000 + 1000},
}

var sentence = []int32{5, 999, 17, 17, 0, 300, 21, 8, 1, 2, 3, 4, 5, 6, 7, 8}

// noise is one batch of inputs, the same each time.
func noise(o engine.Ops, dims ...int) *engine.Tensor {
	return o.Rand(engine.Draw{Key: 11, Stream: 1}, dims...)
}

func TestModelsLearnTheSameTwiceAndLeaveNothing(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			losses, state := train(t, s)
			again, stateAgain := train(t, s)
			if first, last := losses[0], losses[len(losses)-1]; !(last < 0.7*first) {
				t.Errorf("losses are %v", losses)
			}
			if diff := cmp.Diff(losses, again); diff != "" {
				t.Errorf("losses differ between two runs of one seed: %s", diff)
			}
			for name, values := range state {
				if !cmp.Equal(values, stateAgain[name]) {
					t.Errorf("%s differs between two runs of one seed", name)
				}
			}
		})
	}
}

// train takes some steps, then evaluates, and returns the losses and the model's
// state by name.
func train(t *testing.T, s subject) (losses []float32, state map[string][]float32) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	var m nn.Stateful
	var loss func(engine.Ops, nn.Mode) *engine.Tensor
	run(t, o, func() {
		m, loss = s.make(o, engine.NewRandom(3))
		nn.Keep(m)
	})
	defer nn.Release(m)
	o.Track(m.Parameters()...)
	count := 0
	for _, p := range m.Parameters() {
		count += p.Shape().Elements()
	}
	if count != s.parameters {
		t.Errorf("the model has %d parameters, its architecture %d", count, s.parameters)
	}
	descent := optim.NewSGD(o, m.Parameters(), s.rate, 0)
	for range 8 {
		run(t, o, func() {
			l := loss(o, nn.Train)
			if err := o.Backward(l); err != nil {
				t.Fatal(err)
			}
			descent.Step()
			losses = append(losses, o.Floats(l)[0])
		})
	}
	tensors := len(m.State())
	for range 3 {
		run(t, o, func() { loss(o.Valid(), nn.Eval) })
		if got := enginetest.Live(d); got != int64(tensors) {
			t.Errorf("%d blocks are live after an evaluation, want the state's %d", got, tensors)
		}
	}
	state = make(map[string][]float32)
	for _, n := range m.State() {
		if _, twice := state[n.Name]; twice {
			t.Errorf("two tensors are named %s", n.Name)
		}
		state[n.Name] = o.Floats(n.Tensor)
	}
	return losses, state
}

func run(t *testing.T, o engine.Ops, f func()) {
	t.Helper()
	if err := engine.Run(o, func(*engine.Scope) error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}
