package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// paceText is growth per event: "+1 block of 4.00 KiB each step"; "" if the run does not show it.
func paceText(f *diff.Finding) string {
	p := f.Pace
	if p == nil {
		return ""
	}
	var when string
	switch p.Event {
	case cause.Steps:
		when = "each step"
		if p.Every > 1 {
			when = fmt.Sprintf("every %s steps", grouped(p.Every))
		}
	case cause.Epochs:
		when = "each epoch"
	case cause.Evaluations:
		when = "in each evaluation only"
	case cause.Checkpoints:
		when = "at each checkpoint only"
	default:
		when = fmt.Sprintf("at irregular steps, %s times so far", grouped(p.Events))
	}
	size := signed(p.Bytes)
	switch whole := math.Round(p.Blocks); {
	case f.Uncounted:
		return size + " " + when
	case p.Blocks == 0:
		return size + " " + when + ", in blocks that replace smaller ones"
	case f.Shape == diff.Quadratic:
		return "more " + when + ", " + size + " on average"
	case whole == 1 && math.Abs(p.Blocks-whole) < 0.05:
		if p.Sizes {
			return "+1 block " + when + ", of " + p.Each.String() + " on average"
		}
		return "+1 block of " + p.Each.String() + " " + when
	case math.Abs(p.Blocks-whole) < 0.05*whole:
		return fmt.Sprintf("+%s blocks, %s, %s", grouped(int64(whole)), size, when)
	}
	return fmt.Sprintf("%s blocks, %s, %s on average", plusSign(p.Blocks)+threeDigits(p.Blocks), size, when)
}

// runsOutText says when the device is full, as a step and as a time.
func runsOutText(r *diff.Result, f *diff.Finding) string {
	at := f.RunsOut
	if at == nil {
		return ""
	}
	text, more := atText(at, f.Rate.Unit), ""
	if at.Open {
		more = "more than "
	}
	switch _, unit := rounded(at.Step, at.Low, at.High); {
	case at.Beyond:
	case at.Step == snapshot.NoStep:
		_, low, high := spansWithin(at)
		text += glue(fmt.Sprintf(" (%s to %s%s)", low, more, high))
	case at.Low != at.High:
		text += glue(fmt.Sprintf(" (%s to %s%s)", grouped(at.Low/unit*unit), more, grouped((at.High+unit-1)/unit*unit)))
	}
	switch limit := glue(at.Limit.String()); {
	case at.Beyond && at.OfProcess:
		text += " (" + limit + " is available)"
	case at.Beyond:
		text += " (" + limit + " on " + deviceName(f.Rows[0].Device) + ")"
	case at.OfProcess:
		text += ", of " + limit + " (available memory)"
	default:
		text += ", of " + limit
		text += " on " + deviceName(f.Rows[0].Device)
	}
	besides := r.Besides()
	for i := range r.Findings {
		besides -= nodesOf(&r.Findings[i])
	}
	switch {
	case at.OfProcess && f.Rows[0].Device.Kind.InProcess() && besides > grown(f) && r.Unexplained() == nil:
		text += ", from this leak alone; after warm-up the process grew by another " + glue(besides.String())
	case othersTake(r, f):
		text += ", from this leak alone"
	}
	if at.Step == snapshot.NoStep {
		return text
	}
	if at.After > 0 && at.AfterHigh < math.MaxInt64 {
		_, last := names(r)
		value, low, high := spansWithin(at)
		if text += "; " + glue(value) + " after " + last; low != high {
			text += glue(fmt.Sprintf(" (%s to %s%s)", low, more, high))
		}
	}
	return text
}

// othersTake reports whether something other than the finding also fills the memory of its forecast.
func othersTake(r *diff.Result, f *diff.Finding) bool {
	if f.RunsOut.OfProcess && r.Unexplained() != nil {
		return true
	}
	for i := range r.Findings {
		g := &r.Findings[i]
		if g == f || g.Verdict != diff.Leak || g.RunsOut == nil {
			continue
		}
		if f.RunsOut.OfProcess && g.RunsOut.OfProcess || deviceName(f.Rows[0].Device) == deviceName(g.Rows[0].Device) {
			return true
		}
	}
	return false
}

// atText is "step 4,000", or for a run without steps "3.20 h after the last snapshot".
func atText(at *diff.Forecast, unit diff.Unit) string {
	switch {
	case at.Beyond:
		return fmt.Sprintf("not within %s, %d times this run", glue(unit.Text(at.Far)), diff.Farthest)
	case at.Step == snapshot.NoStep:
		value, _, _ := spansWithin(at)
		return glue(value) + " after the last snapshot"
	}
	step, _ := rounded(at.Step, at.Low, at.High)
	return "step " + grouped(step)
}

// rounded is a value with the digits that its interval justifies, and the rounding unit: half of the interval's width, as a power of
// ten.
func rounded(value, low, high int64) (near, unit int64) {
	unit = 1
	for half := (high - low) / 2; half >= 10; half /= 10 {
		unit *= 10
	}
	return (value + unit/2) / unit * unit, unit
}

// spansWithin returns the time of a forecast and the ends of its interval, with the digits that the interval justifies.
func spansWithin(at *diff.Forecast) (value, low, high string) {
	_, unit := rounded(int64(at.After), int64(at.AfterLow), int64(at.AfterHigh))
	text := func(d time.Duration) string { return spanTo(d, time.Duration(unit)) }
	return text(at.After), text(at.AfterLow), text(at.AfterHigh)
}

// spanTo is span without digits below a unit, which is a power of ten in nanoseconds.
func spanTo(d, unit time.Duration) string {
	whole := span(d)
	number, name, _ := strings.Cut(whole, " ")
	size, ok := map[string]time.Duration{"days": 24 * time.Hour, "h": time.Hour, "min": time.Minute, "s": time.Second, "ms": time.Millisecond}[name]
	if !ok {
		return whole
	}
	decimals := 0
	for s := unit; s < size && decimals < 2; s *= 10 {
		decimals++
	}
	if _, after, _ := strings.Cut(number, "."); decimals >= len(after) {
		return whole
	}
	return strconv.FormatFloat(float64(d)/float64(size), 'f', decimals, 64) + " " + name
}

// span is a duration, in days from two days on.
func span(d time.Duration) string {
	if days := d.Hours() / 24; days >= 2 {
		return threeDigits(days) + " days"
	}
	return duration(d)
}

// moreText says how much more time (if the unit is seconds), or how many steps and snapshots would decide something; "" if unknown.
func moreText(unit diff.Unit, m diff.More) string {
	var parts []string
	switch {
	case m.Steps > 0 && unit == diff.Second:
		parts = append(parts, glue(span(time.Duration(m.Steps)*time.Second))+" more")
	case m.Steps > 0:
		parts = append(parts, count(m.Steps, "more step"))
	}
	if m.Snapshots > 0 {
		parts = append(parts, count(int64(m.Snapshots), "more snapshot"))
	}
	if parts == nil {
		return ""
	}
	return "about " + strings.Join(parts, " and ")
}

// tellsLeast reports whether the smallest leak that the run could have shown is known.
func tellsLeast(r *diff.Result) bool {
	return r.Rule == diff.ByTrend && r.Comparable && r.Series.Axis.Unit != diff.Place
}

// leastText is the smallest leak that the run could have shown; "" if blocks are not counted.
func leastText(r *diff.Result) string {
	if !tellsLeast(r) {
		return ""
	}
	least, unit := r.Least(), r.Series.Axis.Unit
	if least.Every == 0 && least.Counted == 0 {
		text := "the run is too short, or has too few snapshots, to prove a leak"
		if r.Leaks() > 0 {
			text = "the run is too short, or has too few snapshots, to show slower leaks"
		}
		if more := moreText(unit, r.LeastMore()); more != "" {
			text += "; that takes " + more
		}
		return text
	}
	if r.Uncounted() {
		return ""
	}
	if least.Sample > 0 {
		return fmt.Sprintf("leaks slower than about %s are missed in more than 1 run of 10: the profile samples about 1 allocation in %s",
			strings.Replace(oneBlock(least.Every, unit), "1 block", glue(least.Sample.String()), 1), glue(least.Sample.String()))
	}
	text := slowerThan(least.Every, unit)
	if least.Mixed && slowerThan(least.Counted, unit) != text {
		text += " (" + strings.TrimPrefix(slowerThan(least.Counted, unit), "leaks slower than ") + " where the step of allocation is unknown)"
	}
	return text + " may be missed"
}

// slowerThan describes the leaks that a run may have missed: those that add less than a block in so many steps or seconds; 0 for all
// leaks.
func slowerThan(every float64, unit diff.Unit) string {
	if every == 0 {
		return "any leak"
	}
	return "leaks slower than " + oneBlock(every, unit)
}

// oneBlock is a rate of one block per so many steps or seconds.
func oneBlock(every float64, unit diff.Unit) string {
	switch {
	case every == 1:
		return "1 block each " + string(unit)
	case unit == diff.Second:
		return "1 block every " + span(time.Duration(every*float64(time.Second)))
	}
	return fmt.Sprintf("1 block every %s steps", grouped(int64(every)))
}
