package live

import (
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// quiet checks the suspects in kinds of processes that no longer leak. A result has only the kinds that do.
func (w *Watch) quiet(r *diff.Result) (changed []*Suspect) {
	for _, s := range w.suspects {
		if s.Process == "" || s.Over() || slices.ContainsFunc(r.Children, func(c *diff.Child) bool { return diff.KindOf(c.Role) == s.Process }) {
			continue
		}
		at := slices.IndexFunc(r.Run().Children, func(c *snapshot.Run) bool { return c.PID == s.pid && len(c.Snapshots) > 0 })
		if at < 0 {
			continue
		}
		all := r.Run().Children[at].Snapshots
		if last := all[len(all)-1].Mark; last.Step != s.seen.Step || !last.Time.Equal(s.seen.Time) {
			s.seen = last
			if !s.rises(r.Run()) && !r.Open[s.Process] && s.look(nil, s.pid, nil, 0) {
				changed = append(changed, s)
			}
		}
	}
	return changed
}

// rises settles the bet on a suspect whose process no verdict calls a leak now, and reports whether there is a new
// highest level: then growth has not stopped. The next bet is on the same memory.
func (s *Suspect) rises(run *snapshot.Run) bool {
	b := s.bet
	if b == nil {
		return false
	}
	now := b.beside(run)
	s.test.settle(b, now)
	next := *b
	next.top, next.last = max(b.top, now), now
	s.bet = &next
	return now > b.top
}
