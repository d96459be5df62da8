package baseline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/trend"
)

// Answer is the result for a leak, or for a run, after a fix.
type Answer string

// The answers.
const (
	Gone       Answer = "fixed"
	Remains    Answer = "not fixed"
	CannotTell Answer = "cannot tell"
)

// Check is one leak of the run before a fix, or one that only the run after it has.
type Check struct {
	Finding *diff.Finding // from the run before, or from the run after if it is new; nil for a Process without a known line
	Process *diff.Reserve // growth of the process, or of another process, that no stack explains; or nil
	Answer  Answer
	Why     string // one clause
	// Reached is the evidence that the later run did the work that leaked, as a clause; "" unless the answer is Gone.
	Reached string
	// Before and After are the growth of the same places in bytes per Unit, before and after the fix.
	Before, After trend.Slope
	Unit          diff.Unit
}

// enough is how many blocks a leak must have had time to add after a fix, so that their absence is evidence.
const enough = 10

// Verification compares the run after a fix with the run before it.
type Verification struct {
	Checks []Check // a check for each leak before, larger growth first, then for new ones
	// Why says, as a clause, why the later run proves nothing; "" if it may.
	Why string
	// NotSeen is diff.Result.NotSeen of the run before and of the run after.
	NotSeen [2][]string
	Effects Effects
}

// comparison compares two runs.
type comparison struct {
	before, after *diff.Result
	was, is       *traces
	codeWas       *code
	codeIs        *code
	unit          diff.Unit
	length        float64 // length of the run after, in the unit
	same          bool    // the same program with the same arguments, and the run after ended successfully
	alike         bool    // the arguments are the same, apart from numbers
	shows         bool    // the run after is as long as the run before, and would show leaks as slow
	least         diff.Least
	doubt         string // why an absent leak is not known to be fixed
	// processesDoubt is the same for other processes. They grow by the clock. If the same command ended successfully,
	// the memory of the first process says nothing about them.
	processesDoubt string
}

// Verify compares the run after a fix with the run before it. Places are matched by fingerprint. A leak that is no
// longer seen is fixed only if the later run would have shown it: it is of the same program, ended well, did the work
// that leaked, and did it for as long as the leak needs to show.
func Verify(before, after *diff.Result) *Verification {
	c := compare(before, after)
	v := &Verification{Why: c.doubt, NotSeen: [2][]string{before.NotSeen, after.NotSeen}, Effects: EffectsOf(before, after)}
	mended := make(map[string]bool)
	found, gainBefore, gainAfter := verdicts(after), gainsOf(before), gainsOf(after)
	for i := range before.Findings {
		f := &before.Findings[i]
		if f.Verdict != diff.Leak || f.OfProcess() {
			continue
		}
		names := fingerprints(f)
		for _, n := range names {
			mended[n] = true
		}
		k := Check{Finding: f, Before: gainBefore.of(names), After: gainAfter.of(names), Unit: f.Rate.Unit}
		c.answer(&k, worst(found, names))
		v.Checks = append(v.Checks, k)
	}
	was := verdicts(before)
	for i := range after.Findings {
		f := &after.Findings[i]
		names := fingerprints(f)
		if f.OfProcess() || slices.ContainsFunc(names, func(n string) bool { return mended[n] }) {
			continue
		}
		k := Check{Finding: f, After: f.Rate.Bytes, Unit: f.Rate.Unit}
		switch {
		case f.Verdict == diff.Leak:
			k.Answer, k.Why = Remains, "it is new"
		case f.Verdict == diff.Inconclusive && f.Bound == nil && worst(was, names) == diff.Clean:
			k.Answer, k.Why = CannotTell, "it is new; only a longer run can tell whether it leaks"
		default:
			continue
		}
		v.Checks = append(v.Checks, k)
	}
	if k := c.process(); k != nil {
		v.Checks = append(v.Checks, *k)
	}
	v.Checks = append(v.Checks, c.processes()...)
	if why := other(&before.Run().Info, &after.Run().Info); why != "" {
		for i := range v.Checks {
			v.Checks[i].Answer, v.Checks[i].Why, v.Checks[i].Reached = CannotTell, why, ""
		}
		v.Why = why
	}
	return v
}

func compare(before, after *diff.Result) *comparison {
	c := &comparison{before: before, after: after, was: tracesOf(before.Run()), is: tracesOf(after.Run()), least: after.Least()}
	c.codeWas, c.codeIs = codeOf(&before.Run().Info), codeOf(&after.Run().Info)
	axis, earlier := after.Series.Axis, before.Series.Axis
	c.unit, c.length = axis.Unit, axis.Length()
	c.alike = alikeArguments(&before.Run().Info, &after.Run().Info)
	c.same = sameWork(&before.Run().Info, &after.Run().Info)
	least := before.Least()
	c.shows = c.unit == earlier.Unit && c.length >= earlier.Length() &&
		(len(after.Series.Marks) >= len(before.Series.Marks) || c.least.Every > 0 && c.least.Every <= least.Every)
	same := ""
	switch {
	case !c.named():
		same = "nothing shows that it is the same program: run.json names no command"
	case !c.known():
		same = "nothing shows that it is the same program: the runs share no file, few functions, and few tensor sizes"
	}
	ended := after.Doubt(after.Run().Info.Unseen)
	units := ""
	if c.unit != earlier.Unit {
		units = fmt.Sprintf("its growth is per %s, and before per %s: the two cannot be compared", c.unit, earlier.Unit)
		if earlier.Unit == diff.Step {
			units = "it counted no steps, unlike the run before"
		}
	}
	c.doubt = cmp.Or(ended, units, same)
	c.processesDoubt = c.doubt
	if c.same {
		if len(after.Rows) == 0 && !after.Run().Partial && len(after.Run().Info.Unseen) == 0 {
			ended = ""
		}
		c.processesDoubt = cmp.Or(ended, same)
	}
	return c
}

// answer sets the answer for a leak whose places now have this verdict.
func (c *comparison) answer(k *Check, now diff.Verdict) {
	f := k.Finding
	switch now {
	case diff.Leak:
		k.Answer, k.Why = Remains, "it still leaks"
		if f.Rate.Unit == c.unit && c.unit != diff.Place && k.After.High < k.Before.Low {
			k.Why = "it leaks less, but still leaks"
		}
		return
	case diff.Inconclusive:
		k.Answer, k.Why = CannotTell, "it grew; only a longer run can tell whether it leaks"
		return
	}
	every := c.least.Every
	if c.least.Mixed && !f.Rows[0].BirthsKnown() {
		every = c.least.Counted
	}
	paced := f.Pace == nil || f.Pace.Event == cause.Steps || f.Pace.Event == cause.Irregular
	reached := c.reached(f.Rows[0].Frames, paced)
	length := c.length * reached.share
	seen := f.Rate.Blocks.Value // rate in blocks, or in samples of them
	if c.least.Sample > 0 {
		seen = f.Rate.Bytes.Value / float64(c.least.Sample)
	}
	k.Answer = CannotTell
	switch shows := c.shows && length >= c.before.Series.Axis.Length(); {
	case c.doubt != "":
		k.Why = c.doubt
	case reached.how == "":
		k.Why = reached.why
	case !shows && every == 0:
		k.Why = "it is too short to show any leak; make it as long as the run before, with as many snapshots"
	case !shows && seen <= 0:
		k.Why = "it is shorter than the run before, which may hide a block that grows"
	case !shows && (every*seen < 1 || length*seen < enough):
		k.Why = fmt.Sprintf("its %s are too few to show a leak of this rate", span(length, c.unit))
	default:
		k.Answer, k.Why, k.Reached = Gone, "it no longer leaks", reached.how
	}
}

func span(length float64, unit diff.Unit) string {
	return fmt.Sprintf("%.3g %ss", length, unit)
}

// process checks the growth of the process that no stack explains; nil if neither run has any.
func (c *comparison) process() *Check {
	before, after := c.before.ProcessGrowth(), c.after.ProcessGrowth()
	if before == nil && after == nil {
		return nil
	}
	k := &Check{Process: before}
	if after != nil {
		k.After, k.Unit = after.Rate.Bytes, after.Rate.Unit
	}
	if before == nil {
		k.Process, k.Answer, k.Why = after, CannotTell, "it is new"
		if after.Line() == nil {
			k.Why += "; source line unknown"
		}
		if after.Leaks {
			k.Answer = Remains
		}
		return k
	}
	k.Before, k.Unit = before.Rate.Bytes, before.Rate.Unit
	switch {
	case after == nil:
	case after.Uneven:
		k.Answer, k.Why = CannotTell, "it still grows, in uneven steps that may end"
		return k
	case before.Rate.Unit != after.Rate.Unit:
		k.Answer, k.Why = CannotTell, c.doubt // memory that a program takes as it begins also grows by the clock
		return k
	case k.After.High < k.Before.Low:
		k.Answer, k.Why = Remains, "it grows less, but still grows"
		return k
	default:
		k.Answer, k.Why = Remains, "it still grows"
		return k
	}
	reached := c.reached(nil, true)
	k.Answer = CannotTell
	switch {
	case c.doubt != "":
		k.Why = c.doubt
	case reached.how == "":
		k.Why = reached.why
	case !c.shows && !c.after.WouldShow(before.Rate):
		k.Why = fmt.Sprintf("its %s are too few to show growth of this rate", span(c.length, c.unit))
	default:
		k.Answer, k.Why, k.Reached = Gone, "it no longer grows", reached.how
	}
	return k
}

// Overall is Gone if every check is, and Remains if one check is. Without checks it is CannotTell.
func (v *Verification) Overall() Answer {
	answer := Gone
	for _, k := range v.Checks {
		if k.Answer == Remains {
			return Remains
		}
		if k.Answer == CannotTell {
			answer = CannotTell
		}
	}
	if len(v.Checks) == 0 {
		return CannotTell
	}
	return answer
}

// fingerprints returns the fingerprints of a finding's rows, and of the rows Behind it, in order, each once.
func fingerprints(f *diff.Finding) []string {
	var names []string
	for _, row := range slices.Concat(f.Rows, f.Behind) {
		names = append(names, Fingerprint(row))
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// OneRate reports whether two checks are of lines of one function with one common rate: leaks are matched by
// function, since lines move.
func (k *Check) OneRate(other *Check) bool {
	return k.Process == nil && other.Process == nil && k.Before == other.Before && k.After == other.After && k.Before.Value != 0 && k.Unit == other.Unit &&
		k.Answer == other.Answer && k.Why == other.Why && k.Reached == other.Reached && slices.Equal(fingerprints(k.Finding), fingerprints(other.Finding))
}

// verdicts returns the worst verdict at each place.
func verdicts(r *diff.Result) map[string]diff.Verdict {
	worst := make(map[string]diff.Verdict)
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, name := range fingerprints(f) {
			if f.Verdict == diff.Leak || f.Verdict == diff.Inconclusive && worst[name] != diff.Leak {
				worst[name] = f.Verdict
			}
		}
	}
	return worst
}

// worst is the worst of the verdicts at these places.
func worst(verdicts map[string]diff.Verdict, names []string) diff.Verdict {
	worst := diff.Clean
	for _, name := range names {
		switch verdicts[name] {
		case diff.Leak:
			return diff.Leak
		case diff.Inconclusive:
			worst = diff.Inconclusive
		}
	}
	return worst
}

// gains has the growth of a run's sites, by place.
type gains struct {
	run   *diff.Result
	rows  map[string][]*diff.Row
	nodes map[string]trend.Slope // of a graph behind the place, known only from the process's growth
	known map[string]trend.Slope
}

func gainsOf(r *diff.Result) *gains {
	g := &gains{r, make(map[string][]*diff.Row), make(map[string]trend.Slope), make(map[string]trend.Slope)}
	for i := range r.Rows {
		name := Fingerprint(&r.Rows[i])
		g.rows[name] = append(g.rows[name], &r.Rows[i])
	}
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Nodes != nil {
			g.nodes[Fingerprint(f.Rows[0])] = f.Nodes.Rate.Bytes
		}
	}
	return g
}

// of is the total growth of all sites at these places. The ends of its interval are the sums of theirs, so it is
// wider than necessary.
func (g *gains) of(names []string) trend.Slope {
	var sum trend.Slope
	for _, name := range names {
		sum = add(sum, g.at(name))
	}
	return sum
}

func (g *gains) at(name string) trend.Slope {
	sum, ok := g.known[name]
	if !ok {
		sum = g.nodes[name]
		for _, row := range g.rows[name] {
			sum = add(sum, g.run.RateOf(row).Bytes)
		}
		g.known[name] = sum
	}
	return sum
}

func add(a, b trend.Slope) trend.Slope {
	return trend.Slope{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High, N: max(a.N, b.N)}
}
