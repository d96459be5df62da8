package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/engine/workload"
)

func newBenchCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	var only []string
	var seeds int64
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: groupMore,
		Short:   "how well memdiag and simpler rules tell the leaks of the built-in workloads",
		Long: `Runs every built-in workload with several seeds, the leaks repaired as well,
and compares what memdiag and simpler rules say with the truth. All rules see the
same snapshots and counters.`,
		Example: `  memdiag bench
  memdiag bench --seeds 1 --workload L03,D04`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 {
				return usagef(cmd, "--seeds is at least 1")
			}
			asJSON, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			workloads, err := chosenWorkloads(only)
			if err != nil {
				return err
			}
			runs, err := benchRuns(workloads, seeds)
			if err != nil {
				return err
			}
			if err := env.bench(cmd.Context(), runs); err != nil {
				return err
			}
			return env.result(output, false, func(w io.Writer) error {
				if asJSON {
					return benchJSON(w, seeds, runs)
				}
				return benchText(w, runs)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&seeds, "seeds", 3, "run each workload with seeds 0 to `N`-1")
	flags.StringSliceVarP(&only, "workload", "w", nil, "run these `NAMES` only")
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	return cmd
}

// chosenWorkloads are those with these names, or all.
func chosenWorkloads(names []string) ([]workload.Workload, error) {
	if len(names) == 0 {
		return workload.All(), nil
	}
	var chosen []workload.Workload
	for _, name := range names {
		w, err := workload.Find(name)
		if err != nil {
			return nil, &exitError{exitUsage, withHint(err, "memdiag workloads lists them")}
		}
		chosen = append(chosen, w)
	}
	return chosen, nil
}

// benchScore is how well one rule did.
type benchScore struct {
	Rule  string `json:"rule"`
	Leaks int    `json:"leaks"` // runs
	Found int    `json:"found"`
	Line  int    `json:"line_right"`
	Cause int    `json:"cause_right"`
	// Steps is the median, over the leaks found, of the steps from which on the rule
	// said so; 0 where none was found.
	Steps    int64      `json:"steps_median"`
	Bounded  benchAlarm `json:"bounded"`
	Clean    benchAlarm `json:"clean"`
	Repaired benchAlarm `json:"repaired"`
}

// benchAlarm counts runs that do not leak, and how many of them a rule flags.
type benchAlarm struct {
	Runs  int `json:"runs"`
	False int `json:"false_alarms"`
}

func (a *benchAlarm) add(flagged bool) {
	a.Runs++
	if flagged {
		a.False++
	}
}

func (a benchAlarm) String() string { return of(a.False, a.Runs) }

func of(part, whole int) string { return fmt.Sprintf("%d/%d", part, whole) }

// benchScores has one row for each rule.
func benchScores(runs []*benchRun) []benchScore {
	var scores []benchScore
	for i, rule := range benchRules() {
		s := benchScore{Rule: rule.name}
		var steps []int64
		for _, r := range runs {
			v := r.verdicts[i]
			switch {
			case r.fixed:
				s.Repaired.add(v.found)
			case r.workload.Label == workload.Clean:
				s.Clean.add(v.found)
			case r.workload.Label == workload.Bounded:
				s.Bounded.add(v.found)
			default:
				s.Leaks++
				if v.found {
					s.Found++
					steps = append(steps, v.steps)
				}
				if v.line {
					s.Line++
				}
				if v.cause {
					s.Cause++
				}
			}
		}
		if len(steps) > 0 {
			slices.Sort(steps)
			s.Steps = steps[len(steps)/2]
		}
		scores = append(scores, s)
	}
	return scores
}

func benchText(w io.Writer, runs []*benchRun) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "rule\tleaks found\tfalse: bounded\tclean\trepaired\tline right\tcause right\tsteps needed")
	for _, s := range benchScores(runs) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", s.Rule, of(s.Found, s.Leaks), s.Bounded, s.Clean, s.Repaired,
			of(s.Line, s.Leaks), of(s.Cause, s.Leaks), s.Steps)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range runs {
		own := r.verdicts[0]
		if own.found == r.leaks() && (own.line || !own.found) {
			continue
		}
		what := "false alarm"
		if r.leaks() {
			what = "missed"
			if own.found {
				what = "another line is named first"
			}
		}
		variant := ""
		if r.fixed {
			variant = ", repaired"
		}
		fmt.Fprintf(w, "memdiag: %s %s, seed %d%s: %s\n", r.workload.ID, r.workload.Alias, r.seed, variant, what)
	}
	return nil
}

type benchListJSON struct {
	SchemaVersion int            `json:"schema_version"`
	Seeds         int64          `json:"seeds"`
	Rules         []benchScore   `json:"rules"`
	Runs          []benchRunJSON `json:"runs"`
}

type benchRunJSON struct {
	Workload string                      `json:"workload"`
	Seed     int64                       `json:"seed"`
	Repaired bool                        `json:"repaired"`
	Label    workload.Label              `json:"label"`
	Steps    int64                       `json:"steps"`
	Verdicts map[string]benchVerdictJSON `json:"verdicts"`
}

type benchVerdictJSON struct {
	Flagged bool  `json:"flagged"`
	Line    bool  `json:"line_right"`
	Cause   bool  `json:"cause_right"`
	Steps   int64 `json:"steps"`
}

func benchJSON(w io.Writer, seeds int64, runs []*benchRun) error {
	list := benchListJSON{SchemaVersion: 1, Seeds: seeds, Rules: benchScores(runs)}
	for _, r := range runs {
		row := benchRunJSON{
			Workload: r.workload.ID, Seed: r.seed, Repaired: r.fixed, Label: r.workload.Label, Steps: r.truth.Steps,
			Verdicts: make(map[string]benchVerdictJSON),
		}
		for i, rule := range benchRules() {
			v := r.verdicts[i]
			row.Verdicts[rule.name] = benchVerdictJSON{v.found, v.line, v.cause, v.steps}
		}
		list.Runs = append(list.Runs, row)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(list)
}
