package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/engine/workload"
	"github.com/memdiag/memdiag/snapshot"
)

// benchParts is into how many parts of equal length a run is cut: at the end of
// each there is a snapshot, and every rule judges what there is until then.
const benchParts = 10

// benchRun is a workload to run, and what every rule says of it.
type benchRun struct {
	workload workload.Workload
	seed     int64
	fixed    bool
	truth    workload.Truth
	guilty   []snapshot.Frame // the lines that leak, file and line only
	verdicts []benchVerdict   // one for each rule
}

// leaks reports whether the run does.
func (r *benchRun) leaks() bool { return r.workload.Label == workload.Leak && !r.fixed }

// benchVerdict is what one rule says of one run.
type benchVerdict struct {
	// found: the rule flags the run, and where it names stacks, one through a line
	// that leaks. Of a run that does not leak it is any flag, a false alarm.
	found bool
	line  bool // the first one's headline is a line that leaks
	cause bool // and the cause is the right one
	// steps is from how many on the rule said so at the end of every part; 0 if not
	// found.
	steps int64
}

// benchRuns lists what is to be run: every workload with every seed, and every
// leak repaired as well.
func benchRuns(workloads []workload.Workload, seeds int64) ([]*benchRun, error) {
	var runs []*benchRun
	for _, w := range workloads {
		for seed := range seeds {
			for _, fixed := range []bool{false, true} {
				if fixed && w.Label != workload.Leak {
					continue
				}
				r := &benchRun{workload: w, seed: seed, fixed: fixed, truth: w.Truth(seed)}
				for _, g := range r.truth.Growth {
					file, line, err := workload.Line(g.Marker)
					if err != nil {
						return nil, err
					}
					r.guilty = append(r.guilty, snapshot.Frame{File: file, Line: line})
				}
				runs = append(runs, r)
			}
		}
	}
	return runs, nil
}

// bench runs and judges all, as many at a time as there are processors: so no
// more than that many runs are in memory.
func (env *environment) bench(ctx context.Context, runs []*benchRun) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *benchRun)
	var done atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for r := range next {
				if err := r.do(ctx); err != nil {
					cancel(fmt.Errorf("%s, seed %d: %w", r.workload.ID, r.seed, err))
				}
				env.talk.progress("bench: %d of %d runs", done.Add(1), len(runs))
			}
		})
	}
	for _, r := range runs {
		if ctx.Err() != nil {
			break
		}
		next <- r
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// do trains, records in memory, and has every rule judge.
func (r *benchRun) do(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, err := r.record(ctx)
	if err != nil {
		return err
	}
	rules := benchRules()
	r.verdicts = make([]benchVerdict, len(rules))
	for i, rule := range rules {
		for part := 1; part <= benchParts; part++ {
			until := prefix(whole, part)
			flags, err := rule.judge(until)
			if err != nil {
				return fmt.Errorf("rule %s: %w", rule.name, err)
			}
			v := r.verdict(flags)
			if v.found {
				v.steps = until.Snapshots[part].Mark.Step
				if before := r.verdicts[i]; before.found {
					v.steps = before.steps
				}
			}
			r.verdicts[i] = v
		}
	}
	return nil
}

// verdict holds what a rule flags against the truth.
func (r *benchRun) verdict(flags []flag) benchVerdict {
	if len(flags) == 0 {
		return benchVerdict{}
	}
	if !r.leaks() {
		return benchVerdict{found: true}
	}
	through := func(f flag) bool {
		return f.frames == nil || slices.ContainsFunc(f.frames, r.isGuilty)
	}
	first := flags[0]
	v := benchVerdict{found: slices.ContainsFunc(flags, through)}
	v.line = first.headline >= 0 && r.isGuilty(first.frames[first.headline])
	v.cause = v.line && first.cause == r.workload.Cause
	return v
}

func (r *benchRun) isGuilty(f snapshot.Frame) bool {
	return slices.ContainsFunc(r.guilty, func(g snapshot.Frame) bool { return g.File == f.File && g.Line == f.Line })
}

// prefix is a run as it was at the end of a part.
func prefix(whole *snapshot.Run, part int) *snapshot.Run {
	until := *whole
	until.Snapshots = whole.Snapshots[:part+1]
	series := *whole.Series
	last := until.Snapshots[part].Mark.Step
	at := slices.IndexFunc(series.Points, func(p snapshot.Point) bool {
		return p.Mark.Step > last || p.Mark.Step == last && p.Mark.Phase != train.Training
	})
	if at >= 0 {
		series.Points = series.Points[:at]
	}
	until.Series = &series
	return &until
}

// record trains and keeps in memory what a folder would have.
func (r *benchRun) record(ctx context.Context) (run *snapshot.Run, err error) {
	devices := comm.Devices(max(1, r.workload.Ranks), mem.Host(), mem.Options{})
	defer func() {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
	}()
	// Runs share the processors, so that one has no use for more than one.
	config := workload.Config{Seed: r.seed, Fixed: r.fixed, Device: devices[0], Kernels: cpu.New(1)}
	for _, d := range devices[1:] {
		config.Peers = append(config.Peers, workload.Peer{Device: d, Kernels: cpu.New(1)})
	}
	instance, err := r.workload.New(config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, instance.Close()) }()
	ledgers := devices
	if h, ok := instance.(workload.Hosted); ok && h.Host() != nil {
		ledgers = append(slices.Clip(devices), h.Host())
	}
	series := mem.NewSeries(ledgers...)
	run = &snapshot.Run{}
	loop := train.Loop{Devices: ledgers}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	every := r.truth.Steps / benchParts
	loop.OnBarrier(func(m snapshot.Mark) error {
		series.Append(m)
		if m.Phase == train.Training && m.Step%every == 0 && len(run.Snapshots) <= benchParts {
			s := mem.Take(m, ledgers...)
			s.Holders = train.Holders(instance.Model(), s, ledgers...)
			run.Snapshots = append(run.Snapshots, s)
		}
		return nil
	})
	if err := loop.Run(ctx, every*benchParts, instance.Step); err != nil {
		return nil, err
	}
	run.Series = series.Series()
	return run, nil
}
