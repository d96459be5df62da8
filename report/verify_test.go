package report

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// TestARateThatWaversAfterAFixIsUnchanged: "-3 B to 20 B" was printed of what no longer grows.
func TestARateThatWaversAfterAFixIsUnchanged(t *testing.T) {
	for name, c := range map[string]struct {
		answer baseline.Answer
		after  trend.Slope
		want   string
	}{
		"fixed":             {baseline.Gone, trend.Slope{Value: 8, Low: -3, High: 20}, "after about 0 B\n"},
		"fixed to the byte": {baseline.Gone, trend.Slope{}, "after 0 B\n"},
		"it is not known":   {baseline.CannotTell, trend.Slope{Value: 8, Low: -3, High: 20}, "after 8 B (-3 B to 20 B)\n"},
	} {
		check := baseline.Check{Process: &diff.Reserve{}, Answer: c.answer, Before: trend.Slope{Value: 512, Low: 512, High: 512}, After: c.after, Unit: diff.Batch}
		if got := verified([]baseline.Check{check}); !strings.HasSuffix(got, "before 512 B a batch, "+c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLinesOfOneFunctionHaveOneRate: each of two lines was given the rate of both.
func TestLinesOfOneFunctionHaveOneRate(t *testing.T) {
	rate := trend.Slope{Value: 512, Low: 512, High: 512}
	of := func(function string, line int, answer baseline.Answer) baseline.Check {
		frames := []snapshot.Frame{{Function: function, File: "train.py", Line: line}}
		return baseline.Check{Finding: &diff.Finding{Rows: []*diff.Row{{Frames: frames}}}, Answer: answer, Why: "it no longer leaks", Before: rate, Unit: diff.Step}
	}
	got := verification(&baseline.Verification{Checks: []baseline.Check{
		of("<module>", 3, baseline.Gone), of("<module>", 5, baseline.Gone), of("<module>", 7, baseline.CannotTell), of("evaluate", 9, baseline.CannotTell),
	}})
	if !strings.Contains(got, "fixed: train.py:3 and train.py:5 together: it no longer leaks; before 512 B a step, after 0 B\n") ||
		!strings.Contains(got, "cannot tell: train.py:7: ") || !strings.Contains(got, "cannot tell: train.py:9: ") {
		t.Error(got)
	}
}

// TestGrowthOfTheProcessIsToldWithItsLine: it was said to be outside recorded stacks, and had no location for code scanning.
func TestGrowthOfTheProcessIsToldWithItsLine(t *testing.T) {
	e := &diff.Reserve{Frames: []snapshot.Frame{{Function: "fit", File: "/repo/fit.py", Line: 9}}}
	if got, want := checkedPlace(&baseline.Check{Process: e}), "growth of the process while /repo/fit.py:9 ran"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	g := gateOf(diff.Inconclusive)
	if at := g.sarifUnexplained(&sarifDriver{}, snapshot.NoRank, e).Locations; len(at) != 1 || at[0].Physical.Region.StartLine != 9 || at[0].Physical.Artifact.URI != "fit.py" {
		t.Errorf("located at %+v", at)
	}
}

func TestVerifyCountsOnlyWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		answers []baseline.Answer
		want    string
	}{
		{[]baseline.Answer{baseline.Gone}, "fixed: 1 of 1 leak fixed\n"},
		{[]baseline.Answer{baseline.Gone, baseline.Remains}, "not fixed: 1 of 2 leaks fixed, 1 not fixed\n"},
		{[]baseline.Answer{baseline.CannotTell}, "cannot tell: 0 of 1 leak fixed, 1 undecided\n"},
	} {
		var v baseline.Verification
		for _, a := range c.answers {
			v.Checks = append(v.Checks, baseline.Check{Process: &diff.Reserve{}, Answer: a, Unit: diff.Batch})
		}
		if got := verification(&v); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestVerifySaysSlowerOnlyOfAMachineThatWasNotBusy(t *testing.T) {
	of := func(seconds, waited float64, unknown bool) baseline.StepTime {
		return baseline.StepTime{Low: seconds, Median: seconds, High: seconds, Waited: waited, Unknown: unknown}
	}
	for _, c := range []struct {
		before, after baseline.StepTime
		want          string
	}{
		{of(1, 0, false), of(1, 0, false), "not slower: 1 s a step before, 1 s a step after"},
		{of(1, 0, false), of(2, 0, false), "slower: 1 s a step before, 2 s a step after"},
		{of(1, 0.02, false), of(2, 0.43, false), "not compared, as the machine was busy: 1 s a step before, 2 s a step after; the programs waited for a processor 2 % of the time before, 43 % of the time after"},
		{of(2, 0, true), of(1, 0.43, false), "not compared, as the machine was busy: 2 s a step before, 1 s a step after; the programs waited for a processor an unknown part of the time before, 43 % of the time after"},
		{of(1, 0, true), of(2, 0, false), "longer, maybe by other work on the machine, which was not recorded: 1 s a step before, 2 s a step after"},
		{of(1, 0, false), of(1.08, 0.04, false), "longer, but not by more than the program waited for a processor: 1 s a step before, 1.08 s a step after"},
		{baseline.StepTime{Low: 1, Median: 2, High: 4}, baseline.StepTime{Low: 2, Median: 3, High: 5}, "undecided, as steps vary too much: 2 s a step before, 3 s a step after"},
		{of(0, 0, false), of(2, 0, false), ""},
	} {
		e := baseline.Effects{StepTime: [2]baseline.StepTime{c.before, c.after}}
		if got := stepTimes(&e); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestARangeOfMemoryIsShownInBytes: "varies after warm-up: live memory by ±69.2 %" was not understood.
func TestARangeOfMemoryIsShownInBytes(t *testing.T) {
	device := snapshot.Device{Kind: snapshot.CPU}
	was := diff.Steadiness{Device: device, Live: diff.Band{Low: 4 * snapshot.MiB, High: 15 * snapshot.MiB}}
	is := diff.Steadiness{Device: device, Live: diff.Band{Low: snapshot.MiB, High: snapshot.MiB}}
	got := effects(&baseline.Effects{Bands: []baseline.Bands{{Before: was, After: is}}})
	if want := "live memory of cpu:0 after warm-up: 4.00 MiB to 15.0 MiB before, always 1.00 MiB after\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
