package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/report/metrics"
	"github.com/memdiag/memdiag/snapshot"
)

func newDiffCommand(env *environment) *cobra.Command {
	rule, format := choice{value: string(diff.ByTrend), of: []string{string(diff.ByTrend), string(diff.ByHandbook)}}, choice{"text", []string{"text", "json", "csv", "md", "prom"}}
	var output string
	var flagged *judging
	text := report.TextOptions{}
	at := atFlag{auto: true}
	cmd := &cobra.Command{
		Use:        "diff [RUN | SNAPSHOT SNAPSHOT …]",
		GroupID:    groupFind,
		SuggestFor: []string{"leak", "leaks", "analyze", "compare"},
		Short:      "what grew between snapshots, by stack, and whether it leaks",
		Long: `Compares the first snapshot with the last by allocation stack. With a run, or
three or more snapshots, each stack that grew is judged over all of them.

A snapshot is a path, or a name such as snapshot_50 found in this folder or in
the newest run below it. Without arguments it takes the run in this folder.

--at compares two snapshots of PyTorch at a moment of their records, such as their
peaks. The snapshots may be of one run or of two. The output says what each line holds
in each of them, and gives no verdict.`,
		Example: `  memdiag diff snapshot_0 snapshot_50
  memdiag diff my-run -o growth.json
  memdiag diff my-run -o /var/lib/node_exporter/my-run.prom
  memdiag diff before.pickle after.pickle --at peak
  memdiag diff --rule handbook snapshot_0 snapshot_50`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			write, err := formatOf(cmd, output, format)
			if err != nil {
				return err
			}
			if err := atLeastOne(cmd, text.Top); err != nil {
				return err
			}
			if !at.auto {
				return env.diffAt(cmd, args, at.at, write, output, text)
			}
			if rule.value == string(diff.ByHandbook) && flagged.against != "" {
				return usagef(cmd, "--rule handbook knows no --against")
			}
			run, err := env.openRun(args)
			if err != nil {
				return err
			}
			if err := spare(cmd, output, run.Files...); err != nil {
				return err
			}
			options, err := flagged.complete(env)
			if err != nil {
				return err
			}
			env.warnIfGoodLeaks(options)
			options.Rule = diff.Rule(rule.value)
			result, ranks, err := env.judge(cmd, run, options)
			if err != nil {
				return err
			}
			if write == "text" || write == "md" {
				relativeTo(workingFolder(), result, ranks)
			}
			text.Width, text.Color = env.textShape(output)
			err = env.result(output, false, func(w io.Writer) error {
				switch write {
				case "json":
					return report.JSON(w, result)
				case "csv":
					return report.CSV(w, result)
				case "md":
					return report.Markdown(w, result, text)
				case "prom":
					return metrics.Text(w, env.metrics(run, result, ranks))
				}
				return report.Text(w, result, text)
			})
			if err == nil {
				env.talk.next("flame", args...)
			}
			return err
		},
	}
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	env.knownFlag(cmd)
	flagged = judgingFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&text.All, "all", "a", false, "show every stack that changed and every reason")
	flags.IntVar(&text.Top, "top", 10, "rows of each table")
	flags.Var(&at, "at", "compare two snapshots at a moment in their histories: peak, oom, step:N, or time:DURATION since the first event")
	completeWords(cmd, "at", []string{"peak", "oom"})
	flags.Var(&rule, "rule", "how to decide what leaks: trend, or handbook (the common rule, for comparison: new stacks only)")
	flags.Var(&format, "format", "format on standard output: text, json, csv (a line a call site), md (for a pull request) or prom (metrics for Prometheus)")
	completeWords(cmd, "rule", rule.of)
	completeWords(cmd, "format", format.of)
	flags.StringVarP(&output, "output", "o", "", "write to `FILE`, its format by the ending: .txt, .json, .csv, .md or .prom")
	return cmd
}

// diffAt compares two snapshots at a moment in their records.
func (env *environment) diffAt(cmd *cobra.Command, args []string, at snapshot.At, format, output string, text report.TextOptions) error {
	if len(args) != 2 {
		return usagef(cmd, "--at compares two snapshots")
	}
	if at == (snapshot.At{}) {
		return usagef(cmd, "--at end is what diff does without --at")
	}
	if format != "text" && format != "json" {
		return usagef(cmd, "--at writes text or json, not %s", format)
	}
	if err := noRuns(args); err != nil {
		return err
	}
	var both [2]*snapshot.Snapshot
	var names [2]string
	for i, arg := range args {
		s, path, err := env.openSnapshotAt(arg, at)
		if err != nil {
			return err
		}
		if err := spare(cmd, output, path); err != nil {
			return err
		}
		if format == "text" {
			workingFolder().Snapshot(s)
		}
		both[i], names[i] = s, path
	}
	text.Width, text.Color = env.textShape(output)
	return env.result(output, false, func(w io.Writer) error {
		if format == "json" {
			return report.ChangesJSON(w, both[0], both[1])
		}
		return report.Changes(w, both[0], both[1], names, text)
	})
}

// analyze is analyzeWith with a rule and otherwise the defaults.
func analyze(run *snapshot.Run, rule diff.Rule) (*diff.Result, error) {
	options := diff.DefaultOptions()
	options.Rule = rule
	return analyzeWith(run, options)
}

// analyzeWith judges a run. If it is too short, the error has a hint.
func analyzeWith(run *snapshot.Run, options diff.Options) (*diff.Result, error) {
	if len(run.Snapshots) < 2 {
		hint := "memdiag show looks at one snapshot"
		if run.Partial && len(run.Notes) > 0 {
			hint = run.Notes[0]
		}
		return nil, badInput(withHint(fmt.Errorf("a comparison needs two snapshots; there is %d%s", len(run.Snapshots), run.Info.WhyFew()), "%s", hint))
	}
	result, err := options.Analyze(run)
	if good := options.Against; err != nil && good != nil {
		return nil, badInput(withHint(fmt.Errorf("--against %s: %w", cmp.Or(good.Path, strings.Join(good.Files, " ")), err), "give a known-good run of the same program"))
	}
	return result, err
}

// analyze is analyzeWith with progress; an interrupt ends it.
func (env *environment) analyze(run *snapshot.Run, options diff.Options) (*diff.Result, error) {
	defer env.talk.clear()
	tell := func(taken time.Duration) {
		env.talk.progress("judging %d snapshots, %.0f s", len(run.Snapshots), taken.Seconds())
	}
	result, err := awaited(env, tell, func() (*diff.Result, error) { return analyzeWith(run, options) })
	if err != nil {
		return result, err
	}
	known, err := env.library()
	if err != nil {
		return nil, err
	}
	known = slices.Concat(known, baseline.LibraryLeaks())
	result.Known = baseline.KnownIn(result, known)
	baseline.NameCauses(result, known)
	return result, nil
}

// judge judges all ranks of a run. It returns the result of the rank that leaks most, and all ranks. If one rank was requested, or
// there is only one, it returns that rank's result and nil.
func (env *environment) judge(cmd *cobra.Command, run *snapshot.Run, options diff.Options) (*diff.Result, []report.RankResult, error) {
	result, err := env.analyze(run, options)
	if err != nil || cmd.Flags().Changed("rank") {
		return result, nil, err
	}
	ranks := env.judgeRanks(run, options, result, (*diff.Result).Shed)
	return joined(ranks, result), ranks, nil
}

// joined is the result of all ranks together, or of the only one. It names ranks that could not be judged.
func joined(ranks []report.RankResult, only *diff.Result) *diff.Result {
	if len(ranks) < 2 {
		return only
	}
	var results []*diff.Result
	var notes []string
	for _, r := range ranks {
		if r.Result == nil {
			notes = append(notes, fmt.Sprintf("rank %d could not be judged: %s", r.Rank, r.Why))
			continue
		}
		results = append(results, r.Result)
	}
	result := diff.JoinRanks(results)
	result.Across.Notes = append(result.Across.Notes, notes...)
	// The reader of one rank's files notes that it left out the others, but here they were read, too.
	result.Notes = slices.DeleteFunc(result.Notes, func(n string) bool { return strings.Contains(n, "; only those that name rank ") })
	return result
}
