package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/gate"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

func newGateCommand(env *environment) *cobra.Command {
	g := gateCall{env: env, inconclusive: choice{"", []string{string(gate.DoubtPasses), string(gate.DoubtFails)}}}
	cmd := &cobra.Command{
		Use:     "gate [flags] [RUN | SNAPSHOT SNAPSHOT SNAPSHOT …] | gate [flags] -- COMMAND [ARGUMENT …]",
		GroupID: groupFind,
		Short:   "for CI: exit 1 if the run leaks, 0 if not, 4 if it cannot tell",
		Long: `Judges a run of three or more snapshots, and says in one sentence why it passes or
fails. Growth in the first interval alone is warm-up, and no leak. The exit code is 1
on a leak or a broken budget (--max-live and the like), 4 if the run is inconclusive,
and else 0.

With a command after --, or with --workload, it records the run first. If the command
fails, the run is not judged, and the exit code is 5.`,
		Example: `  memdiag gate my-run
  memdiag gate --warmup 20 --max-growth 4KiB/step -- python train.py --steps 200
  memdiag gate --max-peak cuda:0=90% --max-growth "loader worker=64MiB" my-run
  memdiag gate --canary --double -- python train.py --steps {steps}
  memdiag gate --workload L30 --fixed`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.files.complete()
			if !g.files.right(g.baseline) {
				return usagef(cmd, "two of the files have the same name")
			}
			if g.update && g.baseline == "" {
				return usagef(cmd, "--update-baseline needs --baseline, the file to write")
			}
			g.AllRanks, g.Canary, g.InDoubt = !cmd.Flags().Changed("rank"), g.job.canary, gate.Doubt(g.inconclusive.value)
			record, err := g.toRecord(cmd, args)
			if err != nil {
				return err
			}
			// Files that cannot be read or written are reported before a run of hours is recorded.
			known, err := g.readBaseline()
			if err == nil {
				known.Library, err = env.library()
			}
			if err != nil {
				return err
			}
			if err := g.canWrite(); err != nil {
				return err
			}
			if record != nil {
				if _, err := g.judging.complete(g.env); err != nil {
					return err
				}
				dir, err := record()
				if err != nil {
					return err
				}
				args, g.job.made = []string{dir}, true
			}
			code, err := g.judge(cmd, known, args)
			if err != nil || code == exitFine {
				return err
			}
			if !g.job.made || g.job.workload != "" { // otherwise the recording has said so
				env.nextOf(args)
			}
			return &exitError{code: code}
		},
	}
	flags := cmd.Flags()
	(*budgetFlags)(&g.Budgets).flags(cmd, (*rateFlag)(&g.MaxGrowth))
	flags.StringVar(&g.baseline, "baseline", "", "a `FILE` of known leaks, which pass within their bounds until they expire")
	flags.BoolVar(&g.update, "update-baseline", false, "add current leaks to the baseline, and remove fixed ones")
	flags.BoolVar(&g.strict, "strict", false, "fail on known leaks of libraries too, which otherwise pass")
	flags.Var(&g.inconclusive, "inconclusive", "how an inconclusive run ends: pass (exit 0) or fail (exit 1), in place of exit 4")
	completeWords(cmd, "inconclusive", g.inconclusive.of)
	flags.Int64Var(&g.Slice.Warmup, "warmup", 0, "leave out snapshots before this many `STEPS`")
	flags.StringVar(&g.Slice.Phase, "phase", "", "judge the snapshots of one `PHASE` alone, such as train or eval")
	flags.StringVar(&g.Slice.Device, "device", "", "judge one `DEVICE` alone, such as cuda:0, or all of a kind: cuda")
	env.rankFlag(cmd)
	env.symbolsFlag(cmd)
	flags.Lookup("rank").Usage = "judge one rank of a run of several; by default each is judged"
	g.judging = judgingFlags(cmd)
	env.knownFlag(cmd)
	g.files.flags(cmd)
	g.jobFlags(cmd)
	return cmd
}

// nextOf names the next command for what a gate judged: a run, or one snapshot, which cannot be compared.
func (env *environment) nextOf(args []string) {
	if len(args) == 1 {
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
			env.talk.next("show", args...)
			return
		}
	}
	env.talk.next("diff", args...)
}

// gateCall is one call of the command.
type gateCall struct {
	gate.Options
	env          *environment
	judging      *judging
	inconclusive choice // "" if not given
	baseline     string
	files        gateFiles
	update       bool
	strict       bool
	job          gateJob
}

// judge prints one sentence for each rank, and returns the exit code.
func (g *gateCall) judge(cmd *cobra.Command, known *baseline.File, args []string) (code int, err error) {
	ranks, err := g.judgeAll(cmd, args)
	if err != nil {
		return exitOwn, err
	}
	gate.ByDrain(ranks)
	outcome, unsaved := g.hold(known, ranks)
	decision := g.Decide(ranks, outcome)
	if err := g.say(decision, outcome, ranks); err != nil && g.env.stdout.err == nil {
		return exitOwn, err // if nobody reads stdout, files and code stay the same
	}
	err = g.files.write(g.env, described(decision, ranks, outcome))
	if err != nil && unsaved != nil {
		g.env.talk.fail(unsaved)
	}
	return gateCode(decision), cmp.Or(err, unsaved)
}

// gateCode is the exit code of a decision.
func gateCode(d *gate.Decision) int {
	switch {
	case d.Fails():
		return exitLeak
	case d.Verdict == diff.Inconclusive:
		return exitInconclusive
	}
	return exitFine
}

// say prints a decision about ranks.
func (g *gateCall) say(d *gate.Decision, outcome *baseline.Outcome, ranks []gate.Rank) error {
	here := workingFolder()
	print := func(lines []string) {
		for _, line := range lines {
			fmt.Fprintln(g.env.stdout, here.Text(line))
		}
	}
	print(d.Headlines)
	if d.Explained {
		if err := report.GateFindings(g.env.stdout, outcome, here); err != nil {
			return err
		}
		print(knownIn(ranks))
	}
	print(d.More)
	shown := *outcome
	if g.baseline == "" { // without a baseline, the headline has already named the new leaks
		shown.Leaks = slices.DeleteFunc(slices.Clone(outcome.Leaks), func(l baseline.Leak) bool { return l.Library == nil })
	}
	return report.GateStates(g.env.stdout, &shown, here)
}

// knownIn lists the known leaks of libraries that ranks show or may show, one per line.
func knownIn(ranks []gate.Rank) (lines []string) {
	for i := range ranks {
		if ranks[i].Result == nil {
			continue
		}
		for _, leak := range ranks[i].Result.Known {
			if line := "known leak: " + leak; !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// judgeAll judges all requested ranks.
func (g *gateCall) judgeAll(cmd *cobra.Command, args []string) ([]gate.Rank, error) {
	run, err := g.env.openWhole(args)
	if g.job.made && errors.Is(err, fs.ErrNotExist) { // the command ended before the first snapshot
		run, err = &snapshot.Run{Path: args[0]}, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range g.files.named() {
		if err := spare(cmd, name, run.Files...); err != nil {
			return nil, err
		}
	}
	options, err := g.judging.complete(g.env)
	if err != nil {
		return nil, err
	}
	g.env.warnIfGoodLeaks(options)
	ranks, err := g.judgeRank(run, options)
	if err != nil || !g.AllRanks {
		return ranks, err
	}
	for i, rank := range run.Ranks[min(1, len(run.Ranks)):] {
		g.env.talk.progress("judging rank %d, %d of %d", rank, i+2, len(run.Ranks))
		other, err := awaited(g.env, noNews, func() (*snapshot.Run, error) { return g.env.openRank(run.Path, rank) })
		if err != nil {
			return nil, err
		}
		judged, err := g.judgeRank(other, options)
		if err != nil {
			return nil, err
		}
		if judged[0].Result != nil {
			judged[0].Result.Shed()
		}
		ranks = append(ranks, judged[0])
		for _, child := range judged[1:] { // a child on another machine; ranks in one folder have the same children
			if !slices.ContainsFunc(ranks, func(r gate.Rank) bool { return r.Said == child.Said }) {
				ranks = append(ranks, child)
			}
		}
	}
	g.env.talk.clear()
	return ranks, nil
}

// judgeRank judges one rank's snapshots, or those of a run without ranks. Other processes with leaks follow.
func (g *gateCall) judgeRank(run *snapshot.Run, options diff.Options) ([]gate.Rank, error) {
	if len(run.Ranks) > 0 && len(run.Snapshots) > 0 {
		var err error
		if options, err = g.env.forRank(options, run.Snapshots[0].Rank); err != nil {
			return nil, err
		}
	}
	rank, err := g.Judge(run, options, g.env.analyze)
	if err != nil {
		return nil, sliceFault(err)
	}
	if rank.Result == nil {
		switch {
		case run.Info.WhyFew() != "": // the sentence has it
		case len(run.Snapshots) == 1:
			g.env.talk.say("the gate needs three snapshots. Name the run's folder, or record again with a smaller --every or more steps")
		default:
			g.env.talk.say("the gate needs three snapshots. Record again with a smaller --every or more steps")
		}
	} else if g.job.half != "" {
		half, err := g.env.openRank(g.job.half, rank.Number)
		if err != nil {
			return nil, err
		}
		if rank.Double, err = g.Doubled(half, rank.Result); err != nil {
			return nil, sliceFault(err)
		}
	}
	children := rank.Children()
	return append([]gate.Rank{rank}, children...), nil
}

// sliceFault makes an error about a slice that the run lacks a usage error.
func sliceFault(err error) error {
	if _, ok := errors.AsType[*gate.SliceError](err); ok {
		return &exitError{exitUsage, err}
	}
	return err
}
