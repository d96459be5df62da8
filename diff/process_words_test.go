package diff

import (
	"strings"
	"testing"
)

// TestGrowthOfAProgramWithoutTensorsIsNotLaidToThem: a retained graph was named to one that had never imported PyTorch.
func TestGrowthOfAProgramWithoutTensorsIsNotLaidToThem(t *testing.T) {
	for name, c := range map[string]struct {
		producer string
		packages map[string]string
		tensors  bool
	}{
		"plain Python":  {"Python", map[string]string{"requests": "2.0"}, false},
		"its own alone": {"Python", map[string]string{}, false},
		"it was killed": {"Python", nil, true},
		"JAX":           {"Python", map[string]string{"jax": "0.8"}, true},
		"PyTorch":       {"PyTorch 2.15", nil, true},
	} {
		run := graphRun(100, func(int) int64 { return 0 })
		run.Info.Packages = c.packages
		for _, s := range run.Snapshots {
			s.Producer = c.producer
		}
		r, err := Analyze(run, ByTrend)
		if err != nil {
			t.Fatal(err)
		}
		e := r.ProcessGrowth()
		if e == nil {
			t.Fatalf("%s: the process does not grow", name)
		}
		if text := e.String() + e.Fix(); strings.Contains(text, "graph") != c.tensors || strings.Contains(text, "CUDA") != c.tensors {
			t.Errorf("%s: %s", name, text)
		}
	}
}
