package series

import (
	"cmp"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// sizeOnDevice is a block size on a device.
type sizeOnDevice struct {
	device DeviceID
	size   snapshot.Bytes
}

// attribute assigns blocks whose allocation nobody saw to the stack that allocates blocks of their size, at their
// mark or at the nearest other mark. If several stacks do, the one with most blocks gets them.
//
// A recorder that watches some steps knows the stack of a size only as long as a block of such a step is alive. If
// the stack is known before and after, its blocks did not go away in between. A recorder that counts live blocks,
// which is one that has blocks without a stack, counts older blocks together with a block of the step that has just
// ended. An allocator's own record lists each block, and counts none.
//
// The first and the last snapshot are compared row by row and stay unchanged. As many blocks of a size as have no
// stack in the last snapshot stay without one at each mark.
func (s *Series) attribute(snapshots []*snapshot.Snapshot) {
	if !slices.ContainsFunc(snapshots, func(s *snapshot.Snapshot) bool { return s.Blocks.Count != nil }) {
		return
	}
	makers := make([]map[sizeOnDevice]SiteKey, len(snapshots))
	counts, counted := false, make(map[DeviceID]bool)
	for at, snap := range snapshots {
		b := &snap.Blocks // without Count where each counts once, as while each step is watched
		if b.BirthStep == nil {
			return
		}
		counts = counts || slices.ContainsFunc(b.Stack, func(id snapshot.StackID) bool { return id == snapshot.NoStack })
		makers[at] = makersOf(snap)
		for row := range b.Stack {
			if d := snap.Devices[snap.Segments[b.Segment[row]].Device]; b.CountOf(row) > 1 || d.Kind.InProcess() {
				counted[DeviceOf(d)] = true
			}
		}
	}
	if !counts {
		return
	}
	last := stackless(snapshots[len(snapshots)-1])
	for at := 1; at < len(snapshots)-1; at++ {
		stay := maps.Clone(last)
		for _, site := range snapshots[at].Sites() {
			if !counted[DeviceOf(snapshots[at].Devices[site.Device])] {
				continue
			}
			for _, row := range site.Rows {
				s.attributeRow(makers, at, snapshots[at], &site, int(row), stay)
			}
		}
	}
}

// stackless counts the live blocks of each size that have no stack.
func stackless(s *snapshot.Snapshot) map[sizeOnDevice]int64 {
	blocks := make(map[sizeOnDevice]int64)
	for row, id := range s.Blocks.Stack {
		if id == snapshot.NoStack && s.Blocks.State[row] == snapshot.Live {
			blocks[sizeOf(s, row)] += s.Blocks.CountOf(row)
		}
	}
	return blocks
}

// attributeRow moves the blocks of a row that belong to another site to that site, except those in stay.
func (s *Series) attributeRow(makers []map[sizeOnDevice]SiteKey, at int, snap *snapshot.Snapshot, site *snapshot.Site, row int, stay map[sizeOnDevice]int64) {
	key, blocks := sizeOf(snap, row), snap.Blocks.CountOf(row)
	if site.Stack != snapshot.NoStack {
		own, _ := standsFor(snap, row)
		blocks -= own
	} else {
		n := min(blocks, stay[key])
		stay[key] -= n
		blocks -= n
	}
	to, ok := nearest(makers, at, key)
	if !ok || blocks == 0 {
		return
	}
	from := s.index[KeyOf(snap, site.SiteKey)]
	if site.Stack == snapshot.NoStack {
		s.count(from, at, -blocks, key.size)
	}
	s.count(s.site(to, s.Sites[from].Device), at, blocks, key.size)
}

// count adds blocks of one size to a site at a mark.
func (s *Series) count(site, at int, blocks int64, size snapshot.Bytes) {
	s.Sites[site].Blocks[at] += blocks
	s.Sites[site].Bytes[at] += snapshot.Bytes(blocks) * size
}

func sizeOf(s *snapshot.Snapshot, row int) sizeOnDevice {
	d := s.Devices[s.Segments[s.Blocks.Segment[row]].Device]
	return sizeOnDevice{DeviceOf(d), s.Blocks.Size[row] / snapshot.Bytes(max(1, s.Blocks.CountOf(row)))}
}

// makersOf returns, for each size, the site with most blocks in a snapshot. Blocks of the step that has just ended do
// not count.
func makersOf(s *snapshot.Snapshot) map[sizeOnDevice]SiteKey {
	blocks := make(map[sizeOnDevice]map[SiteKey]int64)
	for _, site := range s.Sites() {
		if site.Stack == snapshot.NoStack {
			continue
		}
		for _, row := range site.Rows {
			n, _ := standsFor(s, int(row))
			if n < s.Blocks.CountOf(int(row)) {
				continue
			}
			key := sizeOf(s, int(row))
			if blocks[key] == nil {
				blocks[key] = make(map[SiteKey]int64)
			}
			blocks[key][KeyOf(s, site.SiteKey)] += n
		}
	}
	makers := make(map[sizeOnDevice]SiteKey, len(blocks))
	for key, sites := range blocks {
		makers[key] = slices.MaxFunc(slices.SortedFunc(maps.Keys(sites), compareKeys), func(a, b SiteKey) int { return cmp.Compare(sites[a], sites[b]) })
	}
	return makers
}

// nearest is the value of a key at the nearest mark that has one. Of two equally near marks, the later counts.
func nearest[K comparable, V any](marks []map[K]V, at int, key K) (found V, ok bool) {
	for far := range marks {
		for _, i := range []int{at + far, at - far} {
			if i >= 0 && i < len(marks) {
				if found, ok = marks[i][key]; ok {
					return found, true
				}
			}
		}
	}
	return found, false
}
