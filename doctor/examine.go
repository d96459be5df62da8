package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Lab runs the program again, with a change or, if change is zero, without.
type Lab func(ctx context.Context, name string, change Change) (*Run, error)

// Change is how a run of the program differs from the program as it is: an intervention while it runs, or files with other text.
type Change struct {
	Intervention *record.Intervention
	Files        []source.File
	Args         []string // added to the command
	Process      string   // the kind of process that is changed, if it is recorded beside the one of its rank; else ""
	Steps        int64    // the value of {steps}, from this run on; 0 to leave it
}

// Findings are the results of an examination so far.
type Findings struct {
	Plain    *Run
	Leak     *Leak   // the leak that is examined; nil if nothing leaks
	More     int     // number of other leaks
	Maybe    *Leak   // the possible leak, if nothing leaks
	Doubt    string  // why a run without a leak may leak; "" if nothing suggests it
	Unnamed  bool    // whether it is growth of processes in which nothing was recorded
	Trials   []Trial // trials to run
	Untried  []string
	Also     []Tried             // trials of other leaks, one each for their likeliest cause
	Types    []record.TypeGrowth // types whose objects became more and more
	Steps    int64               // steps of a run, if the command has {steps}; else 0
	Longer   int64               // steps of the longer run that was made to decide; 0 for none
	Data     string              // whether inconclusive growth depends on random data, a clause; "" if not tried
	Beside   []string            // others that take memory here, a clause each
	Switches []Switch            // the user's switches
	Tried    []Tried
	Again    *Run   // the second run of the program as it is; nil for none
	Patch    *Patch // nil unless a patch was requested
	Fix      *Fix   // the result of the patch, or of the user's fix; nil if not tried
	Mended   bool   // whether the fix is the user's
	Stopped  string // why the examination is incomplete; "" if it is complete
}

// Examine runs all stages. Without a lab it says what it would try. At the end the unchanged program runs once more: this shows whether
// two runs compute the same, and leaves the files of an unchanged run. An interrupt ends the examination, and the findings so far are
// returned.
func Examine(ctx context.Context, plain *Run, lab Lab, given Findings) (*Findings, error) {
	f := &given
	f.Plain = plain
	f.confirm()
	if lab != nil && plain.Died == "" { // a longer run is useless if the first one died
		if err := f.decide(ctx, lab); err != nil {
			return f.stopped(nil, err)
		}
	}
	if f.Leak == nil {
		return f, nil
	}
	plain = f.Plain
	f.Trials, f.Untried = TrialsOf(plain.Result, f.Leak)
	if lab == nil {
		return f, nil
	}
	var changed []*Run
	for i := 0; i < len(f.Trials); i++ { // the loop may add trials
		t := f.Trials[i]
		run, err := lab(ctx, name(i, t), f.change(&t.Intervention, f.Leak))
		if err != nil {
			return f.stopped(changed, err)
		}
		changed = append(changed, run)
		tried := JudgeTrial(t, f.Leak, plain, run, nil)
		if tried.Fails {
			if again, ok := withItems(t, f.Leak.holder()); ok && len(f.Trials) < MostTrials {
				f.Trials = slices.Insert(f.Trials, i+1, again)
			}
		}
		if tried.Verdict == Proven && tried.Safe {
			for _, rest := range f.Trials[i+1:] {
				f.Untried = append(f.Untried, rest.Change+": not run, since the first is proven")
			}
			break
		}
	}
	again, err := lab(ctx, "again", f.change(&record.Intervention{Kind: record.Count, From: from(f.Leak.judged(plain.Result)), Child: f.Leak.child() != nil}, f.Leak))
	if err != nil {
		return f.stopped(changed, err)
	}
	f.Again = again
	if again.Intervened != nil {
		f.Types = again.Intervened.Grown
	}
	f.judge(changed)
	proven := len(f.Tried) > 0 && (f.Tried[0].Verdict == Proven || f.Tried[0].Verdict == Needed && !f.Tried[0].Fails)
	if !proven && (len(f.Trials) == 0 || f.Leak.holder() == nil) {
		err = f.delta(ctx, lab)
	} else if proven {
		err = f.others(ctx, lab)
	}
	if err != nil {
		return f.stopped(nil, err)
	}
	return f, nil
}

// mostLonger is how many longer runs are made to decide, and mostTimes how many times as long as the first they may be. A child process
// is recorded only once it has grown for some seconds: if one grew and was not recorded, a run is made timesUnnamed times as long.
const mostLonger, mostTimes, timesUnnamed = 2, 20, 4

// decide makes an inconclusive run longer, if the command allows it and the needed length is known. Otherwise it tests whether the
// growth depends on random data.
func (f *Findings) decide(ctx context.Context, lab Lab) error {
	first := f.Steps
	for range mostLonger {
		steps := f.longer()
		if steps == 0 || steps > mostTimes*first {
			break
		}
		run, err := lab(ctx, fmt.Sprintf("longer-%d", steps), Change{Steps: steps})
		if err != nil {
			return err
		}
		f.Steps, f.Longer = steps, steps
		if run.Result == nil {
			break
		}
		f.Plain, f.Leak, f.Maybe = run, nil, nil
		f.confirm()
	}
	if f.Leak != nil || f.Maybe == nil {
		return nil
	}
	run, err := lab(ctx, "same-data", Change{Intervention: &record.Intervention{Kind: record.Seed, From: fewestBefore}})
	if err != nil {
		return err
	}
	if run.Result == nil || run.Intervened == nil || run.Intervened.Acts == 0 {
		return nil
	}
	same := &Findings{Plain: run}
	same.confirm()
	switch {
	case same.Leak != nil:
		f.Data = "with the same random numbers in each step it grows too, and that is a leak: " + same.Leak.text()
	case same.Maybe != nil:
		f.Data = "with the same random numbers in each step it grows too"
	default:
		f.Data = "with the same random numbers in each step it does not grow: growth follows the data"
	}
	return nil
}

// longer is how many steps a run needs to decide; 0 if that is unknown, or doctor cannot choose it.
func (f *Findings) longer() int64 {
	switch {
	case f.Leak != nil || f.Steps == 0:
		return 0
	case f.Maybe != nil && f.Maybe.Finding.More.Steps > 0:
		return f.Steps + f.Maybe.Finding.More.Steps*5/4
	case f.Maybe == nil && f.Unnamed:
		return timesUnnamed * f.Steps
	}
	return 0
}

// change is a change in the process that has the leak.
func (f *Findings) change(in *record.Intervention, l *Leak) Change {
	c := Change{Intervention: in}
	if child := l.child(); child != nil && in.Child {
		c.Process = diff.KindOf(child.Role)
	}
	return c
}

// mostAlso is how many leaks after the first are tried.
const mostAlso = 2

// others tries the likeliest cause of other leaks, unless the same change was already tried.
func (f *Findings) others(ctx context.Context, lab Lab) error {
	done := map[string]bool{f.Tried[0].Path: true}
	for _, l := range f.leaks()[1:] {
		trials, _ := TrialsOf(f.Plain.Result, l)
		if len(trials) == 0 || done[trials[0].Path] || len(f.Also) == mostAlso {
			continue
		}
		done[trials[0].Path] = true
		run, err := lab(ctx, fmt.Sprintf("also-%d-%s", len(f.Also)+1, trials[0].Kind), f.change(&trials[0].Intervention, l))
		if err != nil {
			return err
		}
		f.Also = append(f.Also, JudgeTrial(trials[0], l, f.Plain, run, f.Again))
	}
	return nil
}

// Mended runs the program with the user's fix, and compares it with the run before.
func Mended(ctx context.Context, plain *Run, lab Lab) (*Findings, error) {
	f := &Findings{Plain: plain, Mended: true}
	f.confirm()
	run, err := lab(ctx, "fixed", Change{})
	if err != nil {
		_, err = f.stopped(nil, err)
		return f, err
	}
	f.Fix = Fixed(plain, run, nil)
	return f, nil
}

// TryPatch runs the program with the patch, if there is one.
func (f *Findings) TryPatch(ctx context.Context, lab Lab) error {
	if f.Patch == nil || len(f.Patch.Files) == 0 || lab == nil {
		return nil
	}
	run, err := lab(ctx, "patched", Change{Files: f.Patch.Files})
	if err != nil {
		_, err = f.stopped(nil, err)
		return err
	}
	if why := run.ended(f.Plain); why != "" && len(f.Patch.Leaks) == 1 {
		f.Patch.withdraw(run, why)
		return nil
	}
	f.Fix = Fixed(f.Plain, run, f.Again)
	return nil
}

func name(i int, t Trial) string {
	return "trial-" + string(rune('1'+i)) + "-" + string(t.Kind) // MostTrials is 4
}

func (f *Findings) stopped(changed []*Run, err error) (*Findings, error) {
	if len(changed) > 0 {
		f.judge(changed)
	}
	f.Stopped = err.Error()
	if errors.Is(err, context.Canceled) {
		f.Stopped = "it was interrupted"
	}
	return f, err
}

func (f *Findings) judge(changed []*Run) {
	for i, run := range changed {
		f.Tried = append(f.Tried, JudgeTrial(f.Trials[i], f.Leak, f.Plain, run, f.Again))
	}
	slices.SortStableFunc(f.Tried, func(a, b Tried) int { return a.rank() - b.rank() })
}

// rank orders trials by how much they prove. Of two with the same verdict, one with which the program fails proves less.
func (t *Tried) rank() int {
	n := 2 * slices.Index([]Verdict{Proven, Needed, Open, Refuted}, t.Verdict)
	if t.Fails {
		n++
	}
	return n
}

// confirm chooses the leak that grows fastest.
func (f *Findings) confirm() {
	r := f.Plain.Result
	f.Doubt, f.Unnamed = r.Doubt(r.Run().Info.Unseen), false
	for i := range r.Findings {
		finding := &r.Findings[i]
		switch {
		case finding.OfProcess():
			// It has no line, and is treated as growth of the process.
		case finding.Verdict == diff.Leak && f.Leak == nil:
			f.Leak = &Leak{Finding: finding}
		case finding.Verdict == diff.Inconclusive && f.Maybe == nil:
			f.Maybe = &Leak{Finding: finding}
		}
	}
	if e := r.ProcessGrowth(); f.Leak == nil && e != nil && !e.Uneven {
		f.Leak = &Leak{Process: e}
	}
	for _, c := range r.Children {
		if leaks := leaksOf(c.Result); f.Leak == nil && len(leaks) > 0 {
			f.Leak = leaks[0]
		}
	}
	if f.Leak != nil {
		f.More = len(f.leaks()) - 1
	} else if grown := r.Unaccounted(); len(grown) > 0 && f.Doubt == "" {
		f.Doubt, f.Unnamed = report.Unexplained(grown[0]), grown[0].Processes != nil
	}
}

// Verdict says whether the unchanged program leaks.
func (f *Findings) Verdict() diff.Verdict {
	switch {
	case f.Leak != nil:
		return diff.Leak
	case f.Maybe != nil || f.Doubt != "" || f.Plain.Result == nil:
		return diff.Inconclusive
	}
	return diff.Clean
}

// holder is the leak's known holder; nil if there is none with a name.
func (l *Leak) holder() *snapshot.Holder {
	var h *snapshot.Holder
	switch {
	case l.Finding != nil && l.Finding.Holder != nil:
		h = l.Finding.Holder
	case l.Finding != nil && l.Finding.Nodes != nil:
		h = l.Finding.Nodes.Graph
	case l.Process != nil:
		h = l.Process.Graph
	}
	if h != nil && h.Path == snapshot.Nameless {
		return nil
	}
	return h
}

// cause is the likeliest cause; nil if none is known.
func (l *Leak) cause() *cause.Cause {
	if l.Finding != nil {
		return l.Finding.Cause
	}
	return l.Process.Cause
}

// causes are the ids of all likely causes, the best first.
func (l *Leak) causes() []string {
	var ids []string
	if c := l.cause(); c != nil {
		ids = append(ids, c.ID)
	}
	if l.Finding != nil {
		for _, m := range l.Finding.Others {
			ids = append(ids, m.Cause.ID)
		}
	}
	return ids
}

// text says what grows, and where.
func (l *Leak) text() string {
	if l.Finding != nil {
		return report.GrowthText(l.Finding)
	}
	return report.ReserveText(l.Process)
}
