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

// measurement is what one device, process or role took over the run.
type measurement struct {
	of             string
	several        int
	gpu            bool
	limit          snapshot.Bytes
	live, reserved []snapshot.Bytes // Unknown where nobody measured; reserved is nil if nobody ever did
	marks          []snapshot.Mark  // of devices
	times          []time.Time      // of processes
	base           int              // the first of live after warm-up
	peak           snapshot.Bytes   // of live memory, also between two marks, as the allocator or the kernel says; 0 if neither does
}

// These stand for a place: none was after warm-up; it was between two.
const (
	tooFew  = -1
	between = -2
)

// used is the figure that a budget's meter names, and its place; Unknown if there is none.
func (m *measurement) used(meter Meter) (used snapshot.Bytes, at int) {
	last := len(m.live) - 1
	switch meter {
	case Reserved:
		return most(m.reserved)
	case Peak:
		if used, at = most(m.live); m.peak > used {
			return m.peak, between
		}
		return used, at
	case Growth:
		if m.base >= last || m.live[m.base] == snapshot.Unknown || m.live[last] == snapshot.Unknown {
			return snapshot.Unknown, tooFew
		}
		return max(0, m.live[last]-m.live[m.base]), last
	}
	return m.live[last], last
}

// most is the largest value, and the first place that has it; Unknown if all are, or there is none.
func most(values []snapshot.Bytes) (largest snapshot.Bytes, at int) {
	largest = snapshot.Unknown
	for i, v := range values {
		if v > largest {
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
	if m.marks != nil && m.marks[at].Step != snapshot.NoStep {
		return "at step " + snapshot.Grouped(m.marks[at].Step)
	}
	var since time.Duration
	switch {
	case m.times != nil:
		since = m.times[at].Sub(m.times[0])
	case m.marks[0].Time.IsZero() || m.marks[at].Time.IsZero():
		return ""
	default:
		since = m.marks[at].Time.Sub(m.marks[0].Time)
	}
	return "after " + series.Second.Text(since.Seconds())
}

// measure finds what a budget is for.
func measure(run *snapshot.Run, b Budget) []*measurement {
	devices := devicesOf(run)
	pick := func(has func(snapshot.Device) bool) []*measurement {
		var out []*measurement
		for _, d := range devices {
			if has(d) && !d.Kind.Unsized() {
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

// kept is what of a control group's memory the kernel cannot take back.
func kept(p *snapshot.HostPoint) snapshot.Bytes {
	if p.Group.Anonymous == snapshot.Unknown {
		return snapshot.Unknown
	}
	return p.Group.Anonymous + max(0, p.Group.Shared)
}

func isGPU(d snapshot.Device) bool { return d.Kind == snapshot.CUDA || d.Kind == snapshot.Vulkan }

func name(d snapshot.Device) string { return fmt.Sprintf("%s:%d", d.Kind, d.Index) }

// devicesOf are all devices of a run, each once and as it was last seen.
func devicesOf(run *snapshot.Run) []snapshot.Device {
	var out []snapshot.Device
	add := func(devices []snapshot.Device) {
		for _, d := range devices {
			if i := slices.IndexFunc(out, func(o snapshot.Device) bool { return name(o) == name(d) }); i < 0 {
				out = append(out, d)
			} else {
				out[i] = d
			}
		}
	}
	for _, s := range run.Snapshots {
		add(s.Devices)
	}
	return out
}

// measureDevice joins the counters of each step and the snapshots.
func measureDevice(run *snapshot.Run, d snapshot.Device) *measurement {
	m := &measurement{of: name(d), gpu: isGPU(d), limit: d.Limit}
	if d.Kind == snapshot.Process {
		m.of = "the process"
	}
	add := func(mark snapshot.Mark, meters snapshot.Meters) {
		live := meters.Allocated
		if d.Kind == snapshot.Process {
			live = meters.Driver
		}
		m.marks, m.live, m.reserved = append(m.marks, mark), append(m.live, live), append(m.reserved, meters.Reserved)
	}
	same := func(o snapshot.Device) bool { return name(o) == name(d) }
	if s := run.Series; s != nil {
		if i := slices.IndexFunc(s.Devices, same); i >= 0 {
			for _, p := range s.Points {
				add(p.Mark, p.Meters[i])
			}
		}
	}
	if m.live == nil {
		for _, s := range run.Snapshots {
			if i := slices.IndexFunc(s.Devices, same); i >= 0 {
				add(s.Mark, s.Devices[i].Meters)
			}
		}
	}
	for _, s := range run.Snapshots {
		if i := slices.IndexFunc(s.Devices, same); i >= 0 {
			m.peak = max(m.peak, s.Devices[i].Peak)
		}
	}
	m.base = warm(m.marks)
	return m
}

// warm is the first mark after warm-up with the phase of the last one: what an evaluation holds is not compared with what
// training does.
func warm(marks []snapshot.Mark) int {
	base := series.WarmUp(len(marks))
	for base < len(marks)-1 && marks[base].Phase != marks[len(marks)-1].Phase {
		base++
	}
	return base
}

// beginning is the share of its time in which a process takes what it needs, as in package diff.
const beginning = 3

// measureRole adds up the processes of a role, or takes the one of that name; nil if there is none.
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
	for _, t := range m.times {
		m.live = append(m.live, sums[t])
	}
	if n := len(tree.Host); n > 0 {
		m.limit = tree.Host[n-1].Group.Limit
	}
	m.base = max(1, len(m.live)/beginning)
	return m
}

// measureHost is what is known of all processes together; nil if nobody looked.
func measureHost(tree *snapshot.Tree, of string, figure func(*snapshot.HostPoint) snapshot.Bytes) *measurement {
	if len(tree.Host) == 0 {
		return nil
	}
	m := &measurement{of: of, limit: snapshot.Unknown}
	for i := range tree.Host {
		m.times, m.live = append(m.times, tree.Host[i].Time), append(m.live, figure(&tree.Host[i]))
	}
	m.base = max(1, len(m.live)/beginning)
	return m
}

// most names that a sentence lists.
const mostNames = 12

// nothing says that a run has nothing of a name, and what it has.
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
