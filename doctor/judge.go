package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Run is one run of the program, unchanged or with a change.
type Run struct {
	Dir        string
	Took       time.Duration
	Ranks      int                // number of ranks, if more than one
	Leaking    int                // number of leaking ranks
	Rank       int                // rank of the result, if there are several
	Result     *diff.Result       // nil if it could not be judged; Why says why
	Why        string             // a clause
	ExitCode   int                // exit code of the program
	Died       string             // a clause on how it died, if memory or SIGKILL ended it; else ""
	Said       string             // the last line of its standard error
	Intervened *record.Intervened // nil if no process was changed
	Output     Output
}

// Output is the program's standard output.
type Output struct {
	Bytes int64
	Sum   uint64 // hash of the output
}

// Leak is what grows: a finding, or growth of the process that no stack explains.
type Leak struct {
	Finding *diff.Finding // nil for growth of the process
	Process *diff.Reserve
}

// Verdict is what a trial shows about a cause.
type Verdict string

// The verdicts.
const (
	Proven  Verdict = "proven"  // with the change the growth is gone, and the program does its work
	Needed  Verdict = "needed"  // the same, but the program needs what it retains: without it, it computes something else
	Refuted Verdict = "refuted" // the growth stays with the change
	Open    Verdict = "open"    // the trial shows nothing
)

// Tried is a trial with its outcome.
type Tried struct {
	Trial
	Verdict Verdict
	Why     string // one or more clauses
	Run     Run
	Losses  baseline.Losses
	Safe    bool // the program is known to compute the same
	Prints  bool // its losses are the same, but it prints something else
	Fails   bool // the program fails with the change
}

// gone: growth is gone if at most this share of its rate is left after the change. Growth that the change does not reach may stay, such
// as a number for each graph that is dropped. stays: growth stays if at least this share is left.
const gone, stays = 0.1, 0.5

// JudgeTrial compares a changed run with the unchanged program. again is a second unchanged run. It is nil if there is none yet; then
// it is unknown whether differences come from the change.
func JudgeTrial(t Trial, leak *Leak, plain, changed, again *Run) Tried {
	out := Tried{Trial: t, Run: *changed, Verdict: Open}
	in, ended := changed.Intervened, changed.ended(plain)
	switch {
	case ended != "" && t.Kind == record.Switch:
		out.Why = ended // an unknown option in the command does that, too
	case ended != "" && (in == nil || in.Changed == 0):
		out.Why = strings.Replace(ended, "with the change the program ends", "the program ended", 1) + ", before the change"
	case (in == nil || in.Acts == 0) && changed.Died != "":
		out.Why = "the program crashed with the change too, so the effect of the change is unknown: " + changed.Died
	case in == nil || in.Acts == 0:
		out.Why = "the program ended before the change, or no process of Python's was there to change"
	case in.Failed != "":
		out.Why = "the change failed: " + in.Failed
	case !in.Found:
		out.Why = fmt.Sprintf("%#q was not found in this run", t.Path)
	case in.Changed == 0 && t.Kind == record.Share:
		out.Why = "its items are no tensors"
	case in.Changed == 0 && in.Acts == 1 && len(t.Args) == 0:
		out.Why = "the program ended soon after the change began: run it longer"
	case in.Changed == 0 && len(t.Args) == 0:
		out.Verdict, out.Why = Refuted, "there was nothing to change: "+nothing(t.Kind)
	case ended != "":
		out.Verdict, out.Fails, out.Why = Needed, true, ended
	case changed.Result == nil:
		out.Why = changed.Why
	default:
		out.growth(leak, plain, again)
	}
	return out
}

func nothing(kind record.InterventionKind) string {
	switch kind {
	case record.Collect:
		return "the collector found no garbage"
	case record.Detach:
		return "no tensor there has a graph"
	case record.Unhook:
		return "no hook came after warm-up"
	case record.Release:
		return "allocators had nothing to return to the system"
	case record.Switch:
		return "the program uses none of these"
	}
	return "it did not become longer after warm-up"
}

// growth judges whether growth is gone, by its rate since the change, and whether the program still computes the same.
func (t *Tried) growth(leak *Leak, plain, again *Run) {
	base, there := leak.judged(plain.Result), leak.within(&t.Run)
	if there == nil {
		t.Why = "with the change there is no process like " + leak.child().Role
		return
	}
	was, is, err := sinceChange(base.Run(), there, t.Run.Intervened.Since)
	if err != nil {
		t.Why = err.Error()
		return
	}
	late := checkOf(baseline.Verify(base, was), leak.Finding)
	check := checkOf(baseline.Verify(base, is), leak.Finding)
	if check == nil || late == nil || late.After.Value < stays*late.Before.Value {
		t.Why = "the rest of the run after the change is too short to show the growth"
		return
	}
	rates := report.CheckText(check)
	switch left := check.After.Value / check.Before.Value; {
	case left >= stays && len(t.Args) > 0 && t.same(plain):
		t.Why = "these arguments had no visible effect: growth, losses and output did not change"
		return
	case left >= stays:
		t.Verdict, t.Why = Refuted, "the growth stays: "+rates
		return
	case left > gone:
		t.Why = "the growth is less, but not gone: " + rates
		return
	}
	if t.Why = t.idle(leak, plain, again); t.Why != "" {
		return
	}
	if other := baseline.Elsewhere(leak.Finding, gone*check.Before.Value, is, base, was); other != nil {
		t.Why = "the growth is gone there, but something else grows with the change: " + elsewhere(other)
		return
	}
	t.Verdict, t.Why = Proven, "the growth is gone: "+rates
	t.Losses = baseline.CompareLosses(plain.Result.Run().Losses, t.Run.Result.Run().Losses)
	steady := baseline.Losses{}
	if again != nil && again.Result != nil {
		steady = baseline.CompareLosses(plain.Result.Run().Losses, again.Result.Run().Losses)
	}
	switch {
	case t.Losses.Equal():
		t.Why += fmt.Sprintf("; losses are %s", report.LossesText(&t.Losses))
		t.Prints = again != nil && plain.Died == "" && plain.Output == again.Output && plain.Output != t.Run.Output
		t.Safe = !t.Prints
		if t.Prints {
			t.Why += "; but the printed output differs"
		}
	case t.Losses.Differs && steady.Equal():
		t.Verdict = Needed
		t.Why += "; but the program needs this memory: with the change losses " + difference(&t.Losses)
	case t.Losses.Differs && steady.Differs:
		t.Why += "; losses cannot be compared: two unchanged runs already differ. Set the random seeds"
	case t.Losses.Differs:
		t.Why += "; losses cannot be compared: there is no second unchanged run"
	default:
		t.output(plain, again)
	}
}

// elsewhere says what grows, and where.
func elsewhere(c *baseline.Check) string {
	if c.Finding != nil {
		return report.GrowthText(c.Finding)
	}
	return report.ReserveText(c.Process)
}

// same reports whether the change has no visible effect: the losses, if any, and the output are the same.
func (t *Tried) same(plain *Run) bool {
	losses := baseline.CompareLosses(plain.Result.Run().Losses, t.Run.Result.Run().Losses)
	return !losses.Differs && plain.Output == t.Run.Output
}

func difference(l *baseline.Losses) string {
	return fmt.Sprintf("differ from step %d on: %v instead of %v", l.Step, l.After, l.Before)
}

// output compares the program's output, if no losses are recorded.
func (t *Tried) output(plain, again *Run) {
	t.Why += "; no losses were recorded"
	switch {
	case again == nil || plain.Died != "" || plain.Output.Bytes == 0:
		t.Why += ", so the results were not compared"
	case plain.Output != again.Output:
		t.Why += ", and two unchanged runs already print different output, so the results were not compared"
	case plain.Output == t.Run.Output:
		t.Safe = true
		t.Why += "; the printed output is the same"
	default:
		t.Verdict = Needed
		t.Why += "; but the printed output differs, so the program needs this memory"
	}
}

// sinceChange judges the part of a run after a change, and the same part of the unchanged run.
func sinceChange(plain, changed *snapshot.Run, since float64) (was, is *diff.Result, err error) {
	at := time.UnixMicro(int64(since * 1e6))
	n := slices.IndexFunc(changed.Snapshots, func(s *snapshot.Snapshot) bool { return s.Mark.Time.After(at) })
	if n < 0 {
		return nil, nil, errors.New("the run ended before there was a snapshot after the change")
	}
	first := changed.Snapshots[n].Mark
	passed := first.Time.Sub(changed.Snapshots[0].Mark.Time)
	k := slices.IndexFunc(plain.Snapshots, func(s *snapshot.Snapshot) bool {
		if first.Step != snapshot.NoStep {
			return s.Mark.Step >= first.Step
		}
		return s.Mark.Time.Sub(plain.Snapshots[0].Mark.Time) >= passed
	})
	if k < 0 || len(changed.Snapshots)-n < 2 || len(plain.Snapshots)-k < 2 {
		return nil, nil, errors.New("there are too few snapshots after the change")
	}
	if was, err = part(plain, k); err == nil {
		is, err = part(changed, n)
	}
	return was, is, err
}

// part judges a run from its snapshot n on.
func part(run *snapshot.Run, n int) (*diff.Result, error) {
	rest := *run
	rest.Snapshots = run.Snapshots[n:]
	if run.Series != nil {
		series, first := *run.Series, rest.Snapshots[0].Mark.Time
		series.Points = slices.DeleteFunc(slices.Clone(series.Points), func(p snapshot.Point) bool { return p.Mark.Time.Before(first) })
		rest.Series = &series
	}
	return diff.DefaultOptions().Analyze(&rest)
}

// checkOf is the check of a finding, or with nil that of growth of the process without a line. It is nil if there is none.
func checkOf(v *baseline.Verification, f *diff.Finding) *baseline.Check {
	for i := range v.Checks {
		if v.Checks[i].Finding == f {
			return &v.Checks[i]
		}
	}
	return nil
}
