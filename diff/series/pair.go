// Package series joins the snapshots of a run by call site: what each site held at every snapshot, when its blocks
// were allocated, and how it grew. It judges nothing. Files of counters count as snapshots of each step.
package series

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Tally counts blocks and their bytes.
type Tally struct {
	Blocks    int64
	Bytes     snapshot.Bytes // with the allocator's rounding
	Requested snapshot.Bytes // without it
}

// Minus is t without u.
func (t Tally) Minus(u Tally) Tally {
	return Tally{t.Blocks - u.Blocks, t.Bytes - u.Bytes, t.Requested - u.Requested}
}

// Plus is the sum of both.
func (t Tally) Plus(u Tally) Tally {
	return Tally{t.Blocks + u.Blocks, t.Bytes + u.Bytes, t.Requested + u.Requested}
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

	Key    SiteKey
	Births Births
	stack  snapshot.StackID // in the later snapshot
}

// On is the device of the site.
func (r *Row) On() DeviceID { return DeviceOf(r.Device) }

// Growth is what the site holds after, less what it held before.
func (r *Row) Growth() Tally { return r.After.Minus(r.Before) }

// Unsized reports whether the size of the blocks is unknown, as for compiled programs on some backends.
func (r *Row) Unsized() bool {
	return r.Device.Kind.Unsized() && r.After.Bytes == 0 && r.After.Blocks > 0
}

// HangsOn reports whether a recorder found that h holds some of the row's blocks. A freed site has no stack in the
// later snapshot, like a site without stack; only the latter matches NoStack. Tensors and the autograd nodes behind
// them may share a stack.
func (r *Row) HangsOn(h *snapshot.Holder) bool {
	return (h.Kind == snapshot.Nodes) == (r.Device.Kind == snapshot.Graph) && h.Stack == r.stack && (r.stack != snapshot.NoStack || len(r.Frames) == 0)
}

// Grew reports whether the site has more blocks or more bytes than before.
func (r *Row) Grew() bool {
	g := r.Growth()
	return g.Bytes > 0 || g.Blocks > 0
}

// Summed reports whether the snapshot records only the sum of the row's new blocks, and no single block.
func (r *Row) Summed() bool {
	return len(r.Births.Steps)+len(r.Births.Times) == 0 && int64(r.Births.Unknown) < r.Born.Blocks
}

// DeviceID identifies a device across snapshots, since a snapshot lists only the devices it saw.
type DeviceID struct {
	Kind  snapshot.DeviceKind
	Index int
}

// DeviceOf is the ID of a snapshot's device.
func DeviceOf(d snapshot.Device) DeviceID { return DeviceID{d.Kind, d.Index} }

func (d DeviceID) String() string { return fmt.Sprintf("%s:%d", d.Kind, d.Index) }

// SiteKey identifies a site across snapshots.
type SiteKey struct {
	Device DeviceID
	Hash   snapshot.Hash
}

// KeyOf is the key of a snapshot's site.
func KeyOf(s *snapshot.Snapshot, k snapshot.SiteKey) SiteKey {
	return SiteKey{DeviceOf(s.Devices[k.Device]), k.Hash}
}

func compareKeys(a, b SiteKey) int {
	return cmp.Or(cmp.Compare(a.Device.Kind, b.Device.Kind), cmp.Compare(a.Device.Index, b.Device.Index), cmp.Compare(a.Hash, b.Hash))
}

// Pair returns one row for each site live in either snapshot, largest growth in bytes first, ties by growth in
// blocks, device and stack hash. Pair(a, b) is Pair(b, a) with Before and After, Born and Died exchanged.
//
// Two blocks are the same if address, size and birth are. Snapshots that share no segment come from different
// processes, or have totals only. Then Born and Died are the net change.
func Pair(a, b *snapshot.Snapshot) []Row {
	before, after := a.Sites(), b.Sites()
	same := SameProcess(a, b)
	var kept []bool // by block of b
	if same {
		kept = intersect(a, b)
	}
	rows := make([]Row, 0, max(len(before), len(after)))
	index := make(map[SiteKey]int, cap(rows))
	row := func(s *snapshot.Snapshot, site *snapshot.Site) *Row {
		key := KeyOf(s, site.SiteKey)
		i, ok := index[key]
		if !ok {
			i = len(rows)
			index[key] = i
			rows = append(rows, Row{Device: s.Devices[site.Device], Hash: site.Hash, Label: site.Label, Key: key})
			if site.Stack != snapshot.NoStack {
				rows[i].Frames = s.Stacks.Frames(site.Stack)
			}
		}
		return &rows[i]
	}
	for i := range before {
		site := &before[i]
		r := row(a, site)
		r.Before = Tally{site.Count, site.Bytes, site.Requested}
		r.Died = r.Before
	}
	for i := range after {
		site := &after[i]
		r := row(b, site)
		r.After = Tally{site.Count, site.Bytes, site.Requested}
		r.Owners, r.stack = site.Owners, site.Stack
		var old Tally
		for _, at := range site.Rows {
			if kept != nil && kept[at] {
				old.Blocks += b.Blocks.CountOf(int(at))
				old.Bytes += b.Blocks.Size[at]
				old.Requested += b.Blocks.Requested[at]
			} else {
				r.Births.add(&b.Blocks, at)
			}
		}
		r.Born, r.Died = r.After.Minus(old), r.Before.Minus(old)
	}
	if !same {
		for i := range rows {
			rows[i].Born, rows[i].Died = net(rows[i].Growth())
		}
	}
	slices.SortFunc(rows, func(x, y Row) int {
		return cmp.Or(cmp.Compare(y.Growth().Bytes, x.Growth().Bytes), cmp.Compare(y.Growth().Blocks, x.Growth().Blocks), compareKeys(x.Key, y.Key))
	})
	return rows
}

// net splits a change into gain and loss, each figure separately.
func net(t Tally) (born, died Tally) {
	born = Tally{max(t.Blocks, 0), max(t.Bytes, 0), max(t.Requested, 0)}
	return born, born.Minus(t)
}

// Placed reports whether a snapshot records the addresses of its segments.
func Placed(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Segments, func(seg snapshot.Segment) bool { return seg.Address != 0 })
}

// SameProcess reports whether two snapshots have a segment in common.
func SameProcess(a, b *snapshot.Snapshot) bool {
	segments := make(map[uint64]struct{}, len(a.Segments))
	for i := range a.Segments {
		if at := a.Segments[i].Address; at != 0 {
			segments[at] = struct{}{}
		}
	}
	for i := range b.Segments {
		if _, ok := segments[b.Segments[i].Address]; ok {
			return true
		}
	}
	return false
}

// Part is the share n/of of t, rounded toward zero.
func (t Tally) Part(n, of int64) Tally {
	share := func(v int64) int64 { return int64(float64(v) * (float64(n) / float64(of))) }
	if n == of {
		return t
	}
	return Tally{share(t.Blocks), snapshot.Bytes(share(int64(t.Bytes))), snapshot.Bytes(share(int64(t.Requested)))}
}
