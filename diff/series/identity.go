package series

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// intersect marks the live blocks of b that a has too: device, address, size, birth and stack are the same. If one
// snapshot does not know the birth, as without a record of allocations, it equals the other's birth, unless that is
// later than the snapshot. A malformed file may list a block twice; then each matches one in a.
func intersect(a, b *snapshot.Snapshot) []bool {
	in := make([]bool, b.Blocks.Len())
	devices := make(map[DeviceID]int)
	x := newTenants(a, devices)
	y := newTenants(b, devices)
	for i, j := 0, 0; i < len(x.rows) && j < len(y.rows); {
		switch c := compareTenants(&x, &y, x.rows[i], y.rows[j], false); {
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

// tenants are a snapshot's live blocks in the order of compareTenants.
type tenants struct {
	s       *snapshot.Snapshot
	devices []int // number of each of the snapshot's devices, the same in both snapshots
	rows    []int32
}

// newTenants returns the live blocks of s, and adds its devices to devices.
func newTenants(s *snapshot.Snapshot, devices map[DeviceID]int) tenants {
	t := tenants{s: s, rows: make([]int32, 0, s.Blocks.Len())}
	for _, d := range s.Devices {
		key := DeviceOf(d)
		if _, ok := devices[key]; !ok {
			devices[key] = len(devices)
		}
		t.devices = append(t.devices, devices[key])
	}
	sorted := true
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		t.rows = append(t.rows, int32(i))
		if n := len(t.rows); n > 1 && sorted {
			sorted = compareTenants(&t, &t, t.rows[n-2], t.rows[n-1], true) <= 0
		}
	}
	if !sorted {
		slices.SortFunc(t.rows, func(i, j int32) int { return compareTenants(&t, &t, i, j, true) })
	}
	return t
}

// compareTenants orders two blocks. Among a million blocks, the address decides for all but a few. Unless strictly is
// set, a birth that one side does not know counts as equal.
func compareTenants(a, b *tenants, i, j int32, strictly bool) int {
	x, y := &a.s.Blocks, &b.s.Blocks
	if c := cmp.Compare(a.devices[a.s.Segments[x.Segment[i]].Device], b.devices[b.s.Segments[y.Segment[j]].Device]); c != 0 {
		return c
	}
	if c := cmp.Compare(x.Address[i], y.Address[j]); c != 0 {
		return c
	}
	if c := cmp.Compare(x.Size[i], y.Size[j]); c != 0 {
		return c
	}
	if c := cmp.Compare(x.Requested[i], y.Requested[j]); c != 0 {
		return c
	}
	if c := compareBirths(at(x.BirthStep, i, snapshot.NoStep), at(y.BirthStep, j, snapshot.NoStep), snapshot.NoStep, a.s.Mark.Step, b.s.Mark.Step, strictly); c != 0 {
		return c
	}
	if c := compareBirths(at(x.BirthTime, i, 0), at(y.BirthTime, j, 0), 0, micros(a.s), micros(b.s), strictly); c != 0 {
		return c
	}
	return cmp.Compare(stackHash(a.s, i), stackHash(b.s, j))
}

// compareBirths compares the births of two blocks, in snapshots taken at momentX and momentY. Unless strictly is set,
// an unknown birth equals any up to its snapshot's moment.
func compareBirths(x, y, unknown, momentX, momentY int64, strictly bool) int {
	switch {
	case strictly || x != unknown && y != unknown:
		return cmp.Compare(x, y)
	case x == unknown && y != unknown && momentX != unknown && y > momentX:
		return -1
	case y == unknown && x != unknown && momentY != unknown && x > momentY:
		return 1
	}
	return 0
}

// micros is the time of a snapshot in Unix microseconds; 0 if it has none.
func micros(s *snapshot.Snapshot) int64 {
	if s.Mark.Time.IsZero() {
		return 0
	}
	return s.Mark.Time.UnixMicro()
}

// at returns a value of a column, or unknown if the snapshot lacks the column.
func at(column []int64, i int32, unknown int64) int64 {
	if column == nil {
		return unknown
	}
	return column[i]
}

func stackHash(s *snapshot.Snapshot, i int32) snapshot.Hash {
	if s.Stacks == nil {
		return 0
	}
	return s.Stacks.Hash(s.Blocks.Stack[i])
}
