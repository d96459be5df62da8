package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// measurement is the memory of one device, process or role over the run. It reads the figures in place, since a run
// of a million steps is checked repeatedly.
type measurement struct {
	of             string
	several        int
	gpu            bool
	limit          snapshot.Bytes
	points         int
	live, reserved func(int) snapshot.Bytes // at a point; Unknown if not measured; reserved is nil if it never was
	mark           func(int) snapshot.Mark  // of devices
	times          []time.Time              // of processes
	base           int                      // the first point after warm-up
	peak           snapshot.Bytes           // highest live memory, also between two points, from the allocator or the kernel; 0 if unknown
}

// Special places. tooFew: there is none after warm-up. between: it was between two points.
const (
	tooFew  = -1
	between = -2
)

// used returns the figure that a budget's meter names, and its place; Unknown if there is none.
func (m *measurement) used(meter Meter) (used snapshot.Bytes, at int) {
	last := m.points - 1
	if last < 0 {
		return snapshot.Unknown, 0
	}
	switch meter {
	case Reserved:
		return m.most(m.reserved)
	case Peak:
		if used, at = m.most(m.live); m.peak > used {
			return m.peak, between
		}
		return used, at
	case Growth:
		if m.base >= last || m.live(m.base) == snapshot.Unknown || m.live(last) == snapshot.Unknown {
			return snapshot.Unknown, tooFew
		}
		return max(0, m.live(last)-m.live(m.base)), last
	}
	return m.live(last), last
}

// most returns the largest value, and the first place with it; Unknown if there is no known value.
func (m *measurement) most(value func(int) snapshot.Bytes) (largest snapshot.Bytes, at int) {
	largest = snapshot.Unknown
	for i := 0; value != nil && i < m.points; i++ {
		if v := value(i); v > largest {
			largest, at = v, i
		}
	}
	return largest, at
}

// when names a place: "at step 40", "after 12 s".
func (m *measurement) when(at int) string {
	if at == between {
		return "between two recorded points"
	}
	if m.mark == nil {
		return "after " + series.Second.Text(m.times[at].Sub(m.times[0]).Seconds())
	}
	first, then := m.mark(0), m.mark(at)
	switch {
	case then.Step != snapshot.NoStep:
		return "at step " + snapshot.Grouped(then.Step)
	case first.Time.IsZero() || then.Time.Before(first.Time): // the clock may have been set back
		return ""
	}
	return "after " + series.Second.Text(then.Time.Sub(first.Time).Seconds())
}

// mostDevices is how many devices one budget is compared with.
const mostDevices = 256

// measure returns the measurements to which a budget applies.
func measure(run *snapshot.Run, devices []snapshot.Device, b Budget) []*measurement {
	pick := func(has func(snapshot.Device) bool) []*measurement {
		var out []*measurement
		for _, d := range devices {
			switch {
			case !has(d) || d.Kind.Unsized():
			case len(out) == mostDevices: // only a broken file has so many
				return append(out, &measurement{of: fmt.Sprintf("more than %d devices", mostDevices), limit: snapshot.Unknown})
			default:
				out = append(out, measureDevice(run, d))
			}
		}
		return out
	}
	process := func(d snapshot.Device) bool { return d.Kind == snapshot.Process }
	switch b.Where {
	case "":
		for _, has := range []func(snapshot.Device) bool{isGPU, process, func(snapshot.Device) bool { return true }} {
			if out := pick(has); len(out) > 0 {
				return out
			}
		}
		return nil
	case "process":
		return pick(process)
	}
	named := func(d snapshot.Device) bool { return b.Where == string(d.Kind) || b.Where == name(d) }
	if out := pick(named); len(out) > 0 || run.Tree == nil {
		return out
	}
	var m *measurement
	switch b.Where {
	case "shared memory":
		m = measureHost(run.Tree, b.Where, func(p *snapshot.HostPoint) snapshot.Bytes { return p.SegmentBytes })
	case "cgroup":
		m = measureHost(run.Tree, "the control group", kept)
		if n := len(run.Tree.Host); m != nil {
			m.limit = run.Tree.Host[n-1].Group.Limit
		}
	default:
		m = measureRole(run.Tree, b.Where)
	}
	if m == nil {
		return nil
	}
	return []*measurement{m}
}

// kept is the memory of a control group that the kernel cannot reclaim.
func kept(p *snapshot.HostPoint) snapshot.Bytes {
	if p.Group.Anonymous == snapshot.Unknown {
		return snapshot.Unknown
	}
	return p.Group.Anonymous + max(0, p.Group.Shared)
}

func isGPU(d snapshot.Device) bool { return d.Kind == snapshot.CUDA || d.Kind == snapshot.Vulkan }

func name(d snapshot.Device) string { return fmt.Sprintf("%s:%d", d.Kind, d.Index) }

func same(a, b snapshot.Device) bool { return a.Kind == b.Kind && a.Index == b.Index }

// devicesOf returns all devices of a run, each once, as it was last seen.
func devicesOf(run *snapshot.Run) []snapshot.Device {
	type key struct {
		kind  snapshot.DeviceKind
		index int
	}
	var out []snapshot.Device
	place := make(map[key]int)
	for _, s := range run.Snapshots {
		for _, d := range s.Devices {
			if i, ok := place[key{d.Kind, d.Index}]; ok {
				out[i] = d
				continue
			}
			place[key{d.Kind, d.Index}] = len(out)
			out = append(out, d)
		}
	}
	return out
}

// measureDevice measures a device from the counters of each step, or from snapshots in a run without counters.
func measureDevice(run *snapshot.Run, d snapshot.Device) *measurement {
	m := &measurement{of: name(d), gpu: isGPU(d), limit: d.Limit}
	if d.Kind == snapshot.Process {
		m.of = "the process"
	}
	meters := func(int) *snapshot.Meters { return nil }
	m.live = func(i int) snapshot.Bytes {
		if d.Kind == snapshot.Process {
			return meters(i).Driver
		}
		return meters(i).Allocated
	}
	m.reserved = func(i int) snapshot.Bytes { return meters(i).Reserved }
	var at []snapshot.Mark
	var of []*snapshot.Meters
	for _, s := range run.Snapshots {
		if i := slices.IndexFunc(s.Devices, func(o snapshot.Device) bool { return same(o, d) }); i >= 0 {
			at, of, m.peak = append(at, s.Mark), append(of, &s.Devices[i].Meters), max(m.peak, s.Devices[i].Peak)
		}
	}
	m.points, m.mark, meters = len(at), func(i int) snapshot.Mark { return at[i] }, func(i int) *snapshot.Meters { return of[i] }
	if s := run.Series; s != nil && len(s.Points) > 0 {
		if device := slices.IndexFunc(s.Devices, func(o snapshot.Device) bool { return same(o, d) }); device >= 0 {
			m.points, m.mark = len(s.Points), func(i int) snapshot.Mark { return s.Points[i].Mark }
			meters = func(i int) *snapshot.Meters { return &s.Points[i].Meters[device] }
		}
	}
	m.base = series.WarmUp(m.points)
	// An evaluation's memory is not compared with that of training.
	for last := m.points - 1; m.base < last && m.mark(m.base).Phase != m.mark(last).Phase; {
		m.base++
	}
	return m
}

// beginning: the first 1/beginning of its time is when a process takes what it needs, as in package diff.
const beginning = 3

// measureRole adds up the processes of a role, or takes the process with that name; nil if there is none.
func measureRole(tree *snapshot.Tree, role string) *measurement {
	private := diff.PrivateBytes(tree)
	sums := make(map[time.Time]snapshot.Bytes)
	pids := make(map[[2]int64]bool)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		if p.Role != role && diff.KindOf(p.Role) != role {
			continue
		}
		pids[[2]int64{int64(p.PID), p.Started}] = true
		for k := range p.Points {
			sums[p.Points[k].Time] += private[i][k]
		}
	}
	if len(sums) == 0 {
		return nil
	}
	m := &measurement{of: role, limit: snapshot.Unknown}
	if len(pids) > 1 {
		m.several = len(pids)
	}
	m.times = slices.SortedFunc(maps.Keys(sums), time.Time.Compare)
	m.points, m.live = len(m.times), func(i int) snapshot.Bytes { return sums[m.times[i]] }
	if n := len(tree.Host); n > 0 {
		m.limit = tree.Host[n-1].Group.Limit
	}
	m.base = max(1, m.points/beginning)
	return m
}

// measureHost measures all processes together; nil if that was not recorded.
func measureHost(tree *snapshot.Tree, of string, figure func(*snapshot.HostPoint) snapshot.Bytes) *measurement {
	if len(tree.Host) == 0 {
		return nil
	}
	m := &measurement{of: of, limit: snapshot.Unknown, points: len(tree.Host), live: func(i int) snapshot.Bytes { return figure(&tree.Host[i]) }}
	for i := range tree.Host {
		m.times = append(m.times, tree.Host[i].Time)
	}
	m.base = max(1, m.points/beginning)
	return m
}

// mostNames is how many names a sentence lists.
const mostNames = 12

// nothing says that a run has nothing with this name, and what it has.
func nothing(run *snapshot.Run, where string) string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, d := range devicesOf(run) {
		switch {
		case d.Kind == snapshot.Process:
			add("process")
		case !d.Kind.Unsized():
			add(name(d))
		}
	}
	if run.Tree != nil {
		for i := range run.Tree.Processes {
			add(diff.KindOf(run.Tree.Processes[i].Role))
		}
	}
	if where == "" || len(names) == 0 {
		return "the run has no device, and no process, whose memory was recorded"
	}
	if len(names) > mostNames {
		names = append(names[:mostNames], fmt.Sprintf("%d more", len(names)-mostNames))
	}
	return fmt.Sprintf("the run has no device, process or role %q; it has %s", where, strings.Join(names, ", "))
}
