package main

import (
	"testing"

	"github.com/memdiag/memdiag/bench/corpus"
	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/heavytest"
)

// firstCause is that of the first finding; "" for none.
func firstCause(t *testing.T, run *snapshot.Run) string {
	t.Helper()
	r, err := analyze(run, diff.ByTrend)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) == 0 || r.Findings[0].Cause == nil {
		return ""
	}
	return r.Findings[0].Cause.ID
}

// TestCausesOfTheWorkloads counts causes that are right, and again without any
// name that the programs chose: a catalogue that goes by names of the corpus would
// tell few of those.
func TestCausesOfTheWorkloads(t *testing.T) {
	if heavytest.Race || testing.Short() {
		t.Skip("every leak is run, which takes long under the race detector")
	}
	t.Parallel()
	runs, err := corpus.Runs(workload.All(), corpus.Plan{Seeds: 1, Views: corpus.Views()[:1]})
	if err != nil {
		t.Fatal(err)
	}
	leaks, named, blind := 0, 0, 0
	for _, r := range runs {
		if !r.Leaks() {
			continue
		}
		run, err := r.Record(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leaks++
		if got := firstCause(t, run); got == r.Workload.Cause {
			named++
		} else {
			t.Logf("%s: %q, and it is %s", r.Workload.ID, got, r.Workload.Cause)
		}
		corpus.HideNames(run, nil)
		if got := firstCause(t, run); got == r.Workload.Cause {
			blind++
		} else {
			t.Logf("%s without names: %q, and it is %s", r.Workload.ID, got, r.Workload.Cause)
		}
	}
	t.Logf("%d of %d causes are told right, %d without names", named, leaks, blind)
	if 10*named < 9*leaks || 10*blind < 7*leaks {
		t.Errorf("%d of %d causes are told right, %d without names; want 90 and 70 %%", named, leaks, blind)
	}
}
