package baseline

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// grower is a kind of processes, other than the recorded one, that grows in a run.
type grower struct {
	finding *diff.Finding // the leak that explains it; nil for none
	process *diff.Reserve // growth per second of the one that grows most
	leaks   diff.Rate     // the sum of its leaks' rates, as in the run's report; zero Rate without a finding
}

func growing(r *diff.Result) (all []grower) {
	for _, c := range r.Children {
		rate, _ := c.Leaked()
		f := &c.Result.Findings[slices.IndexFunc(c.Result.Findings, func(f diff.Finding) bool { return f.Verdict == diff.Leak })]
		leaks := diff.Rate{Unit: f.Rate.Unit}
		for i := range c.Result.Findings {
			if of := &c.Result.Findings[i]; of.Verdict == diff.Leak {
				leaks.Bytes = add(leaks.Bytes, of.Rate.Bytes)
			}
		}
		e := &diff.Reserve{Meter: cause.Host, Rate: diff.Rate{Unit: diff.Second, Bytes: trend.Slope{Value: rate, Low: rate, High: rate}}}
		if by := leaks.Bytes; by.Value > 0 {
			e.Rate.Bytes.Low, e.Rate.Bytes.High = rate*by.Low/by.Value, rate*by.High/by.Value
		}
		e.Processes = &diff.Processes{Role: c.Role, PID: c.PID, Recorded: true}
		all = append(all, grower{f, e, leaks})
	}
	for _, e := range r.Unaccounted() {
		if e.Processes != nil {
			all = append(all, grower{process: e})
		}
	}
	return all
}

// rates returns the rates of a kind before and after: as in each run's report if both have the same unit, else per
// second. One may be nil, if it does not grow.
func rates(before, after *grower) (unit diff.Unit, was, is trend.Slope) {
	grow := slices.DeleteFunc([]*grower{before, after}, func(g *grower) bool { return g == nil })
	of := func(g *grower) diff.Rate { return g.process.Rate }
	if unit = grow[0].leaks.Unit; unit != "" && grow[len(grow)-1].leaks.Unit == unit {
		of = func(g *grower) diff.Rate { return g.leaks }
	}
	for _, g := range grow {
		if unit = of(g).Unit; g == before {
			was = of(g).Bytes
		} else {
			is = of(g).Bytes
		}
	}
	return unit, was, is
}

// alike reports whether two growers are of one kind of processes, and both or neither are of shared memory.
func (g *grower) alike(other *grower) bool {
	p, q := g.process.Processes, other.process.Processes
	return diff.KindOf(p.Role) == diff.KindOf(q.Role) && p.Shared == q.Shared
}

// processes checks the other processes that grew, once for each kind, and those that grow only now.
func (c *comparison) processes() []Check {
	before, after := growing(c.before), growing(c.after)
	var out []Check
	var seen []*grower
	told := func(g *grower) bool {
		again := slices.ContainsFunc(seen, g.alike)
		seen = append(seen, g)
		return again
	}
	for i := range before {
		g := &before[i]
		if told(g) {
			continue
		}
		k := Check{Finding: g.finding, Process: g.process, Answer: CannotTell}
		k.Unit, k.Before, _ = rates(g, nil)
		now := slices.IndexFunc(after, func(o grower) bool { return o.alike(g) })
		switch p := g.process.Processes; {
		case now >= 0:
			k.Answer, k.Why = Remains, "it still grows"
			if k.Unit, k.Before, k.After = rates(g, &after[now]); k.After.High < k.Before.Low {
				k.Why = "it grows less, but still grows"
			}
		case c.processesDoubt != "":
			k.Why = c.processesDoubt
		case !c.alike:
			k.Why = "it was run with other arguments, and nothing shows that it reached the code that leaked"
		case p.Shared:
			k.Why = "shared memory no longer grows, but nothing shows that it was used as much"
		case !c.after.ProcessesWouldShow(diff.KindOf(p.Role), g.process.Rate.Bytes.Value):
			k.Why = "no process of that role ran long enough to show growth of this rate"
		default:
			if k.Why = c.skipped(k.Finding); k.Why == "" {
				k.Answer, k.Why, k.Reached = Gone, "it no longer grows", "a process of that role ran long enough to show growth of this rate"
			}
		}
		out = append(out, k)
	}
	for i := range after {
		g := &after[i]
		if told(g) {
			continue
		}
		k := Check{Finding: g.finding, Process: g.process, Answer: CannotTell, Why: "it is new; source line unknown"}
		k.Unit, _, k.After = rates(nil, g)
		if k.Finding != nil {
			k.Answer, k.Why = Remains, "it is new"
		}
		out = append(out, k)
	}
	return out
}

// skipped says, as a clause, why another process that grew may not have done its work after the fix; "" if its line
// ran, or the code changed. Without a finding, any code of the program counts.
func (c *comparison) skipped(f *diff.Finding) string {
	var frames []snapshot.Frame
	if f != nil {
		frames = f.Rows[0].Frames
	}
	if of := c.compareCode(frames); of.change == changed || of.looks > 0 {
		return ""
	}
	return c.reached(frames, false).why
}
