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
