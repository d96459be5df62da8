package diff

import (
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/snapshot"
)

// Pace is growth per event, as people think of it: one block of 4 KiB each step.
type Pace struct {
	Event cause.Driver // what the growth follows
	// Every is the number of steps between two events; for steps, 1 is each.
	Every  int64
	Events int64   // observed events or, if only some steps were recorded, an estimate of all
	Blocks float64 // new blocks per event; 0 if blocks are replaced by larger ones
	Bytes  snapshot.Bytes
	Each   snapshot.Bytes // mean size of a new block; 0 if blocks are replaced
	Sizes  bool           // live blocks differ in size
}

// asFast is the factor by which a pace by steps may differ from the rate's interval.
const asFast = 1.5

// pace returns nil if it is unknown what growth follows. Growth by steps that does not add up to the rate is
// irregular.
func (r *Result) pace(rows []*Row, j *judge.Judgement) *Pace {
	f := r.driver(rows[0])
	if f.driver == "" || f.times == 0 {
		return nil
	}
	grown := &Finding{Rows: rows}
	g := grown.Growth()
	if rows[0].Births.Sampled() && g.Blocks > 0 && grown.Died().Blocks > 0 {
		return nil // the new blocks are not those that stay: older ones are freed
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

// ofSeveralSizes reports whether live blocks of the rows differ in size; the blocks of one total count as equal.
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

// Estimated reports whether counts and sizes are estimates, since only some steps or allocations were recorded.
func (f *Finding) Estimated() bool {
	return f.Sampled || slices.ContainsFunc(f.Rows, func(row *Row) bool { return row.Births.Sampled() })
}

// stepTime is the mean duration of a step, from the marks of the two snapshots; 0 if unknown.
func (r *Result) stepTime() time.Duration {
	a, b := r.First.Mark, r.Last.Mark
	if a.Time.IsZero() || b.Time.IsZero() || a.Step == snapshot.NoStep || b.Step <= a.Step || !b.Time.After(a.Time) {
		return 0
	}
	return b.Time.Sub(a.Time) / time.Duration(b.Step-a.Step)
}
