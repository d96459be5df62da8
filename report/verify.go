package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Verified compares a rank of the run after a fix with the same rank before. Its verification is nil if the run after has no such rank,
// and the rank is NoRank if there is only one.
type Verified struct {
	Rank int
	*baseline.Verification
}

// answer is the rank's answer.
func (v *Verified) answer() baseline.Answer {
	if v.Verification == nil {
		return baseline.CannotTell
	}
	return v.Overall()
}

// Verify writes and returns whether a fix worked: a sentence, and for each leak a line with its rates and their intervals, and evidence
// that the run after reached the work that leaked. For several ranks it lists the answer of each, and describes the first that decides.
// Ranks that leaked neither before nor after are left out.
func Verify(w io.Writer, ranks []Verified) (baseline.Answer, error) {
	several := len(ranks) > 1
	if several {
		leaking := slices.DeleteFunc(slices.Clone(ranks), func(v Verified) bool {
			return v.Verification != nil && len(v.Checks) == 0 && v.Why == ""
		})
		if len(leaking) > 0 {
			ranks = leaking
		}
	}
	with := make(map[baseline.Answer][]int)
	for i := range ranks {
		a := ranks[i].answer()
		with[a] = append(with[a], i)
	}
	var b strings.Builder
	answer := baseline.Gone
	for _, a := range []baseline.Answer{baseline.Gone, baseline.CannotTell, baseline.Remains} {
		if len(with[a]) == 0 {
			continue
		}
		answer = a
		if several {
			var named []int
			for _, i := range with[a] {
				named = append(named, ranks[i].Rank)
			}
			fmt.Fprintf(&b, "%s: %s\n", Ranks(named), a)
		}
	}
	first := &ranks[with[answer][0]]
	if first.Verification == nil {
		fmt.Fprintf(&b, "%s: rank %d is not in the run after\n", answer, first.Rank)
	} else {
		b.WriteString(verification(first.Verification))
	}
	_, err := io.WriteString(w, strings.ReplaceAll(b.String(), noBreak, " "))
	return answer, err
}

// verification is the sentence and the lines of one rank.
func verification(v *baseline.Verification) string {
	var b strings.Builder
	counts := make(map[baseline.Answer]int)
	for _, c := range v.Checks {
		counts[c.Answer]++
	}
	fmt.Fprintf(&b, "%s: ", v.Overall())
	switch {
	case len(v.Checks) > 0:
		fmt.Fprintf(&b, "%d of %s fixed", counts[baseline.Gone], count(int64(len(v.Checks)), "leak"))
		if n := counts[baseline.Remains]; n > 0 {
			fmt.Fprintf(&b, ", %d not fixed", n)
		}
		if n := counts[baseline.CannotTell]; n > 0 {
			fmt.Fprintf(&b, ", %d undecided", n)
		}
	case v.Why != "":
		fmt.Fprintf(&b, "the first run has no proven leak; the second run: %s", v.Why)
	default:
		b.WriteString("the first run has no proven leak")
	}
	b.WriteByte('\n')
	for i := 0; i < len(v.Checks); {
		n := 1
		for i+n < len(v.Checks) && v.Checks[i].OneRate(&v.Checks[i+n]) {
			n++
		}
		b.WriteString(verified(v.Checks[i : i+n]))
		i += n
	}
	b.WriteString(effects(&v.Effects))
	for i, clauses := range v.NotSeen {
		if text := notSeenText(clauses); text != "" {
			fmt.Fprintf(&b, "%s run, %s\n", []string{"first", "second"}[i], text)
		}
	}
	return b.String()
}

// effects are the lines on losses, the time of a step and peaks; none for what neither run has.
func effects(e *baseline.Effects) string {
	var b strings.Builder
	if l := &e.Losses; l.Recorded[0] || l.Recorded[1] {
		fmt.Fprintf(&b, "losses: %s\n", LossesText(l))
	}
	if text := stepTimes(e); text != "" {
		fmt.Fprintf(&b, "step time: %s\n", text)
	}
	for i := range e.Peaks {
		p := &e.Peaks[i]
		of, text := deviceName(p.Device), ""
		if p.Device.Kind == snapshot.Process {
			of = "the process"
		}
		if p.Higher() {
			text = " (higher)"
		}
		fmt.Fprintf(&b, "peak of %s: %s before, %s after%s\n", of, p.Before, p.After, text)
	}
	for _, s := range e.Bands {
		for _, m := range []struct {
			what       string
			before, is diff.Band
		}{{"live", s.Before.Live, s.After.Live}, {"reserved", s.Before.Reserved, s.After.Reserved}} {
			if m.before.High > 0 || m.is.High > 0 {
				fmt.Fprintf(&b, "%s memory of %s after warm-up: %s before, %s after\n", m.what, deviceName(s.Before.Device), rangeText(m.before), rangeText(m.is))
			}
		}
	}
	return b.String()
}

// stepTimes says whether steps became slower, as a clause; "" if one of the runs is too short to show it.
func stepTimes(e *baseline.Effects) string {
	was, is := &e.StepTime[0], &e.StepTime[1]
	if was.Median <= 0 || is.Median <= 0 {
		return ""
	}
	times := fmt.Sprintf("%s before, %s after", stepTime(was.Median), stepTime(is.Median))
	switch {
	case e.Busy():
		return fmt.Sprintf("not compared, as the machine was busy: %s; the programs waited for a processor %s before, %s after", times, waitedShare(was), waitedShare(is))
	case e.MayBeBusy() && e.Slower():
		return fmt.Sprintf("longer, maybe by other work on the machine, which was not recorded: %s", times)
	case e.Slower():
		return "slower: " + times
	case e.Longer() && is.Low > was.High:
		return "longer, but not by more than the program waited for a processor: " + times
	case e.Longer():
		return "undecided, as steps vary too much: " + times
	}
	return "not slower: " + times
}

// waitedShare is "43 % of the time".
func waitedShare(s *baseline.StepTime) string {
	if s.Unknown {
		return "an unknown part of the time"
	}
	return fmt.Sprintf("%.0f %% of the time", 100*s.Waited)
}

// rangeText is "12.0 MiB to 29.5 MiB", or "always 12.0 MiB".
func rangeText(b diff.Band) string {
	low, high := b.Low.String(), b.High.String()
	if low == high {
		return "always " + low
	}
	return low + " to " + high
}

// LossesText says whether the losses of two runs are the same, as a clause.
func LossesText(l *baseline.Losses) string {
	switch {
	case l.Differs:
		return fmt.Sprintf("they differ from step %s on: %v before, %v after", grouped(l.Step), l.Before, l.After)
	case l.Common > 0:
		return fmt.Sprintf("the same to the last bit, all %s that both runs have", grouped(int64(l.Common)))
	case !l.Recorded[0] && !l.Recorded[1]:
		return "none were recorded"
	case !l.Recorded[0]:
		return "not compared: the first run recorded none"
	case !l.Recorded[1]:
		return "not compared: the second run recorded none"
	}
	return "not compared: one run reports them by memdiag.mark, the other does not"
}

// stepTime is "1.25 ms a step".
func stepTime(seconds float64) string {
	if seconds < 1 {
		return fmt.Sprintf("%.3g ms a step", 1000*seconds)
	}
	return fmt.Sprintf("%.3g s a step", seconds)
}

// checkedPlace is the place that a check is about.
func checkedPlace(c *baseline.Check) string {
	switch {
	case c.Process != nil && c.Process.Processes != nil:
		place := "growth of " + brief(c.Process.Processes.Who())
		if c.Finding != nil {
			place += " at " + Place(c.Finding)
		}
		return place
	case c.Process != nil:
		if at := c.Process.Line(); at != nil {
			return "growth of the process while " + spot(*at) + " ran"
		}
		return "growth of the process outside recorded stacks"
	}
	return Place(c.Finding)
}

// verified is the line, or lines, of checks that share one rate.
func verified(checks []baseline.Check) string {
	var places []string
	for i := range checks {
		places = append(places, checkedPlace(&checks[i]))
	}
	c, place := &checks[0], strings.Join(slices.Compact(places), " and ")
	if len(checks) > 1 {
		place += " together"
	}
	line := fmt.Sprintf("%s: %s: %s; before %s a %s, after %s\n", c.Answer, place, Printable(c.Why), rateInterval(c.Before), c.Unit, afterText(c))
	if c.Reached != "" {
		line += fmt.Sprintf("  the second run reached that code: %s\n", Printable(c.Reached))
	}
	return line
}

// afterText is the rate after a fix. It is "about 0 B" if growth is gone and the interval includes zero, since the interval would say
// no more.
func afterText(c *baseline.Check) string {
	if s := c.After; c.Answer == baseline.Gone && s.Low <= 0 && s.High >= 0 && s.Low < s.High {
		return "about 0 B"
	}
	return rateInterval(c.After)
}

// rateInterval is "512 KiB (500 KiB to 520 KiB)", or the rate alone if its interval reads the same.
func rateInterval(s trend.Slope) string {
	text, low, high := snapshot.FormatBytes(s.Value), snapshot.FormatBytes(s.Low), snapshot.FormatBytes(s.High)
	if low == text && high == text {
		return text
	}
	return text + " (" + low + " to " + high + ")"
}
