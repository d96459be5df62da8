package nn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/snapshot"
)

// TestDecodingWithACacheIsTheWholePass feeds a sequence in pieces of any lengths.
func TestDecodingWithACacheIsTheWholePass(t *testing.T) {
	o, d := enginetest.NewEager(t)
	rapid.Check(t, func(rt *rapid.T) {
		const n, length, width, heads = 2, 9, 8, 2
		run(t, o, func() {
			a := nn.NewMultiHeadAttention(o, engine.NewRandom(rapid.Uint64().Draw(rt, "seed")), width, heads, true)
			x := o.Rand(engine.Draw{Key: 3}, n, length, width)
			whole := a.Forward(o, x, nil)
			cache := a.NewCache(o, n, length)
			defer cache.Release()
			var pieces []*engine.Tensor
			for from := 0; from < length; {
				to := from + rapid.IntRange(1, length-from).Draw(rt, "piece")
				pieces = append(pieces, a.Forward(o, o.Slice(x, 1, from, to), cache))
				from = to
			}
			if diff := cmp.Diff(o.Floats(whole), o.Floats(o.Concat(1, pieces...)), cmpopts.EquateApprox(1e-5, 1e-6)); diff != "" {
				rt.Error(diff)
			}
		})
	})
	if got := enginetest.Live(d); got != 0 {
		t.Errorf("%d blocks are left", got)
	}
}

func TestACacheHasItsSizeFromTheStart(t *testing.T) {
	o, d := enginetest.NewEager(t)
	var a *nn.MultiHeadAttention
	run(t, o, func() {
		a = nn.NewMultiHeadAttention(o, engine.NewRandom(1), 8, 2, true)
		nn.Keep(a)
	})
	defer nn.Release(a)
	cache := a.NewCache(o, 1, 4)
	defer cache.Release()
	before := enginetest.Live(d)
	if got := enginetest.Owners(d)[snapshot.OwnedByCache]; got != 2 {
		t.Errorf("the cache owns %d blocks, want keys and values", got)
	}
	for range 3 {
		cache.Reset()
		for i := range 4 {
			run(t, o, func() { a.Forward(o, o.Full(1, 1, 1, 8), cache) })
			if got := enginetest.Live(d); got != before || cache.Length != i+1 {
				t.Errorf("%d blocks are live after %d positions, %d before the first", got, cache.Length, before)
			}
		}
	}
}

func TestMisuseOfAttentionIsAnError(t *testing.T) {
	cases := []struct {
		name string
		f    func(o *autodiff.Ops, a *nn.MultiHeadAttention, cache *nn.KVCache)
		want string
	}{
		{"a full cache", func(o *autodiff.Ops, a *nn.MultiHeadAttention, cache *nn.KVCache) {
			a.Forward(o, o.Full(1, 1, 3, 8), cache)
			a.Forward(o, o.Full(1, 1, 2, 8), cache)
		}, "3 of 4 positions are filled"},
		{"another number of sequences than the cache's", func(o *autodiff.Ops, a *nn.MultiHeadAttention, cache *nn.KVCache) {
			a.Forward(o, o.Full(1, 2, 1, 8), cache)
		}, "the cache holds [1 2 4 4]"},
		{"a gradient through a cache", func(o *autodiff.Ops, a *nn.MultiHeadAttention, cache *nn.KVCache) {
			o.Track(a.Parameters()...)
			a.Forward(o, o.Full(1, 1, 1, 8), cache)
		}, "decode with Valid()"},
		{"sequences of another width", func(o *autodiff.Ops, a *nn.MultiHeadAttention, _ *nn.KVCache) {
			a.Forward(o, o.Full(1, 1, 1, 6), nil)
		}, "sequences [n t 8] are needed"},
		{"heads that do not part the width", func(o *autodiff.Ops, _ *nn.MultiHeadAttention, _ *nn.KVCache) {
			nn.NewMultiHeadAttention(o, engine.NewRandom(1), 8, 3, false)
		}, "a width of 8 does not part into 3 heads"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			inner, _ := enginetest.NewEager(t)
			o := autodiff.New(inner)
			err := engine.Run(o, func(*engine.Scope) error {
				a := nn.NewMultiHeadAttention(o, engine.NewRandom(1), 8, 2, true)
				cache := a.NewCache(o, 1, 4)
				defer cache.Release()
				c.f(o, a, cache)
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q in it", err, c.want)
			}
		})
	}
}
