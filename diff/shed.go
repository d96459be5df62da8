package diff

import "github.com/memdiag/memdiag/snapshot"

// Shed lets go of the blocks of all snapshots but the first and the last. The series have what a result tells of those between, which
// are most of a run's memory: the results of a thousand ranks then fit beside each other. The run is not to be judged again.
func (r *Result) Shed() {
	shed(r.run)
	if r.after != nil {
		shed(r.after.run)
	}
	for _, c := range r.Children {
		shed(c.Result.run)
	}
}

func shed(run *snapshot.Run) {
	for i, s := range run.Snapshots {
		if i > 0 && i < len(run.Snapshots)-1 {
			s.Blocks, s.Segments = snapshot.Blocks{}, nil
		}
	}
	for _, child := range run.Children {
		shed(child)
	}
}
