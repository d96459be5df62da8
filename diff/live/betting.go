package live

import (
	"cmp"
	"math"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// betting is a stake, and what became of it.
type betting struct {
	money      float64 // what has become of 1
	paid, wins int     // bets that were settled, and those that were won
}

// bet is on the marks to come until the next look, on each in turn. All of it is known before that mark comes.
type bet struct {
	at    snapshot.Mark    // the last one before it
	pid   int              // of the process
	sites []series.SiteKey // whose levels are added up; nil for what has no series
	like  *Suspect         // whose finding gives the level where there are no sites
	top   float64          // the highest level since the suspicion began, until the mark that is bet on
	last  float64          // the level before that mark
}

// Leaks make a new highest one at nearly each mark at which they change at all: expected is that share, as if weight bets had shown
// it. With these eight in a row suffice for a first suspicion, and with Laplace's half and 2 twelve, which came too late for one leak
// in seven (memdiag bench --live).
const expected, weight = 0.9, 5

// settle pays a bet by the level at the mark that has come, from which the next mark's goes on. Where that has not changed there is
// nothing to pay. What is staked on a new highest one follows the share of those before, and is never less than half, since less would
// be a bet against one, for which the odds are not even.
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

// place makes a bet on what a finding holds.
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

// levels are what is held of what was bet on at the marks since, in the process that it was bet on, whichever one stands for those
// of its kind now. What has gone is 0. Of what has no series, and of a process for which another one stands, only the last is known.
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

// beside is the level of a process for which another one stands. One that is not there any more holds what it did.
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

// size is in bytes, or the number of what has no size, as the nodes of a graph.
func size(bytes snapshot.Bytes, blocks int64) float64 {
	return float64(cmp.Or(int64(bytes), blocks))
}
