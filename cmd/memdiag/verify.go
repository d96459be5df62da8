package main

import (
	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/report"
)

func newVerifyCommand(env *environment) *cobra.Command {
	var flagged *judging
	cmd := &cobra.Command{
		Use:     "verify BEFORE AFTER",
		GroupID: groupFind,
		Short:   "whether a fix worked: 0 fixed, 1 not fixed, 4 if it cannot tell",
		Long: `Holds the run after a fix against the run before it. Each leak before is looked
for by the functions on its stack, so that the fix may have moved lines. What is
seen no more is fixed only where the run after is long enough to have shown it;
a leak that is new is not fixed. Of several ranks the lowest is compared, or --rank.`,
		Example: `  memdiag verify leaky-run fixed-run`,
		Args:    takes(2, 2, "runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			before, err := env.openRun(args[:1])
			if err != nil {
				return err
			}
			was, err := env.analyze(before, options)
			if err != nil {
				return err
			}
			after, err := env.openRun(args[1:])
			if err != nil {
				return err
			}
			is, err := env.analyze(after, options)
			if err != nil {
				return err
			}
			checks := baseline.Verify(was, is)
			if err := report.Verify(env.stdout, checks); err != nil && env.stdout.err == nil {
				return err // else nobody reads on, which does not change the code
			}
			switch baseline.Overall(checks) {
			case baseline.Remains:
				return &exitError{code: exitLeak}
			case baseline.CannotTell:
				return &exitError{code: exitInconclusive}
			}
			return nil
		},
	}
	env.rankFlag(cmd)
	flagged = judgingFlags(cmd)
	return cmd
}
