package engine_test

import (
	"errors"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
)

func TestShapesTooLargeToCountAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		body func(o engine.Ops)
	}{
		{"in one extent", func(o engine.Ops) { o.Full(1, 1<<62) }},
		{"in a product that wraps to 0", func(o engine.Ops) { o.Full(1, 1<<32, 1<<32) }},
		{"after an extent of 0", func(o engine.Ops) { o.Full(1, 0, 1<<32, 1<<32) }},
		{"by reshaping with a product that wraps to the right count", func(o engine.Ops) { o.Reshape(o.Full(1, 4), 1<<62+1, 4) }},
		{"by stretching", func(o engine.Ops) { o.Expand(o.Full(1), 1<<32, 1<<32) }},
		{"by meeting", func(o engine.Ops) {
			o.Add(o.Expand(o.Full(1), 1<<40, 1), o.Expand(o.Full(1), 1, 1<<40))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			err := engine.Run(o, func(*engine.Scope) error {
				c.body(o)
				return nil
			})
			var refused *engine.Error
			if !errors.As(err, &refused) {
				t.Errorf("got %v, want an Error", err)
			}
			if n := enginetest.Live(d); n != 0 {
				t.Errorf("%d blocks are live", n)
			}
		})
	}
}
