package diff

import "github.com/memdiag/memdiag/snapshot"

// Shed releases the blocks of all snapshots but the first and the last. The result needs only the series for those
// between, which take most of a run's memory. So the results of a thousand ranks fit into memory together. The run
// cannot be judged again.
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
