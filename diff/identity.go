package diff

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// identity tells a live block from its address's other tenants.
type identity struct {
	device          string
	address         uint64
	size, requested snapshot.Bytes
	step, time      int64
	stack           snapshot.Hash
}

func (x *identity) compare(y *identity) int {
	if x.device == y.device && x.address != y.address {
		return cmp.Compare(x.address, y.address) // decides for all but a few
	}
	return cmp.Or(
		cmp.Compare(x.device, y.device), cmp.Compare(x.address, y.address), cmp.Compare(x.size, y.size),
		cmp.Compare(x.requested, y.requested), cmp.Compare(x.step, y.step), cmp.Compare(x.time, y.time), cmp.Compare(x.stack, y.stack),
	)
}

// intersect marks the live blocks of b that a has too. A file that breaks its
// format may hold a block twice; then each counts once for each in a.
func intersect(a, b *snapshot.Snapshot) []bool {
	in := make([]bool, b.Blocks.Len())
	x, y := newTenants(a), newTenants(b)
	for i, j := 0, 0; i < len(x.rows) && j < len(y.rows); {
		p, q := x.at(i), y.at(j)
		switch c := p.compare(&q); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			in[y.rows[j]] = true
			i++
			j++
		}
	}
	return in
}

// tenants are a snapshot's live blocks in the order of their identity.
type tenants struct {
	s       *snapshot.Snapshot
	devices []string
	rows    []int32
}

func newTenants(s *snapshot.Snapshot) tenants {
	t := tenants{s: s, rows: make([]int32, 0, s.Blocks.Len())}
	for _, d := range s.Devices {
		t.devices = append(t.devices, deviceName(d.Kind, d.Index))
	}
	sorted := true
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		t.rows = append(t.rows, int32(i))
		if n := len(t.rows); n > 1 && sorted {
			p, q := t.at(n-2), t.at(n-1)
			sorted = p.compare(&q) <= 0
		}
	}
	if !sorted {
		slices.SortFunc(t.rows, func(i, j int32) int {
			p, q := t.of(i), t.of(j)
			return p.compare(&q)
		})
	}
	return t
}

func (t *tenants) at(i int) identity { return t.of(t.rows[i]) }

func (t *tenants) of(row int32) identity {
	b := &t.s.Blocks
	id := identity{device: t.devices[t.s.Segments[b.Segment[row]].Device], address: b.Address[row], size: b.Size[row], requested: b.Requested[row]}
	if b.BirthStep != nil {
		id.step = b.BirthStep[row]
	}
	if b.BirthTime != nil {
		id.time = b.BirthTime[row]
	}
	if t.s.Stacks != nil {
		id.stack = t.s.Stacks.Hash(b.Stack[row])
	}
	return id
}
