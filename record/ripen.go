package record

import (
	"context"
	"time"
)

const (
	// ripe is how long a new process of a short-lived kind is read again. ripening is the time between reads, and mostRipening the
	// number of processes that are read so.
	ripe, ripening, mostRipening = 250 * time.Millisecond, 20 * time.Millisecond, 8
)

// ripen repeatedly reads processes that are new in this look, if other children of their parent lived so briefly that they were seen
// only once. A look can fall anywhere in such a short life, so its figure alone says little. The maximum can be compared with that of
// the earlier processes.
func (t *tree) ripen(ctx context.Context, points []*followed, now time.Time) {
	var young []*followed
	for _, f := range points {
		if f.first.Equal(now) && t.brief[f.Parent] && len(young) < mostRipening {
			young = append(young, f)
		}
	}
	for until := time.Now().Add(ripe); len(young) > 0 && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return
		case <-time.After(ripening):
		}
		live := young[:0]
		for _, f := range young {
			if p, ok := readStat(f.PID); ok && p.started == f.Started && p.state != 'Z' && f.look(p) {
				at := &f.Points[0]
				at.Anonymous, at.Swapped = max(at.Anonymous, f.status.anonymous), max(at.Swapped, f.status.swapped)
				live = append(live, f)
			}
		}
		young = live
	}
}
