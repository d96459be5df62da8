package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
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
	var views []string
	plan := corpus.Plan{Seeds: 3, Views: []corpus.View{corpus.Views()[0]}}
	cmd := &cobra.Command{
		Use:     "bench",
		GroupID: groupMore,
		Short:   "how well memdiag and simpler rules tell the leaks of the built-in workloads",
		Long: `Runs every built-in workload with several seeds, the leaks repaired as well,
and compares what memdiag and simpler rules say with the truth. All rules see the
same: 11 snapshots of all blocks, and the counters of each step. With --view the same
programs are seen as other recorders see them, with less known of their memory:
` + viewHelp() + `As many runs are in memory at a time as there are processors, each of 200 MB at most.
Seeds are gone through one after the other; an interrupt prints what is known by
then, unless the result goes to a file.`,
		Example: `  memdiag bench
  memdiag bench --seeds 1 --workload L03,D04
  memdiag bench --seeds 1 --view all
  memdiag bench --view files,clock
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
			asJSON, err := textFormat(cmd, output, format)
			if err != nil {
				return err
			}
			workloads, err := chosenWorkloads(only)
			if err != nil {
				return err
			}
			runs, err := corpus.Runs(workloads, plan)
			if err != nil {
				return err
			}
			write := corpus.Text
			if asJSON {
				write = corpus.JSON
			}
			// The result's place is opened before the runs: minutes are not spent on what
			// cannot be written.
			return env.result(output, false, func(w io.Writer) error {
				err := env.bench(cmd.Context(), runs)
				if err == nil {
					return write(w, plan, runs)
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
	flags.StringSliceVarP(&only, "workload", "w", nil, "run these `NAMES` only")
	flags.Var(&format, "format", "format on standard output: text or json")
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`; .json gives JSON")
	return cmd
}

// bench judges all runs, and says how far it is.
func (env *environment) bench(ctx context.Context, runs []*corpus.Run) error {
	return corpus.Judge(ctx, runs, func(done int64, all int) { env.talk.progress("bench: %d of %d runs", done, all) })
}

// benchInPart writes what is known of the runs that were done before err ended the
// others, and returns err.
func (env *environment) benchInPart(write func(io.Writer, corpus.Plan, []*corpus.Run) error, plan corpus.Plan, runs []*corpus.Run, err error) error {
	done := slices.DeleteFunc(slices.Clone(runs), func(r *corpus.Run) bool { return !r.Done() })
	if len(done) > 0 {
		plan.Stopped = len(runs)
		err = errors.Join(err, write(env.stdout, plan, done))
	}
	return err
}

// viewHelp lists the views, a line each.
func viewHelp() string {
	var b strings.Builder
	for _, v := range corpus.Views() {
		fmt.Fprintf(&b, "  %-11s %s\n", v.Name, v.About)
	}
	return b.String()
}

// chosenViews are those with these names, each once, or all.
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

// chosenWorkloads are those with these names, each once, or all.
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
