package diff

import (
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
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
	Each   snapshot.Bytes // size of a new block, on the average; 0 where blocks are replaced
	Sizes  bool           // its live blocks are of several sizes
}

// asFast is by which factor a pace by steps may differ from the rate's interval.
const asFast = 1.5

// pace is nil where the run does not tell what growth follows. What is said to come each
// so many steps and does not make up the rate comes irregularly.
func (r *Result) pace(rows []*Row, j *judge.Judgement) *Pace {
	f := r.driver(rows[0])
	if f.driver == "" || f.times == 0 {
		return nil
	}
	grown := &Finding{Rows: rows}
	g := grown.Growth()
	if rows[0].Births.Sampled() && g.Blocks > 0 && grown.Died().Blocks > 0 {
		return nil // what was born is not what stays: older ones go
	}
	each := snapshot.Bytes(0)
	if g.Blocks > 0 {
		each = g.Bytes / snapshot.Bytes(g.Blocks)
	}
	if f.pauses {
		f.driver = cause.Irregular
	}
	p := &Pace{
		Each:  each,
		Event: f.driver, Every: max(f.every, 1), Events: f.times,
		Blocks: float64(max(g.Blocks, 0)) / float64(f.times), Bytes: g.Bytes / snapshot.Bytes(f.times),
		Sizes: r.ofSeveralSizes(rows),
	}
	even := p.Event == cause.Steps && j.Rate.Unit == Step && (j.Shape == Steady || j.Shape == BytesOnly)
	if step := float64(p.Bytes) / float64(p.Every); even && (step > asFast*j.Rate.Bytes.High || asFast*step < j.Rate.Bytes.Low) {
		p.Event = cause.Irregular
	}
	return p
}

// ofSeveralSizes reports whether live blocks of the rows differ in size; those of one total are
// taken for equal.
func (r *Result) ofSeveralSizes(rows []*Row) bool {
	b := &r.Last.Blocks
	size := snapshot.Unknown
	for _, row := range rows {
		site := r.surroundings().sites[row.Key]
		if site == nil {
			continue
		}
		for _, at := range site.Rows {
			each := b.Size[at] / snapshot.Bytes(b.CountOf(int(at)))
			if size == snapshot.Unknown {
				size = each
			}
			if each != size {
				return true
			}
		}
	}
	return false
}

// Estimated reports whether only some steps, or some allocations, were recorded, each of which
// stands for several: counts and sizes are estimates.
func (f *Finding) Estimated() bool {
	return f.Sampled || slices.ContainsFunc(f.Rows, func(row *Row) bool { return row.Births.Sampled() })
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
