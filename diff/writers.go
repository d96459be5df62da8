package diff

import (
	"maps"
	"math"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// writer is the role of the process, or of the processes of one kind, whose writes come closest to the growth of the
// files of shared memory; "" if none wrote between half and four times as much. A process that closes a file that it
// wrote no longer maps it.
func (f *forest) writer() string {
	const least, most, alone = 0.5, 4, 0.8
	first := slices.IndexFunc(f.tree.Host, func(h snapshot.HostPoint) bool { return h.Folder != "" })
	if first < 0 {
		return ""
	}
	grown := 0.
	for i := range f.tree.Host[first:] { // the files are removed with the last process
		grown = max(grown, float64(f.tree.Host[first+i].SegmentBytes-f.tree.Host[first].SegmentBytes))
	}
	type kind struct {
		all, most snapshot.Bytes
		role      string // of the one that wrote most
	}
	kinds := make(map[string]kind)
	for i := range f.tree.Processes {
		p := &f.tree.Processes[i]
		wrote := written(p)
		k := kinds[KindOf(p.Role)]
		k.all += wrote
		if wrote > k.most {
			k.most, k.role = wrote, p.Role
		}
		kinds[KindOf(p.Role)] = k
	}
	nearest, role := math.Inf(1), ""
	for _, name := range slices.Sorted(maps.Keys(kinds)) { // ordered, so that ties are stable
		k := kinds[name]
		share := float64(k.all) / grown
		if off := math.Abs(math.Log(share)); least <= share && share <= most && off < nearest {
			nearest, role = off, name
			if float64(k.most) >= alone*float64(k.all) {
				role = k.role
			}
		}
	}
	return role
}

// written is how much a process wrote between the first and the last look that recorded it.
func written(p *snapshot.TreeProcess) snapshot.Bytes {
	first, last := snapshot.Unknown, snapshot.Unknown
	for i := range p.Points {
		if at := p.Points[i].Written; at >= 0 {
			if first < 0 {
				first = at
			}
			last = at
		}
	}
	return last - first
}
