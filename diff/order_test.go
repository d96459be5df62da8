package diff

import (
	"slices"
	"testing"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

func TestFindingsComeInTheOrderOfWhatMatters(t *testing.T) {
	const kib = snapshot.KiB
	line := []snapshot.Frame{{Function: "main", File: "train.py", Line: 3}}
	finding := func(name string, v Verdict, growth snapshot.Bytes, frames []snapshot.Frame, perStep float64) Finding {
		return Finding{
			Verdict: v, Rows: []*Row{{Label: name, Frames: frames, After: Tally{Blocks: 1, Bytes: growth}}},
			Rate: Rate{Unit: Step, Bytes: trend.Slope{Value: perStep}},
		}
	}
	for _, c := range []struct {
		name     string
		findings []Finding
		want     []string
	}{
		{"a verdict comes before size", []Finding{
			finding("bounded", Bounded, 900*kib, line, 0), finding("maybe", Inconclusive, 90*kib, line, 900), finding("leak", Leak, 9*kib, line, 90),
		}, []string{"leak", "maybe", "bounded"}},
		{"a leak's rate counts, not what it gathered while the run warmed up", []Finding{
			finding("slow", Leak, 900*kib, line, 10), finding("fast", Leak, 100*kib, line, 1000),
		}, []string{"fast", "slow"}},
		{"what has a line comes before a little more without a stack", []Finding{
			finding("unknown leak", Leak, 99*kib, nil, 990), finding("leak", Leak, 10*kib, line, 100),
			finding("unknown", Inconclusive, 9*kib, nil, 0), finding("maybe", Inconclusive, 1*kib, line, 0),
		}, []string{"leak", "unknown leak", "maybe", "unknown"}},
		{"unless it is far larger", []Finding{
			finding("leak", Leak, 10*kib, line, 100), finding("unknown", Leak, 200*kib, nil, 2000),
		}, []string{"unknown", "leak"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &Result{Findings: c.findings, Series: &Series{Axis: Axis{Unit: Step, X: []float64{0, 100}}}}
			r.sortFindings()
			var got []string
			for _, f := range r.Findings {
				got = append(got, f.Rows[0].Label)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
