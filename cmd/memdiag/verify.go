package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func newVerifyCommand(env *environment) *cobra.Command {
	var flagged *judging
	cmd := &cobra.Command{
		Use:     "verify BEFORE AFTER",
		GroupID: groupFind,
		Short:   "whether a fix worked: 0 fixed, 1 not fixed, 4 if it cannot tell",
		Long: `Holds the run after a fix against the run before it. Each leak before is looked
for by the functions on its stack, so that the fix may have moved lines. A leak
that is seen no more is fixed only if the run after would have shown it: it ran the
same program, ended well, came to the work that leaked, and did it for long enough.
Growth of the process that no stack explains counts as a leak here. A leak that is
new is not fixed. Of several ranks the lowest is compared, or --rank.`,
		Example: `  memdiag verify leaky-run fixed-run`,
		Args:    takes(2, 2, "runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			var results [2]*diff.Result
			for i, name := range args {
				run, err := env.openRun([]string{name})
				if errors.Is(err, fs.ErrNotExist) && isRun(name) {
					run, err = &snapshot.Run{Path: name}, nil // it ended before there was a snapshot
				}
				if err != nil {
					return err
				}
				if n := len(run.Snapshots); n < 2 {
					fmt.Fprintf(env.stdout, "%s: %s has %s, and growth takes two\n", baseline.CannotTell, report.Printable(name), snapshots(n))
					return &exitError{code: exitInconclusive}
				}
				if results[i], err = env.analyze(run, options); err != nil {
					return err
				}
			}
			v := baseline.Verify(results[0], results[1])
			workingFolder().Results(results[:]...)
			if err := report.Verify(env.stdout, v); err != nil && env.stdout.err == nil {
				return err // else nobody reads on, which does not change the code
			}
			switch v.Overall() {
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

// isRun reports whether a folder is that of a recorded run, whatever else it holds.
func isRun(name string) bool {
	info, err := os.Stat(filepath.Join(name, rundir.InfoName))
	return err == nil && info.Mode().IsRegular()
}

// snapshots is "1 snapshot", "2 snapshots".
func snapshots(n int) string {
	if n == 1 {
		return "1 snapshot"
	}
	return fmt.Sprintf("%d snapshots", n)
}
