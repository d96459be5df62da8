package corpus

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memdiag/memdiag/engine/workload"
)

// score is how well one rule did on some runs.
type score struct {
	Rule      string `json:"rule"`
	Leaks     int    `json:"leaks"` // runs
	Found     int    `json:"found"`
	Undecided int    `json:"undecided"` // of the others; it is no alarm
	Line      int    `json:"line_right"`
	Cause     int    `json:"cause_right"`
	// Held are the leaks that a field of the program keeps, and Holder those of them of
	// which it is named.
	Held   int `json:"held"`
	Holder int `json:"holder_right"`
	// Lines are those of all leaks, of which Named were named; Strays are findings in
	// leaking runs that have nothing to do with a line that leaks.
	Lines  int `json:"lines"`
	Named  int `json:"lines_named"`
	Strays int `json:"stray_findings"`
	// Findings are those with a stack through a line that leaks; of a leak on one line
	// there should be one.
	Findings int `json:"findings"`
	// Steps is the median, over the leaks found, of the steps from which on the rule
	// said so; 0 where none was found.
	Steps    int64 `json:"steps_median"`
	Bounded  alarm `json:"bounded"`
	Clean    alarm `json:"clean"`
	Repaired alarm `json:"repaired"`
	// Calibration is of all runs, and of memdiag's own rule.
	Calibration calibration `json:"calibration"`

	steps []int64
}

// alarm counts runs that do not leak, how many of them a rule flags, and of
// how many of the others it says that it cannot tell.
type alarm struct {
	Runs      int `json:"runs"`
	False     int `json:"false_alarms"`
	Undecided int `json:"undecided"`
}

func (a *alarm) add(v verdict) {
	a.Runs++
	switch {
	case v.found:
		a.False++
	case v.undecided:
		a.Undecided++
	}
}

func (a alarm) String() string { return of(a.False, a.Runs) }

func of(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// scores has one row for each rule.
func scores(runs []*Run) []score {
	var scores []score
	if len(runs) == 0 {
		return nil
	}
	for i, rule := range runs[0].rules {
		s := score{Rule: rule.name}
		for _, r := range runs {
			s.add(r, r.verdicts[i])
			if i == 0 {
				s.Calibration.add(r.calibration)
			}
		}
		if len(s.steps) > 0 {
			slices.Sort(s.steps)
			s.Steps = s.steps[len(s.steps)/2]
		}
		scores = append(scores, s)
	}
	return scores
}

func (s *score) add(r *Run, v verdict) {
	switch {
	case r.Fixed:
		s.Repaired.add(v)
		return
	case r.Workload.Label == workload.Clean:
		s.Clean.add(v)
		return
	case r.Workload.Label == workload.Bounded:
		s.Bounded.add(v)
		return
	}
	s.Leaks++
	s.Lines += len(r.guilty)
	s.Named += v.lines
	s.Strays += v.strays
	s.Findings += v.findings
	if v.found {
		s.Found++
		s.steps = append(s.steps, v.steps)
	}
	for _, c := range []struct {
		holds bool
		count *int
	}{{v.undecided, &s.Undecided}, {v.line, &s.Line}, {v.cause, &s.Cause}, {len(r.held) > 0, &s.Held}, {v.holder, &s.Holder}} {
		if c.holds {
			*c.count++
		}
	}
}

// Text writes a row for each rule, or where there are several views a row for each of
// them; and what memdiag got wrong.
func Text(w io.Writer, plan Plan, runs []*Run) error {
	var b strings.Builder
	if plan.Stopped > 0 {
		fmt.Fprintf(&b, "partial: %d of %d runs were done when it was stopped\n", len(runs), plan.Stopped)
	}
	rows := ruleRows
	if len(plan.Views) > 1 {
		rows = viewRows
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(table, rows(runs)) // a Builder takes all
	_ = table.Flush()
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		if wrong := mistakes(of); len(wrong) > 0 {
			fmt.Fprintf(&b, "\nmemdiag's mistakes, view %s, by seed:\n%s\n", of[0].View.Name, strings.Join(wrong, "\n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tell writes to a table, whose Writer takes all.
func tell(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }

func ruleRows(runs []*Run) string {
	var b strings.Builder
	b.WriteString("rule\tleaks found\tfalse: bounded\tclean\trepaired\tstray\tline right\tcause right\tsteps needed\tundecided\tdecided when said\n")
	for _, s := range scores(runs) {
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\t%s\n", s.Rule, of(s.Found, s.Leaks), s.Bounded, s.Clean, s.Repaired, s.Strays,
			of(s.Line, s.Leaks), of(s.Cause, s.Leaks), s.Steps, s.Undecided+s.healthy().Undecided, s.Calibration.Promises)
	}
	return b.String()
}

func viewRows(runs []*Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "view\tleaks found\tfalse alarms\tundecided: leaks\tothers\tline right\tholder\tcause right\tfindings per line\tstray\tsteps needed\tdecided when said\t%s: found\tfalse\n", rules()[best].name)
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		both := scores(of)
		s, other := both[0], both[1]
		fmt.Fprintf(&b, "%s\t%d/%d\t%s\t%d\t%d\t%d\t%d/%d\t%d\t%.2f\t%d\t%d\t%s\t%d\t%s\n", of[0].View.Name, s.Found, s.Leaks, s.healthy(), s.Undecided, s.healthy().Undecided,
			s.Line, s.Holder, s.Held, s.Cause, float64(s.Findings)/float64(max(s.Named, 1)), s.Strays, s.Steps, s.Calibration.Promises, other.Found, other.healthy())
	}
	return b.String()
}

// healthy sums up the runs that do not leak.
func (s *score) healthy() (sum alarm) {
	for _, a := range []alarm{s.Bounded, s.Clean, s.Repaired} {
		sum.Runs, sum.False, sum.Undecided = sum.Runs+a.Runs, sum.False+a.False, sum.Undecided+a.Undecided
	}
	return sum
}

// mistakes says what memdiag's own rule got wrong, a line for each workload
// and kind of mistake.
func mistakes(runs []*Run) []string {
	var order []string
	seeds := make(map[string][]string)
	for _, r := range runs {
		what := r.mistake(r.verdicts[0])
		if what == "" {
			continue
		}
		key := fmt.Sprintf("  %s %s: %s", r.Workload.ID, r.Workload.Alias, what)
		if seeds[key] == nil {
			order = append(order, key)
		}
		seeds[key] = append(seeds[key], fmt.Sprint(r.Seed))
	}
	for i, key := range order {
		order[i] = key + ": " + strings.Join(seeds[key], ", ")
	}
	return order
}

// mistake is what is wrong with a verdict; "" for nothing.
func (r *Run) mistake(v verdict) string {
	switch {
	case r.Fixed && v.found:
		return "false alarm on the repaired program"
	case !r.Leaks() && v.found:
		return "false alarm"
	case !r.Leaks():
		return ""
	case !v.found && v.undecided:
		return "missed, called undecided"
	case !v.found:
		return "missed"
	case !v.line:
		return "another line is named first"
	case !v.cause:
		return "another cause"
	}
	return ""
}

type listJSON struct {
	SchemaVersion int        `json:"schema_version"`
	FirstSeed     int64      `json:"first_seed"`
	Seeds         int64      `json:"seeds"`
	Partial       bool       `json:"partial"` // not all runs of these seeds were done
	Views         []viewJSON `json:"views"`
	Runs          []runJSON  `json:"runs"`
}

type viewJSON struct {
	View      string         `json:"view"`
	About     string         `json:"about"`
	Rules     []score        `json:"rules"`
	Workloads []workloadJSON `json:"workloads"`
}

type workloadJSON struct {
	Workload string         `json:"workload"`
	Label    workload.Label `json:"label"`
	Rules    []score        `json:"rules"`
}

type runJSON struct {
	View     string                 `json:"view"`
	Workload string                 `json:"workload"`
	Seed     int64                  `json:"seed"`
	Repaired bool                   `json:"repaired"`
	Label    workload.Label         `json:"label"`
	Steps    int64                  `json:"steps"`
	Lines    int                    `json:"lines"`
	Verdicts map[string]verdictJSON `json:"verdicts"`
}

type verdictJSON struct {
	Flagged   bool  `json:"flagged"`
	Undecided bool  `json:"undecided"`
	Line      bool  `json:"line_right"`
	Cause     bool  `json:"cause_right"`
	Holder    bool  `json:"holder_right"`
	Named     int   `json:"lines_named"`
	Strays    int   `json:"stray_findings"`
	Findings  int   `json:"findings"`
	Steps     int64 `json:"steps"`
}

// groups are the runs that have one key and stand together.
func groups(runs []*Run, key func(*Run) string) iter.Seq[[]*Run] {
	return func(yield func([]*Run) bool) {
		for from := 0; from < len(runs); {
			to := from
			for to < len(runs) && key(runs[to]) == key(runs[from]) {
				to++
			}
			if !yield(runs[from:to]) {
				return
			}
			from = to
		}
	}
}

// JSON writes the rows of Text, for all workloads and for each, and every run.
func JSON(w io.Writer, plan Plan, runs []*Run) error {
	list := listJSON{SchemaVersion: 2, FirstSeed: plan.First, Seeds: plan.Seeds, Partial: plan.Stopped > 0}
	for of := range groups(runs, func(r *Run) string { return r.View.Name }) {
		view := viewJSON{View: of[0].View.Name, About: of[0].View.About, Rules: scores(of)}
		for own := range groups(of, func(r *Run) string { return r.Workload.ID }) {
			view.Workloads = append(view.Workloads, workloadJSON{own[0].Workload.ID, own[0].Workload.Label, scores(own)})
		}
		list.Views = append(list.Views, view)
	}
	for _, r := range runs {
		row := runJSON{
			View: r.View.Name, Workload: r.Workload.ID, Seed: r.Seed, Repaired: r.Fixed, Label: r.Workload.Label, Steps: r.truth.Steps, Lines: len(r.guilty),
			Verdicts: make(map[string]verdictJSON),
		}
		for i, rule := range r.rules {
			v := r.verdicts[i]
			row.Verdicts[rule.name] = verdictJSON{v.found, v.undecided, v.line, v.cause, v.holder, v.lines, v.strays, v.findings, v.steps}
		}
		list.Runs = append(list.Runs, row)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}
