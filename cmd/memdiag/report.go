package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func newReportCommand(env *environment) *cobra.Command {
	var output string
	var flagged *judging
	at := atFlag{auto: true}
	cmd := &cobra.Command{
		Use:     "report [RUN | SNAPSHOT …]",
		GroupID: groupLook,
		Short:   "one HTML page: findings, growth, flamegraph, ranks",
		Long: `Writes one HTML file that needs neither server nor network. It has the verdict,
each leak with stack, holder, cause and fix, the growth over the steps, a
flamegraph, the memory by device, and what was not recorded. Of one snapshot it
has what holds the memory, and how old the blocks are.

--at shows one PyTorch snapshot at a moment in its history. If the history has an
out-of-memory error, that is the default.`,
		Example: `  memdiag report my-run -o report.html
  memdiag report snapshot_0 snapshot_50 snapshot_100
  memdiag report dump_snapshot.pickle --at peak`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ending := strings.ToLower(filepath.Ext(output)); output != "-" && ending != ".html" && ending != ".htm" {
				return usagef(cmd, "%s: a report is a .html", output)
			}
			if err := env.writeReport(cmd, args, output, flagged, &at); err != nil {
				return err
			}
			env.wrote(output)
			return nil
		},
	}
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	flagged = judgingFlags(cmd)
	at.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "report.html", "write to `FILE`, a .html; - for standard output")
	return cmd
}

// writeReport writes the page for args.
func (env *environment) writeReport(cmd *cobra.Command, args []string, output string, flagged *judging, at *atFlag) error {
	run, err := env.openRun(args)
	if err != nil {
		return err
	}
	if err := spare(cmd, output, run.Files...); err != nil {
		return err
	}
	if err := env.turnTo(cmd, run, at); err != nil {
		return err
	}
	about := report.About{Name: nameOf(run), Info: run.Info, Version: version(), Commands: commandsFor(run, at)}
	if len(run.Snapshots) == 1 {
		about.Run = env.runUpTo(run.Snapshots[0], run.Files[len(run.Files)-1])
		workingFolder().Snapshot(run.Snapshots[0])
		return env.result(output, false, func(w io.Writer) error { return report.PageOfOne(w, run.Snapshots[0], about) })
	}
	options, err := flagged.complete(env)
	if err != nil {
		return err
	}
	result, ranks, err := env.judge(cmd, run, options)
	if err != nil {
		return err
	}
	about.Ranks = ranks
	relativeTo(workingFolder(), result, ranks)
	return env.result(output, false, func(w io.Writer) error { return report.Page(w, result, about) })
}

// judgeRanks judges every rank of a run with the same options as result, which is one rank's; nil for a run of one rank. then is called
// with each of the others.
func (env *environment) judgeRanks(run *snapshot.Run, options diff.Options, result *diff.Result, then func(*diff.Result)) []report.RankResult {
	if len(run.Ranks) < 2 {
		return nil
	}
	var out []report.RankResult
	for i, rank := range run.Ranks {
		if rank == result.Last.Rank {
			out = append(out, report.RankResult{Rank: rank, Result: result})
			continue
		}
		env.talk.progress("judging rank %d, %d of %d", rank, i+1, len(run.Ranks))
		judged := report.RankResult{Rank: rank}
		other, err := awaited(env, noNews, func() (*snapshot.Run, error) { return env.openRank(run.Path, rank) })
		of := options
		if err == nil {
			of, err = env.forRank(options, rank)
		}
		if err == nil {
			judged.Result, err = env.analyze(other, of)
		}
		if err == nil {
			then(judged.Result)
		}
		if err != nil {
			judged.Why = err.Error()
		}
		out = append(out, judged)
	}
	return out
}

// commandsFor are the commands that reproduce a page's figures.
func commandsFor(run *snapshot.Run, at *atFlag) []string {
	var args string
	if run.Path != "" {
		args = shellPath(filepath.Clean(run.Path))
	} else {
		words := make([]string, len(run.Files))
		for i, f := range run.Files {
			words[i] = shellPath(f)
		}
		args = strings.Join(words, " ")
	}
	if len(run.Snapshots) == 1 {
		moment := ""
		if !at.auto {
			moment = " --at " + at.String()
		}
		return []string{"memdiag show " + shellPath(run.Files[len(run.Files)-1]) + moment, "memdiag flame " + args + moment, "memdiag report " + args + moment}
	}
	return []string{"memdiag diff " + args, "memdiag flame " + args, "memdiag plot " + args, "memdiag report " + args}
}
