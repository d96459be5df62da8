package live

import (
	"cmp"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// betting is a stake and its outcome so far.
type betting struct {
	money      float64 // what a stake of 1 has become
	paid, wins int     // settled bets, and won ones
}

// bet is on each of the marks until the next look, in turn. It is fixed before the mark comes.
type bet struct {
	at    snapshot.Mark    // the last mark before the bet
	pid   int              // of the process
	sites []series.SiteKey // sites whose levels are summed; nil for memory without a series
	like  *Suspect         // the suspect whose finding gives the level if there are no sites
	top   float64          // the highest level from the beginning of the suspicion to the mark that is bet on
	last  float64          // the level before that mark
}

// Leaks reach a new highest level at nearly each mark with a change: expected is that share, with the weight of so
// many bets. With these values, eight wins in a row suffice for a first suspicion. With Laplace's half and 2 it takes
// twelve, which was too late for one leak in seven (memdiag bench --live).
const expected, weight = 0.9, 5

// settle pays a bet by the level at a new mark, from which the next mark's bet continues. A level that has not
// changed pays nothing. The stake on a new highest level follows the share of those so far, and is at least half:
// less would be a bet against it, for which the odds are not even.
func (t *betting) settle(b *bet, now float64) {
	if now == b.last {
		return
	}
	top := b.top
	b.top, b.last = max(top, now), now
	share := max(0.5, (float64(t.wins)+expected*weight)/float64(t.paid+weight))
	t.paid++
	if now > top {
		t.wins++
		t.money = math.Min(2*share*t.money, math.MaxFloat64)
		return
	}
	t.money *= 2 * (1 - share)
}

// place makes a bet on a finding's memory.
func (s *Suspect) place(f *diff.Finding, pid int, r *diff.Result) *bet {
	b := &bet{at: r.Last.Mark, pid: pid, like: s}
	held := make([]float64, len(r.Series.Marks))
	for _, row := range f.Rows {
		if site := r.Series.Site(row); site != nil {
			b.sites = append(b.sites, row.Key)
			for i := range held {
				held[i] += size(site.Bytes[i], site.Blocks[i])
			}
		}
	}
	if b.sites == nil {
		now := f.After()
		s.sizes = append(s.sizes, size(now.Bytes, now.Blocks))
		held = s.sizes
	}
	for i, level := range held {
		if b.sites == nil || !before(r.Series.Marks[i], s.Since) {
			b.top = max(b.top, level)
		}
	}
	b.last = held[len(held)-1]
	return b
}

// before reports whether a mark is before another of the same process.
func before(a, b snapshot.Mark) bool {
	if a.Step != snapshot.NoStep && b.Step != snapshot.NoStep {
		return a.Step < b.Step
	}
	return a.Time.Before(b.Time)
}

// levels returns the levels of the bet's memory at the marks since the bet, in the process of the bet, whichever
// process now represents its kind. Memory that has gone is 0. For memory without a series, and for a process that
// another now represents, only the last level is known.
func (b *bet) levels(pid int, run *snapshot.Run, r *diff.Result) []float64 {
	switch {
	case b.sites == nil:
		now := 0.
		for i := range r.Findings {
			if f := &r.Findings[i]; b.like.Is(b.like.Process, f) {
				after := f.After()
				now = max(now, size(after.Bytes, after.Blocks))
			}
		}
		return []float64{now}
	case pid != b.pid:
		return []float64{b.beside(run)}
	}
	since := slices.IndexFunc(r.Series.Marks, func(m snapshot.Mark) bool { return before(b.at, m) })
	if since < 0 {
		return nil
	}
	held := make([]float64, len(r.Series.Marks)-since)
	for _, key := range b.sites {
		if site := r.Series.SiteOf(key); site != nil {
			for i := range held {
				held[i] += size(site.Bytes[since+i], site.Blocks[since+i])
			}
		}
	}
	return held
}

// beside is the level in a process that another process now represents. A process that no longer exists keeps its
// last level.
func (b *bet) beside(run *snapshot.Run) (now float64) {
	for _, child := range run.Children {
		if child.PID != b.pid {
			continue
		}
		s := child.Snapshots[len(child.Snapshots)-1]
		held := make(map[series.SiteKey]float64)
		for _, site := range s.Sites() {
			held[series.KeyOf(s, site.SiteKey)] = size(site.Bytes, site.Count)
		}
		for _, key := range b.sites {
			now += held[key]
		}
		return now
	}
	return b.last
}

// size is in bytes, or the number of blocks if they have no size, such as nodes of a graph.
func size(bytes snapshot.Bytes, blocks int64) float64 {
	return float64(cmp.Or(int64(bytes), blocks))
}
