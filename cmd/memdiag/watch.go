package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/watch"
)

func newWatchCommand(env *environment) *cobra.Command {
	w := watching{env: env, format: choice{"text", []string{"text", "json"}}}
	cmd := &cobra.Command{
		Use:     "watch [RUN]",
		GroupID: groupFind,
		Short:   "follow a run while it is recorded: what leaks, and when memory is full",
		Long: `Follows a run that memdiag record writes, in a process of its own, until the run
has ended or Ctrl-C. Watching changes nothing in the run; it may begin at any time,
also after the run has ended, and several may watch one run.

A line is printed when something changes. What grows is a possible leak first; it is
called a leak only once it has gone on for three times as long, at snapshots that the
first suspicion had not seen. So watching all the time makes no more false alarms than
one look at the end (docs/watch.md).

The exit code is 1 if a leak was reported and goes on, or a budget is broken at the
end, 4 if a budget could not be checked, else 0.`,
		Example: `  memdiag record -o my-run -- python train.py &
  memdiag watch my-run
  memdiag watch my-run --format json | jq .text
  memdiag watch my-run --listen 127.0.0.1:9760 --max-peak cuda:0=90%`,
		Args:              takes(0, 1, "runs"),
		ValidArgsFunction: completeRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(cmd, strings.Join(args, "")) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&w.every, "interval", time.Second, "time between looks for new snapshots")
	flags.Var(&w.format, "format", "format on standard output: text, or json (a line an event)")
	completeWords(cmd, "format", w.format.of)
	w.exports.flags(cmd)
	w.budgets.flags(cmd, nil)
	w.judging = judgingFlags(cmd)
	return cmd
}

// watching is one call of the command.
type watching struct {
	env     *environment
	every   time.Duration
	format  choice
	judging *judging
	exports exports
	budgets budgetFlags
}

// shortest is the least time between looks.
const shortest = 50 * time.Millisecond

func (w *watching) run(cmd *cobra.Command, name string) error {
	if w.every < shortest {
		return usagef(cmd, "--interval is at least %v", shortest)
	}
	dir, err := files.ResolveRun(name, ".")
	if err != nil {
		return err
	}
	if name == "" && dir != "." {
		w.env.talk.say("the newest run here is %s", dir)
	}
	options, err := w.judging.complete(w.env)
	if err != nil {
		return err
	}
	follower := &watch.Follower{
		Dir: dir, Every: w.every,
		Open:  func() ([]*snapshot.Run, error) { return w.open(dir) },
		Judge: options.Analyze,
	}
	if len(w.budgets) > 0 {
		follower.Check = func(run *snapshot.Run) []budget.Outcome { return w.budgets.check(run, "", options.DeviceMemory) }
	}
	stop, err := w.exports.open(cmd, w.env)
	if err != nil {
		return err
	}
	defer stop()
	return w.follow(cmd.Context(), follower)
}

// follow looks until the run has ended, or nobody wants to know.
func (w *watching) follow(ctx context.Context, follower *watch.Follower) error {
	code := exitFine
	for first := true; ; first = false {
		look, err := follower.Next(ctx)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, context.Canceled):
			w.env.talk.clear()
			w.exports.linger(ctx, w.env)
			if code != exitFine {
				return &exitError{code: code}
			}
			return nil
		case err != nil:
			return err
		}
		if err := w.tell(look, first); err != nil {
			return err
		}
		if err := w.exports.put(w.env, follower.Dir, look); err != nil {
			return err
		}
		code = exitFine
		if w.unchecked(look) {
			code = exitInconclusive
		}
		if leaks, _ := look.Alarms(); leaks > 0 || look.OverBudget() {
			code = exitLeak
		}
	}
}

// unchecked says of a run that has ended which budgets could not be checked: before, what they are for may yet come.
func (w *watching) unchecked(look *watch.Look) (found bool) {
	for i := range look.Ranks {
		for _, o := range look.Ranks[i].Budgets {
			if look.Ended && o.Unchecked != "" {
				found = true
				w.env.talk.say("%s", report.Printable(o.String()))
			}
		}
	}
	return found
}

// open reads all ranks of the run.
func (w *watching) open(dir string) ([]*snapshot.Run, error) {
	folder, err := w.env.opener.LookThrough(dir)
	if err != nil {
		return nil, err
	}
	first, err := folder.OpenRank(snapshot.NoRank)
	if err != nil {
		return nil, err
	}
	runs := []*snapshot.Run{first}
	for _, rank := range first.Ranks[min(1, len(first.Ranks)):] {
		run, err := folder.OpenRank(rank)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func (w *watching) tell(look *watch.Look, first bool) error {
	here := workingFolder()
	for _, e := range look.Events(first) {
		w.env.talk.clear()
		if w.format.value == "json" {
			if err := e.JSON(w.env.stdout, here); err != nil {
				return err
			}
			continue
		}
		for _, line := range e.Lines(here) {
			if _, err := fmt.Fprintln(w.env.stdout, line); err != nil {
				return err
			}
		}
	}
	if !look.Ended {
		leaks, suspected := look.Alarms()
		w.env.talk.status(report.LiveStatus(look.Ranks[0].Run, look.Ranks[0].Result, suspected, leaks))
	}
	return nil
}
