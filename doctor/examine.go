package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/doctor/source"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Lab runs the program once more, with what is changed, if anything is.
type Lab func(ctx context.Context, name string, change Change) (*Run, error)

// Change is what a run of the program has that is not as it is: an intervention while it runs, or files with another text.
type Change struct {
	Intervention *record.Intervention
	Files        []source.File
}

// Findings are what an examination found, as far as it came.
type Findings struct {
	Plain   *Run
	Leak    *Leak   // what is examined; nil where nothing leaks
	More    int     // leaks beside it
	Maybe   *Leak   // what may leak, if nothing does
	Doubt   string  // why a run without a leak may leak; "" for nothing
	Trials  []Trial // that are to be run
	Untried []string
	Tried   []Tried
	Again   *Run   // the second run of the program as it is; nil where none was
	Patch   *Patch // nil unless one was asked for
	Fix     *Fix   // what came of the patch, or of the user's fix; nil unless it was tried
	Mended  bool   // the fix is the user's
	Stopped string // why the examination is not complete; "" where it is
}

// Examine goes through the stages. Without a lab it says what it would try. In the end the program runs as it is once more:
// this tells whether two runs compute the same, and leaves the files of an unchanged run. An
// interrupt ends it; what was found until then is returned.
func Examine(ctx context.Context, plain *Run, lab Lab) (*Findings, error) {
	f := &Findings{Plain: plain}
	f.confirm()
	if f.Leak == nil {
		return f, nil
	}
	f.Trials, f.Untried = TrialsOf(plain.Result, f.Leak)
	if lab == nil || len(f.Trials) == 0 {
		return f, nil
	}
	var changed []*Run
	for i, t := range f.Trials {
		run, err := lab(ctx, name(i, t), Change{Intervention: &t.Intervention})
		if err != nil {
			return f.stopped(changed, err)
		}
		changed = append(changed, run)
		if tried := JudgeTrial(t, f.Leak, plain, run, nil); tried.Verdict == Proven && tried.Safe {
			for _, rest := range f.Trials[i+1:] {
				f.Untried = append(f.Untried, rest.Change+": not run, since the first is proven")
			}
			break
		}
	}
	again, err := lab(ctx, "again", Change{})
	if err != nil {
		return f.stopped(changed, err)
	}
	f.Again = again
	f.judge(changed)
	return f, nil
}

// Mended runs the program with the user's fix, and holds it against the run before.
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
	f.Fix = Fixed(f.Plain, run, f.Again)
	return nil
}

func name(i int, t Trial) string {
	return "trial-" + string(rune('1'+i)) + "-" + string(t.Kind) // of MostTrials, 4
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
	slices.SortStableFunc(f.Tried, func(a, b Tried) int { return rank(a.Verdict) - rank(b.Verdict) })
}

func rank(v Verdict) int { return slices.Index([]Verdict{Proven, Needed, Open, Refuted}, v) }

// confirm takes the leak that grows fastest.
func (f *Findings) confirm() {
	r := f.Plain.Result
	f.Doubt = r.Doubt(r.Run().Info.Unseen)
	f.More = r.Leaks() - 1
	for i := range r.Findings {
		finding := &r.Findings[i]
		switch {
		case finding.OfProcess():
			// It has no line, and is compared as growth of the process.
		case finding.Verdict == diff.Leak && f.Leak == nil:
			f.Leak = &Leak{Finding: finding}
		case finding.Verdict == diff.Inconclusive && f.Maybe == nil:
			f.Maybe = &Leak{Finding: finding}
		}
	}
	if e := r.ProcessGrowth(); f.Leak == nil && e != nil {
		f.Leak, f.More = &Leak{Process: e}, 0
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

// holder is what was found to hold it; nil where nothing with a name was.
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

// cause is the likeliest; nil where none is known.
func (l *Leak) cause() *cause.Cause {
	if l.Finding != nil {
		return l.Finding.Cause
	}
	return l.Process.Cause
}

// causes are the ids of all that are likely, the best first.
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

// text is what grows, and where.
func (l *Leak) text() string {
	if l.Finding != nil {
		return report.GrowthText(l.Finding)
	}
	return report.ReserveText(l.Process)
}
