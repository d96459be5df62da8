package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/record/inject"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// attaching is the options of memdiag attach.
type attaching struct {
	out       string
	every     interval
	census    time.Duration
	heap      choice
	force     bool
	noCommand bool
	watched   bool
	budgets   budgetFlags
}

func newAttachCommand(env *environment) *cobra.Command {
	job := attaching{heap: choice{"auto", []string{"auto", "on", "off"}}}
	cmd := &cobra.Command{
		Use:     "attach PID",
		GroupID: groupFind,
		Short:   "record a running Python program, and leave it as it was",
		Long: `Starts the recorder in a running Python process, and writes a run as memdiag record
does, until the process ends or Ctrl-C. It then leaves the process as it was.

It counts all containers and types of objects twice, --census apart, and names those
that grow. Objects from before the attach count too. Tensors have an allocation stack
only if they are allocated after it.

Python 3.14 and later load the recorder by sys.remote_exec. Older ones need Linux on
x86-64: ptrace stops them for some milliseconds. Either needs the process's own user
or root. What containers need: ` + docsAddress + `attach.md`,
		Example: `  memdiag attach 4711
  memdiag attach 4711 --census 5m -o my-run
  memdiag attach "$(pgrep -f train.py)" --watch`,
		Args: takes(1, 1, "processes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil || pid < 1 {
				return usagef(cmd, "%q is no process: want its number, as pgrep -f train.py prints it", args[0])
			}
			if job.census < 0 {
				return usagef(cmd, "--census is a time, or 0 for none")
			}
			if len(job.budgets) > 0 && !job.watched {
				return usagef(cmd, "a budget is for --watch; of a run that has ended, memdiag gate checks it")
			}
			return env.attach(cmd.Context(), pid, job)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&job.out, "out", "o", "", "`DIR` of the run: new, empty, or with --force one that holds a run; by default named by the program and the time")
	flags.DurationVar(&job.census, "census", time.Minute, "time between the two counts of all objects; 0 for none")
	flags.Var(&job.every, "every", "`STEPS` between snapshots, or a time such as 30s; by default chosen")
	flags.Var(&job.heap, "python-heap", "trace Python's heap by line, which slows Python down; auto traces only while the heap grows")
	flags.BoolVar(&job.force, "force", false, "replace the finished run in DIR once the new one has ended; other files stay")
	flags.BoolVar(&job.watched, "watch", false, "report leaks while the program runs, as memdiag watch does")
	watchedBudgets(cmd, &job.budgets)
	noCommandFlag(cmd, &job.noCommand)
	completeWords(cmd, "python-heap", job.heap.of)
	return cmd
}

// attach records a running process.
func (env *environment) attach(ctx context.Context, pid int, job attaching) error {
	process, err := inject.Find(pid)
	if err != nil {
		return &exitError{exitOwn, err}
	}
	command := record.CommandOf(pid)
	if job.out == "" {
		name := "attached"
		if len(command) > 0 {
			name = commandName(command)
		}
		job.out = env.freshFolder(name)
	}
	if job.noCommand {
		command = []string{}
	}
	host, _ := os.Hostname() // only a remark in run.json
	out, err := createRun(job.out, job.force, snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Command: command, Parameters: map[string]string{"attached": strconv.Itoa(pid)},
		Every: job.every.steps, Started: env.now(), Host: host, Version: version(),
	})
	if err != nil {
		return err
	}
	began := env.now()
	ctx, stop := endedByMore(ctx)
	defer stop()
	watched := func() {}
	if job.watched {
		watched = env.watchBeside(context.WithoutCancel(ctx), job.out, job.budgets, env.sayEvents) // Ctrl-C is the normal end
	}
	outcome, err := record.AttachProcess(ctx, out, process, record.Attachment{
		Options: record.Options{Every: job.every.steps, Interval: job.every.time, PythonHeap: job.heap.value},
		Census:  job.census,
		Say:     func(line string) { env.talk.say("%s", line) },
	})
	watched()
	if err != nil {
		env.abandon(out, err)
		if errors.Is(err, context.Canceled) {
			return err
		}
		return &exitError{exitOwn, err}
	}
	env.talk.say("recorded for %s; %s in %s", duration(env.now().Sub(began)), recorded(outcome), filepath.Clean(job.out))
	if outcome.Snapshots > 0 || !env.putBack(out) {
		env.finish(out, outcome)
	}
	return nil
}
