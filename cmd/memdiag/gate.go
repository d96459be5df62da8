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
	g := gate{env: env, inconclusive: choice{"", []string{"pass", "fail"}}}
	cmd := &cobra.Command{
		Use:     "gate [flags] [RUN | SNAPSHOT SNAPSHOT SNAPSHOT …] | gate [flags] -- COMMAND [ARGUMENT …]",
		GroupID: groupFind,
		Short:   "for CI: exit 1 if the run leaks, 0 if not, 4 if it cannot tell",
		Long: `Judges a run of three or more snapshots and says in one sentence why it passes
or fails. The first interval is warm-up: growth in it alone is no leak. It ends
with 1 on a leak, 0 without, and 4 if something grew and more steps must tell.

With a command behind --, or --workload, it records the run first; a command that
fails is not judged, and ends the gate with 5.`,
		Example: `  memdiag gate my-run
  memdiag gate --warmup 20 --max-growth 4KiB/step -- python train.py --steps 200
  memdiag gate --workload L30 --fixed`,
		ValidArgsFunction: completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := g.recorded(cmd, args)
			if err != nil {
				return err
			}
			g.allRanks = !cmd.Flags().Changed("rank")
			code, err := g.judge(args)
			if err != nil || code == exitFine {
				return err
			}
			env.talk.next(append([]string{"diff"}, args...)...)
			return &exitError{code: code}
		},
	}
	flags := cmd.Flags()
	flags.Var(&g.maxGrowth, "max-growth", "let leaks pass that together grow by no more than this, such as 4KiB/step")
	flags.Var(&g.inconclusive, "inconclusive", "what becomes of a run that cannot tell: pass (exit 0) or fail (exit 1), instead of exit 4")
	completeWords(cmd, "inconclusive", g.inconclusive.of)
	flags.Int64Var(&g.slice.warmup, "warmup", 0, "leave out what was recorded before this many `STEPS`")
	flags.StringVar(&g.slice.phase, "phase", "", "judge one `PHASE` alone, such as train or eval, by its own marks")
	flags.StringVar(&g.slice.device, "device", "", "judge one `DEVICE` alone, such as cuda:0, or all of a kind, such as cuda")
	env.rankFlag(cmd)
	flags.Lookup("rank").Usage = "judge one rank of a run of several; by default each is judged"
	g.judging = judgingFlags(cmd)
	g.jobFlags(cmd)
	return cmd
}

// gate is one call of the command.
type gate struct {
	env          *environment
	judging      *judging
	maxGrowth    rateFlag
	inconclusive choice // "" where neither was asked for
	slice        slice
	job          gateJob
	allRanks     bool
}

// judged is one rank of the run.
type judged struct {
	rank   int
	result *diff.Result // nil where the run is too short for one
	code   int
	said   string // the sentence
}

// judge says one sentence for each rank, and returns the exit code that the run
// earns: that of a leak before that of doubt.
func (g *gate) judge(args []string) (code int, err error) {
	run, err := g.env.openRun(args)
	if err != nil {
		return exitOwn, err
	}
	options, err := g.judging.complete(g.env)
	if err != nil {
		return exitOwn, err
	}
	runs := []*snapshot.Run{run}
	if g.allRanks {
		for _, rank := range run.Ranks[min(1, len(run.Ranks)):] {
			other, err := files.OpenRank(run.Path, rank)
			if err != nil {
				return exitOwn, err
			}
			runs = append(runs, other)
		}
	}
	code = exitFine
	for _, r := range runs {
		j, err := g.judgeRank(r, options)
		if err != nil {
			return exitOwn, err
		}
		if len(run.Ranks) > 1 && j.rank != snapshot.NoRank {
			fmt.Fprintf(g.env.stdout, "rank %d: ", j.rank)
		}
		fmt.Fprintln(g.env.stdout, j.said)
		if j.code == exitLeak || code == exitFine {
			code = j.code
		}
	}
	return g.settle(code), nil
}

// settle is the exit code once it is said what doubt is worth.
func (g *gate) settle(code int) int {
	if code == exitInconclusive {
		switch g.inconclusive.value {
		case "pass":
			return exitFine
		case "fail":
			return exitLeak
		}
	}
	return code
}

// judgeRank judges one rank's snapshots, or those of a run without ranks.
func (g *gate) judgeRank(run *snapshot.Run, options diff.Options) (judged, error) {
	run, err := g.slice.of(run)
	if err != nil {
		return judged{}, err
	}
	j := judged{rank: snapshot.NoRank, code: exitInconclusive}
	if n := len(run.Snapshots); n < 3 {
		g.env.talk.say("record more of them with a smaller --every, or more --steps")
		j.said = fmt.Sprintf("inconclusive: a gate needs three snapshots or more, the first interval being warm-up; the run has %d", n)
		return j, nil
	}
	j.rank = run.Snapshots[0].Rank
	if j.result, err = options.Analyze(run); err != nil {
		return j, err
	}
	if err := g.slice.keepDevice(j.result); err != nil {
		return j, err
	}
	headline := report.Headline(j.result)
	switch {
	case j.result.Leaks() > 0 && g.within(j.result):
		j.code, j.said = exitFine, fmt.Sprintf("within %s: %s", g.maxGrowth.String(), headline)
	case j.result.Leaks() > 0:
		j.code, j.said = exitLeak, headline
	case !j.result.Comparable:
		j.said = "inconclusive: the snapshots are not of one process; " + headline
	case len(j.result.Rows) == 0:
		j.said = "inconclusive: no snapshot holds a live block; " + headline
	case j.result.Count(diff.Inconclusive) > 0:
		j.said = "inconclusive: " + headline
	default:
		j.code, j.said = exitFine, headline
	}
	return j, nil
}

// within holds where all leaks together grow by no more than --max-growth. Growth
// whose steps are not known is never within.
func (g *gate) within(r *diff.Result) bool {
	if !g.maxGrowth.set {
		return false
	}
	sum := 0.0
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Verdict == diff.Leak {
			if f.Rate.Unit != "step" || f.Shape != diff.Steady {
				return false // a rate that grows itself has no limit
			}
			sum += f.Rate.Bytes.Value
		}
	}
	return sum <= float64(g.maxGrowth.bytes)
}
