package corpus

import (
	"encoding/json"
	"fmt"
	"io"
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
	// Lines are those of all leaks, of which Named were named; Strays are findings in
	// leaking runs that have nothing to do with a line that leaks.
	Lines  int `json:"lines"`
	Named  int `json:"lines_named"`
	Strays int `json:"stray_findings"`
	// Steps is the median, over the leaks found, of the steps from which on the rule
	// said so; 0 where none was found.
	Steps    int64 `json:"steps_median"`
	Bounded  alarm `json:"bounded"`
	Clean    alarm `json:"clean"`
	Repaired alarm `json:"repaired"`

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
	for i, rule := range rules() {
		s := score{Rule: rule.name}
		for _, r := range runs {
			s.add(r, r.verdicts[i])
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
	if v.found {
		s.Found++
		s.steps = append(s.steps, v.steps)
	}
	for _, c := range []struct {
		holds bool
		count *int
	}{{v.undecided, &s.Undecided}, {v.line, &s.Line}, {v.cause, &s.Cause}} {
		if c.holds {
			*c.count++
		}
	}
}

// Text writes a row for each rule, and memdiag's mistakes.
func Text(w io.Writer, plan Plan, runs []*Run) error {
	if plan.Stopped > 0 {
		fmt.Fprintf(w, "partial: %d of %d runs were done when it was stopped\n", len(runs), plan.Stopped)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "rule\tleaks found\tfalse: bounded\tclean\trepaired\tstray\tline right\tcause right\tsteps needed\tundecided")
	for _, s := range scores(runs) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\n", s.Rule, of(s.Found, s.Leaks), s.Bounded, s.Clean, s.Repaired, s.Strays,
			of(s.Line, s.Leaks), of(s.Cause, s.Leaks), s.Steps, s.Undecided+s.Bounded.Undecided+s.Clean.Undecided+s.Repaired.Undecided)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if wrong := mistakes(runs); len(wrong) > 0 {
		fmt.Fprintf(w, "\nmemdiag's mistakes, by seed:\n%s\n", strings.Join(wrong, "\n"))
	}
	return nil
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
	SchemaVersion int            `json:"schema_version"`
	FirstSeed     int64          `json:"first_seed"`
	Seeds         int64          `json:"seeds"`
	Partial       bool           `json:"partial"` // not all runs of these seeds were done
	Snapshots     int            `json:"snapshots"`
	Counters      bool           `json:"counters"`
	Rules         []score        `json:"rules"`
	Workloads     []workloadJSON `json:"workloads"`
	Runs          []runJSON      `json:"runs"`
}

type workloadJSON struct {
	Workload string         `json:"workload"`
	Label    workload.Label `json:"label"`
	Rules    []score        `json:"rules"`
}

type runJSON struct {
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
	Named     int   `json:"lines_named"`
	Strays    int   `json:"stray_findings"`
	Steps     int64 `json:"steps"`
}

// JSON writes the rows of Text, for all workloads and for each, and every run.
func JSON(w io.Writer, plan Plan, runs []*Run) error {
	list := listJSON{
		SchemaVersion: 1, FirstSeed: plan.First, Seeds: plan.Seeds, Partial: plan.Stopped > 0, Snapshots: plan.Parts + 1, Counters: plan.Counters, Rules: scores(runs),
	}
	for from := 0; from < len(runs); {
		to := from
		for to < len(runs) && runs[to].Workload.ID == runs[from].Workload.ID {
			to++
		}
		own := runs[from].Workload
		list.Workloads = append(list.Workloads, workloadJSON{own.ID, own.Label, scores(runs[from:to])})
		from = to
	}
	for _, r := range runs {
		row := runJSON{
			Workload: r.Workload.ID, Seed: r.Seed, Repaired: r.Fixed, Label: r.Workload.Label, Steps: r.truth.Steps, Lines: len(r.guilty),
			Verdicts: make(map[string]verdictJSON),
		}
		for i, rule := range rules() {
			v := r.verdicts[i]
			row.Verdicts[rule.name] = verdictJSON{v.found, v.undecided, v.line, v.cause, v.lines, v.strays, v.steps}
		}
		list.Runs = append(list.Runs, row)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}
