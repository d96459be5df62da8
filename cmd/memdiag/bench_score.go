package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/memdiag/memdiag/engine/workload"
)

// benchScore is how well one rule did on some runs.
type benchScore struct {
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
	Steps    int64      `json:"steps_median"`
	Bounded  benchAlarm `json:"bounded"`
	Clean    benchAlarm `json:"clean"`
	Repaired benchAlarm `json:"repaired"`

	steps []int64
}

// benchAlarm counts runs that do not leak, how many of them a rule flags, and of
// how many of the others it says that it cannot tell.
type benchAlarm struct {
	Runs      int `json:"runs"`
	False     int `json:"false_alarms"`
	Undecided int `json:"undecided"`
}

func (a *benchAlarm) add(v benchVerdict) {
	a.Runs++
	switch {
	case v.found:
		a.False++
	case v.undecided:
		a.Undecided++
	}
}

func (a benchAlarm) String() string { return of(a.False, a.Runs) }

func of(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// benchScores has one row for each rule.
func benchScores(runs []*benchRun) []benchScore {
	var scores []benchScore
	for i, rule := range benchRules() {
		s := benchScore{Rule: rule.name}
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

func (s *benchScore) add(r *benchRun, v benchVerdict) {
	switch {
	case r.fixed:
		s.Repaired.add(v)
		return
	case r.workload.Label == workload.Clean:
		s.Clean.add(v)
		return
	case r.workload.Label == workload.Bounded:
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

func benchText(w io.Writer, plan benchPlan, runs []*benchRun) error {
	if plan.stopped > 0 {
		fmt.Fprintf(w, "partial: %d of %d runs were done when it was stopped\n", len(runs), plan.stopped)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "rule\tleaks found\tfalse: bounded\tclean\trepaired\tstray\tline right\tcause right\tsteps needed\tundecided")
	for _, s := range benchScores(runs) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%d\n", s.Rule, of(s.Found, s.Leaks), s.Bounded, s.Clean, s.Repaired, s.Strays,
			of(s.Line, s.Leaks), of(s.Cause, s.Leaks), s.Steps, s.Undecided+s.Bounded.Undecided+s.Clean.Undecided+s.Repaired.Undecided)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if wrong := benchMistakes(runs); len(wrong) > 0 {
		fmt.Fprintf(w, "\nmemdiag's mistakes, by seed:\n%s\n", strings.Join(wrong, "\n"))
	}
	return nil
}

// benchMistakes says what memdiag's own rule got wrong, a line for each workload
// and kind of mistake.
func benchMistakes(runs []*benchRun) []string {
	var order []string
	seeds := make(map[string][]string)
	for _, r := range runs {
		what := r.mistake(r.verdicts[0])
		if what == "" {
			continue
		}
		key := fmt.Sprintf("  %s %s: %s", r.workload.ID, r.workload.Alias, what)
		if seeds[key] == nil {
			order = append(order, key)
		}
		seeds[key] = append(seeds[key], fmt.Sprint(r.seed))
	}
	for i, key := range order {
		order[i] = key + ": " + strings.Join(seeds[key], ", ")
	}
	return order
}

// mistake is what is wrong with a verdict; "" for nothing.
func (r *benchRun) mistake(v benchVerdict) string {
	switch {
	case r.fixed && v.found:
		return "false alarm on the repaired program"
	case !r.leaks() && v.found:
		return "false alarm"
	case !r.leaks():
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

type benchListJSON struct {
	SchemaVersion int                 `json:"schema_version"`
	FirstSeed     int64               `json:"first_seed"`
	Seeds         int64               `json:"seeds"`
	Partial       bool                `json:"partial"` // not all runs of these seeds were done
	Snapshots     int                 `json:"snapshots"`
	Counters      bool                `json:"counters"`
	Rules         []benchScore        `json:"rules"`
	Workloads     []benchWorkloadJSON `json:"workloads"`
	Runs          []benchRunJSON      `json:"runs"`
}

type benchWorkloadJSON struct {
	Workload string         `json:"workload"`
	Label    workload.Label `json:"label"`
	Rules    []benchScore   `json:"rules"`
}

type benchRunJSON struct {
	Workload string                      `json:"workload"`
	Seed     int64                       `json:"seed"`
	Repaired bool                        `json:"repaired"`
	Label    workload.Label              `json:"label"`
	Steps    int64                       `json:"steps"`
	Lines    int                         `json:"lines"`
	Verdicts map[string]benchVerdictJSON `json:"verdicts"`
}

type benchVerdictJSON struct {
	Flagged   bool  `json:"flagged"`
	Undecided bool  `json:"undecided"`
	Line      bool  `json:"line_right"`
	Cause     bool  `json:"cause_right"`
	Named     int   `json:"lines_named"`
	Strays    int   `json:"stray_findings"`
	Steps     int64 `json:"steps"`
}

func benchJSON(w io.Writer, plan benchPlan, runs []*benchRun) error {
	list := benchListJSON{
		SchemaVersion: 1, FirstSeed: plan.first, Seeds: plan.seeds, Partial: plan.stopped > 0, Snapshots: plan.parts + 1, Counters: plan.counters, Rules: benchScores(runs),
	}
	for from := 0; from < len(runs); {
		to := from
		for to < len(runs) && runs[to].workload.ID == runs[from].workload.ID {
			to++
		}
		own := runs[from].workload
		list.Workloads = append(list.Workloads, benchWorkloadJSON{own.ID, own.Label, benchScores(runs[from:to])})
		from = to
	}
	for _, r := range runs {
		row := benchRunJSON{
			Workload: r.workload.ID, Seed: r.seed, Repaired: r.fixed, Label: r.workload.Label, Steps: r.truth.Steps, Lines: len(r.guilty),
			Verdicts: make(map[string]benchVerdictJSON),
		}
		for i, rule := range benchRules() {
			v := r.verdicts[i]
			row.Verdicts[rule.name] = benchVerdictJSON{v.found, v.undecided, v.line, v.cause, v.lines, v.strays, v.steps}
		}
		list.Runs = append(list.Runs, row)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}
