package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
)

func newGateCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "gate [RUN | SNAPSHOT SNAPSHOT SNAPSHOT …]",
		GroupID: groupFind,
		Short:   "for CI: exit 1 if the run leaks, 0 if not, 4 if it cannot tell",
		Long: `Judges a run of three or more snapshots and says in one sentence why it passes
or fails. The first interval is warm-up: growth in it alone is no leak.`,
		Example: `  memdiag gate my-run
  memdiag record --workload L30 --out my-run && memdiag gate my-run`,
		RunE: func(_ *cobra.Command, args []string) error {
			run, err := openRun(args)
			if err != nil {
				return err
			}
			if n := len(run.Snapshots); n < 3 {
				fmt.Fprintf(env.stdout, "inconclusive: the run has %d snapshots; a gate needs three or more, the first interval being warm-up\n", n)
				return &exitError{code: exitInconclusive}
			}
			result, err := diff.Analyze(run, diff.ByTrend)
			if err != nil {
				return err
			}
			fmt.Fprintln(env.stdout, report.Headline(result))
			if result.Leaks() == 0 {
				return nil
			}
			env.talk.next(append([]string{"diff"}, args...)...)
			return &exitError{code: exitLeak}
		},
	}
	return cmd
}
