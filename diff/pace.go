package diff

import (
	"math"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// Pace is growth by event, as people think of it: one block of 4 KiB each step.
type Pace struct {
	Event cause.Driver // what it follows
	// Every is how many steps lie between two events; of steps, 1 is each.
	Every  int64
	Events int64   // that were seen, or of a recording of some steps only, that there were
	Blocks float64 // that each event adds; 0 where blocks are replaced by larger ones
	Bytes  snapshot.Bytes
}

// pace is nil where the run does not tell what growth follows.
func (r *Result) pace(rows []*Row) *Pace {
	f := r.driver(rows[0])
	if f.driver == "" || f.times == 0 {
		return nil
	}
	g := (&Finding{Rows: rows}).Growth()
	return &Pace{
		Event: f.driver, Every: max(f.every, 1), Events: f.times,
		Blocks: float64(max(g.Blocks, 0)) / float64(f.times), Bytes: g.Bytes / snapshot.Bytes(f.times),
	}
}

// stepTime is how long a step takes, from the marks of the two snapshots; 0 where
// they do not tell.
func (r *Result) stepTime() time.Duration {
	a, b := r.First.Mark, r.Last.Mark
	if a.Time.IsZero() || b.Time.IsZero() || a.Step == snapshot.NoStep || b.Step <= a.Step || !b.Time.After(a.Time) {
		return 0
	}
	return b.Time.Sub(a.Time) / time.Duration(b.Step-a.Step)
}

// Least is the smallest leak that a run could have shown: a block in so many
// steps. Less may be there unseen.
type Least struct {
	Every  int64 // steps from one block to the next; 0: no leak would have been sure
	Births bool  // told by the births of blocks; else by counts alone
}

// Least is zero for a comparison by another rule, where steps are not known, and for a
// run too short to show any.
func (r *Result) Least() Least {
	// Four births, or rises, with no gap longer than longestGap.
	const needed = 4
	length := r.Last.Mark.Step - r.First.Mark.Step
	if r.Rule != ByTrend || r.First.Mark.Step == snapshot.NoStep || length < needed {
		return Least{}
	}
	if known := slices.ContainsFunc(r.Last.Blocks.BirthStep, func(step int64) bool { return step != snapshot.NoStep }); known {
		return Least{Every: length / needed, Births: true}
	}
	marks := len(r.Series.Marks)
	if warm := warmUp(marks); marks-warm >= climbing {
		return Least{Every: max(1, length*int64(marks-warm)/int64(marks)/(needed+1))}
	}
	return Least{}
}

// moreSteps estimates after how many more steps an inconclusive site would be
// decided; 0 where nothing tells.
func (r *Result) moreSteps(c *cluster) int64 {
	length := r.Last.Mark.Step - r.First.Mark.Step
	if c.j.verdict != Inconclusive || !r.Comparable || r.First.Mark.Step == snapshot.NoStep || length <= 0 {
		return 0
	}
	if c.toBound > 0 && c.j.rate.Unit == "step" && c.j.rate.Blocks.Value > 0 {
		return int64(math.Ceil(c.toBound / c.j.rate.Blocks.Value))
	}
	if c.toBound > 0 {
		return 0
	}
	n := len(r.Series.Marks)
	if births := distinct(c.rows[0].births.steps); len(births) > 0 && len(births) < 4 {
		return length * int64(4-len(births)) / int64(len(births))
	}
	if n-warmUp(n) < climbing && n > 1 && len(c.rows[0].births.steps) == 0 {
		return length * int64(climbing+1-n) / int64(n-1)
	}
	return length // the doubt falls with the root of the length: twice as long halves it nearly
}
