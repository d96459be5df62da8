package report

import (
	"strings"
	"testing"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
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
		if got := verified(&check); !strings.HasSuffix(got, "before 512 B a batch, "+c.want) {
			t.Errorf("%s: %q", name, got)
		}
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
		{of(1, 0.02, false), of(2, 0.43, false), "not compared, since the programs waited for a processor, 2 % of the time before and 43 % of the time after: 1 s a step before, 2 s a step after"},
		{of(2, 0, true), of(1, 0.43, false), "not compared, since the programs waited for a processor, an unknown part of the time before and 43 % of the time after: 2 s a step before, 1 s a step after"},
		{of(1, 0, true), of(2, 0, false), "longer: 1 s a step before, 2 s a step after; other work on the machine may be the reason, which was not recorded"},
		{of(1, 0, false), of(1.08, 0.04, false), "longer, by no more than the program waited for a processor: 1 s a step before, 1.08 s a step after"},
		{baseline.StepTime{Low: 1, Median: 2, High: 4}, baseline.StepTime{Low: 2, Median: 3, High: 5}, "cannot tell, they vary too much: 2 s a step before, 3 s a step after"},
		{of(0, 0, false), of(2, 0, false), ""},
	} {
		e := baseline.Effects{StepTime: [2]baseline.StepTime{c.before, c.after}}
		if got := stepTimes(&e); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
