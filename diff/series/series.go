package series

import (
	"cmp"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Series holds the block counts and bytes of every site over the marks of a run.
type Series struct {
	Marks  []snapshot.Mark
	Axis   Axis                // the marks' positions
	Meters [][]snapshot.Meters // [device][mark], devices as in Devices
	// Devices have the meters of the last mark.
	Devices []snapshot.Device
	Sites   []SiteSeries
	// Aside are the marks of other phases, in order. What was live at them is left out.
	Aside []snapshot.Mark

	counters *snapshot.Series // has meters only, in addition to the marks; nil if there are none
	index    map[SiteKey]int
	compared compared
	// seen: [device][mark], whether the device was observed at the mark. It is nil for counters, which cover all
	// devices at each mark.
	seen [][]bool
	// instants are the times of the marks, on the clock of birth times; 0 if unknown.
	instants []int64
	// Without names the parts of the judge that its histories leave out.
	Without Without
}

// SiteSeries is one site's live blocks and bytes at each mark of a Series.
type SiteSeries struct {
	Device int // Index into Series.Devices
	Blocks []int64
	Bytes  []snapshot.Bytes

	key SiteKey
	// rounding is the part of Bytes that the program did not ask for, at each mark; nil if that is zero or unknown.
	rounding []snapshot.Bytes
}

// WarmUp is the number of marks, from the first, that are warm-up.
func (s *Series) WarmUp() int { return WarmUp(len(s.Marks)) }

// WarmUp is the number of warm-up marks among n. The first mark is before the first step. Growth up to the second
// mark, or in the first tenth of a long series, does not show how the run goes on.
func WarmUp(n int) int { return max(1, n/warmUpParts) }

// Site returns the series of a row's site, or nil.
func (s *Series) Site(r *Row) *SiteSeries {
	return s.SiteOf(r.Key)
}

// SiteOf returns the series of a site, or nil.
func (s *Series) SiteOf(key SiteKey) *SiteSeries {
	if i, ok := s.index[key]; ok {
		return &s.Sites[i]
	}
	return nil
}

// Collect joins a run's counters, or its snapshots if it has no counters, by site. Sites are ordered by device and
// stack hash. Only counters of the run's first phase count: what an evaluation between two steps holds cannot be
// compared with training.
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

// Metered returns the meters of a device at each step, with the steps, if counters recorded them; else those of the
// marks, with the X of their Axis.
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

// Longer returns the series with more marks, as far apart as the last two.
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

// Counted reports whether the series comes from counters of each step, and not from snapshots of some steps.
func (s *Series) Counted() bool { return s.seen == nil }

// firstPhase lists the points of a series' first phase; nil for no series.
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
				if site.Stack != snapshot.NoStack { // blocks of one size without a stack may be of several kinds, with different roundings
					ss.round(at, &snap.Blocks, int(row))
				}
			}
		}
	}
	s.attribute(snapshots)
}

// stackSites caches the site of each stack of one stack table, by the device's index in the series.
type stackSites struct {
	stacks *snapshot.Stacks
	site   [][]int32 // [device][stack], the site + 1
}

// countStacks counts a snapshot in which every live block has a stack, and returns false for any other. Long runs of
// large snapshots save the order and the rows of Sites.
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

// round adds the bytes of a block beyond what the program asked for. Rows that stand for several blocks have no known
// rest. A snapshot may know the requested sizes of one device only.
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

// standsFor returns the blocks and bytes for which a row counts at its snapshot's mark. A recorder that watches some
// steps lets one block stand for those of unwatched steps. A block of the step that has just ended counts once: each
// step may hold such a block until the next step, and the mark is after one step only.
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

// BeyondTensors is Unrecorded plus Python's heap, whose lines may be known only from some mark on.
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

// Unrecorded returns, for each mark, the process's own memory beyond what was recorded in it, and the index of the
// process among the devices. rest is nil if that is not known at each mark after warm-up.
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
