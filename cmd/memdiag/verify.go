package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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
		Long: `Compares the run after a fix with the run before it. Leaks are matched by the
functions on their stacks, so a fix may move lines. A leak that no longer shows is
fixed only if the second run would have shown it: the same program ended well,
reached the code that leaked, and ran long enough. Growth of the process outside
recorded stacks counts as a leak. A new leak counts as not fixed. Each rank is
compared with the same rank of the first run; --rank chooses one.`,
		Example: `  memdiag verify leaky-run fixed-run`,
		Args:    takes(2, 2, "runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			var runs [2]*snapshot.Run
			for i, name := range args {
				if runs[i], err = env.openToVerify(name); err != nil {
					return err
				}
				if len(runs[i].Snapshots) < 2 {
					fmt.Fprintf(env.stdout, "%s: %s\n", baseline.CannotTell, tooFew(name, runs[i]))
					return &exitError{code: exitInconclusive}
				}
			}
			ranks := []int{snapshot.NoRank}
			if !cmd.Flags().Changed("rank") {
				ranks = ranksOfEither(runs)
			}
			verified, err := env.verifyRanks(runs, ranks, options)
			if err != nil {
				return err
			}
			answer, err := report.Verify(env.stdout, verified)
			if err != nil && env.stdout.err == nil {
				return err // if nobody reads stdout, the exit code stays the same
			}
			switch answer {
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

// openToVerify reads a run, even one that ended before the first snapshot.
func (env *environment) openToVerify(name string) (*snapshot.Run, error) {
	run, err := env.openRun([]string{name})
	if errors.Is(err, fs.ErrNotExist) && isRun(name) {
		return &snapshot.Run{Path: name}, nil
	}
	return run, err
}

// ranksOfEither are the ranks in either of two runs, or NoRank if neither has several.
func ranksOfEither(runs [2]*snapshot.Run) []int {
	if len(runs[0].Ranks) <= 1 && len(runs[1].Ranks) <= 1 {
		return []int{snapshot.NoRank}
	}
	all := slices.Concat(runs[0].Ranks, runs[1].Ranks)
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(rank int) bool { return rank == snapshot.NoRank })
}

// verifyRanks compares each rank of the run after a fix with the same rank before, or with the lowest before if only the run after has
// it. The runs are opened at their lowest ranks.
func (env *environment) verifyRanks(runs [2]*snapshot.Run, ranks []int, options diff.Options) ([]report.Verified, error) {
	var out []report.Verified
	for i, rank := range ranks {
		v := report.Verified{Rank: rank}
		unranked := i == 0 && (len(runs[1].Ranks) == 0 || runs[1].Ranks[0] == snapshot.NoRank)
		if rank != snapshot.NoRank && !unranked && !slices.Contains(runs[1].Ranks, rank) {
			out = append(out, v)
			continue
		}
		if len(ranks) > 1 {
			env.talk.progress("judging rank %d, %d of %d", rank, i+1, len(ranks))
		}
		var results [2]*diff.Result
		for k, run := range runs {
			var err error
			if len(run.Ranks) > 1 && slices.Contains(run.Ranks, rank) && rank != run.Ranks[0] {
				if run, err = awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(run.Path, rank) }); err != nil {
					return nil, err
				}
			}
			if results[k], err = env.analyze(run, options); err != nil {
				return nil, err
			}
		}
		v.Verification = baseline.Verify(results[0], results[1])
		workingFolder().Results(results[:]...)
		out = append(out, v)
	}
	env.talk.clear()
	return out, nil
}

// isRun reports whether a folder has a recorded run, whatever else it has.
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

// tooFew says that a run has fewer than two snapshots and, if so, that its command failed.
func tooFew(name string, run *snapshot.Run) string {
	text := fmt.Sprintf("%s has %s, and growth takes two", report.Printable(name), snapshots(len(run.Snapshots)))
	if code := run.Info.ExitCode; code != nil && *code != 0 {
		text += fmt.Sprintf("; its command ended with code %d", *code)
	}
	return text
}
