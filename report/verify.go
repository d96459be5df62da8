package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Verify writes whether a fix worked: a sentence, and for each leak a line with its rates and their
// intervals, and the evidence that the run after came to the work that leaked.
func Verify(w io.Writer, v *baseline.Verification) error {
	var b strings.Builder
	counts := make(map[baseline.Answer]int)
	for _, c := range v.Checks {
		counts[c.Answer]++
	}
	fmt.Fprintf(&b, "%s: ", v.Overall())
	switch {
	case len(v.Checks) > 0:
		fmt.Fprintf(&b, "of %s %d fixed, %d not, %d open", count(int64(len(v.Checks)), "leak"), counts[baseline.Gone], counts[baseline.Remains], counts[baseline.CannotTell])
	case v.Why != "":
		fmt.Fprintf(&b, "the run before does not leak, and of the run after: %s", v.Why)
	default:
		b.WriteString("the run before does not leak")
	}
	b.WriteByte('\n')
	for i := range v.Checks {
		b.WriteString(verified(&v.Checks[i]))
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), noBreak, " "))
	return err
}

// verified is the line, or lines, of one check.
func verified(c *baseline.Check) string {
	place, unit := "growth of the process beside the recorded stacks", diff.Unit("")
	if c.Process != nil {
		unit = c.Process.Rate.Unit
	} else {
		place, unit = Place(c.Finding), c.Finding.Rate.Unit
	}
	line := fmt.Sprintf("%s: %s: %s; before %s a %s, after %s\n", c.Answer, place, Printable(c.Why), rateInterval(c.Before), unit, rateInterval(c.After))
	if c.Reached != "" {
		line += fmt.Sprintf("  the run after came to that work: %s\n", Printable(c.Reached))
	}
	return line
}

// rateInterval is "512 KiB (500 KiB to 520 KiB)", or the rate alone where its interval
// reads the same.
func rateInterval(s trend.Slope) string {
	text, low, high := snapshot.FormatBytes(s.Value), snapshot.FormatBytes(s.Low), snapshot.FormatBytes(s.High)
	if low == text && high == text {
		return text
	}
	return text + " (" + low + " to " + high + ")"
}
