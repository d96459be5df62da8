package mem

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Take records every block of the devices. The devices should stand at a barrier:
// each is read in one piece, but one after the other. All blocks share one new
// table of stacks; birth times and history are not known.
func Take(mark snapshot.Mark, devices ...*Device) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Mark: mark, Rank: snapshot.NoRank, Producer: "memdiag engine", Stacks: snapshot.NewStacks()}
	for i, d := range devices {
		sites, meters := d.copyBlocks(s, i)
		s.Devices = append(s.Devices, d.describe(meters))
		ids := stackIDs{device: d, stacks: s.Stacks}
		for _, site := range sites.blocks {
			s.Blocks.Stack = append(s.Blocks.Stack, ids.of(site))
		}
		first := len(s.Segments) - len(sites.segments)
		for j, site := range sites.segments {
			s.Segments[first+j].Stack = ids.of(site)
		}
	}
	return s
}

func (d *Device) describe(m snapshot.Meters) snapshot.Device {
	return snapshot.Device{Kind: d.driver.Kind(), Index: d.options.Index, Name: d.driver.Name(), Limit: d.limit(), Meters: m}
}

// sitesOf are the sites of a device's blocks and segments, in the order of the
// snapshot's rows. They become stacks once the lock is let go.
type sitesOf struct{ blocks, segments []SiteID }

// copyBlocks appends the device's segments and blocks to the snapshot, but for
// their stacks, and reads the meters that go with them.
func (d *Device) copyBlocks(s *snapshot.Snapshot, device int) (sitesOf, snapshot.Meters) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reclaim()
	p := &d.pool
	rows := len(p.blocks) - len(p.spare)
	b := &s.Blocks
	b.Segment = slices.Grow(b.Segment, rows)
	b.Address = slices.Grow(b.Address, rows)
	b.Size = slices.Grow(b.Size, rows)
	b.Requested = slices.Grow(b.Requested, rows)
	b.State = slices.Grow(b.State, rows)
	b.Stack = slices.Grow(b.Stack, rows)
	b.BirthStep = slices.Grow(b.BirthStep, rows)
	b.Owners = slices.Grow(b.Owners, rows)
	sites := sitesOf{blocks: make([]SiteID, 0, rows)}

	for _, at := range p.byAddress() {
		seg := &p.segments[at]
		row := len(s.Segments)
		first := b.Len()
		for id := seg.first; id != noBlock; {
			r := &p.blocks[id]
			state, birth := snapshot.Free, snapshot.NoStep
			switch {
			case r.live:
				state, birth = snapshot.Live, r.birth
			case !r.free():
				state, birth = snapshot.Pending, r.birth
			}
			b.Segment = append(b.Segment, int32(row))
			b.Address = append(b.Address, seg.base+uint64(r.offset))
			b.Size = append(b.Size, snapshot.Bytes(r.size))
			b.Requested = append(b.Requested, snapshot.Bytes(r.requested))
			b.State = append(b.State, state)
			b.BirthStep = append(b.BirthStep, birth)
			owners := r.owners()
			if r.lost {
				owners |= snapshot.Lost
			}
			b.Owners = append(b.Owners, owners)
			sites.blocks = append(sites.blocks, r.site)
			id = r.next
		}
		s.Segments = append(s.Segments, snapshot.Segment{
			Device: device, Address: seg.base, Size: snapshot.Bytes(seg.size), Pool: seg.pool,
			FirstBlock: first, NumBlocks: b.Len() - first,
		})
		sites.segments = append(sites.segments, seg.site)
	}
	return sites, d.meters()
}

// byAddress lists the segments in use.
func (p *pool) byAddress() []int32 {
	var rows []int32
	for i := range p.segments {
		if p.segments[i].memory != nil {
			rows = append(rows, int32(i))
		}
	}
	slices.SortFunc(rows, func(a, b int32) int { return cmp.Compare(p.segments[a].base, p.segments[b].base) })
	return rows
}

func (p *pool) liveBlocks() int {
	n := 0
	for i := range p.blocks {
		if p.blocks[i].live {
			n++
		}
	}
	return n
}

// stackIDs interns the stacks of one device's sites in a table, each once.
type stackIDs struct {
	device *Device
	stacks *snapshot.Stacks
	ids    []snapshot.StackID // by SiteID; NoStack where not interned yet
}

func (t *stackIDs) of(s SiteID) snapshot.StackID {
	if s == NoSite {
		return snapshot.NoStack
	}
	for len(t.ids) <= int(s) {
		t.ids = append(t.ids, snapshot.NoStack)
	}
	if t.ids[s] == snapshot.NoStack {
		t.ids[s] = t.stacks.InternFrames(t.device.Stack(s))
	}
	return t.ids[s]
}
