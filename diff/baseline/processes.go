package baseline

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// growing are the kinds of processes that grow in a run, other than the recorded one: with the leak that explains it, or
// without. A kind's rate is by the second, of the one that grows most.
func growing(r *diff.Result) (all []Check) {
	for _, c := range r.Children {
		rate, _ := c.Leaked()
		f := &c.Result.Findings[slices.IndexFunc(c.Result.Findings, func(f diff.Finding) bool { return f.Verdict == diff.Leak })]
		slope, by := trend.Slope{Value: rate, Low: rate, High: rate}, f.Rate.Bytes
		if by.Value > 0 {
			slope.Low, slope.High = rate*by.Low/by.Value, rate*by.High/by.Value
		}
		e := &diff.Reserve{Meter: cause.Host, Rate: diff.Rate{Unit: diff.Second, Bytes: slope}}
		e.Processes = &diff.Processes{Role: c.Role, PID: c.PID, Recorded: true}
		all = append(all, Check{Finding: f, Process: e})
	}
	for _, e := range r.Unaccounted() {
		if e.Processes != nil {
			all = append(all, Check{Process: e})
		}
	}
	return all
}

// alikeProcesses reports whether two checks are of one kind of processes, and both of shared memory or of none.
func alikeProcesses(a, b *Check) bool {
	p, q := a.Process.Processes, b.Process.Processes
	return diff.KindOf(p.Role) == diff.KindOf(q.Role) && p.Shared == q.Shared
}

// processes is what became of the other processes that grew, a check for each kind, and of those that only grow now.
func (c *comparison) processes() []Check {
	before, after := growing(c.before), growing(c.after)
	var out []Check
	for i := range before {
		k := &before[i]
		if slices.ContainsFunc(out, func(o Check) bool { return alikeProcesses(&o, k) }) {
			continue
		}
		k.Before = k.Process.Rate.Bytes
		now := slices.IndexFunc(after, func(o Check) bool { return alikeProcesses(&o, k) })
		k.Answer = CannotTell
		switch role := k.Process.Processes.Role; {
		case now >= 0:
			k.Answer, k.Why, k.After = Remains, "it still grows", after[now].Process.Rate.Bytes
			if k.After.High < k.Before.Low {
				k.Why = "it grows less, but still"
			}
		case c.processesDoubt != "":
			k.Why = c.processesDoubt
		case !c.alike:
			k.Why = "it was run with other arguments, and nothing shows that it reached the work that leaked"
		case k.Process.Processes.Shared:
			k.Why = "shared memory no longer grows, and nothing shows that it was used as much"
		case !c.after.ProcessesWouldShow(diff.KindOf(role), k.Before.Value):
			k.Why = "no process of that role ran long enough to show growth of this rate"
		default:
			if k.Why = c.skipped(k.Finding); k.Why == "" {
				k.Answer, k.Why, k.Reached = Gone, "it no longer grows", "a process of that role ran long enough to show growth of this rate"
			}
		}
		out = append(out, *k)
	}
	for i := range after {
		k := &after[i]
		if slices.ContainsFunc(out, func(o Check) bool { return alikeProcesses(&o, k) }) {
			continue
		}
		k.After = k.Process.Rate.Bytes
		k.Answer, k.Why = CannotTell, "it is new, and no line of it is known"
		if k.Finding != nil {
			k.Answer, k.Why = Remains, "it is new"
		}
		out = append(out, *k)
	}
	return out
}

// skipped is why the work of another process that grew may not have been done after the fix, a clause; "" where its line ran, or
// the code was changed. Without a finding any code of the program's counts.
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
