//go:build !race

package corpus

import (
	"testing"

	"github.com/memdiag/memdiag/engine/workload"
)

// Runs are judged one after the other here, which the race detector would make ten times as slow.

// TestNoAlarmInAnyView judges a few programs as every recorder sees them. The whole
// corpus is judged by memdiag bench --view all.
func TestNoAlarmInAnyView(t *testing.T) {
	if testing.Short() {
		t.Skip("a few workloads are run in every view")
	}
	var few []workload.Workload
	for _, id := range []string{"L12", "L33", "L38", "D01", "D05", "D07", "D16"} {
		w, err := workload.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		few = append(few, w)
	}
	for _, v := range Views() {
		runs, err := Runs(few, Plan{Seeds: 1, Views: []View{v}})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			r.rules = rules()[:1]
			if err := r.do(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := r.verdicts[0]
			open := v.Name == "sampled" && r.Leaks() && got.undecided // of one step in eight too little may be known
			if got.found != r.Leaks() && !open {
				t.Errorf("view %s, %s, repaired %t: a leak is found: %t", v.Name, r.Workload.ID, r.Fixed, got.found)
			}
		}
	}
}
