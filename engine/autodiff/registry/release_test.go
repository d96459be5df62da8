package registry_test

import (
	"testing"

	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
)

// TestReleaseLeavesNothing under any rules, of a graph that is pending and of what
// the rules never free.
func TestReleaseLeavesNothing(t *testing.T) {
	for rules := registry.RulesOriginal; rules <= registry.RulesLatest; rules++ {
		inner, d := enginetest.NewEager(t)
		records := mem.NewDevice(mem.Host(), mem.Options{Index: 1})
		r := registry.New(registry.Options{Rules: rules, Records: records})
		o := autodiff.NewOn(inner, r)
		m := newModel(o)
		for range 3 {
			s := o.Begin()
			o.Track(o.Full(1, 8))
			s.End()
			m.step(t, true, true)
		}
		s := o.Begin()
		o.Mul(o.MatMul(m.input, m.weight), m.bias) // pending
		s.End()
		m.release()
		r.Release()
		if got := (r.Stats()); got.Nodes != 0 || got.Index != 0 || got.Saved != 0 {
			t.Errorf("rules %d: %+v is left", rules, got)
		}
		if got := enginetest.Live(d); got != 0 {
			t.Errorf("rules %d: %d blocks are left", rules, got)
		}
		if err := records.Close(); err != nil {
			t.Errorf("rules %d: %v", rules, err)
		}
	}
}
