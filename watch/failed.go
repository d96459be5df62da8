package watch

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// again reports whether it is time to read once more what could not be read: nothing in the folder tells that a disk answers again.
func (f *Follower) again() bool {
	unread := f.failed != "" || slices.ContainsFunc(f.runs, func(r *snapshot.Run) bool { return len(r.Unread) > 0 })
	return unread && (f.Retry == 0 || time.Since(f.looked) >= max(f.Retry, share*f.took))
}

// transient reports whether a run may be readable later: it was before, and its folder is still there. What fails alike is tried again
// while the run's processes are there, or nothing tells.
func (f *Follower) transient(err error) bool {
	if len(f.ranks) == 0 || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return err.Error() != f.failed || time.Since(f.fails) < f.Retry || !f.dead()
}

// failure is a look that could not be had, with the ranks as they were at the last one; nil if the last one failed alike.
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

// confirmed is at how many looks a snapshot cannot be read before that is said: at the first, the recorder may just have made room.
const confirmed = 2

// news are the notes on snapshots that cannot be read that are to be said now, each once; at the last look all that were not.
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
