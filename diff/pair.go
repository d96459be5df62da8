// Package diff compares snapshots by allocation stack: what grew, whether it is
// a leak, on what evidence, and when memory runs out. It is pure: no files, no
// clocks, no globals; the same input gives the same result.
package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Tally counts blocks and what they take.
type Tally struct {
	Blocks    int64
	Bytes     snapshot.Bytes // as the allocator rounds
	Requested snapshot.Bytes // as the program asked
}

func (t Tally) minus(u Tally) Tally {
	return Tally{t.Blocks - u.Blocks, t.Bytes - u.Bytes, t.Requested - u.Requested}
}

// Row is one site in both snapshots of a pair. After - Before equals
// Born - Died.
type Row struct {
	Device        snapshot.Device
	Hash          snapshot.Hash
	Frames        []snapshot.Frame // innermost first; nil for a site without stack
	Label         string           // names a site without stack
	Owners        snapshot.Owners  // in the later snapshot
	Before, After Tally
	Born, Died    Tally

	key    siteKey
	births births
	stack  snapshot.StackID // in the later snapshot
}

// Growth is what the site holds more (or less) than before.
func (r *Row) Growth() Tally { return r.After.minus(r.Before) }

// siteKey names a site across snapshots: devices by kind and index, since a
// snapshot lists only the devices it saw.
type siteKey struct {
	kind  snapshot.DeviceKind
	index int
	hash  snapshot.Hash
}

func keyOf(s *snapshot.Snapshot, k snapshot.SiteKey) siteKey {
	d := s.Devices[k.Device]
	return siteKey{d.Kind, d.Index, k.Hash}
}

func compareKeys(a, b siteKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.index, b.index), cmp.Compare(a.hash, b.hash))
}

// Pair returns one row for each site live in either snapshot, largest growth in
// bytes first, ties by device and stack hash. Pair(a, b) is Pair(b, a) with
// Before and After, Born and Died exchanged.
//
// Blocks are the same when address, size and birth are. Where the two snapshots share
// no block at all they come from different processes, and Born and Died are the
// net change.
func Pair(a, b *snapshot.Snapshot) []Row {
	rows := make(map[siteKey]*Row)
	add := func(s *snapshot.Snapshot, site *snapshot.Site) *Row {
		key := keyOf(s, site.SiteKey)
		row := rows[key]
		if row == nil {
			row = &Row{Device: s.Devices[site.Device], Hash: site.Hash, Label: site.Label, key: key}
			if site.Stack != snapshot.NoStack {
				row.Frames = s.Stacks.Frames(site.Stack)
			}
			rows[key] = row
		}
		return row
	}
	before, after := a.Sites(), b.Sites()
	same := sameProcess(a, b)
	identities := make(map[siteKey]map[identity]int, len(before))
	for i := range before {
		site := &before[i]
		row := add(a, site)
		row.Before = Tally{site.Count, site.Bytes, site.Requested}
		row.Died = row.Before
		if same {
			old := make(map[identity]int, len(site.Rows))
			for _, r := range site.Rows {
				old[identify(&a.Blocks, r)]++
			}
			identities[row.key] = old
		}
	}
	for i := range after {
		site := &after[i]
		row := add(b, site)
		row.After = Tally{site.Count, site.Bytes, site.Requested}
		row.Owners, row.stack = site.Owners, site.Stack
		old := identities[row.key]
		var kept Tally
		for _, r := range site.Rows {
			if id := identify(&b.Blocks, r); old[id] > 0 {
				old[id]--
				kept.Blocks++
				kept.Bytes += b.Blocks.Size[r]
				kept.Requested += b.Blocks.Requested[r]
			} else {
				row.births.add(&b.Blocks, r)
			}
		}
		row.Born, row.Died = row.After.minus(kept), row.Before.minus(kept)
	}
	out := make([]Row, 0, len(rows))
	for _, row := range rows {
		if !same {
			row.Born, row.Died = net(row.Growth())
		}
		out = append(out, *row)
	}
	slices.SortFunc(out, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Growth().Bytes, x.Growth().Bytes), cmp.Compare(y.Growth().Blocks, x.Growth().Blocks), compareKeys(x.key, y.key))
	})
	return out
}

// net splits a change into its gain and its loss, figure by figure.
func net(t Tally) (born, died Tally) {
	born = Tally{max(t.Blocks, 0), max(t.Bytes, 0), max(t.Requested, 0)}
	return born, born.minus(t)
}

// identity tells a block from its address's other tenants. A file that breaks
// its format may hold one twice.
type identity struct {
	address         uint64
	size, requested snapshot.Bytes
	step, time      int64
}

func identify(b *snapshot.Blocks, row int32) identity {
	id := identity{address: b.Address[row], size: b.Size[row], requested: b.Requested[row]}
	if b.BirthStep != nil {
		id.step = b.BirthStep[row]
	}
	if b.BirthTime != nil {
		id.time = b.BirthTime[row]
	}
	return id
}

func sameProcess(a, b *snapshot.Snapshot) bool {
	segments := make(map[uint64]struct{}, len(a.Segments))
	for i := range a.Segments {
		segments[a.Segments[i].Address] = struct{}{}
	}
	for i := range b.Segments {
		if _, ok := segments[b.Segments[i].Address]; ok {
			return true
		}
	}
	return false
}
