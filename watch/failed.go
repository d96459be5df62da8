package watch

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// again reports whether it is time to retry what could not be read: no change in the folder shows that a disk works again.
func (f *Follower) again() bool {
	unread := f.failed != "" || slices.ContainsFunc(f.runs, func(r *snapshot.Run) bool { return len(r.Unread) > 0 })
	return unread && (f.Retry == 0 || time.Since(f.looked) >= max(f.Retry, share*f.took))
}

// transient reports whether a run may become readable again: it was readable before, and its folder still exists. Equal failures are
// retried while the run's processes exist, or while that is unknown.
func (f *Follower) transient(err error) bool {
	if len(f.ranks) == 0 || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err.Error() != f.failed || time.Since(f.fails) < f.Retry || !f.dead()
}

// failure is a look that failed, with the ranks of the last look. It is nil if the last one failed with the same error.
func (f *Follower) failure(err error) *Look {
	f.looked = time.Now()
	if err.Error() == f.failed {
		return nil
	}
	f.failed, f.fails = err.Error(), f.looked
	look := &Look{Time: f.looked, Failed: f.failed}
	for _, r := range f.ranks {
		look.Ranks = append(look.Ranks, Rank{Run: r.Run, Read: r.Read, Result: r.Result, Suspects: r.Suspects, Budgets: r.Budgets})
	}
	return look
}

// confirmed is the number of looks after which an unreadable snapshot is reported. After one look, the recorder may just have removed
// it to make room.
const confirmed = 2

// news returns the notes on unreadable snapshots to report now, each once; in the last look, all that were not reported.
func (f *Follower) news(notes []string, last bool) (fresh []string) {
	before := f.unread
	f.unread = make(map[string]int)
	for _, note := range notes {
		n := before[note]
		if n < confirmed {
			if n++; n == confirmed || last {
				n = confirmed
				fresh = append(fresh, note)
			}
		}
		f.unread[note] = n
	}
	return fresh
}
