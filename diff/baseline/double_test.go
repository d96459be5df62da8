package baseline_test

import (
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
)

func TestDouble(t *testing.T) {
	type program = map[string]int64
	for _, c := range []struct {
		name                           string
		half, whole                    program
		more, unconfirmed, unexplained int
	}{
		{"what leaks holds more after twice the steps", program{"keep": 1, "weights": 0}, program{"keep": 1, "weights": 0}, 1, 0, 0},
		{"what does not leak holds the same", program{"weights": 0}, program{"weights": 0}, 0, 0, 0},
		{"a leak that held as much after half the steps is not confirmed", nil, program{"keep": 1, "weights": 0}, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := analysis(t, 100, 10, c.whole)
			half := whole.Last
			if c.half != nil {
				half = analysis(t, 50, 10, c.half).Last
			}
			d := baseline.Double(half, whole)
			if len(d.More) != c.more || len(d.Unconfirmed) != c.unconfirmed || len(d.Unexplained) != c.unexplained {
				t.Errorf("%d sites hold more, %d leaks are not confirmed, %d sites not explained: %+v", len(d.More), len(d.Unconfirmed), len(d.Unexplained), d)
			}
		})
	}
}

func TestGrowthThatNoFindingSpeaksOfIsNotExplained(t *testing.T) {
	half, whole := analysis(t, 50, 10, map[string]int64{"keep": 1}), analysis(t, 100, 10, map[string]int64{"keep": 1})
	whole.Findings = []diff.Finding{}
	if d := baseline.Double(half.Last, whole); len(d.Unexplained) != 1 || d.Unexplained[0].Growth().Blocks != 50 {
		t.Errorf("%+v", d)
	}
}
