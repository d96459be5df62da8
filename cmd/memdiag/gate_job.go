package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/record"
)

// gateJob is the run that a gate records before it judges.
type gateJob struct {
	recording
	interval interval
	heap     choice
}

// jobFlags are those of record, as far as a gate needs them.
func (g *gate) jobFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	g.job.backend = choice{"cpu", backends}
	g.job.heap = choice{"auto", []string{"auto", "on", "off"}}
	flags.StringVarP(&g.job.workload, "workload", "w", "", "record the workload `NAME` and judge it, as memdiag workloads lists them")
	flags.Int64Var(&g.job.steps, "steps", 100, "training steps of the workload")
	flags.BoolVar(&g.job.fixed, "fixed", false, "train the repaired variant of the workload")
	flags.Int64Var(&g.job.seed, "seed", 0, "seed of all random draws of the workload")
	flags.BoolVar(&g.job.canary, "canary", false, "plant a small known leak in what is recorded, and fail unless it is caught")
	flags.Var(&g.job.interval, "every", "`STEPS` between snapshots of what is recorded; by default chosen for a command, and a fifth of a workload's steps")
	flags.Var(&g.job.heap, "python-heap", "whether Python's own heap is traced by line; auto is where it grows, which slows Python down")
	completeWords(cmd, "python-heap", g.job.heap.of)
	flags.StringVarP(&g.job.out, "out", "o", "", "`DIR` of the run that is recorded, which must be new or empty; by default named by what is run and the time")
	_ = cmd.RegisterFlagCompletionFunc("workload", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return workloadNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// recorded returns the arguments that name what is to be judged: those that were
// given, or the run that they ask to record.
func (g *gate) recorded(cmd *cobra.Command, args []string) ([]string, error) {
	if g.slice.warmup < 0 {
		return nil, usagef(cmd, "--warmup is at least 0")
	}
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash > 0:
		return nil, usagef(cmd, "a run and a command exclude each other")
	case dash == 0 && len(args) == 0:
		return nil, usagef(cmd, "no command behind --")
	case g.job.workload != "" && len(args) > 0:
		return nil, usagef(cmd, "--workload and a run or a command exclude each other")
	}
	if g.job.workload == "" {
		for _, name := range []string{"steps", "fixed", "seed"} {
			if cmd.Flags().Changed(name) {
				return nil, usagef(cmd, "--%s is for --workload", name)
			}
		}
	}
	switch {
	case g.job.workload != "":
		if g.job.steps < 1 {
			return nil, usagef(cmd, "--steps is at least 1")
		}
		if g.job.interval.time > 0 || cmd.Flags().Changed("python-heap") {
			return nil, usagef(cmd, "a time between snapshots and --python-heap are for a command")
		}
		g.job.every = g.job.interval.steps
		if g.job.every == 0 {
			g.job.every = max(1, g.job.steps/5)
		}
		dir, err := g.env.record(cmd.Context(), g.job.recording)
		return []string{dir}, err
	case dash == 0:
		dir, err := g.recordCommand(cmd.Context(), args)
		return []string{dir}, err
	}
	for _, name := range []string{"every", "out", "canary", "python-heap"} {
		if cmd.Flags().Changed(name) {
			return nil, usagef(cmd, "--%s is for what the gate records", name)
		}
	}
	return args, nil
}

// recordCommand records a command. One that fails has shown nothing about leaks:
// its own code would read as the gate's, so that the gate's is 5.
func (g *gate) recordCommand(ctx context.Context, args []string) (dir string, err error) {
	dir = g.job.out
	if dir == "" {
		dir = fmt.Sprintf("%s-%s", commandName(args), g.env.now().Format("20060102-150405"))
	}
	err = g.env.recordCommand(ctx, dir, args, record.Options{Every: g.job.interval.steps, Interval: g.job.interval.time, PythonHeap: g.job.heap.value, Canary: g.job.canary})
	if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
		return dir, &exitError{exitOwn, withHint(fmt.Errorf("%s ended with code %d: a run that failed is not judged", commandName(args), exit.code), "memdiag gate %s judges what was recorded until then", dir)}
	}
	return dir, err
}
