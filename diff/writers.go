package diff

import (
	"maps"
	"math"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// writer is the role of the process, or of the processes of one kind, that wrote most nearly as much as the files of shared memory
// grew by; "" if none wrote half as much, and no more than four times. Whoever closes a file that he wrote has no part of it any more.
func (f *forest) writer() string {
	const least, most, alone = 0.5, 4, 0.8
	first := slices.IndexFunc(f.tree.Host, func(h snapshot.HostPoint) bool { return h.Folder != "" })
	if first < 0 {
		return ""
	}
	grown := 0.
	for i := range f.tree.Host[first:] { // the files go with the last process
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
	for _, name := range slices.Sorted(maps.Keys(kinds)) { // of two as near always the same
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

// written is what a process wrote while it was asked.
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
