package snapshot

import (
	"testing"
	"time"
)

// TestASnapshotIsOfTheProcessThatHadItsNumber: looks may be four seconds apart, so that a process begins and ends between them.
func TestASnapshotIsOfTheProcessThatHadItsNumber(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
	}
	tree := &Tree{}
	for second := 0.; second <= 100; second += 4 {
		tree.Host = append(tree.Host, HostPoint{Time: at(second)})
	}
	seen := func(pid int, started int64, looks ...float64) {
		p := TreeProcess{PID: pid, Started: started}
		for _, second := range looks {
			p.Points = append(p.Points, ProcessPoint{Time: at(second)})
		}
		tree.Processes = append(tree.Processes, p)
	}
	seen(7, 1, 8, 12)
	seen(8, 2, 40)
	seen(7, 3, 80, 84, 88)
	seen(9, 4, 96, 100)
	for _, c := range []struct {
		pid   int
		taken float64
		want  int64 // 0 for none
	}{
		{7, 3, 0}, {7, 5, 1}, {7, 12, 1}, {7, 15.5, 1}, {7, 16.5, 1}, {7, 30, 0}, {7, 79, 3}, {7, 88, 3}, {7, 99, 0}, {8, 43.5, 2}, {9, 103, 4}, {10, 50, 0},
	} {
		p := tree.ProcessAt(c.pid, at(c.taken))
		if p == nil && c.want != 0 || p != nil && p.Started != c.want {
			t.Errorf("%d at %g s: %+v; want the one that started at %d", c.pid, c.taken, p, c.want)
		}
	}
}
