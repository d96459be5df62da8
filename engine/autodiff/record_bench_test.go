package autodiff_test

import (
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
)

// BenchmarkRecord is what an operation costs on the host, on 16 numbers: forward,
// recorded, with its backward, and on the registry.
func BenchmarkRecord(b *testing.B) {
	for _, bench := range []struct {
		name     string
		decorate func(inner engine.Ops) *autodiff.Ops // nil for none
		backward bool
	}{
		{"plain", nil, false},
		{"recorded", autodiff.New, false},
		{"recorded and gone through", autodiff.New, true},
		{"registered and gone through", func(inner engine.Ops) *autodiff.Ops {
			return autodiff.NewOn(inner, registry.New(registry.Options{Rules: registry.RulesLatest}))
		}, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			inner, _ := enginetest.NewEager(b)
			var o engine.Ops = inner
			var decorated *autodiff.Ops
			x, w := inner.Full(1, 16), inner.Full(1, 16)
			if bench.decorate != nil {
				decorated = bench.decorate(inner)
				decorated.Track(x, w)
				o = decorated
			}
			const links = 20 // operations a pass
			b.ReportAllocs()
			for range b.N / links {
				if err := engine.Run(o, func(*engine.Scope) error {
					y := x
					for range links - 1 {
						y = o.Mul(y, w)
					}
					y = o.Sum(y)
					if bench.backward {
						return decorated.Backward(y)
					}
					return nil
				}); err != nil {
					b.Fatal(err)
				}
			}
			x.Release()
			w.Release()
		})
	}
}
