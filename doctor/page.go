package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
)

// Page is the report of an examination.
type Page struct {
	SchemaVersion int                 `json:"schema_version"`
	Verdict       string              `json:"verdict"` // "leak", "inconclusive" or "clean"
	Confirm       string              `json:"confirm"`
	Needs         string              `json:"needs,omitempty"`        // what would decide an inconclusive run
	Longer        int64               `json:"longer_steps,omitempty"` // steps of the run that was made to decide
	Data          string              `json:"data,omitempty"`         // whether inconclusive growth depends on random data
	Beside        []string            `json:"beside,omitempty"`       // others that take memory here
	Types         []record.TypeGrowth `json:"types,omitempty"`        // types whose objects became more and more
	Also          []TrialRow          `json:"also,omitempty"`         // trials of other leaks
	Locate        string              `json:"locate,omitempty"`       // line and rate
	Holder        string              `json:"holder,omitempty"`
	Cause         string              `json:"cause,omitempty"`
	Fix           string              `json:"fix,omitempty"`
	Known         []string            `json:"known_leaks,omitempty"` // known leaks of libraries in the run's versions
	Answer        string              `json:"answer,omitempty"`      // what the trials show about the cause
	Trials        []TrialRow          `json:"trials,omitempty"`
	Untried       []string            `json:"untried,omitempty"`
	Patch         *PatchRow           `json:"patch,omitempty"`
	Verified      []string            `json:"verified,omitempty"` // the result of the patch, or of the user's fix, the answer first
	Verify        string              `json:"verify,omitempty"`   // the command that checks whether a fix worked
	Runs          []RunRow            `json:"runs"`
	Stopped       string              `json:"stopped,omitempty"`
}

// TrialRow is one change, with its result.
type TrialRow struct {
	Claim   string  `json:"claim"`
	Change  string  `json:"change"`
	From    float64 `json:"from"`
	Unit    string  `json:"unit"`              // unit of from: "step", "batch" or "second"
	Verdict Verdict `json:"verdict,omitempty"` // "" if it was not run
	Why     string  `json:"why,omitempty"`
	Safe    bool    `json:"safe"` // whether the program is known to compute the same
}

// PatchRow is a patch of the program's source.
type PatchRow struct {
	Diff    string         `json:"diff"` // the patch of all leaks
	Leaks   []LeakPatchRow `json:"leaks,omitempty"`
	Apart   string         `json:"apart,omitempty"` // why the patches of the leaks cannot be applied one after the other
	Says    []string       `json:"says"`
	Refused []string       `json:"refused,omitempty"` // why a leak has no patch
	Good    bool           `json:"good"`              // whether it was run, the leaks are gone, and losses and output are the same as far as known
}

// LeakPatchRow is the patch of one leak, or of several that one change fixes.
type LeakPatchRow struct {
	Of   []string `json:"of"`
	Says string   `json:"says"`
	Diff string   `json:"diff"`
}

// RunRow is one run of the program.
type RunRow struct {
	Dir     string  `json:"dir"`
	Changed string  `json:"changed,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
}

// PageOf is the report of an examination; program is the command that runs memdiag.
func PageOf(f *Findings, program string) *Page {
	p := &Page{SchemaVersion: 1, Verdict: string(f.Verdict()), Stopped: f.Stopped, Runs: []RunRow{{Dir: f.Plain.Dir, Seconds: seconds(f.Plain.Took)}}}
	switch {
	case f.Leak != nil:
		p.Confirm = "a leak, by " + string(evidence(f.Leak)) + " evidence"
		if f.More > 0 {
			p.Confirm += fmt.Sprintf("; %d more: memdiag diff %s", f.More, f.Plain.Dir)
		}
	case f.Plain.Result == nil:
		p.Confirm = "not decided"
	case f.Maybe != nil:
		p.Confirm = "not decided: " + f.Maybe.text()
		p.Needs = report.MoreText(f.Plain.Result, f.Maybe.Finding)
	case f.Doubt != "":
		p.Confirm = "not decided: " + f.Doubt
		if f.Unnamed {
			p.Needs = "a longer run; a process is recorded once it has grown for some seconds"
		}
	default:
		p.Confirm = "no leak"
	}
	if died := f.Plain.Died; died != "" {
		p.Confirm += fmt.Sprintf("; the run did not come to its end, and is judged by what was recorded until then: %s", died)
	}
	p.Longer, p.Data, p.Beside, p.Types = f.Longer, f.Data, f.Beside, f.Types
	if f.Fix != nil {
		p.Verified = f.Fix.lines()
	}
	if f.Leak == nil {
		return p
	}
	p.Locate, p.Known = f.Leak.text(), f.Plain.Result.Known
	if f.Plain.Ranks > 1 {
		p.Locate += fmt.Sprintf(", in rank %d", f.Plain.Rank)
		if f.Plain.Leaking > 1 {
			p.Locate += fmt.Sprintf("; %d of %d ranks leak", f.Plain.Leaking, f.Plain.Ranks)
		}
	}
	if f.Leak.Finding != nil {
		p.Holder = report.HolderText(f.Leak.Finding)
	}
	if c := f.Leak.cause(); c != nil {
		p.Cause, p.Fix = fmt.Sprintf("%s (memdiag explain %s)", c.Name, c.ID), c.Fix
	}
	if !f.Mended {
		p.Answer, p.Untried = f.answer(), f.Untried
	}
	unit := string(f.Leak.judged(f.Plain.Result).Series.Axis.Unit)
	if l := f.Leak.Finding; l != nil && l.Rate.Unit == diff.Batch {
		unit = string(diff.Batch)
	}
	for _, t := range f.Tried {
		p.Trials = append(p.Trials, TrialRow{t.Claim, t.Change, t.From, unit, t.Verdict, t.Why, t.Safe})
		p.Runs = append(p.Runs, RunRow{t.Run.Dir, t.Change, seconds(t.Run.Took)})
	}
	for _, t := range f.Also {
		p.Also = append(p.Also, TrialRow{t.Claim, t.Change, t.From, unit, t.Verdict, t.Why, t.Safe})
		p.Runs = append(p.Runs, RunRow{t.Run.Dir, t.Change, seconds(t.Run.Took)})
	}
	if len(f.Tried) == 0 {
		for _, t := range f.Trials {
			p.Trials = append(p.Trials, TrialRow{Claim: t.Claim, Change: t.Change, From: t.From, Unit: unit})
		}
	}
	if f.Again != nil {
		p.Runs = append(p.Runs, RunRow{Dir: f.Again.Dir, Seconds: seconds(f.Again.Took)})
	}
	p.Verify = fmt.Sprintf("%s verify %s NEW_RUN", program, f.Plain.Dir)
	if f.Patch != nil {
		p.Patch = &PatchRow{Diff: f.Patch.Diff, Apart: f.Patch.Apart, Says: f.Patch.Says, Refused: f.Patch.Refused, Good: f.Fix != nil && f.Fix.Good()}
		for _, l := range f.Patch.Leaks {
			p.Patch.Leaks = append(p.Patch.Leaks, LeakPatchRow(l))
		}
		if failed := f.Patch.Failed; failed != nil {
			p.Runs = append(p.Runs, RunRow{failed.Dir, "patched", seconds(failed.Took)})
		}
	}
	if f.Fix != nil {
		changed := "patched"
		if f.Mended {
			changed = "your fix"
		}
		p.Runs = append(p.Runs, RunRow{f.Fix.Run.Dir, changed, seconds(f.Fix.Run.Took)})
	}
	return p
}

func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

func evidence(l *Leak) diff.Evidence {
	if l.Finding != nil {
		return l.Finding.Evidence
	}
	return diff.Strong
}

// answer is one sentence on what the trials show.
func (f *Findings) answer() string {
	switch {
	case len(f.Tried) == 0 && len(f.Trials) == 0:
		return "not proven: nothing that memdiag can change in the running program tests it"
	case len(f.Tried) == 0:
		return "not proven: nothing was tried yet"
	}
	t := f.Tried[0]
	switch {
	case t.Verdict == Proven && t.Safe:
		return "proven: " + t.Claim + ". With the change, the program computes the same results"
	case t.Verdict == Proven && t.Prints:
		return "proven: " + t.Claim + ". With the change, losses are equal, but the printed output differs"
	case t.Verdict == Proven:
		return "proven: " + t.Claim + ". Whether the results are the same with the change is unknown"
	case t.Fails:
		return "not proven: " + t.Why
	case t.Verdict == Needed:
		return t.Claim + ", and the program uses it: limit its size rather than drop it, or declare it with --bound"
	}
	return "not proven: " + t.Why
}

// JSON writes the page as JSON.
func (p *Page) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(p)
}

// Text writes the page for a person.
func (p *Page) Text(w io.Writer) error {
	var b strings.Builder
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s\n", label, report.Printable(text))
		}
	}
	line("Confirm", p.Confirm)
	line("  To decide", p.Needs)
	if p.Longer > 0 {
		line("  Longer", fmt.Sprintf("a run of %d steps was made to decide", p.Longer))
	}
	line("  Same data", p.Data)
	for _, beside := range p.Beside {
		line("  Beside it", beside)
	}
	line("Locate", p.Locate)
	line("  Held by", p.Holder)
	if len(p.Types) > 0 {
		var types []string
		for _, t := range p.Types {
			types = append(types, fmt.Sprintf("%d more %s", t.More, t.Type))
		}
		line("  Objects", strings.Join(types, ", "))
	}
	for _, known := range p.Known {
		line("  Known", known)
	}
	line("Analyse", p.Answer)
	line("  Cause", p.Cause)
	for _, t := range p.Trials {
		verdict := string(t.Verdict)
		if verdict == "" {
			verdict = "to try"
		}
		line("  "+verdict, t.Claim)
		line("    Change", fmt.Sprintf("%s, from %s on", t.Change, begin(t.Unit, t.From)))
		line("    Result", t.Why)
	}
	for _, t := range p.Also {
		line("  also "+string(t.Verdict), t.Claim+": "+t.Why)
	}
	for _, u := range p.Untried {
		line("  Not tried", u)
	}
	line("  Fix", p.Fix)
	if p.Patch != nil {
		for _, says := range p.Patch.Says {
			line("Patch", says)
		}
		for _, why := range p.Patch.Refused {
			line("No patch", why)
		}
	}
	for i, text := range p.Verified {
		label := "  With it"
		if i == 0 {
			label = "Verify"
		}
		line(label, text)
	}
	if len(p.Verified) == 0 {
		line("Verify", p.Verify)
	}
	for _, r := range p.Runs {
		text := r.Dir
		if r.Seconds > 0 {
			text += fmt.Sprintf(", %.1f s", r.Seconds)
		}
		if r.Changed != "" {
			text += ", changed: " + r.Changed
		}
		line("Run", text)
	}
	line("Not complete", p.Stopped)
	if p.Patch != nil {
		p.Patch.text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text writes the diffs: the only one, or one for all leaks if they change the same lines, or one per leak with what it fixes. The text
// between them is not part of a diff, so git apply can apply all of them together.
func (p *PatchRow) text(b *strings.Builder) {
	if p.Apart != "" || len(p.Leaks) < 2 {
		if p.Apart != "" {
			fmt.Fprintf(b, "Patches: %s\n", report.Printable(p.Apart))
		}
		writeDiff(b, p.Diff)
		return
	}
	for i, l := range p.Leaks {
		fmt.Fprintf(b, "\nPatch %d of %d: %s: %s\n", i+1, len(p.Leaks), report.Printable(strings.Join(l.Of, "; ")), report.Printable(l.Says))
		writeDiff(b, l.Diff)
	}
}

func writeDiff(b *strings.Builder, diff string) {
	if diff != "" {
		b.WriteByte('\n')
	}
	for l := range strings.Lines(diff) {
		parts := strings.Split(strings.TrimSuffix(l, "\n"), "\t")
		for i := range parts {
			parts[i] = report.Printable(parts[i])
		}
		b.WriteString(strings.Join(parts, "\t") + "\n")
	}
}

// begin is "step 628", or "0.413 s".
func begin(unit string, from float64) string {
	if unit == "second" {
		return fmt.Sprintf("%.3g s", from)
	}
	return fmt.Sprintf("%s %.4g", unit, from)
}
