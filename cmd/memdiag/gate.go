package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/canary"
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
or fails. The first interval is warm-up: growth in it alone is no leak. It exits
with 1 on a leak or a broken budget (--max-live and the like), 0 without, and 4 if
only a longer run can tell.

With a command after --, or --workload, it records the run first; a command that
fails is not judged, and the gate exits with 5.`,
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
			g.allRanks = !cmd.Flags().Changed("rank")
			record, err := g.toRecord(cmd, args)
			if err != nil {
				return err
			}
			// What cannot be read or written is said before a run of hours is recorded.
			known, err := g.readBaseline()
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
			if !g.job.made || g.job.workload != "" { // else the recording has said so
				env.talk.next("diff", args...)
			}
			return &exitError{code: code}
		},
	}
	flags := cmd.Flags()
	g.budgets.flags(cmd, &g.maxGrowth)
	flags.StringVar(&g.baseline, "baseline", "", "a `FILE` of known leaks, which pass within their bounds until they expire")
	flags.BoolVar(&g.update, "update-baseline", false, "add current leaks to the baseline, and remove fixed ones")
	flags.BoolVar(&g.strict, "strict", false, "fail on known leaks of libraries too, which otherwise pass")
	flags.Var(&g.inconclusive, "inconclusive", "the result of an inconclusive run: pass (exit 0) or fail (exit 1), instead of exit 4")
	completeWords(cmd, "inconclusive", g.inconclusive.of)
	flags.Int64Var(&g.slice.warmup, "warmup", 0, "leave out what was recorded before this many `STEPS`")
	flags.StringVar(&g.slice.phase, "phase", "", "judge one `PHASE` alone, such as train or eval, by its own marks")
	flags.StringVar(&g.slice.device, "device", "", "judge one `DEVICE` alone, such as cuda:0, or all of a kind, such as cuda")
	env.rankFlag(cmd)
	flags.Lookup("rank").Usage = "judge one rank of a run of several; by default each is judged"
	g.judging = judgingFlags(cmd)
	g.files.flags(cmd)
	g.jobFlags(cmd)
	return cmd
}

// gate is one call of the command.
type gate struct {
	env          *environment
	judging      *judging
	maxGrowth    rateFlag
	budgets      budgetFlags
	inconclusive choice // "" where neither was asked for
	slice        slice
	baseline     string
	files        gateFiles
	update       bool
	strict       bool
	job          gateJob
	allRanks     bool
}

// bird is what became of a canary.
type bird int

const (
	noBird    bird = iota // none was asked for, or it was caught
	missed                // it was planted, and not caught
	unplanted             // the command has nothing that one can be planted in
)

// judged is one rank of the run.
type judged struct {
	rank   int
	result *diff.Result // nil where the run is too short for one
	doubt  string       // why it cannot tell; "" where it can
	said   string       // the headline
	canary string       // what became of it; "" where none was planted
	bird   bird
	double *baseline.Doubled // nil unless the run is held against one of half its steps
	unread []string          // what of the run was not read, a sentence each
	budget []budget.Outcome
}

// judge says one sentence for each rank, and returns the exit code that the run
// earns: that of a leak before that of doubt.
func (g *gate) judge(cmd *cobra.Command, known *baseline.File, args []string) (code int, err error) {
	ranks, err := g.judgeAll(cmd, args)
	if err != nil {
		return exitOwn, err
	}
	acrossRanks(ranks)
	outcome, unsaved := g.hold(known, ranks)
	code, prefix := g.decide(ranks, outcome)
	fails := code == exitLeak
	if n := len(outcome.Failing()); len(ranks) == 1 && fails && 0 < n && n < len(outcome.Leaks) {
		ranks[0].said = report.Failing(outcome) // the headline may be of one that passes
	}
	if slices.ContainsFunc(ranks, func(j judged) bool { return budget.Broken(j.budget) }) {
		code = exitLeak
	}
	here := workingFolder()
	headline := func(j *judged) []string {
		switch {
		case j.doubt != "" && code != exitLeak:
			return []string{"inconclusive: " + j.doubt + j.said}
		case j.result != nil && j.result.Leaks() > 0:
			return []string{prefix + j.said}
		}
		return []string{j.said}
	}
	say := func(all []saying) {
		for _, s := range all {
			fmt.Fprintln(g.env.stdout, here.Text(s.line(len(ranks))))
		}
	}
	say(sayings(ranks, headline))
	if code != exitFine {
		if err := report.GateFindings(g.env.stdout, outcome, here); err != nil && g.env.stdout.err == nil {
			return exitOwn, err
		}
	}
	say(sayings(ranks, (*judged).besides))
	if slices.ContainsFunc(ranks, func(j judged) bool { return j.bird == missed }) {
		code, fails = exitLeak, true // what let this pass may have let anything pass
	}
	shown := *outcome
	if g.baseline == "" { // what is new the headline has said
		shown.Leaks = slices.DeleteFunc(slices.Clone(outcome.Leaks), func(l baseline.Leak) bool { return l.Library == nil })
	}
	if err := report.GateStates(g.env.stdout, &shown, here); err != nil && g.env.stdout.err == nil {
		return exitOwn, err // else nobody reads on, which changes neither the files nor the code
	}
	code = g.settle(code, ranks)
	decided := g.described(code, ranks, outcome)
	if code == exitLeak && !fails {
		decided.Verdict = report.OverBudget
	}
	err = g.files.write(g.env, decided)
	if err == nil {
		return code, unsaved
	}
	if unsaved != nil {
		g.env.talk.fail(unsaved)
	}
	return code, err
}

// besides prints more about a rank, after its headline.
func (j *judged) besides() (said []string) {
	for i := range j.budget {
		said = append(said, report.Printable(j.budget[i].String()))
	}
	if j.double != nil {
		said = append(said, report.Doubled(j.double))
	}
	if j.canary != "" {
		said = append(said, j.canary)
	}
	if j.result != nil {
		for _, b := range j.result.Idle {
			said = append(said, report.IdleBound(b))
		}
		if text := report.NotSeen(j.result); text != "" && "not seen: "+j.doubt != text+"; " { // its headline says it
			said = append(said, text)
		}
	}
	for _, note := range j.unread {
		said = append(said, "note: "+report.Printable(note))
	}
	return said
}

// judgeAll judges every rank that is asked for.
func (g *gate) judgeAll(cmd *cobra.Command, args []string) ([]judged, error) {
	run, err := g.env.openWhole(args)
	if g.job.made && errors.Is(err, fs.ErrNotExist) { // the command ended before there was a snapshot
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
	first, err := g.judgeRank(run, options)
	if err != nil {
		return nil, err
	}
	children := first.children()
	if len(children) > 0 && first.result.Leaks() == 0 {
		first.said = "" // theirs is said
	}
	ranks := append([]judged{first}, children...)
	if !g.allRanks {
		return ranks, nil
	}
	for i, rank := range run.Ranks[min(1, len(run.Ranks)):] {
		g.env.talk.progress("judging rank %d, %d of %d", rank, i+2, len(run.Ranks))
		other, err := awaited(g.env, noNews, func() (*snapshot.Run, error) { return g.env.openRank(run.Path, rank) })
		if err != nil {
			return nil, err
		}
		j, err := g.judgeRank(other, options)
		if err != nil {
			return nil, err
		}
		children := j.children()
		if len(children) > 0 && j.result.Leaks() == 0 {
			j.said = "" // theirs is said
		}
		ranks = append(ranks, j)
		for _, child := range children { // of another machine; ranks of one folder have the same
			if !slices.ContainsFunc(ranks, func(o judged) bool { return o.said == child.said }) {
				ranks = append(ranks, child)
			}
		}
	}
	g.env.talk.clear()
	return ranks, nil
}

// children are the other processes that leak.
func (j *judged) children() (out []judged) {
	if j.result == nil {
		return nil
	}
	for _, c := range j.result.Children {
		out = append(out, judged{rank: snapshot.NoRank, result: c.Result, said: report.GateHeadline(c.Result)})
	}
	return out
}

// judgeRank judges one rank's snapshots, or those of a run without ranks.
func (g *gate) judgeRank(run *snapshot.Run, options diff.Options) (judged, error) {
	run, err := g.slice.of(run)
	if err != nil {
		return judged{}, err
	}
	j := judged{rank: snapshot.NoRank, unread: run.Notes}
	if len(run.Ranks) > 1 && g.allRanks {
		j.unread = slices.DeleteFunc(slices.Clone(j.unread), files.OfOneRank) // the others are judged, too
	}
	if len(run.Ranks) > 0 && len(run.Snapshots) > 0 {
		j.rank = run.Snapshots[0].Rank
		if options, err = g.env.forRank(options, j.rank); err != nil {
			return j, err
		}
	}
	j.budget = g.budgets.check(canary.Without(run), g.slice.device, options.DeviceMemory)
	planted := canary.In(run) || g.job.canary
	if planted && !canary.Possible(run) {
		planted, j.bird = false, unplanted
		j.canary = "canary: not planted: no Python process loaded memdiag, and other commands cannot have one"
		j.doubt = "no canary shows whether this gate would catch a leak; "
	}
	if n := len(run.Snapshots); n < 3 {
		g.env.talk.say("record more of them: with a smaller --every, or for longer")
		if planted {
			j.canary, j.bird = report.Canary(nil), missed
		}
		j.doubt, j.said = "a gate needs three snapshots or more, the first interval being warm-up; ", fmt.Sprintf("the run has %d", n)
		if g.slice.warmup > 0 {
			j.said += fmt.Sprintf(" from step %d on", g.slice.warmup)
		}
		return j, nil
	}
	if planted {
		whole, err := g.env.analyze(run, options)
		if err != nil {
			return j, err
		}
		if _, caught := canary.Found(whole); !caught {
			j.bird = missed
		}
		j.canary = report.Canary(whole)
	}
	if j.result, err = g.env.analyze(canary.Without(run), options); err != nil {
		return j, err
	}
	if err := g.slice.keepDevice(j.result); err != nil {
		return j, err
	}
	if g.job.half != "" {
		if j.double, err = g.doubled(j); err != nil {
			return j, err
		}
	}
	j.said = report.GateHeadline(j.result)
	switch grown := j.result.Unaccounted(); {
	case len(grown) == 0 || j.doubt != "":
	case j.result.Leaks() == 0:
		j.doubt = "source line unknown; "
	case grown[len(grown)-1].Processes != nil: // however the leaks pass
		j.doubt = report.Printable(grown[len(grown)-1].Clause()) + "; "
	}
	if j.result.Leaks() == 0 && j.doubt == "" {
		if why := j.result.Doubt(g.slice.unseen(run)); why != "" {
			j.doubt = report.Printable(why) + "; "
		}
	}
	return j, nil
}

// doubled holds a rank against the run of half its steps; nil where that has nothing
// to hold it against.
func (g *gate) doubled(j judged) (*baseline.Doubled, error) {
	half, err := g.env.openRank(g.job.half, j.rank)
	if err != nil {
		return nil, err
	}
	if half, err = g.slice.of(canary.Without(half)); err != nil || len(half.Snapshots) == 0 {
		return nil, err
	}
	d := baseline.Double(half.Snapshots[len(half.Snapshots)-1], j.result)
	elsewhere := func(row diff.Row) bool { return !g.slice.has(row.Device) }
	d.More, d.Unexplained = slices.DeleteFunc(d.More, elsewhere), slices.DeleteFunc(d.Unexplained, elsewhere)
	return d, nil
}

// confirmed is true for a leak that a rank's run of half the steps does not speak
// against.
func confirmed(ranks []judged, l baseline.Leak) bool {
	for _, j := range ranks {
		if j.double != nil && slices.Contains(j.double.Unconfirmed, l.Finding) {
			return false
		}
	}
	return true
}

// decide weighs what fails and what is in doubt, and says what a headline with
// leaks begins with where they pass. A finding in doubt that the baseline knows
// casts none.
func (g *gate) decide(ranks []judged, o *baseline.Outcome) (code int, prefix string) {
	failing := o.Failing()
	if !slices.ContainsFunc(failing, func(l baseline.Leak) bool { return confirmed(ranks, l) }) {
		failing = nil
	}
	switch {
	case len(failing) > 0 && !g.within(failing):
		return exitLeak, ""
	case len(failing) > 0:
		prefix = "within " + g.maxGrowth.String() + ": "
	case slices.ContainsFunc(o.Leaks, func(l baseline.Leak) bool { return l.State == baseline.Library }):
		prefix = "known of libraries: "
	default:
		prefix = "in the baseline: "
	}
	for i := range ranks {
		j := &ranks[i]
		switch {
		case j.doubt != "":
		case o.InDoubt(j.result):
			j.doubt = "only a longer run can judge this growth; "
		case j.double != nil && len(j.double.Unconfirmed)+len(j.double.Unexplained) > 0:
			j.doubt = "twice the steps say otherwise; "
		case budget.Unchecked(j.budget):
			j.doubt = "a budget could not be checked; "
		}
		if j.doubt != "" {
			code = exitInconclusive
		}
	}
	return code, prefix
}

// within reports whether all of these leaks together grow by no more than --max-growth.
// Growth by another unit is never within.
func (g *gate) within(leaks []baseline.Leak) bool {
	sum := 0.0
	for _, l := range leaks {
		f := l.Finding
		if f.Rate.Unit != g.maxGrowth.Unit || f.Shape != diff.Steady {
			return false // a rate that grows itself has no limit
		}
		sum += f.Rate.Bytes.Value
	}
	return g.maxGrowth.Unit != "" && sum <= float64(g.maxGrowth.Bytes)
}

// settle is the exit code once it is said what doubt is worth. Doubt about the gate
// itself passes for nothing else.
func (g *gate) settle(code int, ranks []judged) int {
	if code != exitInconclusive {
		return code
	}
	switch g.inconclusive.value {
	case "pass":
		if !slices.ContainsFunc(ranks, func(j judged) bool { return j.bird == unplanted }) {
			return exitFine
		}
	case "fail":
		return exitLeak
	}
	return code
}
