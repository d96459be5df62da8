package baseline_test

import (
	"testing"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/snapshot"
)

// TestAWorkersRateHasTheUnitOfTheReport: diff told the leak of a loader's worker by the batch, and verify by the second.
func TestAWorkersRateHasTheUnitOfTheReport(t *testing.T) {
	type program = map[string]int64
	// worker is a result with a worker that takes ten steps a second and leaks at each one.
	worker := func(leak program, unit diff.Unit) *diff.Result {
		r := analysis(t, 100, 1, program{"weights": 0})
		child := analysis(t, 100, 1, leak)
		child.First.Mark.Time, child.Last.Mark.Time = time.Unix(1000, 0), time.Unix(1010, 0)
		child.Findings[0].Rate.Unit = unit
		r.Children = []*diff.Child{{Role: "loader worker 0", PID: 7, Alike: 1, Of: 1, Result: child}}
		return r
	}
	none := analysis(t, 100, 1, program{"weights": 0})
	grows := analysis(t, 100, 1, program{"weights": 0})
	grows.Reserves = []diff.Reserve{{
		Device: snapshot.Device{Kind: snapshot.Process}, Processes: &diff.Processes{Role: "loader worker 1"}, Rate: diff.Rate{Unit: diff.Second},
	}}
	grows.Reserves[0].Rate.Bytes.Value = 5000
	for name, c := range map[string]struct {
		before, after *diff.Result
		unit          diff.Unit
		was, is       float64
	}{
		"it leaks less":              {worker(program{"keep": 1}, diff.Batch), worker(program{"keep": 2}, diff.Batch), diff.Batch, 1024, 512},
		"it is gone":                 {worker(program{"keep": 1}, diff.Batch), none, diff.Batch, 1024, 0},
		"it is new":                  {none, worker(program{"keep": 1}, diff.Batch), diff.Batch, 0, 1024},
		"the line is not known then": {worker(program{"keep": 1}, diff.Batch), grows, diff.Second, 10240, 5000},
		"by another unit":            {worker(program{"keep": 1}, diff.Batch), worker(program{"keep": 1}, diff.Step), diff.Second, 10240, 10240},
	} {
		t.Run(name, func(t *testing.T) {
			v := baseline.Verify(c.before, c.after)
			if len(v.Checks) != 1 {
				t.Fatalf("%d checks: %+v", len(v.Checks), v.Checks)
			}
			k := v.Checks[0]
			near := func(a, b float64) bool { return a >= 0.99*b && a <= 1.01*b }
			if k.Unit != c.unit || !near(k.Before.Value, c.was) || !near(k.After.Value, c.is) {
				t.Errorf("before %.0f a %s, after %.0f", k.Before.Value, k.Unit, k.After.Value)
			}
		})
	}
}
