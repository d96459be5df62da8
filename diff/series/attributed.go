package series

import (
	"cmp"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// sizeOnDevice is a size of blocks on a device.
type sizeOnDevice struct {
	device DeviceID
	size   snapshot.Bytes
}

// attribute counts blocks that nobody saw being made with the stack that makes blocks of their size,
// at their mark or the nearest other. A recorder that watches some steps knows the stack of a size
// only as long as a block of such a step is alive, and what it knew before and knows again has not
// gone meanwhile. Where it counts what lives, as it does if it has blocks without a stack, what it counts
// with a block of the step that has just ended is older. An allocator's own record lists each block, and nothing is
// counted of it. Of several stacks it is the one with most
// blocks. The first snapshot and the last, which are compared row by row, stay as they are: of what the last has
// without a stack as many stay without one at every mark.
func (s *Series) attribute(snapshots []*snapshot.Snapshot) {
	makers := make([]map[sizeOnDevice]SiteKey, len(snapshots))
	counts, counted := false, make(map[DeviceID]bool)
	for at, snap := range snapshots {
		b := &snap.Blocks
		if b.Count == nil || b.BirthStep == nil {
			return
		}
		counts = counts || slices.ContainsFunc(b.Stack, func(id snapshot.StackID) bool { return id == snapshot.NoStack })
		makers[at] = makersOf(snap)
		for row, n := range b.Count {
			if d := snap.Devices[snap.Segments[b.Segment[row]].Device]; n > 1 || d.Kind.InProcess() {
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

// stackless counts the blocks of each size that have no stack.
func stackless(s *snapshot.Snapshot) map[sizeOnDevice]int64 {
	blocks := make(map[sizeOnDevice]int64)
	for row, id := range s.Blocks.Stack {
		if id == snapshot.NoStack && s.Blocks.State[row] == snapshot.Live {
			blocks[sizeOf(s, row)] += s.Blocks.CountOf(row)
		}
	}
	return blocks
}

// attributeRow moves those of a row's blocks that are another site's to it, but for those that stay without a stack.
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

// count adds blocks of a size to a site at a mark.
func (s *Series) count(site, at int, blocks int64, size snapshot.Bytes) {
	s.Sites[site].Blocks[at] += blocks
	s.Sites[site].Bytes[at] += snapshot.Bytes(blocks) * size
}

func sizeOf(s *snapshot.Snapshot, row int) sizeOnDevice {
	d := s.Devices[s.Segments[s.Blocks.Segment[row]].Device]
	return sizeOnDevice{DeviceOf(d), s.Blocks.Size[row] / snapshot.Bytes(max(1, s.Blocks.CountOf(row)))}
}

// makersOf are the sites with most blocks of each size in a snapshot, without those of the step that
// has just ended.
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

// nearest is what the nearest mark has for a key; of two as near, the later.
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
