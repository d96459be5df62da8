package diff

import "github.com/memdiag/memdiag/snapshot"

// loading is how many seconds a program may load what it works on: it grows all along, as one that leaks does.
const loading = 30

// mayLoad takes back that memory leaks of processes in which nothing was recorded, in a run so short that they may have loaded
// all along.
func (r *Result) mayLoad(c *cluster) {
	axis := r.Series.Axis
	if c.j.Verdict != Leak || axis.Unit != Second || axis.X[len(axis.X)-1]-axis.X[0] >= loading {
		return
	}
	if watchedAlone(c.rows[0].Device) {
		c.j.Call(Inconclusive, Weak, "nothing was recorded in these processes, and programs may load their data for %d s; run longer to decide", loading)
	}
}

// watchedAlone reports whether a device is of processes in which nothing was recorded.
func watchedAlone(d snapshot.Device) bool {
	return d.Kind == snapshot.Process && d.Name == snapshot.WatchedProcesses
}
