package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/watch"
)

func newWatchCommand(env *environment) *cobra.Command {
	w := watching{env: env, format: choice{"text", []string{"text", "json"}}, alarms: alarms{signal: signalFlag{syscall.SIGTERM, "TERM"}}}
	cmd := &cobra.Command{
		Use:     "watch [RUN | PID]",
		GroupID: groupFind,
		Short:   "follow a run while it is recorded: its leaks, and when memory is full",
		Long: `Follows a run that memdiag record writes, until the run has ended or Ctrl-C. Watching
changes nothing in the run. It may begin at any time, also after the run has ended.
Several processes may watch one run. PID is a recorded process, or the memdiag
process that records it.

A line is printed when something changes. Growth is a possible leak at first. It
becomes a leak once it has continued for three times as long, in new snapshots, so
that continuous checks give no more false alarms than one check at the end.

Alarms go to a shell command, to the webhook of a chat system, or to Alertmanager.
--stop-on stops the run: it sends a signal, on which a trainer can save its state,
waits, and kills what is left.

The exit code is 1 if a reported leak continues, if the ended run leaks by the verdict
of memdiag diff, if a budget is broken at the end, or if the run was stopped. It is 4 if
a budget could not be checked, else 0.`,
		Example: `  memdiag record -o my-run -- python train.py &
  memdiag watch my-run
  memdiag watch my-run --full
  memdiag watch my-run --on-leak 'jq -r .text | mail -s leak me@example.org'
  memdiag watch my-run --stop-on 'forecast < 30m' --stop-signal USR1 --stop-wait 5m
  memdiag watch my-run --format json | jq .text
  memdiag watch my-run --listen 127.0.0.1:9760 --max-peak cuda:0=90%
  memdiag watch my-run --push http://prometheus:9090`,
		Args:              takes(0, 1, "runs"),
		ValidArgsFunction: completeRun,
		RunE:              func(cmd *cobra.Command, args []string) error { return w.run(cmd, strings.Join(args, "")) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&w.full, "full", false, "show the run on the whole terminal: memory, all call sites that grow, their stacks")
	flags.DurationVar(&w.every, "interval", time.Second, "time between checks for new snapshots")
	flags.Var(&w.format, "format", "format on standard output: text, or json (a line an event)")
	completeWords(cmd, "format", w.format.of)
	w.alarms.flags(cmd)
	w.exports.flags(cmd)
	w.budgets.flags(cmd, nil)
	w.judging = judgingFlags(cmd)
	return cmd
}

// watching is the options of one call of the command.
type watching struct {
	env     *environment
	every   time.Duration
	format  choice
	full    bool
	judging *judging
	alarms  alarms
	exports exports
	budgets budgetFlags
}

// resolve is the folder of a run; name may also be a process.
func (w *watching) resolve(name string) (string, error) {
	if strings.Contains(name, "://") {
		return "", badInput(withHint(errors.New("a URL is no run"), "memdiag record --pprof URL --watch records what a Go program serves there, and follows it"))
	}
	pid, err := strconv.Atoi(name)
	if _, missing := os.Stat(name); err != nil || pid <= 0 || missing == nil {
		return files.ResolveRun(name, ".")
	}
	dir := record.RunOf(pid)
	if dir == "" {
		return "", badInput(withHint(fmt.Errorf("process %d is not recorded by memdiag, or belongs to another user", pid), "name the run's folder; memdiag attach %d records a Python program that runs already", pid))
	}
	w.env.talk.say("process %d is recorded in %s", pid, dir)
	return dir, nil
}

// shortest is the least time between looks.
const shortest = 50 * time.Millisecond

func (w *watching) run(cmd *cobra.Command, name string) error {
	if w.every < shortest {
		return usagef(cmd, "--interval is at least %v", shortest)
	}
	if w.alarms.wait < 0 {
		return usagef(cmd, "--stop-wait %v: want a time from 0 on", w.alarms.wait)
	}
	if w.alarms.stop.Budget && len(w.budgets) == 0 {
		return usagef(cmd, "--stop-on budget needs a budget, such as --max-live 12GiB")
	}
	if w.full {
		if err := w.mayFill(cmd); err != nil {
			return err
		}
	}
	dir, err := w.resolve(name)
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
	follower := w.env.follower(dir, w.every, options, w.budgets)
	stop, err := w.exports.open(cmd, w.env)
	if err != nil {
		return err
	}
	defer stop()
	if w.full {
		return w.onScreen(cmd, follower)
	}
	return w.follow(cmd.Context(), follower, w.tell)
}

// follow looks at the run until it has ended, or ctx is done. Each look is passed to show with what is new.
func (w *watching) follow(ctx context.Context, follower *watch.Follower, show func(*watch.Look, []report.Live) error) error {
	delivery := deliveries{alarms: &w.alarms, env: w.env, dir: follower.Dir}
	defer func() { delivery.close(ctx) }()
	code := exitFine
	debug.SetGCPercent(watchersGarbage)
	var trimmed time.Time
	for first := true; ; first = false {
		if time.Since(trimmed) > trimEvery {
			debug.FreeOSMemory() // memory for a look is not needed until the next one
			trimmed = time.Now()
		}
		look, err := follower.Next(ctx)
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, context.Canceled):
			w.env.talk.clear()
			w.exports.linger(ctx, w.env)
			if code != exitFine {
				return &exitError{code: code}
			}
			return nil
		case errors.Is(err, fs.ErrNotExist) && !first:
			w.env.talk.clear()
			return badInput(withHint(fmt.Errorf("%s: the run's folder is gone", follower.Dir), "if it was moved, name its new folder"))
		case err != nil:
			w.env.talk.clear()
			return err
		}
		events, here := look.Events(first), workingFolder()
		delivery.take(look, events, here)
		if err := show(look, events); err != nil {
			return err
		}
		if look.Past || look.Failed != "" {
			continue
		}
		if err := w.exports.put(w.env, follower.Dir, look); err != nil {
			return err
		}
		code = exitFine
		if w.unchecked(look) {
			code = exitInconclusive
		}
		if look.Leaks() > 0 || look.OverBudget() {
			code = exitLeak
		}
		if why := w.alarms.stop.Met(look); why != "" && !look.Ended {
			return w.alarms.end(ctx, w.env, follower, why)
		}
	}
}

// A watcher runs as long as the program. Its heap has at most a quarter of garbage, and free memory is returned to the system now and
// then, which takes 3 ms.
const (
	watchersGarbage = 25
	trimEvery       = 10 * time.Second
)

// unchecked reports the budgets that could not be checked, once the run has ended: before, what they are about may still appear.
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

// rereadEvery is the time before what could not be read is read again.
const rereadEvery = 10 * time.Second

// follower looks at the run in a folder at intervals.
func (env *environment) follower(dir string, every time.Duration, options diff.Options, budgets budgetFlags) *watch.Follower {
	f := &watch.Follower{
		Dir: dir, Every: every, Retry: rereadEvery, Judge: options.Analyze,
		Open: func(each func(*snapshot.Run) error) error { return openRanks(env.opener, dir, each) },
	}
	if len(budgets) > 0 {
		f.Check = func(run *snapshot.Run) []budget.Outcome { return budget.Check(run, budgets, options.DeviceMemory) }
	}
	return f
}

// openRanks reads all ranks of a run, at least one, and calls each for every rank.
func openRanks(opener files.Opener, dir string, each func(*snapshot.Run) error) error {
	folder, err := opener.LookThrough(dir)
	if err != nil {
		return err
	}
	run, err := folder.OpenRank(snapshot.NoRank)
	if err != nil {
		return err
	}
	ranks := run.Ranks[min(1, len(run.Ranks)):]
	if err := each(canary.Without(run)); err != nil {
		return err
	}
	for _, rank := range ranks {
		if run, err = folder.OpenRank(rank); err != nil {
			return err
		}
		if err := each(canary.Without(run)); err != nil {
			return err
		}
	}
	return nil
}

// watchBeside judges a run that this process records, and passes each look to looked. stop takes the last look, unless ctx is done.
func (env *environment) watchBeside(ctx context.Context, dir string, budgets budgetFlags, looked func(*watch.Look)) (stop func()) {
	going, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil { // the recording goes on
				env.talk.say("watching has ended: %v", &panicError{value: v, stack: debug.Stack()})
			}
		}()
		follower := env.follower(dir, time.Second, diff.DefaultOptions(), budgets)
		for {
			look, err := follower.Next(going)
			if going.Err() != nil && ctx.Err() == nil && look == nil {
				look, err = follower.Last()
			}
			if err != nil {
				return // the recording reports problems with the folder
			}
			looked(look)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// sayEvents prints what is new in a look.
func (env *environment) sayEvents(look *watch.Look) {
	for _, e := range look.Events(false) {
		if e.Kind == report.LiveEnded {
			continue // the recording reports it
		}
		for _, line := range e.Lines(workingFolder()) {
			env.talk.say("%s", line)
		}
	}
}

// tell prints what is new, and the state of the run.
func (w *watching) tell(look *watch.Look, events []report.Live) error {
	here := workingFolder()
	for _, e := range events {
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
