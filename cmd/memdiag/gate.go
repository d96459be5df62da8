package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
)

func newGateCommand(env *environment) *cobra.Command {
	var flagged *judging
	cmd := &cobra.Command{
		Use:     "gate [RUN | SNAPSHOT SNAPSHOT SNAPSHOT …]",
		GroupID: groupFind,
		Short:   "for CI: exit 1 if the run leaks, 0 if not, 4 if it cannot tell",
		Long: `Judges a run of three or more snapshots and says in one sentence why it passes
or fails. The first interval is warm-up: growth in it alone is no leak. It ends
with 1 on a leak, 0 without, and 4 if something grew and more steps must tell.`,
		Example: `  memdiag gate my-run
  memdiag record --workload L30 --out my-run && memdiag gate my-run`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			code, err := env.judge(run, options)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("rank") {
				for _, rank := range run.Ranks[min(1, len(run.Ranks)):] {
					other, err := files.OpenRank(run.Path, rank)
					if err != nil {
						return err
					}
					c, err := env.judge(other, options)
					if err != nil {
						return err
					}
					if c == exitLeak || code == exitFine {
						code = c
					}
				}
			}
			if code == exitFine {
				return nil
			}
			env.talk.next(append([]string{"diff"}, args...)...)
			return &exitError{code: code}
		},
	}
	env.rankFlag(cmd)
	flagged = judgingFlags(cmd)
	cmd.Flags().Lookup("rank").Usage = "judge one rank of a run of several; by default each is judged"
	return cmd
}

// judge says one sentence of a run, of one rank where there are several, and
// returns the exit code that it earns.
func (env *environment) judge(run *snapshot.Run, options diff.Options) (code int, err error) {
	if len(run.Ranks) > 1 && len(run.Snapshots) > 0 {
		fmt.Fprintf(env.stdout, "rank %d: ", run.Snapshots[0].Rank)
	}
	if n := len(run.Snapshots); n < 3 {
		fmt.Fprintf(env.stdout, "inconclusive: a gate needs three snapshots or more, the first interval being warm-up; the run has %d\n", n)
		env.talk.say("record more of them with a smaller --every, or more --steps")
		return exitInconclusive, nil
	}
	result, err := options.Analyze(run)
	if err != nil {
		return exitOwn, err
	}
	code = exitInconclusive
	switch {
	case result.Leaks() > 0:
		code = exitLeak
	case !result.Comparable:
		fmt.Fprint(env.stdout, "inconclusive: the snapshots are not of one process; ")
	case len(result.Rows) == 0:
		fmt.Fprint(env.stdout, "inconclusive: no snapshot holds a live block; ")
	case result.Count(diff.Inconclusive) > 0:
		fmt.Fprint(env.stdout, "inconclusive: ")
	default:
		code = exitFine
	}
	fmt.Fprintln(env.stdout, report.Headline(result))
	return code, nil
}
