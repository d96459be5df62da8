// Package diff compares snapshots by allocation stack: what grew, whether it is
// a leak, on what evidence, and when memory runs out. It is pure: no files, no
// clocks, no globals; the same input gives the same result.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Rule is a way to decide what is a leak.
type Rule string

// The rules.
const (
	// ByTrend judges each site's growth over the run and the births of its
	// blocks.
	ByTrend Rule = "trend"
	// ByHandbook is the widespread rule, kept to compare with: a block leaks if
	// the base has no block with its stack.
	ByHandbook Rule = "handbook"
)

// Result is the comparison of a run's first and last snapshot, with a verdict
// on each site that grew.
type Result struct {
	Rule         Rule
	First, Last  *snapshot.Snapshot
	Rows         []Row     // of First and Last, as Pair orders them
	Series       *Series   // of the whole run
	Findings     []Finding // leaks, then inconclusive, then bounded; what grows fastest first
	Reserves     []Reserve // devices whose reserved memory grew by itself
	Notes        []string
	NotSeen      []string // what of the run no verdict speaks of, a clause each
	Intermediate int      // snapshots between First and Last
	// Comparable: the snapshots can be of one process, and do not hold parts of what it
	// allocated that exclude each other, so that growth is growth. Nothing is called a
	// leak where they are not.
	Comparable bool
	Children   []*Child // of the command's other recorded processes those that leak
	Across     *Across  // nil unless JoinRanks found it among the ranks of a run
	// Idle are the declared bounds of which nothing that the snapshots hold is.
	Idle []snapshot.Bound

	run       *snapshot.Run
	stranger  string // why the snapshots are not comparable
	unwatched string // what of the run was not; "" for nothing
	options   Options
	tides     []series.Tide
	few       judge.FewMarks
	tried     int                    // findings of which was asked what decides them
	changed   int                    // rows that are not in the last snapshot as in the first
	half      map[series.SiteKey]Row // of the middle snapshot and the last; nil before it is first asked for
	profilers *bool                  // whether what they hold for themselves is little; nil before it is first asked for
	around    *surroundings          // nil before it is first asked for
}

// Finding is what grew together, and what memdiag says of it.
type Finding struct {
	// Rows are at least one, of one device, the largest growth first; of a graph, its end
	// before. Behind them are Joined rows that by themselves show less, and hang on the
	// same list, map or graph.
	Rows     []*Row
	Joined   int
	Verdict  Verdict
	Evidence Evidence
	Reasons  []string
	Rate     Rate // zero between snapshots that are not comparable
	Shape    Shape
	Headline int              // index into Rows[0].Frames; -1 where no frame is the user's
	Holder   *snapshot.Holder // nil where nobody looked, or found one
	// Partly holds a few of the blocks and cannot hold the others; nil where there is a
	// Holder, or none was found.
	Partly   *snapshot.Holder
	Cause    *cause.Cause // nil where none fits; of an inconclusive one, its cause if it leaks
	CauseWhy string
	Others   []cause.Match // causes that fit less well, the best first
	Against  *Comparison   // nil unless held against a good run
	Pace     *Pace         // nil unless it is a leak, and the run tells what it follows
	More     More
	// Bound is what an inconclusive finding is declared to gather up to and has not
	// reached; nil where nothing is declared of it.
	Bound   *snapshot.Bound
	Child   *Child    // the process that it is of; nil for the one that the result is of
	RunsOut *Forecast // nil unless a leak on a device whose limit is known
	// Uncounted: the profiler tells bytes alone, and figures of blocks mean nothing.
	Uncounted bool
	// Sampled: the profiler recorded some allocations, for which others stand: all figures
	// are estimates.
	Sampled bool
	// Nodes is how the process grew beyond what stacks explain, where that is taken to be the nodes
	// of autograd's graph that leak; else nil. Its rate is a part of Rate, and its growth none of Growth.
	Nodes *Reserve
	// Behind are the nodes of the graph on which the rows hang, where those leak as well: no part of Rows.
	Behind []*Row

	graph bool // the rows are of one autodiff graph
}

// Growth is what all rows hold more than before.
func (f *Finding) Growth() Tally { return f.sum((*Row).Growth) }

// Before is what all rows held in the earlier snapshot.
func (f *Finding) Before() Tally { return f.sum(func(r *Row) Tally { return r.Before }) }

// After is what all rows hold in the later snapshot.
func (f *Finding) After() Tally { return f.sum(func(r *Row) Tally { return r.After }) }

// Born is what was allocated between the two and is still held.
func (f *Finding) Born() Tally { return f.sum(func(r *Row) Tally { return r.Born }) }

// Died is what the earlier snapshot held and the later does not.
func (f *Finding) Died() Tally { return f.sum(func(r *Row) Tally { return r.Died }) }

// Owners are the classes that hold any of the rows' blocks.
func (f *Finding) Owners() snapshot.Owners {
	var owners snapshot.Owners
	for _, r := range f.Rows {
		owners |= r.Owners
	}
	return owners
}

func (f *Finding) sum(of func(*Row) Tally) Tally {
	var t Tally
	for _, r := range f.Rows {
		t = t.Plus(of(r))
	}
	return t
}

// Analyze is Options.Analyze by a rule, with the defaults.
func Analyze(run *snapshot.Run, rule Rule) (*Result, error) {
	o := DefaultOptions()
	o.Rule = rule
	return o.Analyze(run)
}

// Analyze compares a run's first and last snapshot and judges what grew. The
// run needs two snapshots, in the order of their marks, and so does the one to hold it
// against, which must have a stack in common with it and be of one process. Of a run that
// was resumed in another process, the later part is judged where it is long enough.
func (o Options) Analyze(run *snapshot.Run) (*Result, error) {
	n := len(run.Snapshots)
	if n < 2 {
		return nil, errors.New("a comparison needs two snapshots")
	}
	o.limitDevices(run)
	first, last := run.Snapshots[0], run.Snapshots[n-1]
	stranger, at := strangers(run)
	if stranger != "" {
		if part := resumed(run); part != nil {
			return o.Analyze(part)
		}
	}
	r := &Result{
		Rule: o.Rule, First: first, Last: last, Rows: series.Pair(first, last),
		Series: series.Collect(run), Intermediate: n - 2, Comparable: stranger == "",
		run: run, stranger: stranger, unwatched: unwatched(run), options: o,
	}
	r.unwatched = cmp.Or(r.unwatched, r.emptied())
	r.Notes, r.NotSeen = slices.Concat(run.Notes, ended(run), notes(r)), r.notSeen()
	if note := restart(run, at); note != "" {
		r.Notes = append(r.Notes, note)
	}
	r.Series.Without = o.Without
	if o.Rule == ByHandbook {
		r.judgeByHandbook()
	} else {
		var good *baseline
		if o.Against != nil {
			var err error
			if good, err = r.newBaseline(o.Against); err != nil {
				return nil, err
			}
			r.Notes = append(r.Notes, fmt.Sprintf("held against %s: what grows there as fast is no leak", cmp.Or(o.Against.Path, "a good run")))
		}
		r.judgeByTrend(good)
		r.Children = o.judgeChildren(run)
		r.Reserves = r.reserves()
		r.sizeGraphs()
	}
	r.sortFindings()
	if r.Comparable {
		r.explain(r.Findings)
		r.step(fieldsGroup, r.joinFields)
	}
	return r, nil
}

func (r *Result) judgeByHandbook() {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Before.Blocks == 0 && row.After.Blocks > 0 {
			j := judge.Judgement{Verdict: Leak, Evidence: Weak, Rate: series.PairRate(row.Growth(), r.First, r.Last), Reasons: []string{"its stack is absent from the base snapshot"}}
			r.Findings = append(r.Findings, r.finding(cluster{rows: []*Row{row}, j: j}, frame.Headline(row.Frames)))
		}
	}
}

// judgeByTrend judges every site that grew, and joins those that leak together.
// Trends are distinguished from chance among all sites, not only among those. A good run, unless it
// is nil, has a say.
func (r *Result) judgeByTrend(good *baseline) {
	histories := make([]*series.History, len(r.Rows))
	p := make([]float64, len(r.Rows))
	marks := &r.few
	for i := range r.Rows {
		histories[i] = series.HistoryOf(r.Series, r.Series.Site(&r.Rows[i]))
		p[i] = histories[i].Chance()
		marks.Add(histories[i])
		if r.Rows[i].Growth() != (Tally{}) {
			r.changed++
		}
		if h := histories[i]; h != nil {
			if t := h.Tide(); t.Bytes > 0 {
				r.tides = append(r.tides, t)
			}
		}
		if !r.Rows[i].Grew() {
			histories[i] = nil // those of a large run together are larger than its series
		}
	}
	q := p
	if !r.options.Without.Has(discoveryClue) {
		q = trend.BenjaminiHochberg(p)
	}
	few := marks.Enough()
	var open, settled []member // what leaks, or may; and what does not
	var suspects, healthy []*Row
	for i := range r.Rows {
		row := &r.Rows[i]
		if !row.Grew() {
			healthy = append(healthy, row)
			continue
		}
		ask := judge.Question{
			Row: row, History: histories[i], First: r.First, Last: r.Last, Discovery: q[i],
			Few: few && histories[i].Even(), Tides: r.tides, Gathered: histories[i] != nil && r.gathered(row),
		}
		j := ask.Judge(r.options.Without)
		r.step(churnedPass, func() { r.churned(row, &j) })
		r.step(observedPass, func() { r.observed(row, &j) })
		r.step(unassignedPass, func() { r.unassigned(row, &j) })
		r.doubt(&j)
		if j.Verdict == Leak || j.Verdict == Inconclusive {
			open = append(open, member{row, histories[i], j})
			continue
		}
		settled = append(settled, member{row, histories[i], j})
	}
	r.step(jointlyPass, func() { open, settled = r.jointly(open, settled) })
	for _, m := range open {
		suspects = append(suspects, m.row)
	}
	var alone []cluster
	for _, m := range settled {
		healthy = append(healthy, m.row)
		alone = append(alone, cluster{rows: []*Row{m.row}, j: m.j})
	}
	r.step(inputPass, func() { r.followInput(open) })
	tree := newCallTree(suspects, healthy)
	grown := append(r.clusters(open, tree), alone...)
	r.step(weighPass, func() { r.weigh(grown) })
	r.step(provePass, func() { r.prove(grown) })
	r.step(fillUpPass, func() { r.fillUp(grown) })
	r.step(boundsPass, func() { r.holdToBounds(grown) })
	for i := range grown {
		r.doubt(&grown[i].j)
	}
	if good != nil {
		r.holdAgainst(good, grown)
	}
	for i := range grown {
		r.unsure(&grown[i].j)
	}
	for i, c := range grown {
		// What had settled counts as healthy in the tree, also where a bound that it
		// breaks makes a leak of it: it shows who else leaks.
		if c.j.Verdict == Bounded || i >= len(grown)-len(settled) {
			r.Findings = append(r.Findings, r.finding(c, frame.Headline(c.rows[0].Frames)))
			continue
		}
		r.Findings = append(r.Findings, r.finding(c, r.headOf(&c, tree)))
	}
	r.step(listsGroup, r.joinLists)
	r.step(linesGroup, r.joinLines)
	r.step(heldGroup, func() { r.joinHeld(tree) })
}

// headOf is the frame of a cluster's first row to look at; -1 where it has none.
func (r *Result) headOf(c *cluster, tree *callTree) int {
	if r.options.Without.Has(headPass) {
		return frame.Headline(c.rows[0].Frames)
	}
	if c.graph {
		if head := graphHead(c.rows); head >= 0 {
			return head
		}
	}
	return r.head(c.rows, tree)
}

func (r *Result) finding(c cluster, head int) Finding {
	j, row := c.j, c.rows[0]
	f := Finding{
		Rows: c.rows, Verdict: j.Verdict, Evidence: j.Evidence, Reasons: j.Reasons, Rate: j.Rate, Shape: j.Shape,
		Headline: head, Holder: r.holderOf(c), Against: c.against, More: r.more(&c), Bound: c.bound, Uncounted: r.Uncounted(), Sampled: r.samplePeriod() > 0, graph: c.graph,
	}
	f.Partly = r.partlyOf(&f)
	if c.settled {
		return f
	}
	if j.Verdict == Leak {
		f.Pace = r.pace(c.rows, &j)
	}
	if j.Verdict == Leak && j.Evidence != Weak {
		f.RunsOut = r.forecast(row, j.Rate)
	}
	return f
}

// holderOf is the holder of the first row, of a graph the value that keeps it, or of objects a container that
// gathers some of them. What gathers in several blocks is not kept by a variable, which holds one.
func (r *Result) holderOf(c cluster) *snapshot.Holder {
	rows := c.rows[:1]
	if c.graph {
		rows = c.rows
	} else if onLanguageHeap(c.rows) {
		rows = mostOf(c.rows)
	}
	for i, row := range rows {
		if h := r.keeper(row); h != nil && r.mayHold(h, row) && (i == 0 || c.graph || gathers(h)) {
			return h
		}
	}
	if c.rows[0].Growth().Blocks > 1 {
		return nil
	}
	return holder(r.Last, c.rows[0])
}

// partlyOf is a list or map that holds some of the first row's blocks, where it is known
// not to hold the others.
func (r *Result) partlyOf(f *Finding) *snapshot.Holder {
	h := r.keeper(f.Rows[0])
	if f.Holder != nil || h == nil || holdsOne(h) || r.mayHold(h, f.Rows[0]) {
		return nil
	}
	return h
}

func holder(s *snapshot.Snapshot, row *Row) *snapshot.Holder {
	for i := range s.Holders {
		if row.HangsOn(&s.Holders[i]) {
			return &s.Holders[i]
		}
	}
	return nil
}

// Uncounted reports whether the profiler told bytes alone in either snapshot, so that figures
// of blocks mean nothing.
func (r *Result) Uncounted() bool { return r.First.Blocks.Uncounted() || r.Last.Blocks.Uncounted() }

// samplePeriod is that of the last snapshot, or of the first; 0 where all allocations were recorded.
func (r *Result) samplePeriod() snapshot.Bytes {
	return max(r.Last.SamplePeriod, r.First.SamplePeriod, 0)
}

// Separate reports whether the snapshots cannot be compared since they are parts of one process's
// record that do not overlap, and not since they are of different processes.
func (r *Result) Separate() bool { return r.stranger == separateRecordings }

// Equal is true for two snapshots of one mark that show the same: one is compared with
// itself, or nothing happened between them.
func (r *Result) Equal() bool {
	changed := func(row Row) bool { return row.Before != row.After || row.Born.Blocks > 0 }
	sameMeters := func(a, b snapshot.Device) bool { return a.Kind == b.Kind && a.Index == b.Index && a.Meters == b.Meters }
	return r.Comparable && r.Intermediate == 0 && r.First.Mark == r.Last.Mark &&
		!slices.ContainsFunc(r.Rows, changed) && slices.EqualFunc(r.First.Devices, r.Last.Devices, sameMeters)
}

// Leaks counts the findings with verdict leak.
func (r *Result) Leaks() int { return r.Count(Leak) }

// Count counts the findings with a verdict.
func (r *Result) Count(v Verdict) int {
	n := 0
	for i := range r.Findings {
		if r.Findings[i].Verdict == v {
			n++
		}
	}
	return n
}

// Growth is the change of all live memory between First and Last.
func (r *Result) Growth() Tally {
	var t Tally
	for i := range r.Rows {
		g := r.Rows[i].Growth()
		t.Blocks += g.Blocks
		t.Bytes += g.Bytes
		t.Requested += g.Requested
	}
	return t
}
