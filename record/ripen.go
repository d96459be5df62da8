package record

import (
	"context"
	"time"
)

const (
	// ripe is for how long a process of a kind that lives shortly is read again, mostRipening how many are, and ripening the time
	// between.
	ripe, ripening, mostRipening = 250 * time.Millisecond, 20 * time.Millisecond, 8
)

// ripen reads processes again that were first seen now, while they live, if others of their parent's ended so soon that they were
// seen but once. A look comes at any moment of so short a life; what a process had at most tells it from the one before.
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
