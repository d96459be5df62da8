package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// agentTakes is how much memdiag's agent itself takes in a recorded process, in about the first ten seconds: 5 to 9
// MiB in each loader worker of a program whose workers grow by 1.5 MiB without it, and 0.2 MiB in the following 40
// seconds.
const agentTakes = 10 << 20

// agentsTake is how much of the growth of recorded processes is not the program's blocks: memory of memdiag's agents,
// and growth of malloc's free memory.
func (r *Result) agentsTake(growth snapshot.Bytes, of ...*snapshot.TreeProcess) (taken snapshot.Bytes) {
	var all, free float64
	for _, p := range of {
		private := func(at *snapshot.ProcessPoint) snapshot.Bytes { return at.Anonymous + at.Swapped }
		grown := float64(max(0, private(&p.Points[len(p.Points)-1])-private(&p.Points[0])))
		all += grown
		at := slices.IndexFunc(r.run.Children, func(c *snapshot.Run) bool { return c.Is(p) })
		if at < 0 {
			continue
		}
		taken += agentTakes
		recorded := r.run.Children[at].Snapshots
		free += grown * freeShare(ofProcessItself(recorded[0]), ofProcessItself(recorded[len(recorded)/2]), ofProcessItself(recorded[len(recorded)-1]))
	}
	if all > 0 {
		taken += snapshot.Bytes(float64(growth) * free / all)
	}
	return taken
}

// keptFree is how much free memory malloc may have, as a share of what the program has from it, as happens with
// blocks of any size: PyTorch's loader workers that pass tensors in files gained a sixth in 15 s, and no more.
const keptFree = 0.25

// freeShare is the share of a process's growth that is malloc's free memory. If that memory grows in the second half
// of the time by more than half of its growth in the first, it may go on to grow. Then only the first half is
// counted, unless all of it is little.
func freeShare(first, half, last snapshot.Meters) float64 {
	free := func(m snapshot.Meters) snapshot.Bytes { return m.Reserved - m.Allocated }
	early, late := free(half)-free(first), free(last)-free(half)
	if 2*late > early && float64(free(last)) > keptFree*float64(last.Allocated) {
		late = 0
	}
	if early+late <= 0 || last.Driver <= first.Driver {
		return 0
	}
	return min(1, float64(early+late)/float64(last.Driver-first.Driver))
}

// ofProcessItself returns the meters of a snapshot's process; zero if it has none.
func ofProcessItself(s *snapshot.Snapshot) snapshot.Meters {
	at := slices.IndexFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process })
	if at < 0 {
		return snapshot.Meters{}
	}
	return s.Devices[at].Meters
}
