package gate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

// Rank is the data of one rank of a run, or of another process with leaks.
type Rank struct {
	Number  int                // snapshot.NoRank in a run without ranks
	Result  *diff.Result       // nil if the run is too short
	Doubt   string             // why it cannot be judged; "" if it can
	Said    string             // the headline; "" if another rank's says it
	Canary  string             // the result of the canary; "" if none was planted
	Budgets []budget.Outcome   // outcomes of all budgets
	Double  *baseline.Doubled  // nil unless the run is compared with one of half its steps
	bird    bird               // the result of the canary
	refused *snapshot.Snapshot // the snapshot with a failed request for memory; nil for none
	unread  []string           // parts of the run that were not read, one sentence each
	why     string             // the doubt about what was recorded, also if there are leaks; "" for none
}

// bird is the result of a canary.
type bird int

const (
	noBird    bird = iota // none was requested, or it was caught
	missed                // it was planted, and not caught
	unplanted             // the command has nothing in which one can be planted
)

// Analyze judges a run, as diff.Options.Analyze does.
type Analyze func(*snapshot.Run, diff.Options) (*diff.Result, error)

// Judge judges one rank's snapshots, or those of a run without ranks. A run with fewer than three snapshots has no result. The error is
// a SliceError if the run lacks what the slice names.
func (o Options) Judge(run *snapshot.Run, how diff.Options, analyze Analyze) (Rank, error) {
	run, err := o.Slice.of(run)
	if err != nil {
		return Rank{}, err
	}
	r := Rank{Number: snapshot.NoRank, refused: run.OutOfMemory(), unread: run.Notes}
	if len(run.Ranks) > 1 && o.AllRanks {
		r.unread = slices.DeleteFunc(slices.Clone(r.unread), files.OfOneRank) // the others are judged, too
	}
	if len(run.Ranks) > 0 && len(run.Snapshots) > 0 {
		r.Number = run.Snapshots[0].Rank
	}
	r.Budgets = o.checked(canary.Without(run), how.DeviceMemory)
	planted := canary.In(run) || o.Canary
	if planted && !canary.Possible(run) {
		planted, r.bird = false, unplanted
		r.Canary = "canary: not planted: no Python process loaded memdiag, and a canary needs one"
		r.Doubt = "without a canary it is unknown whether this gate would catch a leak; "
	}
	if n := len(run.Snapshots); n < least {
		if planted {
			r.Canary, r.bird = report.Canary(nil), missed
		}
		r.Doubt, r.Said = "a gate needs three snapshots or more, the first interval being warm-up; ", fmt.Sprintf("the run has %d", n)
		if o.Slice.Warmup > 0 {
			r.Said += fmt.Sprintf(" from step %d on", o.Slice.Warmup)
		}
		r.Said += report.Printable(run.Info.WhyFew())
		return r, nil
	}
	if planted {
		whole, err := analyze(run, how)
		if err != nil {
			return r, err
		}
		if _, caught := canary.Found(whole); !caught {
			r.bird = missed
		}
		r.Canary = report.Canary(whole)
	}
	if r.Result, err = analyze(canary.Without(run), how); err != nil {
		return r, err
	}
	if err := o.Slice.keepDevice(r.Result); err != nil {
		return r, err
	}
	r.Said = report.GateHeadline(r.Result)
	if why := r.Result.Doubt(o.Slice.unseen(run)); why != "" {
		r.why = report.Printable(why + "; ")
	}
	if r.Doubt == "" {
		r.Doubt = report.Printable(r.doubts())
	}
	return r, nil
}

// least is how many snapshots a gate needs: one for warm-up, and two to compare.
const least = 3

// doubts says why a result is inconclusive, with the separator before the headline; "" if it is conclusive.
func (r *Rank) doubts() string {
	leaks := r.Result.Leaks() > 0
	switch grown := r.Result.Unaccounted(); {
	case len(grown) > 0 && !leaks && grown[0].Line() != nil:
		return cmp.Or(r.why, longerRun) // a longer run with the same gap would not judge it
	case len(grown) > 0 && !leaks:
		return "source line unknown; "
	case len(grown) > 0 && grown[len(grown)-1].Processes != nil: // whether or not the leaks pass
		return grown[len(grown)-1].Clause() + "; "
	case leaks && len(grown) > 0 && grown[0].Uncounted: // the headline has the rate of the process
		return "the rate of the leak is not known; "
	case leaks:
		return ""
	}
	return r.why
}

// ByDrain orders ranks and processes: those with leaks first, and among these the one whose leaks end the run first.
func ByDrain(ranks []Rank) {
	drain := func(r Rank) float64 {
		if r.Result == nil {
			return 0
		}
		return r.Result.Drain()
	}
	slices.SortStableFunc(ranks, func(a, b Rank) int { return cmp.Compare(drain(b), drain(a)) })
}

// Children are the other processes with leaks. If there are some and the rank itself does not leak, the rank's headline is left out,
// since theirs say it.
func (r *Rank) Children() (out []Rank) {
	if r.Result == nil {
		return nil
	}
	for _, c := range r.Result.Children {
		out = append(out, Rank{Number: snapshot.NoRank, Result: c.Result, Said: report.GateHeadline(c.Result)})
	}
	if len(out) > 0 && r.Result.Leaks() == 0 {
		r.Said = ""
	}
	return out
}

// Doubled compares a rank with the run of half its steps; nil if that run has nothing to compare with.
func (o Options) Doubled(half *snapshot.Run, whole *diff.Result) (*baseline.Doubled, error) {
	half, err := o.Slice.of(canary.Without(half))
	if err != nil || len(half.Snapshots) == 0 {
		return nil, err
	}
	d := baseline.Double(half.Snapshots[len(half.Snapshots)-1], whole)
	elsewhere := func(row diff.Row) bool { return !o.Slice.has(row.Device) }
	d.More, d.Unexplained = slices.DeleteFunc(d.More, elsewhere), slices.DeleteFunc(d.Unexplained, elsewhere)
	return d, nil
}

// checked compares a run with the budgets. If only one device is judged, budgets without a place apply to it.
func (o Options) checked(run *snapshot.Run, memory snapshot.Bytes) []budget.Outcome {
	of := slices.Clone(o.Budgets)
	for i := range of {
		if of[i].Where == "" {
			of[i].Where = o.Slice.Device
		}
	}
	return budget.Check(run, of, memory)
}

// more returns the sentences about a rank after its headline.
func (r *Rank) more() (said []string) {
	for i := range r.Budgets {
		said = append(said, report.Printable(r.Budgets[i].String()))
	}
	if r.Double != nil {
		said = append(said, report.Doubled(r.Double))
	}
	if r.Canary != "" {
		said = append(said, r.Canary)
	}
	if r.Result != nil {
		for _, b := range r.Result.Idle {
			said = append(said, report.IdleBound(b))
		}
		if text := report.NotSeen(r.Result); text != "" && "not seen: "+r.Doubt != text+"; " { // its headline says it
			said = append(said, text)
		}
	}
	for _, note := range r.unread {
		said = append(said, noted+report.Printable(note))
	}
	return said
}
