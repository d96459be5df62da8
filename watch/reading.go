package watch

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// mostHeld is how many blocks of all snapshots of all ranks are held in memory, some 100 MB. A run with more is judged rank by rank
// while it is read, and keeps only the blocks of each rank's first and last snapshot. Looks at its past would need all blocks, and ten
// seconds would be enough for only a few of a thousand ranks.
const mostHeld = 2 << 20

// reading is a run that is read rank by rank.
type reading struct {
	runs   []*snapshot.Run
	judged []*diff.Result // results of the first runs; nil for one with too few snapshots
	blocks int
}

// read reads the run's ranks.
func (f *Follower) read() (*reading, error) {
	r := &reading{}
	err := f.Open(func(run *snapshot.Run) error {
		r.runs = append(r.runs, run)
		r.blocks += blocksOf(run)
		if r.blocks <= cmp.Or(f.Held, mostHeld) {
			return nil
		}
		for _, run := range r.runs[len(r.judged):] {
			result, err := f.result(run)
			if err != nil {
				return err
			}
			if result != nil {
				result.Shed()
			}
			r.judged = append(r.judged, result)
		}
		return nil
	})
	return r, err
}

// missed reports whether something could not be read.
func (r *reading) missed() bool {
	return slices.ContainsFunc(r.runs, func(run *snapshot.Run) bool { return len(run.Unread) > 0 || run.Partial })
}

// result is the result of the i-th rank that was read.
func (r *reading) result(i int, f *Follower) (*diff.Result, error) {
	if i < len(r.judged) {
		return r.judged[i], nil
	}
	return f.result(r.runs[i])
}

// result judges one rank; nil if it has too few snapshots.
func (f *Follower) result(run *snapshot.Run) (*diff.Result, error) {
	if len(run.Snapshots) < fewest {
		return nil, nil //nolint:nilnil // there is nothing to judge
	}
	return f.Judge(run)
}

func blocksOf(run *snapshot.Run) (n int) {
	for _, s := range run.Snapshots {
		n += s.Blocks.Len()
	}
	for _, child := range run.Children {
		n += blocksOf(child)
	}
	return n
}
