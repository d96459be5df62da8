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

// Plan is which seeds are run, and as what recorders they are seen. A run is cut into
// parts, at the end of each of which there is a snapshot, and every rule judges what
// there is until then.
type Plan struct {
	First, Seeds int64
	Views        []View // one at least
	// Without are parts of memdiag's judge: it is compared with itself without each of them, at
	// the end of each run.
	Without []string
	// Stopped is how many runs were meant, where not all were done; else 0.
	Stopped int
}

// Run is a workload to run, and what every rule says of it.
type Run struct {
	View        View
	Workload    workload.Workload
	Seed        int64
	Fixed       bool
	other       *Run // of the second process; nil for none
	truth       workload.Truth
	guilty      []snapshot.Frame // the lines that leak, file and line only
	rules       []rule
	ablated     bool
	held        []string    // the fields that keep what leaks; none where no name leads to it
	marks       []int64     // the steps with a snapshot, once it is recorded
	calibration calibration // of memdiag's own rule
	verdicts    []verdict   // one for each rule; nil until the run is done
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
	holder    bool // the first one through a line that leaks names what keeps the blocks
	// lines counts the lines that leak and that the headline of a flag is; strays the
	// flags of a leaking run that have no stack through such a line.
	lines, strays int
	findings      int // flags of a leaking run with a stack through such a line
	// steps is from how many on the rule said so at the end of every part; 0 if not
	// found.
	steps int64
}

// Runs lists what is to be run: every workload with every seed in every view, and every
// leak repaired as well.
func Runs(workloads []workload.Workload, plan Plan) ([]*Run, error) {
	var runs []*Run
	for _, view := range plan.Views {
		for _, w := range workloads {
			for seed := plan.First; seed < plan.First+plan.Seeds; seed++ {
				for _, fixed := range []bool{false, true} {
					if fixed && w.Label != workload.Leak {
						continue
					}
					r, err := newRun(view, w, seed, fixed)
					if err != nil {
						return nil, err
					}
					if view.processes {
						other := *r
						other.View.marks = unevenly(11)
						r.other = &other
					}
					r.rules, r.ablated = plan.rules(), len(plan.Without) > 0
					runs = append(runs, r)
				}
			}
		}
	}
	return runs, nil
}

func newRun(view View, w workload.Workload, seed int64, fixed bool) (*Run, error) {
	r := &Run{View: view, Workload: w, Seed: seed, Fixed: fixed, truth: w.Truth(seed)}
	for _, g := range r.truth.Growth {
		file, line, err := workload.Line(g.Marker)
		if err != nil {
			return nil, err
		}
		name := holders[g.Marker]
		if view.rename != nil {
			file, name = view.rename(file), nameless(name)
		}
		if name != "" && !view.noHolders {
			r.held = append(r.held, name)
		}
		r.guilty = append(r.guilty, snapshot.Frame{File: file, Line: line})
	}
	return r, nil
}

// rules are all where one view is asked for, and else memdiag's and the best of the
// others.
func (p Plan) rules() []rule {
	all := rules()
	if len(p.Without) > 0 {
		ablated := all[:1]
		for _, name := range p.Without {
			ablated = append(ablated, own("without "+name, name))
		}
		return ablated
	}
	if len(p.Views) == 1 {
		return all
	}
	return []rule{all[0], all[best]}
}

// Judge runs and judges all, seed after seed, as many at a time as there are
// processors: so no more than that many runs are in memory. After each run it calls
// progress, from several goroutines.
func Judge(ctx context.Context, runs []*Run, progress func(done int64, all int)) error {
	return each(ctx, runs, progress, func(_ int, r *Run) error { return r.do(ctx) })
}

// each does something with all runs, by their index, seed after seed, as Judge does.
func each(ctx context.Context, runs []*Run, progress func(done int64, all int), do func(int, *Run) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var done atomic.Int64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				if err := do(i, runs[i]); err != nil {
					cancel(fmt.Errorf("%s, seed %d: %w", runs[i].Workload.ID, runs[i].Seed, err))
				}
				progress(done.Add(1), len(runs))
			}
		})
	}
	// Leaks are listed first, and a part is to tell of all.
	order := rand.New(rand.NewPCG(1, 2)).Perm(len(runs))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(runs[a].Seed, runs[b].Seed) })
	for _, i := range order {
		if ctx.Err() != nil {
			break
		}
		next <- i
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
	processes, err := r.recordAll(ctx)
	if err != nil {
		return err
	}
	whole := processes[0]
	verdicts := make([]verdict, len(r.rules))
	for i, rule := range r.rules {
		said := make([]opinion, len(whole.Snapshots))
		first := 1
		if r.View.once || r.ablated {
			first = len(whole.Snapshots) - 1
		}
		for part := first; part < len(whole.Snapshots); part++ {
			if said[part], err = r.ask(rule, processes, part); err != nil {
				return fmt.Errorf("rule %s: %w", rule.name, err)
			}
			v := r.verdict(said[part])
			if v.found {
				v.steps = r.marks[part]
				if before := verdicts[i]; before.found {
					v.steps = before.steps
				}
			}
			verdicts[i] = v
		}
		if i == 0 {
			r.calibration = r.calibrate(whole, said)
		}
	}
	r.verdicts = verdicts
	return nil
}

// recordAll records each process, of the same call: it is a part of their stacks.
func (r *Run) recordAll(ctx context.Context) ([]*snapshot.Run, error) {
	var all []*snapshot.Run
	for _, process := range []*Run{r, r.other} {
		if process == nil {
			continue
		}
		run, err := process.Record(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, run)
	}
	return all, nil
}

// ask is what a rule says of all processes at the end of a part, a leak that several have once.
func (r *Run) ask(rule rule, processes []*snapshot.Run, part int) (opinion, error) {
	var all opinion
	for rank, whole := range processes {
		said, err := rule.judge(r.prefix(whole, min(part, len(whole.Snapshots)-1)))
		if err != nil {
			return all, err
		}
		if rank == 0 {
			all = said
			continue
		}
		all.leaks, all.undecided = joined(all.leaks, said.leaks), joined(all.undecided, said.undecided)
	}
	return all, nil
}

// joined are the flags of one process, and those of another with stacks of their own.
func joined(one, another []flag) []flag {
	for _, f := range another {
		if !slices.ContainsFunc(one, func(g flag) bool {
			return slices.ContainsFunc(g.hashes, func(h snapshot.Hash) bool { return slices.Contains(f.hashes, h) })
		}) {
			one = append(one, f)
		}
	}
	return one
}

// verdict holds what a rule says against the truth.
func (r *Run) verdict(said opinion) (v verdict) {
	if !r.Leaks() {
		return verdict{found: len(said.leaks) > 0, undecided: len(said.undecided) > 0}
	}
	for _, f := range said.leaks {
		if r.through(f) {
			v.found = true
			v.findings++
		} else {
			v.strays++
		}
	}
	if i := slices.IndexFunc(said.leaks, r.through); i >= 0 {
		v.holder = slices.ContainsFunc(r.held, func(name string) bool { return heldBy(said.leaks[i].holder, name) })
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

// through says whether a flag is for a stack through a line that leaks, for blocks
// whose stack is not known, or for a total, which every leak is in.
func (r *Run) through(f flag) bool {
	return f.stacks == nil || slices.ContainsFunc(f.stacks, func(frames []snapshot.Frame) bool {
		return len(frames) == 0 || slices.ContainsFunc(frames, r.IsGuilty)
	})
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
func (r *Run) prefix(whole *snapshot.Run, part int) *snapshot.Run {
	until := *whole
	until.Snapshots = whole.Snapshots[:part+1]
	if whole.Series == nil || r.View.goesOn && part == len(whole.Snapshots)-1 {
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

// Record trains and keeps in memory what a folder would have, as the view sees it.
func (r *Run) Record(ctx context.Context) (*snapshot.Run, error) {
	rng := rand.New(rand.NewPCG(uint64(r.Seed), 11))
	marks := evenly(11)
	if r.View.marks != nil {
		marks = r.View.marks
	}
	r.marks = marks(r.truth.Steps, rng)
	last := r.marks[len(r.marks)-1]
	end := last
	if r.View.goesOn {
		end += (r.marks[1] - 1) * int64(rng.IntN(100)) / 100
	}
	var run *snapshot.Run
	var err error
	if r.View.resumes {
		run, err = r.resume(ctx)
	} else {
		run, err = r.train(ctx, r.marks, end)
	}
	if err == nil && r.View.see != nil {
		r.View.see(run, rng)
	}
	return run, err
}

// resume trains for six tenths of the steps, and then anew for all, as a process that
// goes on from there. The first snapshot of the second process is at its first mark.
func (r *Run) resume(ctx context.Context) (*snapshot.Run, error) {
	marks := r.marks
	killed := marks[6]
	first, err := r.train(ctx, marks[:7], killed)
	if err != nil {
		return nil, err
	}
	second, err := r.train(ctx, marks, marks[10])
	if err != nil {
		return nil, err
	}
	r.marks = slices.Clone(marks[:7])
	for i, s := range second.Snapshots[1:] {
		s.Mark.Step += killed
		for row, step := range s.Blocks.BirthStep {
			if step != snapshot.NoStep {
				s.Blocks.BirthStep[row] = step + killed
			}
		}
		r.marks = append(r.marks, marks[i+1]+killed)
	}
	first.Snapshots = append(first.Snapshots, second.Snapshots[1:]...)
	return first, nil
}

// train trains to the end, with a snapshot at each mark.
func (r *Run) train(ctx context.Context, marks []int64, end int64) (run *snapshot.Run, err error) {
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
	loop.OnBarrier(func(m snapshot.Mark) error {
		if r.View.Counters {
			series.Append(m)
			run.Series = series.Series()
		}
		if m.Phase == train.Training && slices.Contains(marks, m.Step) {
			s := mem.Take(m, ledgers...)
			s.Holders = train.Holders(instance.Model(), s, ledgers...)
			run.Snapshots = append(run.Snapshots, s)
		}
		return nil
	})
	if err := loop.Run(ctx, end, instance.Step); err != nil {
		return nil, err
	}
	return run, nil
}
