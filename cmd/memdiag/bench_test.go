package main

import (
	"context"
	"errors"
	"io"
	"regexp"
	"runtime"
	"testing"

	"github.com/memdiag/memdiag/bench/corpus"
	"github.com/memdiag/memdiag/engine/workload"
)

// TestAnInterruptedBenchTellsWhatItKnows: the runs that are done, and that they are
// not all.
func TestAnInterruptedBenchTellsWhatItKnows(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	w, err := workload.Find("D04")
	if err != nil {
		t.Fatal(err)
	}
	inner, processors := w.New, int64(runtime.GOMAXPROCS(0))
	w.New = func(c workload.Config) (workload.Instance, error) {
		if c.Seed == processors+1 { // two are done then, since no more than processors are under way
			interrupt()
		}
		return inner(c)
	}
	plan := corpus.Plan{Seeds: 2*processors + 2, Views: []corpus.View{corpus.Snapshots(4)}}
	runs, err := corpus.Runs([]workload.Workload{w}, plan)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		write func(io.Writer, corpus.Plan, []*corpus.Run) error
		want  *regexp.Regexp
	}{
		{"as a table", corpus.Text, regexp.MustCompile(`^partial: [1-9]\d* of \d+ runs were done when it was stopped\nrule +leaks found`)},
		{"as JSON", corpus.JSON, regexp.MustCompile(`"partial": true,`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, stdout, _ := newTestEnvironment()
			stopped := env.bench(ctx, runs)
			if err := env.benchInPart(c.write, plan, runs, stopped); !errors.Is(err, context.Canceled) || !c.want.MatchString(stdout.String()) {
				t.Errorf("error %v, printed\n%s", err, stdout)
			}
		})
	}
}
