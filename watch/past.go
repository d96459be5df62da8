package watch

import (
	"cmp"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// mostPast is how many moments of a run's past a late watch looks at: as many as the snapshots that a recording keeps.
const mostPast = 32

// momentsOf are the marks, except the newest, at which a watch from the start of a run would have looked, as far as snapshots of them
// remain. They are from the rank with the most snapshots.
func momentsOf(runs []*snapshot.Run) (moments []snapshot.Mark) {
	most := slices.MaxFunc(runs, func(a, b *snapshot.Run) int { return len(a.Snapshots) - len(b.Snapshots) })
	n := len(most.Snapshots) - 1 - fewest
	for i := range min(mostPast, max(0, n+1)) {
		at := fewest - 1 + i
		if n+1 > mostPast {
			at = fewest - 1 + i*n/(mostPast-1)
		}
		moments = append(moments, most.Snapshots[at].Mark)
	}
	return moments
}

// backTime is how much time looks at the past may take in all: as long as new snapshots may wait.
const backTime = patience

// affordable selects the moments that can be looked at in the time left: evenly spread, with the last one. took is the duration of
// looks at snapshots snapshots so far; each further look is at each snapshots on average.
func affordable(moments []snapshot.Mark, left, took time.Duration, snapshots, each int) []snapshot.Mark {
	mean := took.Seconds() / float64(snapshots) * float64(each)
	n := len(moments)
	if left.Seconds() < float64(n)*mean {
		n = max(0, int(left.Seconds()/mean))
	}
	var some []snapshot.Mark
	for i := range n {
		some = append(some, moments[(i+1)*len(moments)/n-1])
	}
	return some
}

// lookBack is the look that a watch would have taken at the next moment of the run's past.
func (f *Follower) lookBack() (*Look, error) {
	begun, moment := time.Now(), f.past[0]
	f.past = f.past[1:]
	look := &Look{Time: moment.Time, Fresh: true, Past: true}
	if look.Time.IsZero() {
		look.Time = begun
	}
	for _, run := range f.runs {
		then := until(run, moment)
		result, err := f.result(then)
		if err != nil {
			return nil, err
		}
		rank := f.rankOf(then, result, look.Time)
		rank.Read = len(run.Snapshots)
		look.Ranks = append(look.Ranks, rank)
	}
	if f.Check != nil {
		f.check(look.Ranks)
	}
	look.Took = time.Since(begun)
	f.back += look.Took
	have, all := 0, 0
	for i, r := range look.Ranks {
		have, all = have+len(r.Run.Snapshots), all+len(f.runs[i].Snapshots)
	}
	f.backHas += have
	f.past = affordable(f.past, cmp.Or(f.Back, backTime)-f.back, f.back, max(1, f.backHas), (have+all)/2)
	return look, nil
}

// until is a run as it was at a moment.
func until(run *snapshot.Run, moment snapshot.Mark) *snapshot.Run {
	then := *run
	then.Info.Finished, then.Info.ExitCode, then.Unread = nil, nil, nil
	then.Snapshots = nil
	for _, s := range run.Snapshots {
		if !later(s.Mark, moment) {
			then.Snapshots = append(then.Snapshots, s)
		}
	}
	if run.Series != nil {
		series := *run.Series
		series.Points = slices.DeleteFunc(slices.Clone(series.Points), func(p snapshot.Point) bool { return later(p.Mark, moment) })
		then.Series = &series
	}
	if moment.Time.IsZero() {
		return &then
	}
	then.Children = nil
	for _, child := range run.Children {
		if c := until(child, snapshot.Mark{Step: snapshot.NoStep, Time: moment.Time}); len(c.Snapshots) > 0 { // its steps are counted separately
			then.Children = append(then.Children, c)
		}
	}
	if run.Tree != nil {
		then.Tree = treeUntil(run.Tree, moment.Time)
	}
	return &then
}

func treeUntil(tree *snapshot.Tree, at time.Time) *snapshot.Tree {
	then := &snapshot.Tree{}
	for _, p := range tree.Processes {
		p.Points = slices.DeleteFunc(slices.Clone(p.Points), func(p snapshot.ProcessPoint) bool { return p.Time.After(at) })
		if len(p.Points) > 0 {
			then.Processes = append(then.Processes, p)
		}
	}
	then.Host = slices.DeleteFunc(slices.Clone(tree.Host), func(p snapshot.HostPoint) bool { return p.Time.After(at) })
	return then
}

// later reports whether a mark is after a moment: by time, which ranks share, or else by step.
func later(m, moment snapshot.Mark) bool {
	if !m.Time.IsZero() && !moment.Time.IsZero() {
		return m.Time.After(moment.Time)
	}
	return m.Step != snapshot.NoStep && moment.Step != snapshot.NoStep && m.Step > moment.Step
}
