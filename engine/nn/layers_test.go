package nn_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/nn"
)

func TestRunningMomentsFollowTheBatches(t *testing.T) {
	inner, d := enginetest.NewEager(t)
	o := autodiff.New(inner)
	var b *nn.BatchNorm2d
	run(t, o, func() {
		b = nn.NewBatchNorm2d(o, 2)
		nn.Keep(b)
	})
	o.Track(b.Parameters()...)
	// The channels have means of -1 and 2, and a variance of 1/12.
	batch := func(i int) *engine.Tensor {
		shift := o.FromFloats([]float32{-1.5, 1.5}, 1, 2, 1, 1)
		return o.Add(o.Rand(engine.Draw{Key: 5, Stream: uint64(i)}, 8, 2, 6, 6), shift)
	}
	for i := range 80 {
		run(t, o, func() { b.Forward(o, batch(i), nn.Train) })
		if live, nodes := enginetest.Live(d), o.Nodes(); live != 4 || nodes != 2 {
			t.Fatalf("%d blocks and %d nodes are alive after step %d, want the state's 4 and a leaf each for gain and bias", live, nodes, i)
		}
	}
	near := cmpopts.EquateApprox(0, 0.02)
	if diff := cmp.Diff([]float32{-1, 2}, o.Floats(b.Mean), near); diff != "" {
		t.Error("mean", diff)
	}
	if diff := cmp.Diff([]float32{1. / 12, 1. / 12}, o.Floats(b.Variance), near); diff != "" {
		t.Error("variance", diff)
	}
	// What evaluation computes depends on the element alone, and changes nothing.
	run(t, o, func() {
		x := batch(100)
		all, one := b.Forward(o.Valid(), x, nn.Eval), b.Forward(o.Valid(), o.Slice(x, 0, 0, 1), nn.Eval)
		if diff := cmp.Diff(o.Floats(o.Slice(all, 0, 0, 1)), o.Floats(one)); diff != "" {
			t.Error("an image's result depends on its batch", diff)
		}
	})
	if live := enginetest.Live(d); live != 4 {
		t.Errorf("%d blocks are live after an evaluation", live)
	}
	nn.Release(b)
}

func TestDropout(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	const p, n = 0.3, 20000
	run(t, o, func() {
		drop := nn.Dropout{P: p, Random: engine.NewRandom(2)}
		x := o.Full(1, n)
		if drop.Forward(o, x, nn.Eval) != x || (nn.Dropout{}).Forward(o, x, nn.Train) != x {
			t.Error("evaluation, or a probability of 0, is not the identity")
		}
		first, second := o.Floats(drop.Forward(o, x, nn.Train)), o.Floats(drop.Forward(o, x, nn.Train))
		zeros, same := 0, 0
		for i, v := range first {
			switch v {
			case 0:
				zeros++
			case float32(1 / (1 - float32(p))):
			default:
				t.Fatalf("element %d became %g", i, v)
			}
			if (v == 0) == (second[i] == 0) {
				same++
			}
		}
		// Five standard deviations of a binomial share are 0.016 here.
		if share := float64(zeros) / n; math.Abs(share-p) > 0.016 {
			t.Errorf("%.3f of the elements are zero, want %.3f", share, p)
		}
		if share := float64(same) / n; math.Abs(share-(p*p+(1-p)*(1-p))) > 0.018 {
			t.Errorf("two passes agree on %.3f of the elements, as if they were not independent", share)
		}
		again := nn.Dropout{P: p, Random: engine.NewRandom(2)}
		if diff := cmp.Diff(first, o.Floats(again.Forward(o, x, nn.Train))); diff != "" {
			t.Error("the same seed drops others")
		}
	})
}

// TestStateNamesEveryTensorOnce holds State against Parameters: it has all of
// them, in their order, under names that differ.
func TestStateNamesEveryTensorOnce(t *testing.T) {
	o, d := enginetest.NewEager(t)
	modules := map[string]struct {
		make  func(r *engine.Random) nn.Stateful
		names string
	}{
		"linear":     {func(r *engine.Random) nn.Stateful { return nn.NewLinear(o, r, 2, 3) }, "weight bias"},
		"conv2d":     {func(r *engine.Random) nn.Stateful { return nn.NewConv2d(o, r, 2, 3, engine.Square(1, 1, 0)) }, "filters bias"},
		"layer norm": {func(*engine.Random) nn.Stateful { return nn.NewLayerNorm(o, 3) }, "gain bias"},
		"batch norm": {func(*engine.Random) nn.Stateful { return nn.NewBatchNorm2d(o, 3) }, "gain bias mean variance"},
		"embedding":  {func(r *engine.Random) nn.Stateful { return nn.NewEmbedding(o, r, 3, 2) }, "table"},
		"rnn cell":   {func(r *engine.Random) nn.Stateful { return nn.NewRNNCell(o, r, 2, 3) }, "input.weight input.bias hidden.weight hidden.bias"},
		"block": {func(r *engine.Random) nn.Stateful { return nn.NewTransformerBlock(o, r, 4, 2, 8) },
			"norm1.gain norm1.bias attention.query.weight attention.query.bias attention.key.weight attention.key.bias " +
				"attention.value.weight attention.value.bias attention.out.weight attention.out.bias norm2.gain norm2.bias " +
				"up.weight up.bias down.weight down.bias"},
	}
	for name, m := range modules {
		t.Run(name, func(t *testing.T) {
			run(t, o, func() {
				module := m.make(engine.NewRandom(1))
				nn.Keep(module)
				defer nn.Release(module)
				var names []string
				var tensors []*engine.Tensor
				for _, s := range module.State() {
					names, tensors = append(names, s.Name), append(tensors, s.Tensor)
				}
				if diff := cmp.Diff(m.names, strings.Join(names, " ")); diff != "" {
					t.Error(diff)
				}
				at := 0
				for i, p := range module.Parameters() {
					for at < len(tensors) && tensors[at] != p {
						at++
					}
					if at == len(tensors) {
						t.Errorf("parameter %d is not in the state, or out of order", i)
					}
				}
			})
			if got := enginetest.Live(d); got != 0 {
				t.Errorf("%d blocks are left after a release", got)
			}
		})
	}
}

func TestMisuseOfLayersIsAnError(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	cases := []struct {
		name string
		f    func(r *engine.Random)
		want string
	}{
		{"an image of another number of channels", func(*engine.Random) {
			nn.NewBatchNorm2d(o, 2).Forward(o, o.Full(1, 4, 3, 2, 2), nn.Eval)
		}, "an image [n 2 h w] is needed"},
		{"a batch of one pixel has no variance", func(*engine.Random) {
			nn.NewBatchNorm2d(o, 2).Forward(o, o.Full(1, 1, 2, 1, 1), nn.Train)
		}, "one element a channel has no variance"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := engine.Run(o, func(*engine.Scope) error {
				c.f(engine.NewRandom(1))
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}

// run is a step that must not fail.
func run(t *testing.T, o engine.Ops, f func()) {
	t.Helper()
	if err := engine.Run(o, func(*engine.Scope) error {
		f()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
