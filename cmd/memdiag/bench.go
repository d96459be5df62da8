package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/bench/corpus"
	"github.com/memdiag/memdiag/engine/workload"
)

func newBenchCommand(env *environment) *cobra.Command {
	format := textOrJSON()
	var output string
	var only []string
	var snapshots int
	var views, without []string
	var calibrated, watched bool
	var picture, recorded string
	plan := corpus.Plan{Seeds: 3, Views: []corpus.View{corpus.Views()[0]}}
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: groupMore,
		Short:   "how well memdiag and simpler rules find the leaks of the built-in workloads",
		Long: `Runs every built-in workload with several seeds, leaks also repaired, and compares
the verdicts of memdiag and of simpler rules with the truth. All rules get the same
11 snapshots of all blocks, and the counters of each step. --view gives them less,
as other recorders do:
` + viewHelp() + `Each processor runs one workload at a time, of at most 200 MB. An interrupt prints
the results so far, unless they go to a file.`,
		Example: `  memdiag bench
  memdiag bench --seeds 1 --workload L03,D04
  memdiag bench --seeds 1 --view all
  memdiag bench --view files,clock
  memdiag bench --view all --seeds 1 --without all
  memdiag bench --without all --recorded ~/.cache/memdiag/field-score/runs
  memdiag bench --view all --seeds 1 --calibration --picture calibration.png
  memdiag bench --live --seeds 15
  memdiag bench --snapshots 6 --first-seed 100 --format json`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plan.Seeds < 1 {
				return usagef(cmd, "--seeds is at least 1")
			}
			if plan.First > math.MaxInt64-plan.Seeds {
				return usagef(cmd, "--first-seed and --seeds go beyond %d", math.MaxInt64)
			}
			if cmd.Flags().Changed("workload") && len(only) == 0 {
				return usagef(cmd, "--workload names none")
			}
			if cmd.Flags().Changed("snapshots") {
				if snapshots < 3 || snapshots > 50 {
					return usagef(cmd, "--snapshots is from 3 to 50")
				}
				plan.Views = []corpus.View{corpus.Snapshots(snapshots)}
			}
			if cmd.Flags().Changed("view") {
				chosen, err := chosenViews(views)
				if err != nil {
					return usagef(cmd, "--view: %v", err)
				}
				plan.Views = chosen
			}
			if cmd.Flags().Changed("without") {
				var err error
				if plan.Without, err = chosenParts(without); err != nil {
					return usagef(cmd, "--without: %v", err)
				}
			}
			if recorded != "" && plan.Without == nil {
				return usagef(cmd, "--recorded goes with --without")
			}
			asJSON, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			if recorded != "" {
				return env.benchRecorded(cmd.Context(), recorded, plan.Without, output)
			}
			workloads, err := chosenWorkloads(only)
			if err != nil {
				return err
			}
			if watched {
				plan.Views = []corpus.View{corpus.Live()}
			}
			runs, err := corpus.Runs(workloads, plan)
			if err != nil {
				return err
			}
			write := corpus.Text
			switch {
			case asJSON:
				write = corpus.JSON
			case len(plan.Without) > 0:
				write = corpus.AblationText
			case calibrated:
				write = corpus.CalibrationText
			}
			if watched {
				return env.benchLive(cmd.Context(), runs, output)
			}
			// The output is opened before the runs, so that minutes are not wasted if it cannot be written.
			return env.result(output, false, func(w io.Writer) error {
				err := env.bench(cmd.Context(), runs)
				if err == nil {
					return errors.Join(write(w, plan, runs), env.drawn(picture, runs))
				}
				if cmd.Context().Err() != nil && (output == "" || output == "-") {
					return env.benchInPart(write, plan, runs, err)
				}
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&plan.Seeds, "seeds", plan.Seeds, "run each workload with `N` seeds")
	flags.Int64Var(&plan.First, "first-seed", 0, "the first of these seeds")
	flags.IntVar(&snapshots, "snapshots", 0, "show the rules `N` snapshots alone, without counters")
	flags.StringSliceVar(&views, "view", nil, "see the runs as other recorders see them: `NAMES`, or all")
	cmd.MarkFlagsMutuallyExclusive("view", "snapshots")
	flags.StringSliceVar(&without, "without", nil, "leave parts of memdiag's judge out, one at a time: `NAMES`, or all")
	flags.StringVar(&recorded, "recorded", "", "of --without: judge the recorded runs in `FOLDER` in place of the workloads, and say what changes")
	flags.BoolVar(&calibrated, "calibration", false, "how often sure verdicts are right")
	flags.BoolVar(&watched, "live", false, "watch the runs, a look at each snapshot: how soon a leak is reported, and false alarms")
	flags.StringVar(&picture, "picture", "", "draw the calibration to `FILE`, a .svg or .png")
	cmd.MarkFlagsMutuallyExclusive("without", "calibration")
	cmd.MarkFlagsMutuallyExclusive("without", "picture")
	flags.StringSliceVarP(&only, "workload", "w", nil, "run these `NAMES` only")
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	for _, other := range []string{"view", "snapshots", "without", "calibration", "picture", "recorded", "format"} {
		cmd.MarkFlagsMutuallyExclusive("live", other)
	}
	for _, other := range []string{"view", "snapshots", "workload", "seeds", "first-seed", "format"} {
		cmd.MarkFlagsMutuallyExclusive("recorded", other)
	}
	return cmd
}

// bench judges all runs, and shows progress.
func (env *environment) bench(ctx context.Context, runs []*corpus.Run) error {
	return corpus.Judge(ctx, runs, func(done int64, all int) { env.talk.progress("bench: %d of %d runs", done, all) })
}

// benchLive watches all runs.
func (env *environment) benchLive(ctx context.Context, runs []*corpus.Run, output string) error {
	return env.result(output, false, func(w io.Writer) error {
		defer env.talk.clear()
		watched, err := corpus.Watch(ctx, runs, func(done int64, all int) { env.talk.progress("bench: %d of %d runs", done, all) })
		if err != nil {
			return err
		}
		return corpus.LiveText(w, watched)
	})
}

// benchRecorded judges recorded runs with and without parts of the judge.
func (env *environment) benchRecorded(ctx context.Context, dir string, without []string, output string) error {
	return env.result(output, false, func(w io.Writer) error {
		defer env.talk.clear()
		changes, runs, err := corpus.Recorded(ctx, dir, without, func(done, all int) { env.talk.progress("bench: %d of %d runs", done, all) })
		if err != nil {
			return err
		}
		return corpus.RecordedText(w, without, changes, runs)
	})
}

// benchInPart writes the results of the runs that finished before err ended the others, and returns err.
func (env *environment) benchInPart(write func(io.Writer, corpus.Plan, []*corpus.Run) error, plan corpus.Plan, runs []*corpus.Run, err error) error {
	done := slices.DeleteFunc(slices.Clone(runs), func(r *corpus.Run) bool { return !r.Done() })
	if len(done) > 0 {
		plan.Stopped = len(runs)
		err = errors.Join(err, write(env.stdout, plan, done))
	}
	return err
}

// viewHelp lists the views, one per line.
func viewHelp() string {
	var b strings.Builder
	for _, v := range corpus.Views() {
		fmt.Fprintf(&b, "  %-11s %s\n", v.Name, v.About)
	}
	return b.String()
}

// drawn draws the calibration of runs, if a file was named.
func (env *environment) drawn(picture string, runs []*corpus.Run) error {
	if picture == "" {
		return nil
	}
	ending := strings.TrimPrefix(strings.ToLower(filepath.Ext(picture)), ".")
	return env.result(picture, true, func(w io.Writer) error { return corpus.Picture(w, ending, runs) })
}

// chosenParts returns the parts of memdiag's judge with these names, each once, or all.
func chosenParts(names []string) ([]string, error) {
	all := corpus.Parts()
	var chosen []string
	for _, name := range names {
		switch {
		case name == "all":
			return all, nil
		case !slices.Contains(all, name):
			return nil, fmt.Errorf("there is no part %q: it is one of %s", name, strings.Join(all, ", "))
		case !slices.Contains(chosen, name):
			chosen = append(chosen, name)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("it names none")
	}
	return chosen, nil
}

// chosenViews returns the views with these names, each once, or all.
func chosenViews(names []string) ([]corpus.View, error) {
	var chosen []corpus.View
	for _, name := range names {
		if name == "all" {
			return corpus.Views(), nil
		}
		v, err := corpus.FindView(name)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(chosen, func(c corpus.View) bool { return c.Name == v.Name }) {
			chosen = append(chosen, v)
		}
	}
	if len(chosen) == 0 {
		return nil, errors.New("it names none")
	}
	return chosen, nil
}

// chosenWorkloads returns the workloads with these names, each once, or all.
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
		if !slices.ContainsFunc(chosen, func(c workload.Workload) bool { return c.ID == w.ID }) {
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}
