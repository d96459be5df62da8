package diff

import "github.com/memdiag/memdiag/snapshot"

// loading is for how many seconds a program may load its data: meanwhile it grows like a leak.
const loading = 30

// mayLoad withdraws a leak of processes in which nothing was recorded if the run is so short that they may have been
// loading data.
func (r *Result) mayLoad(c *cluster) {
	axis := r.Series.Axis
	if c.j.Verdict != Leak || axis.Unit != Second || axis.X[len(axis.X)-1]-axis.X[0] >= loading {
		return
	}
	if watchedAlone(c.rows[0].Device) {
		c.j.Call(Inconclusive, Weak, "nothing was recorded in these processes, and programs may load their data for %d s; run longer to decide", loading)
	}
}

// watchedAlone reports whether a device is a process in which nothing was recorded.
func watchedAlone(d snapshot.Device) bool {
	return d.Kind == snapshot.Process && d.Name == snapshot.WatchedProcesses
}
