package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memdiag/memdiag/diff/canary"
	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/record"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func newRecordCommand(env *environment) *cobra.Command {
	job := recording{backend: choice{"cpu", backends}}
	heap := choice{"auto", []string{"auto", "on", "off"}}
	var every interval
	var profile, fleet string
	var noCommand, watched bool
	var budgets budgetFlags
	var logTo trackersFlag
	cmd := &cobra.Command{
		Use:     "record [flags] -- COMMAND [ARGUMENT …] | record --workload NAME | record --pprof URL",
		GroupID: groupFind,
		Short:   "run a command, or train a built-in workload, and record its memory",
		Long: `Runs a command unchanged and records its memory. Results, output and exit code stay
the command's own. The result is a run: a folder of snapshots.

In a Python program memdiag records PyTorch's memory and its allocation stacks at steps
of the optimizer, Python's heap while it grows, and the objects that hold what grew. Of
any other command it records the memory of its processes. Costs and limits: ` + docsAddress + `recording.md

--pprof records the heap profiles that a Go program serves: COMMAND, or a running
program. It ends with the program, or with Ctrl-C. --workload trains a built-in
workload instead.`,
		Example: `  memdiag record -- python train.py --lr 1e-3
  memdiag record --every 100 -o my-run -- torchrun --nproc-per-node 2 train.py
  memdiag record --log-to wandb -- python train.py
  memdiag record --pprof localhost:6060 --every 5s -- ./server
  memdiag record --workload L30 --steps 100 --every 50 -o my-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case job.workload != "" && len(args) > 0:
				return usagef(cmd, "--workload and a command exclude each other")
			case job.workload == "" && len(args) == 0 && profile == "":
				return usagef(cmd, "there is no command to record, and no --workload")
			case job.workload != "" && profile != "":
				return usagef(cmd, "--pprof is for a command, or one that runs already")
			case profile != "" && every.steps > 0:
				return usagef(cmd, "heap profiles know no steps: --every is a time such as 5s")
			case len(args) > 0 || profile != "":
				for _, name := range []string{"steps", "fixed", "seed", "backend", "limit"} {
					if cmd.Flags().Changed(name) {
						return usagef(cmd, "--%s is for --workload", name)
					}
				}
				if len(budgets) > 0 && !watched {
					return usagef(cmd, "a budget is for --watch; of a run that has ended, memdiag gate checks it")
				}
				opts := commandJob{record.Options{Every: every.steps, Interval: every.time, PythonHeap: heap.value, LogTo: logTo}, noCommand, job.force, watched, budgets, fleet}
				if profile != "" {
					var err error
					if opts.Profile, err = record.ProfileURL(profile); err != nil {
						return usageOf(cmd, err)
					}
				}
				if len(args) == 0 && fleet != "" {
					return usagef(cmd, "--fleet is for a command")
				}
				if fleet != "" {
					if err := env.checkFleet(fleet); err != nil {
						return err
					}
				}
				if len(logTo) > 0 && profile != "" {
					return usagef(cmd, "--log-to is for Python programs, not for --pprof")
				}
				if len(args) == 0 {
					return env.recordProfiles(cmd.Context(), job.out, opts)
				}
				return env.recordCommand(cmd.Context(), job.out, args, opts)
			case every.time > 0 || cmd.Flags().Changed("python-heap") || noCommand || watched || len(budgets) > 0 || len(logTo) > 0 || fleet != "":
				return usagef(cmd, "a time between snapshots, --python-heap, --watch, --log-to, budgets, --fleet and --no-command are for a command")
			}
			job.every = cmp.Or(every.steps, defaultEvery)
			if job.steps < 1 {
				return usagef(cmd, "--steps is at least 1")
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
	flags.SetInterspersed(false) // words after a command belong to the command
	job.outFlags(cmd, "named by what is run and the time")
	flags.Var(&every, "every", "`STEPS` between snapshots, or a time such as 30s; by default chosen for a command, and 50 for a workload")
	flags.Var(&heap, "python-heap", "trace Python's heap by line, which slows Python down; auto traces only while the heap grows")
	flags.StringVar(&profile, "pprof", "", "`URL` at which a Go program serves its heap profile, such as localhost:6060")
	flags.BoolVar(&watched, "watch", false, "report leaks while the command runs, as memdiag watch does")
	flags.Var(&logTo, "log-to", "log memory, the verdict and the forecast to the run that the program has open; may be repeated")
	watchedBudgets(cmd, &budgets)
	noCommandFlag(cmd, &noCommand)
	flags.StringVar(&fleet, "fleet", "", "add the run to the fleet in `FOLDER`, or on a server at clickhouse://host/memdiag, when the command has ended, as memdiag fleet add does")
	flags.StringVarP(&job.workload, "workload", "w", "", "train the built-in workload `NAME` (memdiag workloads lists them)")
	flags.Int64Var(&job.steps, "steps", 100, "training steps of the workload")
	flags.BoolVar(&job.fixed, "fixed", false, "train the repaired variant of the workload")
	flags.Int64Var(&job.seed, "seed", 0, "seed of all random draws of the workload")
	flags.Var(&job.backend, "backend", "where to train the workload")
	flags.Var((*size)(&job.limit), "limit", "cap of the device's memory, such as 2GiB, for the workload")
	completeWords(cmd, "python-heap", heap.of)
	completeWords(cmd, "log-to", record.Trackers[:])
	_ = cmd.RegisterFlagCompletionFunc("workload", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return workloadNames(), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

// trackersFlag is a flag for experiment trackers, separated by commas or one per flag.
type trackersFlag []string

func (f *trackersFlag) String() string { return strings.Join(*f, ",") }

// Type names the values in help.
func (f *trackersFlag) Type() string { return strings.Join(record.Trackers[:], "|") }

// Set adds trackers.
func (f *trackersFlag) Set(v string) error {
	for name := range strings.SplitSeq(v, ",") {
		if !slices.Contains(record.Trackers[:], name) {
			return fmt.Errorf("want %s", strings.Join(record.Trackers[:], ", "))
		}
		if !slices.Contains(*f, name) {
			*f = append(*f, name)
		}
	}
	return nil
}

// defaultEvery is the number of steps between snapshots of a workload.
const defaultEvery = 50

// interval is a flag for a number of steps or a time; zero if not given.
type interval struct {
	steps int64
	time  time.Duration
}

func (i *interval) String() string {
	switch {
	case i.time > 0:
		return i.time.String()
	case i.steps > 0:
		return fmt.Sprint(i.steps)
	}
	return ""
}

// Type names the values in help.
func (i *interval) Type() string { return "STEPS" }

// Set reads 50, or 30s.
func (i *interval) Set(v string) error {
	*i = interval{}
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		if n < 1 {
			return errors.New("want at least 1 step")
		}
		i.steps = n
		return nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return errors.New("want a number of steps, or a time such as 30s")
	}
	if d < 100*time.Millisecond {
		return errors.New("want at least 100ms")
	}
	i.time = d
	return nil
}

func workloadNames() []string {
	var names []string
	for _, w := range workload.All() {
		names = append(names, w.ID)
	}
	return names
}

// size is a flag for a size in bytes.
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

// recording is the options of one run.
type recording struct {
	workload, out string
	backend       choice
	steps, every  int64
	seed          int64
	fixed         bool
	limit         snapshot.Bytes
	canary        bool // plant a canary
	force         bool // replace the finished run in the folder
}

// outFlags are the flags for the run's folder.
func (job *recording) outFlags(cmd *cobra.Command, byDefault string) {
	flags := cmd.Flags()
	flags.StringVarP(&job.out, "out", "o", "", "`DIR` of the run: new, empty, or with --force one that holds a run; by default "+byDefault)
	flags.BoolVar(&job.force, "force", false, "replace the finished run in DIR once the new one has ended; other files stay")
}

// createRun begins a run in a folder. It replaces a finished one if force is set and no word of the command names one of its files.
func createRun(dir string, force bool, info snapshot.Info, command ...string) (*rundir.Writer, error) {
	if force && info.Rank != nil {
		return nil, &exitError{exitUsage, withHint(errors.New("--force: each of several tasks would delete what the others record"), "delete the folder before they start")}
	}
	var out *rundir.Writer
	var err error
	if force {
		out, err = rundir.Replace(dir, info, command...)
	} else {
		out, err = rundir.Create(dir, info)
	}
	if err != nil {
		return nil, cannotRecord(err)
	}
	return out, nil
}

// record trains the workload and returns the run's folder. If training or recording fails, what was recorded stays.
func (env *environment) record(ctx context.Context, job recording) (dir string, err error) {
	chosen, err := workload.Find(job.workload)
	if err != nil {
		return "", &exitError{exitUsage, withHint(err, "memdiag workloads lists them")}
	}
	on, err := openBackend(job.backend.value, env.getenv("MEMDIAG_GPU"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	if left := record.Room(); left >= 0 && job.limit > left && job.backend.value == "cpu" {
		env.talk.say("the limit of %s is more than the available memory, %s: memory runs out first", job.limit, left)
	}
	if job.out == "" {
		job.out = env.freshFolder(strings.ToLower(chosen.ID))
	}
	host, _ := os.Hostname() // only a remark in run.json
	parameters := map[string]string{"fixed": fmt.Sprint(job.fixed)}
	if job.canary {
		parameters[canary.Key] = "true"
	}
	out, err := createRun(job.out, job.force, snapshot.Info{
		SchemaVersion: rundir.SchemaVersion, Workload: chosen.ID, Backend: job.backend.value, Seed: job.seed,
		Parameters: parameters, Steps: job.steps, Every: job.every,
		Started: env.now(), Host: host, Version: version(), Bounds: chosen.DeclaredBounds(job.seed),
	})
	if err != nil {
		return "", err
	}
	ctx, stop := endedByMore(ctx)
	defer stop()
	err = told(ctx, env.train(ctx, chosen, job, on, out))
	if err != nil && env.putBack(out) {
		return filepath.Clean(job.out), err
	}
	code := exitFine
	var notes []string
	if err != nil {
		code, notes = exitCode(err), []string{err.Error()}
	}
	if finish := out.Finish(code, env.now(), notes...); err == nil {
		err = finish
	}
	if err != nil {
		env.talk.say("the recording so far is in %s", out.Dir())
	}
	return filepath.Clean(job.out), err
}

// cannotRecord is the error if the run's folder cannot be made. It has the exit code for memdiag's own errors, since nothing was read.
// For a folder that is not empty it is a usage error.
func cannotRecord(err error) error {
	if code := exitCode(err); code == exitUsage {
		return err
	}
	return &exitError{exitOwn, withHint(err, "choose another folder with -o")}
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
	if job.canary {
		c := newCanary(job.steps, devices)
		defer c.release()
		loop.OnBarrier(c.plant)
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
	took := duration(env.now().Sub(began))
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

// allocated is the allocated memory of all devices together.
func allocated(devices []*mem.Device) (sum snapshot.Bytes) {
	for _, d := range devices {
		sum += d.Meters().Allocated
	}
	return sum
}
