package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Gate is a gate's decision, for its files.
type Gate struct {
	Verdict  diff.Verdict // Leak: it fails; Clean: it passes; OverBudget: it fails only because of a budget; else Inconclusive
	Sentence string       // why, without a full stop
	Outcome  *baseline.Outcome
	Ranks    []baseline.Ranked // the judged ranks
	Budgets  []RankBudget      // in the order of the ranks and of the flags
	Version  string            // of memdiag
	// Root is the folder to which source paths in the files are relative.
	Root Folder
}

// Place is the line of a finding, or its best name if the line is unknown.
func Place(f *diff.Finding) string { return place(f.Rows[0], f.Headline) }

// GateHeadline is Headline with the interval of its rate, and with further leaks. Other processes have a sentence of their own.
func GateHeadline(r *diff.Result) string {
	if r.Leaks() == 0 {
		return strings.ReplaceAll(found(r), noBreak, " ") // the gate adds its own doubts
	}
	return strings.ReplaceAll(leaksOfOne(r), noBreak, " ") + rateWithin(r.Findings[0].Rate) + furtherLeaks(r) + uncountedGrowth(r)
}

// uncountedGrowth says how much the process grows if its malloc gives no figures: for a leak of large objects, only the small objects
// beside them have a rate. It is "" otherwise.
func uncountedGrowth(r *diff.Result) string {
	e := r.Unexplained()
	if e == nil || !e.Uncounted {
		return ""
	}
	return "; Python objects above 512 B are not counted, and the process grows by " + strings.TrimPrefix(bytesRate(e.Rate), "+")
}

// mostFurther is how many further leaks a sentence names.
const mostFurther = 3

// furtherLeaks lists the leaks after the first: "; also: +512 B/step at train.py:14"; "" for none.
func furtherLeaks(r *diff.Result) string {
	further := withVerdict(r, diff.Leak)[1:]
	if len(further) == 0 {
		return ""
	}
	var named []string
	for _, f := range further[:min(len(further), mostFurther)] {
		named = append(named, growthText(f))
	}
	if rest := len(further) - mostFurther; rest > 0 {
		named = append(named, fmt.Sprintf("%d more", rest))
	}
	return "; also: " + strings.Join(named, ", ")
}

// rateWithin is the interval of a rate; "" if it reads the same as the rate.
func rateWithin(r diff.Rate) string {
	r = readable(r)
	low, high := snapshot.FormatBytes(r.Bytes.Low), snapshot.FormatBytes(r.Bytes.High)
	if low == high {
		return ""
	}
	return fmt.Sprintf(" (%s%s to %s%s %s, 95 %% interval, n = %d)", plusSign(r.Bytes.Low), low, plusSign(r.Bytes.High), high, each(r.Unit), r.Bytes.N)
}

// Failing says how many leaks fail, and which of them grows most.
func Failing(o *baseline.Outcome) string {
	failing := o.Failing()
	verb := "fails: "
	if len(failing) > 1 {
		verb = "fail; the largest: "
	}
	return fmt.Sprintf("%d of %s %s%s", len(failing), count(int64(len(o.Leaks)), "leak"), verb, leakText(&failing[0])) + rateWithin(failing[0].Finding.Rate)
}

// Canary says whether a planted canary was caught, given the result with it, or nil if the run was too short for a canary.
func Canary(r *diff.Result) string {
	if r == nil {
		return "canary: not caught: the run is too short"
	}
	text := "canary: not caught"
	if f, caught := canary.Found(r); caught {
		text = "canary: caught: " + bytesRate(f.Rate)
	} else if f != nil {
		text += ": " + bytesRate(f.Rate) + ", verdict " + string(f.Verdict)
	}
	if least := leastText(r); least != "" {
		text += "; " + least
	}
	return strings.ReplaceAll(text, noBreak, " ")
}

// IdleBound says that a declared bound matches nothing, and how to write one that does.
func IdleBound(b snapshot.Bound) string {
	return "bound: nothing is allocated in, or held by, " + brief(b.Where) + "; write FUNCTION, FILE:FUNCTION, FILE:LINE, or a holder such as Agent.items"
}

// Doubled says what a run holds more than another with half its steps.
func Doubled(d *baseline.Doubled) string {
	if len(d.More) == 0 {
		return fmt.Sprintf("double: no call site holds more after %d steps than after %d", d.Whole.Step, d.Half.Step)
	}
	var sum snapshot.Bytes
	for i := range d.More {
		sum += d.More[i].Growth().Bytes
	}
	first := &d.More[0]
	text := fmt.Sprintf("double: %s more is live after %d steps than after %d, at %s; the largest: %s at %s", sum, d.Whole.Step, d.Half.Step,
		count(int64(len(d.More)), "call site"), first.Growth().Bytes, place(first, frame.Headline(first.Frames)))
	return strings.ReplaceAll(text, noBreak, " ")
}

// told is how many findings GateFindings describes.
const told = 3

// GateFindings writes, for the leaks that fail or else for possible leaks, who holds them, and how to fix or decide them. If there are several,
// the first three are described, each after its rate and line, and the last line counts the others. Paths are relative to here.
func GateFindings(w io.Writer, o *baseline.Outcome, here Folder) error {
	var b strings.Builder
	failing := o.Failing()
	for i := range failing[:min(len(failing), told)] {
		if len(failing) > 1 {
			fmt.Fprintf(&b, "leak: %s\n", leakText(&failing[i]))
		}
		b.WriteString(inShort(failing[i].Finding))
	}
	more := len(failing) - told
	if len(failing) == 0 {
		for _, f := range o.Undecided[:min(len(o.Undecided), told)] {
			fmt.Fprintf(&b, "possible leak: %s\n%s%s", growthText(f), inShort(f), toDecide(f))
		}
		more = len(o.Undecided) - told
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %d more\n", more)
	}
	_, err := io.WriteString(w, here.Text(unglued(b.String())))
	return err
}

// inShort is a finding's holder and, for a leak, its cause and fix, one line each.
func inShort(f *diff.Finding) string {
	out := ""
	if by := held(f); by != "" {
		out += "  Held by: " + by + "\n"
	}
	if f.Cause != nil && f.Verdict == diff.Leak {
		out += "  Cause: " + f.Cause.Name + " (memdiag explain " + f.Cause.ID + ")\n  Fix: " + f.Cause.Fix + "\n"
	}
	return out
}

// toDecide is a line that says what would decide a possible leak, or why it is undecided; "" if neither is known.
func toDecide(f *diff.Finding) string {
	if more := moreText(f.Rate.Unit, f.More); more != "" {
		return "  To decide: " + more + "\n"
	}
	if why := reasons(f); why != "" {
		return "  Why: " + why + "\n"
	}
	return ""
}

// GateStates writes a line with the state of each leak, of each finding within a declared bound, and of each entry of a baseline. Paths
// are relative to here.
func GateStates(w io.Writer, o *baseline.Outcome, here Folder) error {
	var b strings.Builder
	for i := range o.Leaks {
		l := &o.Leaks[i]
		fmt.Fprintf(&b, "%s: %s: %s\n", l.State, leakText(l), brief(l.Why)+owned(l.Entry))
	}
	for _, f := range o.Declared {
		fmt.Fprintf(&b, "declared: %s: %s\n", growthText(f), declaredText(f))
	}
	for _, f := range o.Fates {
		fmt.Fprintf(&b, "%s: %s: %s\n", f.State, entryText(f.Entry), fateText(f, o.Partial)+owned(f.Entry))
	}
	_, err := io.WriteString(w, here.Text(unglued(b.String())))
	return err
}

// leakText is "+512 KiB/step at feature_pyramid.go:80", with its ranks.
func leakText(l *baseline.Leak) string {
	text := growthText(l.Finding)
	if len(l.Ranks) > 0 {
		text += " on " + Ranks(l.Ranks)
	}
	return text
}

// growthText is "+512 KiB/step at feature_pyramid.go:80".
func growthText(f *diff.Finding) string {
	rate := bytesRate(f.Rate)
	if unsteady(f) {
		rate = signed(grown(f)) + " (no steady rate)"
	}
	return strings.ReplaceAll(rate+" "+atPlace(f), noBreak, " ")
}

// declaredText compares a finding with its declared bound.
func declaredText(f *diff.Finding) string { return brief(strings.Join(f.Reasons, "; ")) }

func entryText(e *baseline.Entry) string {
	if e.Where == "" {
		return brief(e.Fingerprint)
	}
	return brief(e.Where) + " (" + brief(e.Fingerprint) + ")"
}

func fateText(f baseline.Fate, partial bool) string {
	switch {
	case f.State == baseline.Fixed && partial:
		return "it does not leak in the judged part of the run"
	case f.State == baseline.Fixed:
		return "it no longer leaks; --update-baseline removes its entry"
	case f.State == baseline.Undecided:
		return "it grew; only a longer run can tell whether it leaks"
	case f.State == baseline.Expired:
		return "its entry expired on " + f.Entry.Expires.Format("2006-01-02") + " and is ignored"
	}
	return "nothing is live there: the run did not reach it, or it is fixed. If it is fixed, delete its entry, so that the gate reports the leak if it returns"
}

// owned is the owner, issue and reason of an entry.
func owned(e *baseline.Entry) string {
	if e == nil {
		return ""
	}
	about := slices.DeleteFunc([]string{e.Owner, e.Issue, e.Reason}, func(s string) bool { return s == "" })
	if len(about) == 0 {
		return ""
	}
	return " (" + brief(strings.Join(about, ", ")) + ")"
}
