package mem

import "github.com/memdiag/memdiag/snapshot"

// Series reads the counters of its devices at every step, cheaply enough for
// that: a stack is symbolised once, at the first step after its first allocation.
// Sites that never hold anything at a step are named all the same: what a program
// does within its steps, such as a backward pass, shows in them alone. It is not safe for concurrent use; the devices are.
type Series struct {
	out     snapshot.Series
	devices []deviceSites
	bySite  map[snapshot.SeriesSite]int32
	totals  []SiteTotal
	// sum has a row for each site of the series; several sites of a device can
	// have the same frames.
	sum []siteTotal
}

// deviceSites translates one device's sites.
type deviceSites struct {
	device *Device
	stacks stackIDs
	series []int32 // by SiteID; what it is in the series, plus 1
}

// NewSeries returns a series without points.
func NewSeries(devices ...*Device) *Series {
	s := &Series{bySite: make(map[snapshot.SeriesSite]int32)}
	s.out.Stacks = snapshot.NewStacks()
	s.out.Devices = make([]snapshot.Device, len(devices))
	for i, d := range devices {
		s.devices = append(s.devices, deviceSites{device: d, stacks: stackIDs{device: d, stacks: s.out.Stacks}})
		s.out.Devices[i] = d.describe(d.Meters())
	}
	return s
}

// Append adds a point with what every site holds now and the devices' meters.
// The devices should stand at a barrier.
func (s *Series) Append(mark snapshot.Mark) {
	point := snapshot.Point{Mark: mark}
	clear(s.sum)
	for i := range s.devices {
		t := &s.devices[i]
		m := t.device.Meters()
		s.out.Devices[i].Meters = m
		point.Meters = append(point.Meters, m)
		for id := SiteID(max(len(t.series), 1)); id < t.device.seen(); id++ {
			s.site(i, id)
		}
		s.totals = t.device.Counters(s.totals[:0])
		for _, total := range s.totals {
			at := s.site(i, total.Site)
			sum := &s.sum[at]
			sum.count += total.Count
			sum.bytes += total.Bytes
		}
	}
	holding := 0
	for _, t := range s.sum {
		if t.count > 0 {
			holding++
		}
	}
	point.Sites = make([]snapshot.SiteCount, 0, holding)
	for i, t := range s.sum {
		if t.count > 0 {
			point.Sites = append(point.Sites, snapshot.SiteCount{Site: int32(i), Count: t.count, Bytes: t.bytes})
		}
	}
	s.out.Points = append(s.out.Points, point)
}

// site is the id in the series of a device's site; a new one gets a row in sum.
func (s *Series) site(device int, id SiteID) int32 {
	t := &s.devices[device]
	for len(t.series) <= int(id) {
		t.series = append(t.series, 0)
	}
	if t.series[id] == 0 {
		key := snapshot.SeriesSite{Device: device, Stack: t.stacks.of(id)}
		at, ok := s.bySite[key]
		if !ok {
			at = int32(len(s.out.Sites))
			s.bySite[key] = at
			s.out.Sites = append(s.out.Sites, key)
			s.sum = append(s.sum, siteTotal{})
		}
		t.series[id] = at + 1
	}
	return t.series[id] - 1
}

// Series returns the series so far. It belongs to s, which adds to it at every
// Append: Sites and Stacks only grow, so a writer that streams takes the rows it
// has not seen, and may clear Points once they are written.
func (s *Series) Series() *snapshot.Series { return &s.out }
