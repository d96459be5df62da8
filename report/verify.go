package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Verify writes whether a fix worked: a sentence, and a line for each leak with its
// rates and their intervals.
func Verify(w io.Writer, checks []baseline.Check) error {
	var b strings.Builder
	counts := make(map[baseline.Answer]int)
	for _, c := range checks {
		counts[c.Answer]++
	}
	fmt.Fprintf(&b, "%s: ", baseline.Overall(checks))
	if len(checks) == 0 {
		b.WriteString("the run before does not leak")
	} else {
		fmt.Fprintf(&b, "of %s %d fixed, %d not, %d open", count(int64(len(checks)), "leak"), counts[baseline.Gone], counts[baseline.Remains], counts[baseline.CannotTell])
	}
	b.WriteByte('\n')
	for _, c := range checks {
		unit := c.Finding.Rate.Unit
		fmt.Fprintf(&b, "%s: %s: %s; before %s a %s, after %s\n", c.Answer, Place(c.Finding), c.Why, rateInterval(c.Before), unit, rateInterval(c.After))
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), noBreak, " "))
	return err
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
