package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func newRecordCommand(env *environment) *cobra.Command {
	job := recording{backend: choice{"cpu", backends}}
	cmd := &cobra.Command{
		Use:     "record --workload NAME",
		GroupID: groupFind,
		Short:   "train a built-in workload and record what its memory does",
		Long: `Trains one of memdiag's own workloads on its engine and writes a run: counters
of every allocation stack at each step, and every block at some of them.`,
		Example: `  memdiag record --workload L30 --steps 100 --every 50 --out my-run
  memdiag record --workload L30 --fixed`,
		Args: takes(0, 0, "arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if job.workload == "" {
				return usagef(cmd, "--workload is missing; memdiag workloads lists them")
			}
			if job.steps < 1 || job.every < 1 {
				return usagef(cmd, "--steps and --every are at least 1")
			}
			dir, err := env.record(cmd.Context(), job)
			if err != nil {
				return err
			}
			env.talk.next("diff", dir)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&job.workload, "workload", "w", "", "the workload's `NAME`, as memdiag workloads lists them")
	flags.Int64Var(&job.steps, "steps", 100, "training steps")
	flags.Int64Var(&job.every, "every", 50, "steps between snapshots of all blocks")
	flags.StringVarP(&job.out, "out", "o", "", "`DIR` of the run, which must be new or empty; by default named by workload and time")
	flags.BoolVar(&job.fixed, "fixed", false, "train the repaired variant")
	flags.Int64Var(&job.seed, "seed", 0, "seed of all random draws")
	flags.Var(&job.backend, "backend", "where to train")
	flags.Var((*size)(&job.limit), "limit", "cap of the device's memory, such as 2GiB")
	_ = cmd.RegisterFlagCompletionFunc("workload", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return workloadNames(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func workloadNames() []string {
	var names []string
	for _, w := range workload.All() {
		names = append(names, w.ID)
	}
	return names
}

// size is a flag in bytes.
type size snapshot.Bytes

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return snapshot.Bytes(*s).String()
}

// Type names the values in help.
func (s *size) Type() string { return "SIZE" }

// Set reads a size such as 2GiB.
func (s *size) Set(v string) error {
	b, err := snapshot.ParseBytes(v)
	if err == nil && b <= 0 {
		err = errors.New("want more than nothing")
	}
	*s = size(b)
	return err
}

// recording is what one run is to be.
type recording struct {
	workload, out string
	backend       choice
	steps, every  int64
	seed          int64
	fixed         bool
	limit         snapshot.Bytes
}

// record trains the workload and returns the run's folder. What was recorded
// when training or recording fails stays.
func (env *environment) record(ctx context.Context, job recording) (dir string, err error) {
	chosen, err := workload.Find(job.workload)
	if err != nil {
		return "", &exitError{exitUsage, withHint(err, "memdiag workloads lists them")}
	}
	on, err := openBackend(job.backend.value)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if job.out == "" {
		job.out = fmt.Sprintf("%s-%s", strings.ToLower(chosen.ID), env.now().Format("20060102-150405"))
	}
	host, _ := os.Hostname() // only a remark in run.json
	out, err := rundir.Create(job.out, snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Workload: chosen.ID, Backend: job.backend.value, Seed: job.seed,
		Parameters: map[string]string{"fixed": fmt.Sprint(job.fixed)}, Steps: job.steps, Every: job.every,
		Started: env.now(), Host: host, Version: version(),
	})
	if err != nil {
		return "", cannotRecord(err)
	}
	err = env.train(ctx, chosen, job, on, out)
	code := exitFine
	var notes []string
	if err != nil {
		code, notes = exitCode(err), []string{err.Error()}
	}
	if finish := out.Finish(code, env.now(), notes...); err == nil {
		err = finish
	}
	if err != nil {
		env.talk.say("what was recorded until then is in %s", out.Dir())
	}
	return filepath.Clean(job.out), err
}

// cannotRecord makes a folder that cannot be made memdiag's own error: nothing
// was read. One that is not empty is a mistake in the arguments.
func cannotRecord(err error) error {
	if _, ok := errors.AsType[*rundir.NotEmptyError](err); ok {
		return err
	}
	return &exitError{exitOwn, err}
}

func (env *environment) train(ctx context.Context, chosen workload.Workload, job recording, on backend, out *rundir.Writer) (err error) {
	devices := comm.Devices(max(1, chosen.Ranks), on.driver, mem.Options{Limit: job.limit})
	defer func() {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
	}()
	config := workload.Config{Seed: job.seed, Fixed: job.fixed, Device: devices[0], Kernels: on.kernels(runtime.GOMAXPROCS(0))}
	for _, d := range devices[1:] {
		config.Peers = append(config.Peers, workload.Peer{Device: d, Kernels: on.kernels(1)})
	}
	instance, err := chosen.New(config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, instance.Close()) }()
	loop := train.Loop{Devices: devices, Now: env.now}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	var recorders []*train.Recorder
	defer func() {
		for _, r := range recorders {
			err = errors.Join(err, r.Wait())
		}
	}()
	for rank, d := range devices {
		if chosen.Ranks == 0 {
			rank = snapshot.NoRank
		}
		ledgers := []*mem.Device{d}
		if h, ok := instance.(workload.Hosted); ok && h.Host() != nil {
			ledgers = append(ledgers, h.Host())
			loop.Devices = append(slices.Clip(devices), h.Host())
		}
		holders := func(s *snapshot.Snapshot) { s.Holders = train.Holders(instance.Model(), s, ledgers...) }
		r, err := train.NewRankRecorder(out, rank, job.every, job.steps, holders, ledgers...)
		if err != nil {
			return err
		}
		recorders = append(recorders, r)
		loop.OnBarrier(r.Barrier)
	}
	began := env.now()
	loop.OnBarrier(func(m snapshot.Mark) error {
		env.talk.progress("%s: step %d of %d, %s live", chosen.ID, m.Step, job.steps, allocated(devices))
		return nil
	})
	if err := loop.Run(ctx, job.steps, instance.Step); err != nil {
		for _, r := range recorders {
			err = errors.Join(err, r.Final())
		}
		return err
	}
	took := env.now().Sub(began).Round(100 * time.Millisecond)
	outcome := ""
	if s, ok := instance.(workload.Summarizer); ok {
		summary, err := s.Summary()
		if err != nil {
			return err
		}
		outcome = summary + "; "
	}
	steps := "1 step"
	if job.steps != 1 {
		steps = fmt.Sprintf("%d steps", job.steps)
	}
	env.talk.say("%s trained for %s in %s; %sthe run is in %s", chosen.ID, steps, took, outcome, out.Dir())
	return nil
}

// allocated is what all devices hold together.
func allocated(devices []*mem.Device) (sum snapshot.Bytes) {
	for _, d := range devices {
		sum += d.Meters().Allocated
	}
	return sum
}
