// Package diff compares snapshots by allocation stack: what grew, whether it is a leak, on what evidence, and when
// memory runs out. It is pure: no files, no clocks, no globals; the same input gives the same result.
//
// This file is the overview. Package series collects what every site did, package judge decides for each site alone
// whether it leaks, clusters groups what leaks together, settle applies bounds, proofs and another run, and explain
// finds the causes.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Analyze is Options.Analyze with a rule and the other options at their defaults.
func Analyze(run *snapshot.Run, rule Rule) (*Result, error) {
	o := DefaultOptions()
	o.Rule = rule
	return o.Analyze(run)
}

// Analyze compares a run's first and last snapshot and judges what grew. The run needs at least two snapshots, in the
// order of their marks. So does the run in Against, which must also have a stack in common with it and be of one
// process. If the run was resumed in another process, only the later part is judged, if it is long enough.
func (o Options) Analyze(run *snapshot.Run) (*Result, error) {
	n := len(run.Snapshots)
	if n < 2 {
		return nil, errors.New("a comparison needs two snapshots")
	}
	if part := beforeTheEnd(run); part != nil {
		return o.Analyze(part)
	}
	o.limitDevices(run)
	first, last := run.Snapshots[0], run.Snapshots[n-1]
	stranger, at := strangers(run)
	if stranger != "" {
		if part := resumed(run); part != nil {
			return o.Analyze(part)
		}
	}
	rows, items := withoutItems(series.Pair(first, last))
	r := &Result{
		Rule: o.Rule, First: first, Last: last, Rows: rows,
		Series: series.Collect(run), Intermediate: n - 2, Comparable: stranger == "",
		Refused: run.OutOfMemory(), run: run, stranger: stranger, unwatched: unwatched(run), options: o,
	}
	r.unwatched = cmp.Or(r.unwatched, r.emptied())
	r.Notes = slices.Concat(run.Notes, ended(run), notes(r))
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
			r.Notes = append(r.Notes, fmt.Sprintf("compared with %s: a site that grows as fast there is no leak", cmp.Or(o.Against.Path, "a good run")))
		}
		r.judgeByTrend(good)
		r.judgeChildren(o)
		r.Reserves = r.reserves()
		r.sizeGraphs()
		r.step(itemsPass, func() { r.sizeItems(items); r.countHooks(items) })
		r.step(objectsGroup, r.joinObjects)
		r.nameNative()
		r.judgeProcess()
		if e := r.mapped(); e != nil {
			r.Reserves = append(r.Reserves, *e)
		}
	}
	r.NotSeen = r.notSeen()
	among := r.among()
	for i := range r.Findings {
		r.Findings[i].Among = among
	}
	r.sortFindings()
	if r.Comparable {
		r.explain(r.Findings)
		r.step(fieldsGroup, r.joinFields)
		r.step(cyclesGroup, r.joinCycles)
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

// judgeByTrend judges every site that grew, joins those that leak together, and applies what is known of each group.
// good may be nil.
func (r *Result) judgeByTrend(good *baseline) {
	open, settled := r.judgeSites()
	var scattered []cluster
	var together []member
	r.step(scatteredPass, func() { scattered, together, settled = r.scattered(open, settled) })
	r.step(jointlyPass, func() { open, settled = r.jointly(open, settled) })
	r.step(inputPass, func() { r.followInput(open) })
	tree := r.callTree(slices.Concat(open, together), settled)
	grown := append(r.clusters(open, tree), scattered...)
	r.step(totalsPass, func() { r.followTotals(grown) })
	for _, m := range settled {
		grown = append(grown, cluster{rows: []*Row{m.row}, j: m.j, alone: true})
	}
	r.settle(grown, good)
	for _, c := range grown {
		// What was judged alone counts as healthy in the tree, even if it breaks a bound and so is a leak: it shows
		// who else leaks.
		head := frame.Headline(c.rows[0].Frames)
		if c.j.Verdict != Bounded && !c.alone {
			head = r.headOf(&c, tree)
		}
		r.Findings = append(r.Findings, r.finding(c, head))
	}
	r.step(listsGroup, func() { r.putNumbersBehind(); r.joinLists() })
	r.step(linesGroup, r.joinLines)
	r.step(callersGroup, func() { r.joinCallers(tree) })
	r.step(besideGroup, func() { r.holdBeside(); r.joinLists(); r.joinCalls(tree); r.holdSegments() })
	r.step(heldGroup, func() { r.joinHeld(tree) })
}

// judgeSites judges each site that grew by itself. open has those that leak or may leak, settled the others. The
// false discovery rate is over all sites, not only those that grew.
func (r *Result) judgeSites() (open, settled []member) {
	histories, q := r.histories()
	few := r.few.Enough()
	for i := range r.Rows {
		row := &r.Rows[i]
		if !row.Grew() {
			continue
		}
		ask := judge.Question{
			Row: row, History: histories[i], First: r.First, Last: r.Last, Discovery: q[i],
			Few: few && histories[i].Even(), Tides: r.tides,
		}
		if histories[i] != nil {
			ask.Gathered, ask.Longer = r.gathered(row)
		}
		m := member{row, histories[i], ask.Judge(r.options.Without)}
		r.step(churnedPass, func() { r.churned(row, &m.j) })
		r.step(observedPass, func() { r.observed(row, &m.j) })
		r.step(unassignedPass, func() { r.unassigned(row, &m.j) })
		r.doubt(&m.j)
		if m.j.Verdict == Leak || m.j.Verdict == Inconclusive {
			open = append(open, m)
			continue
		}
		settled = append(settled, m)
	}
	return open, settled
}

// histories returns the history of each row that grew, nil for others, and the false discovery rate at which each
// trend counts.
func (r *Result) histories() (of []*series.History, discovery []float64) {
	of, discovery = make([]*series.History, len(r.Rows)), make([]float64, len(r.Rows))
	for i := range r.Rows {
		row := &r.Rows[i]
		h := series.HistoryOf(r.Series, r.Series.Site(row))
		discovery[i] = h.Chance()
		r.few.Add(h)
		if row.Growth() != (Tally{}) {
			r.changed++
		}
		if h != nil {
			if t := h.Tide(); t.Bytes > 0 {
				r.tides = append(r.tides, t)
			}
		}
		if row.Grew() {
			of[i] = h // others are not stored: in a large run they would take more memory than the series
		}
	}
	if r.options.Without.Has(discoveryClue) {
		return of, discovery
	}
	return of, trend.BenjaminiHochberg(discovery)
}

// callTree returns the tree of the stacks that leak or may leak, and of all others.
func (r *Result) callTree(open, settled []member) *callTree {
	var suspects, healthy []*Row
	for _, m := range open {
		suspects = append(suspects, m.row)
	}
	for i := range r.Rows {
		if !r.Rows[i].Grew() {
			healthy = append(healthy, &r.Rows[i])
		}
	}
	for _, m := range settled {
		healthy = append(healthy, m.row)
	}
	return newCallTree(suspects, healthy)
}

// settle overturns the verdict of a group by what else is known of it: how small it is, that nothing can free it,
// bounds, another run, and what was not observed of this run.
func (r *Result) settle(grown []cluster, good *baseline) {
	r.step(weighPass, func() { r.weigh(grown) })
	r.step(provePass, func() { r.prove(grown) })
	r.step(fillUpPass, func() { r.fillUp(grown) })
	r.step(boundsPass, func() { r.holdToBounds(grown) })
	for i := range grown {
		r.doubt(&grown[i].j)
		r.mayLoad(&grown[i])
	}
	if good != nil {
		r.holdAgainst(good, grown)
	}
	for i := range grown {
		r.unsure(&grown[i].j)
	}
}

// headOf is the index of the frame to look at in a cluster's first row; -1 if there is none.
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
