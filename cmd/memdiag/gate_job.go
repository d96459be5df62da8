package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// gateJob is the run that a gate records before it judges.
type gateJob struct {
	recording
	interval interval
	heap     choice
	double   bool
	unnamed  bool   // whether the command's words are left out of the run
	made     bool   // whether it has been recorded
	half     string // the folder of the run of half the steps; "" for none
}

// jobFlags are the flags of record that a gate needs.
func (g *gateCall) jobFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	g.job.backend = choice{"cpu", backends}
	g.job.heap = choice{"auto", []string{"auto", "on", "off"}}
	flags.StringVarP(&g.job.workload, "workload", "w", "", "record and judge the built-in workload `NAME` (memdiag workloads lists them)")
	flags.Int64Var(&g.job.steps, "steps", 100, "training steps of the workload, and the value of {steps} in a command with --double")
	flags.BoolVar(&g.job.fixed, "fixed", false, "train the repaired variant of the workload")
	flags.Int64Var(&g.job.seed, "seed", 0, "seed of all random draws of the workload")
	flags.Var(&g.job.backend, "backend", "where to train the workload")
	flags.BoolVar(&g.job.double, "double", false, "also run twice the steps, and compare live memory at both ends; {steps} in a command is the number of steps")
	flags.BoolVar(&g.job.canary, "canary", false, "plant a small known leak in the recorded run, and fail unless it is caught")
	flags.Var(&g.job.interval, "every", "`STEPS` between snapshots; by default chosen for a command, and a fifth of a workload's steps")
	flags.Var(&g.job.heap, "python-heap", "trace Python's heap by line, which slows Python down; auto traces only while the heap grows")
	noCommandFlag(cmd, &g.job.unnamed)
	completeWords(cmd, "python-heap", g.job.heap.of)
	g.job.outFlags(cmd, "named by what is run and the time")
	_ = cmd.RegisterFlagCompletionFunc("workload", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return workloadNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// toRecord checks the arguments. It returns a function that records the run to judge and returns its folder. The function is nil if
// args name an existing run.
func (g *gateCall) toRecord(cmd *cobra.Command, args []string) (func() (dir string, err error), error) {
	if g.Slice.Warmup < 0 {
		return nil, usagef(cmd, "--warmup is at least 0")
	}
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash > 0:
		return nil, usagef(cmd, "a run and a command exclude each other")
	case dash == 0 && len(args) == 0:
		return nil, usagef(cmd, "no command after --")
	case g.job.workload != "" && len(args) > 0:
		return nil, usagef(cmd, "--workload and a run or a command exclude each other")
	}
	if g.job.workload == "" {
		for _, name := range []string{"steps", "fixed", "seed", "backend"} {
			if cmd.Flags().Changed(name) && !(name == "steps" && g.job.double) {
				return nil, usagef(cmd, "--%s is for --workload", name)
			}
		}
	}
	if g.job.steps < 1 {
		return nil, usagef(cmd, "--steps is at least 1")
	}
	switch {
	case g.job.workload != "":
		if g.job.interval.time > 0 || cmd.Flags().Changed("python-heap") || g.job.unnamed {
			return nil, usagef(cmd, "a time between snapshots, --python-heap and --no-command are for a command")
		}
		return g.once(strings.ToLower(g.job.workload), func(dir string, steps int64) (string, error) {
			job := g.job.recording
			job.out, job.steps = dir, steps
			job.every = cmp.Or(g.job.interval.steps, max(1, steps/5))
			return g.env.record(cmd.Context(), job)
		}), nil
	case dash == 0:
		if g.job.double && !strings.Contains(strings.Join(args, " "), placeholder) {
			return nil, usageOf(cmd, withHint(errors.New("--double cannot set the command's number of steps"), "write %s in place of their number, as in: python train.py --steps %s", placeholder, placeholder))
		}
		return g.once(commandName(args), func(dir string, steps int64) (string, error) {
			return dir, g.recordCommand(cmd.Context(), dir, withSteps(args, steps))
		}), nil
	}
	for _, name := range []string{"every", "out", "force", "canary", "double", "python-heap", "no-command"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef(cmd, "--%s needs something to record", name)
		}
	}
	return nil, nil
}

// placeholder is replaced by the number of steps in a command that runs twice.
const placeholder = "{steps}"

func withSteps(args []string, steps int64) []string {
	var out []string
	for _, a := range args {
		out = append(out, strings.ReplaceAll(a, placeholder, fmt.Sprint(steps)))
	}
	return out
}

// once returns a function that records one run and returns its folder. With --double it records two runs in folders below, and returns
// the folder of the longer.
func (g *gateCall) once(name string, record func(dir string, steps int64) (string, error)) func() (dir string, err error) {
	return func() (dir string, err error) {
		if dir = g.job.out; dir == "" {
			dir = g.env.freshFolder(name)
		}
		steps := g.job.steps
		if !g.job.double {
			return record(dir, steps)
		}
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 && !g.job.force {
			return dir, &rundir.NotEmptyError{Dir: dir} // otherwise the second run might find its folder in use after the first has run
		}
		if err := rundir.MakeFolder(dir); err != nil {
			return dir, cannotWrite(dir, err)
		}
		of := func(steps int64) string { return filepath.Join(dir, fmt.Sprintf("steps-%d", steps)) }
		if g.job.half, err = record(of(steps), steps); err != nil {
			return g.job.half, err
		}
		return record(of(2*steps), 2*steps)
	}
}

// recordCommand records a command. If the command fails, it has shown nothing about leaks; its own exit code would look like the
// gate's, so the gate's is 5.
func (g *gateCall) recordCommand(ctx context.Context, dir string, args []string) error {
	err := g.env.recordCommand(ctx, dir, args, commandJob{
		Options:   record.Options{Every: g.job.interval.steps, Interval: g.job.interval.time, PythonHeap: g.job.heap.value, Canary: g.job.canary},
		noCommand: g.job.unnamed, force: g.job.force,
	})
	if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
		failed := fmt.Errorf("%s ended with code %d: a run that failed is not judged", commandName(args), exit.code)
		if _, ok := errors.AsType[*notReplacedError](err); ok {
			return &exitError{exitOwn, failed}
		}
		files, _ := os.ReadDir(dir)
		if !slices.ContainsFunc(files, func(f fs.DirEntry) bool { return strings.HasPrefix(f.Name(), "snapshot_") }) {
			return &exitError{exitOwn, failed}
		}
		return &exitError{exitOwn, withHint(failed, "memdiag gate %s judges what was recorded so far", dir)}
	}
	return err
}
