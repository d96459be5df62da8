// Package metrics renders what is known about runs as metrics for Prometheus.
package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/budget"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
)

// Look is the state of one run, or of one rank, at one time.
type Look struct {
	Name   string // the run's name, for the label run
	Run    *snapshot.Run
	Rank   int          // snapshot.NoRank in a run without ranks
	Result *diff.Result // nil if the run is too short to judge
	// Leaks reports whether a finding counts as a leak. If nil, the finding's own verdict decides; a watch, which judges repeatedly,
	// sets a stricter test.
	Leaks   func(*diff.Finding) bool
	Budgets []budget.Outcome
	Root    report.Folder // places of findings are relative to it
	Ended   bool          // whether the run has ended, even if its folder does not say so
	At      time.Time     // when it was seen
	Took    time.Duration // the time to read and to judge
}

// Bounds on the metrics of one look, so that a hostile or strange run does not make a page of millions of lines.
const (
	mostSites   = 10
	mostRoles   = 20
	mostDevices = 64
	mostBudgets = 64
)

// Of returns the metrics of looks. A second run with the same name gets a number. The result does not change and may be gathered from
// concurrently.
func Of(looks ...Look) prometheus.Gatherer {
	c := &collected{seen: make(map[string]bool)}
	names := make(map[string]int)
	for i := range looks {
		l := &looks[i]
		run := Label(l.Name)
		key := fmt.Sprintf("%s\x00%s\x00%d", run, l.Run.Info.Host, l.Rank)
		if names[key]++; names[key] > 1 {
			run = fmt.Sprintf("%s (%d)", run, names[key])
		}
		o := &one{collected: c, run: run, host: Label(l.Run.Info.Host)}
		if l.Rank != snapshot.NoRank {
			o.rank = strconv.Itoa(l.Rank)
		}
		o.look(l)
		o.devices(l.Run)
		o.processes(l.Run.Tree)
		o.budgets(l.Budgets)
		if l.Result != nil {
			o.findings(l)
		}
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	return registry
}

// collected are the metrics of one page. It is an unchecked collector, since the metrics depend on the run.
type collected struct {
	metrics []prometheus.Metric
	seen    map[string]bool
}

// Describe sends nothing, as an unchecked collector does.
func (c *collected) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (c *collected) Collect(to chan<- prometheus.Metric) {
	for _, m := range c.metrics {
		to <- m
	}
}

// one is the run that is being rendered.
type one struct {
	*collected
	run, host, rank string
}

// labels are pairs of a name and a value. Values are made safe when they are used.
type labels []string

// add adds one figure, with the run's own labels. A second figure with equal name and labels is left out, since Prometheus rejects a
// page with both.
func (o *one) add(kind prometheus.ValueType, name, help string, value float64, l labels) {
	pairs := append(labels{"run", o.run, "host", o.host, "rank", o.rank}, l...)
	var names, values []string
	key := name
	for i := 0; i < len(pairs); i += 2 {
		v := Label(pairs[i+1])
		names, values = append(names, pairs[i]), append(values, v)
		key += "\x00" + v
	}
	if o.seen[key] {
		return
	}
	o.seen[key] = true
	o.metrics = append(o.metrics, prometheus.MustNewConstMetric(prometheus.NewDesc("memdiag_"+name, help, names, nil), kind, value, values...))
}

func (o *one) gauge(name, help string, value float64, l ...string) {
	o.add(prometheus.GaugeValue, name, help, value, l)
}

func (o *one) counter(name, help string, value float64, l ...string) {
	o.add(prometheus.CounterValue, name, help, value, l)
}

// bytes adds a size if it is known.
func (o *one) bytes(name, help string, size snapshot.Bytes, l ...string) {
	if size >= 0 {
		o.gauge(name, help, float64(size), l...)
	}
}

// moment adds a time if it is known.
func (o *one) moment(name, help string, at time.Time, l ...string) {
	if !at.IsZero() {
		o.gauge(name, help, float64(at.UnixMicro())/1e6, l...)
	}
}

func boolean(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// look adds what was read, and when.
func (o *one) look(l *Look) {
	info := &l.Run.Info
	o.gauge("run_info", "A run that memdiag looks at; always 1.", 1, "workload", info.Workload, "recorded_by", info.Version)
	o.moment("look_timestamp_seconds", "When memdiag last looked at the run.", l.At)
	if l.Took > 0 {
		o.gauge("look_duration_seconds", "How long the last look took.", l.Took.Seconds())
	}
	o.moment("run_started_timestamp_seconds", "When the run started.", info.Started)
	if info.SchemaVersion > 0 || l.Ended {
		o.gauge("run_ended", "1 if the run has ended, 0 while it goes on.", boolean(l.Ended || info.Finished != nil))
	}
	if info.ExitCode != nil {
		o.gauge("run_exit_code", "Exit code of the run.", float64(*info.ExitCode))
	}
	o.gauge("snapshots", "Snapshots of the run that were read.", float64(len(l.Run.Snapshots)))
	mark := lastMark(l.Run)
	if mark.Step != snapshot.NoStep {
		o.counter("steps_total", "Training steps that the run has completed.", float64(mark.Step))
	}
	o.moment("snapshot_timestamp_seconds", "When the last snapshot was taken, or the last counters.", mark.Time)
}

// lastMark is the last of the snapshots and counters.
func lastMark(run *snapshot.Run) snapshot.Mark {
	mark := snapshot.Mark{Step: snapshot.NoStep}
	if n := len(run.Snapshots); n > 0 {
		mark = run.Snapshots[n-1].Mark
	}
	if s := run.Series; s != nil && len(s.Points) > 0 {
		if last := s.Points[len(s.Points)-1].Mark; last.Step > mark.Step {
			mark = last
		}
	}
	return mark
}

// devices adds the meters of the run's process, and of child processes that were recorded and still exist.
func (o *one) devices(run *snapshot.Run) {
	room := mostDevices
	folded := o.metersOf(run, "", &room)
	there := present(run.Tree)
	for _, c := range run.Children {
		if there == nil || there[c.PID] {
			folded += o.metersOf(c, c.Role, &room)
		}
	}
	if folded > 0 {
		o.gauge("devices_folded", "Devices that are left out.", float64(folded))
	}
}

// metersOf adds the meters of one process, with its role, while room allows more devices. It returns how many devices it leaves out.
func (o *one) metersOf(run *snapshot.Run, role string, room *int) (folded int) {
	devices := lastDevices(run)
	folded = max(0, len(devices)-*room)
	devices = devices[:len(devices)-folded]
	*room -= len(devices)
	var peaks []budget.Budget
	for _, d := range devices {
		name := deviceName(d)
		l := []string{"device", name, "role", role}
		m := d.Meters
		o.bytes("requested_bytes", "Memory that the program asked for and has not freed.", m.Requested, l...)
		o.bytes("allocated_bytes", "Live memory as the allocator rounds it.", m.Allocated, l...)
		o.bytes("active_bytes", "Allocated memory, and freed memory that a stream still uses.", m.Active, l...)
		o.bytes("reserved_bytes", "Memory that the allocator has taken from the driver or the system.", m.Reserved, l...)
		switch {
		case m.Driver == 0: // not read
		case d.Kind.InProcess() || d.Kind == snapshot.Process:
			o.bytes("resident_bytes", "Resident memory of a recorded process.", m.Driver, l...)
		default:
			o.bytes("driver_bytes", "Memory of the device that is in use by the driver's own count.", m.Driver, l...)
		}
		if d.Limit > 0 {
			o.bytes("limit_bytes", "Size at which allocation fails.", d.Limit, l...)
		}
		if d.Retries > 0 || d.Peak > 0 && d.Kind == snapshot.CUDA {
			o.counter("allocation_retries_total", "How often the allocator found no memory and emptied its cache to try again.", float64(d.Retries), l...)
		}
		peaks = append(peaks, budget.Budget{Meter: budget.Peak, Where: name})
	}
	for _, peak := range budget.Check(run, peaks, 0) {
		if peak.Unchecked == "" {
			o.bytes("peak_bytes", "The most live memory of a device, or resident memory of a process, so far.", peak.Used, "device", peak.Budget.Where, "role", role)
		}
	}
	return folded
}

// lastDevices are the devices of the last snapshot, with the counters of the last step if that is later.
func lastDevices(run *snapshot.Run) []snapshot.Device {
	n := len(run.Snapshots)
	if n == 0 {
		return nil
	}
	last := run.Snapshots[n-1]
	devices := slices.DeleteFunc(slices.Clone(last.Devices), func(d snapshot.Device) bool { return d.Kind.Unsized() })
	s := run.Series
	if s == nil || len(s.Points) == 0 || s.Points[len(s.Points)-1].Mark.Step <= last.Mark.Step {
		return devices
	}
	for i, meters := range s.Points[len(s.Points)-1].Meters {
		at := slices.IndexFunc(devices, func(d snapshot.Device) bool { return d.Kind == s.Devices[i].Kind && d.Index == s.Devices[i].Index })
		if at < 0 {
			continue
		}
		if meters.Driver == snapshot.Unknown { // only snapshots have it
			meters.Driver = devices[at].Meters.Driver
		}
		devices[at].Meters = meters
	}
	return devices
}

// lastTime is when the tree was last sampled.
func lastTime(tree *snapshot.Tree) (last time.Time) {
	for i := range tree.Processes {
		if points := tree.Processes[i].Points; points[len(points)-1].Time.After(last) {
			last = points[len(points)-1].Time
		}
	}
	return last
}

// present are the PIDs of the processes that existed when the tree was last sampled; nil without a tree.
func present(tree *snapshot.Tree) map[int]bool {
	if tree == nil {
		return nil
	}
	last := lastTime(tree)
	there := make(map[int]bool)
	for i := range tree.Processes {
		p := &tree.Processes[i]
		there[p.PID] = there[p.PID] || !p.Points[len(p.Points)-1].Time.Before(last)
	}
	return there
}

func deviceName(d snapshot.Device) string { return string(d.Kind) + ":" + strconv.Itoa(d.Index) }

// processes adds the system's figures for the existing processes, by role, and for their control group.
func (o *one) processes(tree *snapshot.Tree) {
	if tree == nil {
		return
	}
	type role struct {
		name    string
		count   int
		private snapshot.Bytes
	}
	byName := make(map[string]*role)
	var roles []*role
	for _, now := range diff.RolesNow(tree) {
		name := Label(now.Name)
		r := byName[name]
		if r == nil {
			r = &role{name: name}
			byName[name] = r
			roles = append(roles, r)
		}
		r.count, r.private = r.count+now.Count, r.private+now.Private
	}
	if len(roles) > mostRoles {
		rest := &role{name: "other roles"}
		for _, r := range roles[mostRoles:] {
			rest.count, rest.private = rest.count+r.count, rest.private+r.private
		}
		roles = append(roles[:mostRoles], rest)
	}
	for _, r := range roles {
		o.gauge("processes", "Processes of the run that are there, by role.", float64(r.count), "role", r.name)
		o.bytes("process_private_bytes", "Private memory of the processes of a role; a page that several have after a fork counts once.", r.private, "role", r.name)
	}
	if len(tree.Host) == 0 {
		return
	}
	h := &tree.Host[len(tree.Host)-1]
	o.bytes("shared_memory_bytes", "Files of shared memory that came into being during the run.", h.SegmentBytes)
	if h.Segments >= 0 {
		o.gauge("shared_memory_files", "Their number.", float64(h.Segments))
	}
	g := &h.Group
	o.bytes("cgroup_current_bytes", "Memory of the control group, with page cache.", g.Current)
	o.bytes("cgroup_peak_bytes", "The most memory of the control group so far, with page cache.", g.Peak)
	o.bytes("cgroup_limit_bytes", "Limit of the control group.", g.Limit)
	if g.Anonymous >= 0 {
		o.bytes("cgroup_unreclaimable_bytes", "Memory of the control group that the kernel cannot take back.", g.Anonymous+max(0, g.Shared))
	}
	if g.LimitReached >= 0 {
		o.counter("cgroup_limit_reached_total", "How often the control group reached its limit.", float64(g.LimitReached))
	}
	if g.Killed >= 0 {
		o.counter("cgroup_oom_kills_total", "Processes of the control group that the kernel killed as memory ran out.", float64(g.Killed))
	}
}

// budgets adds the outcomes of budgets.
func (o *one) budgets(all []budget.Outcome) {
	for i := range all[:min(len(all), mostBudgets)] {
		b := &all[i]
		l := []string{"budget", b.Budget.String(), "where", b.Of}
		o.gauge("budget_unchecked", "1 if a budget could not be checked.", boolean(b.Unchecked != ""), l...)
		if b.Unchecked != "" {
			continue
		}
		o.gauge("budget_broken", "1 if more is used than a budget allows.", boolean(b.Broken()), l...)
		o.bytes("budget_used_bytes", "What a budget limits.", b.Used, l...)
		o.bytes("budget_allowed_bytes", "What a budget allows.", b.Allowed, l...)
	}
}

// findings adds verdicts, rates and forecasts.
func (o *one) findings(l *Look) {
	r := l.Result
	leaks := l.Leaks
	if leaks == nil {
		leaks = func(f *diff.Finding) bool { return f.Verdict == diff.Leak }
	}
	all := make([]*diff.Finding, 0, len(r.Findings))
	for i := range r.Findings {
		all = append(all, &r.Findings[i])
	}
	for _, c := range r.Children {
		for i := range c.Result.Findings {
			all = append(all, &c.Result.Findings[i])
		}
	}
	o.verdicts(all, leaks)
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b *diff.Finding) int {
		return cmp.Or(int(boolean(leaks(b))-boolean(leaks(a))), cmp.Compare(b.Growth().Bytes, a.Growth().Bytes))
	})
	sites := newSites(o, l, leaks)
	for _, f := range order {
		sites.add(f)
	}
	sites.end()
	o.soonest(l, all, leaks)
	for _, e := range r.Unaccounted() {
		role := "the recorded process"
		if e.Processes != nil {
			role = e.Processes.Who()
		}
		if rate, ok := perSecond(e.Rate, r); ok {
			o.gauge("unexplained_bytes_per_second", "Growth of a process, or of shared memory, that no recorded stack explains.", rate, "role", role)
		}
	}
}

// verdicts counts the findings.
func (o *one) verdicts(all []*diff.Finding, leaks func(*diff.Finding) bool) {
	count := map[diff.Verdict]int{}
	for _, f := range all {
		switch {
		case leaks(f):
			count[diff.Leak]++
		case f.Verdict == diff.Leak:
			count[diff.Inconclusive]++ // not yet
		default:
			count[f.Verdict]++
		}
	}
	for _, v := range []diff.Verdict{diff.Leak, diff.Inconclusive, diff.Bounded} {
		o.gauge("findings", "Allocation sites that grew, or groups of them, by verdict.", float64(count[v]), "verdict", string(v))
	}
}

// soonest adds for each device when the first of its leaks fills it.
func (o *one) soonest(l *Look, all []*diff.Finding, leaks func(*diff.Finding) bool) {
	first := make(map[string]*diff.Forecast)
	last := lastMark(l.Run)
	for _, f := range all {
		at := f.RunsOut
		if at == nil || at.Beyond || !leaks(f) {
			continue
		}
		name := deviceName(f.Rows[0].Device)
		if was := first[name]; was == nil || at.After < was.After || at.After == was.After && at.Step < was.Step {
			first[name] = at
		}
	}
	for name, at := range first {
		bound := func(b string, after time.Duration, step int64) {
			if after > 0 && !last.Time.IsZero() {
				o.gauge("until_full_seconds", "Time from the last snapshot until a leak has filled the memory of a device, or of the process.", after.Seconds(), "device", name, "bound", b)
				o.moment("full_timestamp_seconds", "When a leak will have filled the memory of a device, or of the process.", last.Time.Add(after), "device", name, "bound", b)
			}
			if step != snapshot.NoStep && last.Step != snapshot.NoStep {
				o.gauge("until_full_steps", "Steps until a leak has filled the memory of a device, or of the process.", float64(max(0, step-last.Step)), "device", name, "bound", b)
			}
		}
		bound("low", at.AfterLow, at.Low)
		bound("estimate", at.After, at.Step)
		if !at.Open {
			bound("high", at.AfterHigh, at.High)
		}
	}
}

// fingerprint is that of a finding's first row.
func fingerprint(f *diff.Finding) string { return baseline.Fingerprint(f.Rows[0]) }
