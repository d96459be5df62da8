// Package corpus runs the labelled workloads and holds what memdiag and simpler rules
// say of them against the truth.
package corpus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// Plan is what of each run the rules see. A run is cut into parts of equal
// length: at the end of each there is a snapshot, and every rule judges what there
// is until then.
type Plan struct {
	First, Seeds int64
	Parts        int
	Counters     bool // also those of each step
	// Stopped is how many runs were meant, where not all were done; else 0.
	Stopped int
}

// Run is a workload to run, and what every rule says of it.
type Run struct {
	plan     Plan
	Workload workload.Workload
	Seed     int64
	Fixed    bool
	truth    workload.Truth
	guilty   []snapshot.Frame // the lines that leak, file and line only
	verdicts []verdict        // one for each rule; nil until the run is done
}

// Leaks reports whether the run does.
func (r *Run) Leaks() bool { return r.Workload.Label == workload.Leak && !r.Fixed }

// verdict is what one rule says of one run.
type verdict struct {
	// found: the rule flags the run, and where it names stacks, one through a line
	// that leaks. Of a run that does not leak it is any flag, a false alarm.
	found bool
	// undecided: it did not find a leak, but says that it cannot tell of a stack
	// through a line that leaks. Of a run that does not leak it is any such stack.
	undecided bool
	line      bool // the first one's headline is a line that leaks
	cause     bool // and the cause is the right one
	// lines counts the lines that leak and that the headline of a flag is; strays the
	// flags of a leaking run that have no stack through such a line.
	lines, strays int
	// steps is from how many on the rule said so at the end of every part; 0 if not
	// found.
	steps int64
}

// Runs lists what is to be run: every workload with every seed, and every
// leak repaired as well.
func Runs(workloads []workload.Workload, plan Plan) ([]*Run, error) {
	var runs []*Run
	for _, w := range workloads {
		for seed := plan.First; seed < plan.First+plan.Seeds; seed++ {
			for _, fixed := range []bool{false, true} {
				if fixed && w.Label != workload.Leak {
					continue
				}
				r := &Run{plan: plan, Workload: w, Seed: seed, Fixed: fixed, truth: w.Truth(seed)}
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

// Judge runs and judges all, seed after seed, as many at a time as there are
// processors: so no more than that many runs are in memory. After each run it calls
// progress, from several goroutines.
func Judge(ctx context.Context, runs []*Run, progress func(done int64, all int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *Run)
	var done atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for r := range next {
				if err := r.do(ctx); err != nil {
					cancel(fmt.Errorf("%s, seed %d: %w", r.Workload.ID, r.Seed, err))
				}
				progress(done.Add(1), len(runs))
			}
		})
	}
	bySeed := slices.Clone(runs)
	// Leaks are listed first, and a part is to tell of all.
	mixed := rand.New(rand.NewPCG(1, 2))
	mixed.Shuffle(len(bySeed), func(i, j int) { bySeed[i], bySeed[j] = bySeed[j], bySeed[i] })
	slices.SortStableFunc(bySeed, func(a, b *Run) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, r := range bySeed {
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
func (r *Run) do(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, err := r.Record(ctx)
	if err != nil {
		return err
	}
	rules := rules()
	verdicts := make([]verdict, len(rules))
	for i, rule := range rules {
		for part := 1; part <= r.plan.Parts; part++ {
			until := prefix(whole, part)
			said, err := rule.judge(until)
			if err != nil {
				return fmt.Errorf("rule %s: %w", rule.name, err)
			}
			v := r.verdict(said)
			if v.found {
				v.steps = until.Snapshots[part].Mark.Step
				if before := verdicts[i]; before.found {
					v.steps = before.steps
				}
			}
			verdicts[i] = v
		}
	}
	r.verdicts = verdicts
	return nil
}

// verdict holds what a rule says against the truth.
func (r *Run) verdict(said opinion) (v verdict) {
	if !r.Leaks() {
		return verdict{found: len(said.leaks) > 0, undecided: len(said.undecided) > 0}
	}
	for _, f := range said.leaks {
		if r.through(f) {
			v.found = true
		} else {
			v.strays++
		}
	}
	v.undecided = !v.found && slices.ContainsFunc(said.undecided, r.through)
	if len(said.leaks) > 0 {
		first := said.leaks[0]
		v.line = r.names(first)
		v.cause = v.line && first.cause == r.Workload.Cause
	}
	for _, g := range r.guilty {
		if slices.ContainsFunc(said.leaks, func(f flag) bool { return f.named != nil && sameLine(*f.named, g) }) {
			v.lines++
		}
	}
	return v
}

// through says whether a flag is for a stack through a line that leaks, or for a
// total, which every leak is in.
func (r *Run) through(f flag) bool {
	return f.stacks == nil || slices.ContainsFunc(f.stacks, func(frames []snapshot.Frame) bool { return slices.ContainsFunc(frames, r.IsGuilty) })
}

// names says whether a flag names a line that leaks.
func (r *Run) names(f flag) bool { return f.named != nil && r.IsGuilty(*f.named) }

// IsGuilty reports whether a frame is on a line that leaks.
func (r *Run) IsGuilty(f snapshot.Frame) bool {
	return slices.ContainsFunc(r.guilty, func(g snapshot.Frame) bool { return sameLine(f, g) })
}

func sameLine(a, b snapshot.Frame) bool { return a.File == b.File && a.Line == b.Line }

// Done reports whether every rule has judged the run.
func (r *Run) Done() bool { return r.verdicts != nil }

// prefix is a run as it was at the end of a part.
func prefix(whole *snapshot.Run, part int) *snapshot.Run {
	until := *whole
	until.Snapshots = whole.Snapshots[:part+1]
	if whole.Series == nil {
		return &until
	}
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

// Record trains and keeps in memory what a folder would have.
func (r *Run) Record(ctx context.Context) (run *snapshot.Run, err error) {
	devices := comm.Devices(max(1, r.Workload.Ranks), mem.Host(), mem.Options{})
	defer func() {
		for _, d := range devices {
			err = errors.Join(err, d.Close())
		}
	}()
	// Runs share the processors, so that one has no use for more than one.
	config := workload.Config{Seed: r.Seed, Fixed: r.Fixed, Device: devices[0], Kernels: cpu.New(1)}
	for _, d := range devices[1:] {
		config.Peers = append(config.Peers, workload.Peer{Device: d, Kernels: cpu.New(1)})
	}
	instance, err := r.Workload.New(config)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, instance.Close()) }()
	ledgers := devices
	if h, ok := instance.(workload.Hosted); ok && h.Host() != nil {
		ledgers = append(slices.Clip(devices), h.Host())
	}
	series := mem.NewSeries(ledgers...)
	run = &snapshot.Run{Info: snapshot.Info{Bounds: r.Workload.DeclaredBounds(r.Seed)}}
	loop := train.Loop{Devices: ledgers}
	if p, ok := instance.(workload.Phased); ok {
		loop.Phases = p.Phases()
	}
	every := r.truth.Steps / int64(r.plan.Parts)
	loop.OnBarrier(func(m snapshot.Mark) error {
		if r.plan.Counters {
			series.Append(m)
			run.Series = series.Series()
		}
		if m.Phase == train.Training && m.Step%every == 0 {
			s := mem.Take(m, ledgers...)
			s.Holders = train.Holders(instance.Model(), s, ledgers...)
			run.Snapshots = append(run.Snapshots, s)
		}
		return nil
	})
	if err := loop.Run(ctx, every*int64(r.plan.Parts), instance.Step); err != nil {
		return nil, err
	}
	return run, nil
}
