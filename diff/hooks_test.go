package diff

import (
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// TestHooksThatBecomeEverMoreAreALeak: one that was registered at each step took 600 bytes, and the gate let it pass.
func TestHooksThatBecomeEverMoreAreALeak(t *testing.T) {
	each := func(i int) int64 { return int64(8 * i) }
	for name, c := range map[string]struct {
		path    string
		items   func(i int) int64
		process snapshot.Bytes // a unit of time
		want    int
	}{
		"a hook at each step":            {"__main__.model.0._forward_hooks", each, 0, 1},
		"hooks with which all else goes": {"__main__.model.0._forward_hooks", each, 48 * snapshot.KiB, 1},
		"hooks that are all there":       {"__main__.model.0._forward_hooks", func(i int) int64 { return int64(8 * min(i, 10)) }, 0, 0},
		"another list":                   {"__main__.rows", each, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := Analyze(containerRun(upTo(24), func(i int) snapshot.Bytes { return c.process * snapshot.Bytes(i) }, lengths{c.path, 0, 0, c.items}), ByTrend)
			if err != nil {
				t.Fatal(err)
			}
			if r.Leaks() != c.want {
				t.Fatalf("%d leaks, want %d: %+v", r.Leaks(), c.want, r.Findings)
			}
			if c.want > 0 && (r.Findings[0].Cause == nil || r.Findings[0].Cause.ID != "hook-not-removed") {
				t.Errorf("the cause is %+v", r.Findings[0].Cause)
			}
		})
	}
}
