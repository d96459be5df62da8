package series

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Series are the counts and bytes of every site over the marks of a run.
type Series struct {
	Marks  []snapshot.Mark
	Axis   Axis                // where the marks lie
	Meters [][]snapshot.Meters // [device][mark], devices as in Devices
	// Devices carry the meters of the last mark.
	Devices []snapshot.Device
	Sites   []SiteSeries
	// Aside are the marks of other phases, in their order; what was held at them
	// is left out.
	Aside []snapshot.Mark

	counters *snapshot.Series // of meters alone, beside the marks; nil where there are none
	index    map[SiteKey]int
	compared compared
	// seen tells the marks at which a device was looked at: [device][mark]. It is nil
	// for counters, which tell of all devices at each.
	seen [][]bool
	// instants are the times of the marks, as births have them; 0 where nothing tells.
	instants []int64
	// Without are parts that its histories leave out.
	Without Without
}

// SiteSeries is one site's live blocks and bytes at each mark of a Series.
type SiteSeries struct {
	Device int // Index into Series.Devices
	Blocks []int64
	Bytes  []snapshot.Bytes

	key SiteKey
	// rounding is how much of Bytes nobody asked for; nil where that is nothing, or not
	// known.
	rounding []snapshot.Bytes
}

// WarmUp is how many marks, from the first on, are warm-up.
func (s *Series) WarmUp() int { return WarmUp(len(s.Marks)) }

// WarmUp is how many of n marks are warm-up: the first stands before the first step;
// what comes up to the second, or in a long series in its first tenth, is not yet
// what goes on.
func WarmUp(n int) int { return max(1, n/warmUpParts) }

// Site returns the series of a row's site; nil where it has none.
func (s *Series) Site(r *Row) *SiteSeries {
	return s.SiteOf(r.Key)
}

// SiteOf is the series of a site; nil where it has none.
func (s *Series) SiteOf(key SiteKey) *SiteSeries {
	if i, ok := s.index[key]; ok {
		return &s.Sites[i]
	}
	return nil
}

// Collect joins a run's counters, or where it has none its snapshots, by site.
// Sites come ordered by device and stack hash. Only counters of the run's first
// phase count: what an evaluation between two steps holds is not to be compared
// with what training does.
func Collect(run *snapshot.Run) *Series {
	s := &Series{index: make(map[SiteKey]int)}
	if c := run.Series; c != nil && len(c.Sites) == 0 && len(run.Snapshots) > 0 {
		s.counters = c
		s.fromSnapshots(run.Snapshots)
	} else if points := firstPhase(run.Series); len(points) > len(run.Snapshots) {
		s.fromCounters(run.Series, points)
		for _, p := range run.Series.Points {
			if p.Mark.Phase != points[0].Mark.Phase {
				s.Aside = append(s.Aside, p.Mark)
			}
		}
	} else {
		s.fromSnapshots(run.Snapshots)
	}
	slices.SortFunc(s.Sites, func(a, b SiteSeries) int { return compareKeys(a.key, b.key) })
	for i := range s.Sites {
		s.index[s.Sites[i].key] = i
	}
	s.Axis = axisOf(s.Marks, s.instants)
	s.compared = s.alike()
	return s
}

// Metered are the meters of a device at each step, and the steps, where those were
// counted; else those of the marks, with their Axis.
func (s *Series) Metered(device int) (x []float64, meters []snapshot.Meters) {
	a := s.Axis
	points := firstPhase(s.counters)
	if a.Unit != Step || len(points) < 2 {
		return a.X, s.Meters[device]
	}
	at := slices.IndexFunc(s.counters.Devices, func(d snapshot.Device) bool {
		return d.Kind == s.Devices[device].Kind && d.Index == s.Devices[device].Index
	})
	if at < 0 || !slices.IsSortedFunc(points, func(a, b snapshot.Point) int { return cmp.Compare(a.Mark.Step, b.Mark.Step) }) {
		return a.X, s.Meters[device]
	}
	x = make([]float64, len(points))
	meters = make([]snapshot.Meters, len(points))
	for i, p := range points {
		x[i], meters[i] = float64(p.Mark.Step), p.Meters[at]
	}
	return x, meters
}

// Longer is the series with so many marks more, as far apart as the last two.
func (s *Series) Longer(marks int) *Series {
	out := *s
	out.Marks, out.instants = slices.Clone(s.Marks), slices.Clone(s.instants)
	for range marks {
		n := len(out.Marks)
		m := out.Marks[n-1]
		if m.Step != snapshot.NoStep {
			m.Step += m.Step - out.Marks[n-2].Step
		}
		out.Marks, out.instants = append(out.Marks, m), append(out.instants, 2*out.instants[n-1]-out.instants[n-2])
	}
	out.seen = slices.Clone(s.seen)
	for d := range out.seen {
		out.seen[d] = append(slices.Clone(out.seen[d]), slices.Repeat([]bool{true}, marks)...)
	}
	out.Axis = axisOf(out.Marks, out.instants)
	out.compared = out.alike()
	return &out
}

// Counted reports whether counters tell of each step, and not snapshots of some.
func (s *Series) Counted() bool { return s.seen == nil }

// firstPhase lists the points of the phase that a series begins with; nil for no
// series.
func firstPhase(c *snapshot.Series) []snapshot.Point {
	if c == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Points), func(p snapshot.Point) bool { return p.Mark.Phase != c.Points[0].Mark.Phase })
}

func (s *Series) fromCounters(c *snapshot.Series, points []snapshot.Point) {
	s.Marks, s.instants = make([]snapshot.Mark, len(points)), make([]int64, len(points))
	s.Devices = slices.Clone(c.Devices)
	s.Meters = make([][]snapshot.Meters, len(c.Devices))
	for d := range s.Meters {
		s.Meters[d] = make([]snapshot.Meters, len(points))
	}
	sites := make([]int, len(c.Sites))
	for i, site := range c.Sites {
		d := c.Devices[site.Device]
		sites[i] = s.site(SiteKey{DeviceOf(d), c.Stacks.Hash(site.Stack)}, site.Device)
	}
	for at, p := range points {
		s.Marks[at] = p.Mark
		for d, m := range p.Meters {
			s.Meters[d][at] = m
		}
		for _, n := range p.Sites {
			site := &s.Sites[sites[n.Site]]
			site.Blocks[at] += n.Count
			site.Bytes[at] += n.Bytes
		}
	}
}

func (s *Series) fromSnapshots(snapshots []*snapshot.Snapshot) {
	s.Marks, s.instants = make([]snapshot.Mark, len(snapshots)), make([]int64, len(snapshots))
	var known stackSites
	for at, snap := range snapshots {
		s.Marks[at], s.instants[at] = snap.Mark, LastInstant(snap)
		devices := make([]int, len(snap.Devices))
		for i, d := range snap.Devices {
			devices[i] = s.device(d)
			s.seen[devices[i]][at] = true
			s.Meters[devices[i]][at] = d.Meters
		}
		if s.countStacks(snap, at, devices, &known) {
			continue
		}
		for _, site := range snap.Sites() {
			ss := &s.Sites[s.site(KeyOf(snap, site.SiteKey), devices[site.Device])]
			ss.Blocks[at], ss.Bytes[at] = site.Count, site.Bytes
			for _, row := range site.Rows {
				blocks, bytes := standsFor(snap, int(row))
				ss.Blocks[at] += blocks - snap.Blocks.CountOf(int(row))
				ss.Bytes[at] += bytes - snap.Blocks.Size[row]
				if site.Stack != snapshot.NoStack { // else all are of one size, and what was asked for may be many things
					ss.round(at, &snap.Blocks, int(row))
				}
			}
		}
	}
	s.attribute(snapshots)
}

// stackSites finds the site of a stack again, of one table of stacks, by the
// series' device.
type stackSites struct {
	stacks *snapshot.Stacks
	site   [][]int32 // [device][stack], the site + 1
}

// countStacks counts a snapshot of which every live block has a stack, and returns
// false for any other. It spares the order and the rows of Sites, of which a long
// run of large snapshots needs none.
func (s *Series) countStacks(snap *snapshot.Snapshot, at int, devices []int, known *stackSites) bool {
	b := &snap.Blocks
	for i, state := range b.State {
		if state == snapshot.Live && b.Stack[i] == snapshot.NoStack {
			return false
		}
	}
	if snap.Stacks == nil {
		return true
	}
	if known.stacks != snap.Stacks {
		*known = stackSites{stacks: snap.Stacks}
	}
	for len(known.site) < len(s.Devices) {
		known.site = append(known.site, nil)
	}
	for i, state := range b.State {
		if state != snapshot.Live {
			continue
		}
		in := snap.Segments[b.Segment[i]].Device
		sites := &known.site[devices[in]]
		for len(*sites) < snap.Stacks.Len() {
			*sites = append(*sites, 0)
		}
		id := &(*sites)[b.Stack[i]]
		if *id == 0 {
			*id = int32(s.site(KeyOf(snap, snapshot.SiteKey{Device: in, Hash: snap.Stacks.Hash(b.Stack[i])}), devices[in])) + 1
		}
		site := &s.Sites[*id-1]
		blocks, bytes := standsFor(snap, i)
		site.Blocks[at] += blocks
		site.Bytes[at] += bytes
		site.round(at, b, i)
	}
	return true
}

// round adds what a block has more than was asked for. Rows for several blocks have no such rest; a snapshot may have them of one
// device only.
func (s *SiteSeries) round(at int, b *snapshot.Blocks, row int) {
	rest := b.Size[row] - b.Requested[row]
	if b.Count != nil && b.Count[row] != 1 || rest <= 0 || b.Requested[row] <= 0 {
		return
	}
	if s.rounding == nil {
		s.rounding = make([]snapshot.Bytes, len(s.Bytes))
	}
	s.rounding[at] += rest
}

// standsFor is for how much a row counts at its mark. Where a recorder looks at some
// steps only, a block stands for those of the steps that it did not look at. But what
// the step that has just ended still holds, each step holds for that long, and the
// mark is behind one of them.
func standsFor(s *snapshot.Snapshot, row int) (blocks int64, size snapshot.Bytes) {
	b := &s.Blocks
	blocks, size = b.CountOf(row), b.Size[row]
	if blocks > 1 && b.BirthStep != nil && s.Mark.Step != snapshot.NoStep && b.BirthStep[row] >= s.Mark.Step-1 {
		return 1, size / snapshot.Bytes(blocks)
	}
	return blocks, size
}

func (s *Series) device(d snapshot.Device) int {
	i := slices.IndexFunc(s.Devices, func(e snapshot.Device) bool { return e.Kind == d.Kind && e.Index == d.Index })
	if i < 0 {
		i = len(s.Devices)
		s.Devices = append(s.Devices, d)
		s.Meters = append(s.Meters, make([]snapshot.Meters, len(s.Marks)))
		s.seen = append(s.seen, make([]bool, len(s.Marks)))
	}
	s.Devices[i] = d
	return i
}

func (s *Series) site(key SiteKey, device int) int {
	i, ok := s.index[key]
	if !ok {
		i = len(s.Sites)
		s.index[key] = i
		s.Sites = append(s.Sites, SiteSeries{
			Device: device, key: key,
			Blocks: make([]int64, len(s.Marks)), Bytes: make([]snapshot.Bytes, len(s.Marks)),
		})
	}
	return i
}

// BeyondTensors is Unrecorded with Python's heap, of which lines may be known from some mark on only.
func (s *Series) BeyondTensors() (process int, beyond []float64) {
	process, beyond = s.Unrecorded()
	for d := range s.Devices {
		for i := range beyond {
			if s.Devices[d].Kind == snapshot.PythonHeap {
				beyond[i] += float64(s.Meters[d][i].Allocated)
			}
		}
	}
	return process, beyond
}

// Unrecorded is at each mark what the process held of its own memory beyond what was
// recorded in it, and which device the process is; nil where that is not known of each mark
// after warm-up.
func (s *Series) Unrecorded() (process int, rest []float64) {
	process = slices.IndexFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.Process })
	if process < 0 || len(s.Meters[process]) != len(s.Marks) || s.seen != nil && slices.Contains(s.seen[process][s.WarmUp():], false) {
		return process, nil
	}
	for i, m := range s.Meters[process] {
		known := snapshot.Bytes(0)
		for d := range s.Devices {
			if s.Devices[d].Kind.InProcess() && s.Devices[d].Name != snapshot.PinnedCounts {
				known += s.Meters[d][i].Allocated
			}
		}
		rest = append(rest, float64(m.Allocated-known))
	}
	return process, rest
}
