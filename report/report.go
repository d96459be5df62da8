// Package report renders comparisons and snapshots. It is pure: every function gets its data and a writer, reads no file and no clock,
// and writes the same bytes for the same input. Names from a snapshot file are always escaped.
package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// TextOptions configure a text report.
type TextOptions struct {
	Width int  // columns to fold at; 0: do not fold
	Color bool // ANSI colours; they never carry a meaning alone
	All   bool // every finding in full and every site that changed
	Top   int  // rows of a table, and leaks shown in full; 0: 10
	// Run is the series of the snapshot's run, up to the snapshot. It bounds births that were not observed; nil if unknown.
	Run *diff.Series
	// By is the grouping in which Show sums live memory; "" is BySite. Since is an earlier snapshot, for other groupings; nil for none.
	By    Grouping
	Since *snapshot.Snapshot
	// Source is a file; Show then sums live memory by its lines instead of by call site. It is nil for none.
	Source *Source
}

// top is how many rows of n to show.
func (o TextOptions) top(n int) int {
	limit := o.Top
	if limit <= 0 {
		limit = 10
	}
	if o.All || limit > n {
		return n
	}
	return limit
}

// Headline is the report's first sentence: how many leaks there are and where the largest allocates, or that there is none or no
// verdict. Names in it are escaped; it has no full stop.
func Headline(r *diff.Result) string { return strings.ReplaceAll(sentence(r), noBreak, " ") }

// sentence is Headline with its place glued. If nothing was found, it begins with what may hide a leak, like a gate's sentence.
func sentence(r *diff.Result) string {
	text := found(r)
	if !strings.HasPrefix(text, nothingFound) {
		return text
	}
	if why := r.Doubt(r.Run().Info.Unseen); why != "" {
		return "inconclusive: " + brief(why) + "; " + text
	}
	return text
}

const nothingFound = "no leak found"

// found says what was found: in the process whose leaks end the run first.
func found(r *diff.Result) string {
	if drained := r.Drained(); len(drained) > 0 {
		return leaksOfOne(drained[0]) + alsoIn(r, drained[1:])
	}
	live := "live memory" + ofWhom(r) + " " + changeText(r.Growth().Bytes)
	if !r.Comparable {
		unlike := "different processes"
		if r.Separate() {
			unlike = "separate recordings"
		}
		return "no verdict on " + count(int64(len(r.Rows)), "call site") + " of " + unlike + "; " + live
	}
	if why := noComparison(r); why != "" {
		return "no verdict: " + why + "; " + live
	}
	if e := r.Unexplained(); e != nil {
		if at := e.Line(); at != nil {
			return "possible leak of native code at " + glue(spot(*at)) + ": the process grows by " + strings.TrimPrefix(bytesRate(e.Rate), "+") + "; " + live
		}
		return "possible leak outside recorded stacks: the process grows by " + strings.TrimPrefix(bytesRate(e.Rate), "+") + "; " + live
	}
	if others := r.Unaccounted(); len(others) > 0 {
		return "no verdict: " + brief(others[0].Clause()) + "; " + live
	}
	maybe := slices.DeleteFunc(withVerdict(r, diff.Inconclusive), func(f *diff.Finding) bool { return f.Bound != nil }) // growth up to a declared bound
	if len(maybe) > 0 {
		which := "possible leak: "
		if n := len(maybe); n > 1 {
			which = grouped(int64(n)) + " possible leaks; the largest: "
		}
		return which + clauseOf(maybe[0]) + "; " + live
	}
	return nothingFound + " among " + count(int64(len(r.Rows)), "call site") + "; " + live
}

// leaksOfOne is the sentence about one process that leaks.
func leaksOfOne(r *diff.Result) string {
	first, leaks := &r.Findings[0], r.Leaks()
	if leaks == 1 {
		return "1 leak: " + clauseOf(first)
	}
	all, sum := "", snapshot.Bytes(0)
	for _, f := range withVerdict(r, diff.Leak) {
		sum += grown(f)
	}
	if sum != 0 {
		all = ", " + signed(sum) + " in all"
	}
	return fmt.Sprintf("%d leaks%s; the largest: %s", leaks, all, clauseOf(first))
}

// alsoIn names the other processes that leak; "" for none.
func alsoIn(r *diff.Result, others []*diff.Result) string {
	if len(others) == 0 {
		return ""
	}
	named := make([]string, len(others))
	for i, of := range others {
		named[i] = strings.TrimSpace(inChild(&of.Findings[0]))
		if named[i] == "" {
			named[i] = "in" + strings.TrimPrefix(ofWhom(r), " of")
		}
	}
	return "; more leaks " + strings.Join(named, ", ")
}

// changeText is a change in a sentence; "unchanged" for zero, since "0 B" would read as an amount.
func changeText(b snapshot.Bytes) string {
	if b == 0 {
		return "unchanged"
	}
	return signed(b)
}

// ofWhom is " of train.py" if other processes grow or leak, because the live memory is that of the recorded process; else "".
func ofWhom(r *diff.Result) string {
	others := slices.ContainsFunc(r.Unaccounted(), func(e *diff.Reserve) bool { return e.Processes != nil })
	switch {
	case len(r.Children) == 0 && !others:
		return ""
	case r.Last.Role == "":
		return " of the recorded process"
	}
	return " of " + brief(r.Last.Role)
}

// noComparison says why two snapshots cannot show growth; "" if they can.
func noComparison(r *diff.Result) string {
	a, b := r.First.Mark, r.Last.Mark
	switch {
	case r.Intermediate > 0:
		return ""
	case b.Step != snapshot.NoStep && a.Step > b.Step:
		return fmt.Sprintf("step %s is compared with the earlier step %s", grouped(a.Step), grouped(b.Step))
	case len(r.Rows) > 0 && r.Equal():
		return "the two snapshots are equal"
	}
	return ""
}

func atPlace(f *diff.Finding) string {
	if f.OfProcess() && f.Headline >= 0 {
		return inChild(f) + "by native code at " + glue(place(f.Rows[0], f.Headline))
	}
	if f.OfProcess() {
		return inChild(f) + "outside recorded stacks"
	}
	if f.Headline < 0 && len(f.Rows[0].Frames) == 0 {
		return inChild(f) + "without a recorded stack"
	}
	return inChild(f) + "at " + glue(place(f.Rows[0], f.Headline))
}

// inChild is "in loader worker 3 on node-b (7 of 8 such processes) " for a finding in another process than the one that was judged
// first, or in one of several similar processes; else "".
func inChild(f *diff.Finding) string {
	c := f.Child
	switch {
	case c == nil && f.Among != "":
		return "in " + brief(f.Among) + " "
	case c == nil:
		return ""
	}
	text := "in " + brief(c.Role)
	if c.Machine != "" {
		text += " on " + brief(c.Machine)
	}
	if c.Alike > 1 {
		text += fmt.Sprintf(" (%d of %d such processes)", c.Alike, c.Of)
	}
	return text + " "
}

// ofChild is a finding that names the process of a result, if it is not the recorded one; else nil.
func ofChild(r *diff.Result) *diff.Finding {
	if len(r.Findings) == 0 || r.Findings[0].Child == nil {
		return nil
	}
	return &r.Findings[0]
}

// inBatches reports whether a result's steps are the batches of a loader's worker.
func inBatches(r *diff.Result) bool {
	of := ofChild(r)
	return of != nil && of.Rate.Unit == diff.Batch
}

func withVerdict(r *diff.Result, v diff.Verdict) []*diff.Finding {
	var out []*diff.Finding
	for i := range r.Findings {
		if r.Findings[i].Verdict == v {
			out = append(out, &r.Findings[i])
		}
	}
	return out
}

func growthOf(findings []*diff.Finding) diff.Tally {
	var t diff.Tally
	for _, f := range findings {
		t = plus(t, f.Growth())
	}
	return t
}

func plus(t, u diff.Tally) diff.Tally {
	return diff.Tally{Blocks: t.Blocks + u.Blocks, Bytes: t.Bytes + u.Bytes, Requested: t.Requested + u.Requested}
}

// names are the names of the two snapshots of a result: snapshot_0 and snapshot_50, if their steps differ.
func names(r *diff.Result) (first, last string) {
	a, b := r.First.Mark.Step, r.Last.Mark.Step
	if a == snapshot.NoStep || b == snapshot.NoStep || a == b {
		return "the first snapshot", "the last snapshot"
	}
	return fmt.Sprintf("snapshot_%d", a), fmt.Sprintf("snapshot_%d", b)
}

// deviceName is "cuda:0".
func deviceName(d snapshot.Device) string {
	return brief(string(d.Kind)) + ":" + strconv.Itoa(d.Index)
}
