package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/baseline"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/report"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// About is what the caller knows of a run.
type About struct {
	Path     string // as an absolute path
	Commit   string
	Mesh     Mesh
	Paths    Privacy
	Commands Privacy
	Added    time.Time
	Version  string // of memdiag
}

// Privacy is what becomes of names that may be secret.
type Privacy string

// What may become of them. A hash is the same for the same name, so that tables still join.
const (
	Keep Privacy = "keep"
	Hash Privacy = "hash"
	Omit Privacy = "omit"
)

func (p Privacy) of(name string) string {
	switch {
	case p == Omit:
		return ""
	case p == Hash && name != "":
		return hashed(name)
	}
	return name
}

// hashMark begins a hash that replaces a name.
const hashMark = "#"

func hashed(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hashMark + hex.EncodeToString(sum[:6])
}

// Bounds on what is stored about a rank or a run.
const (
	topSites   = 20  // call sites that did not change, the largest
	mostPoints = 200 // snapshots in series
	mostFrames = 64  // of a stack

	mostFunctions = 10_000 // of a run
)

// Collector turns a run into tables, one rank after another.
type Collector struct {
	ID     string
	about  About
	tables Tables
	first  *snapshot.Run
	hosts  map[string]int // ranks on each
	order  []string       // of the hosts
	trees  map[string]*snapshot.Tree
	frames map[string]bool
	known  map[baseline.Function]bool

	ranks, gpus, leaks, steps int64
	live, growth              int64
	ranOut                    bool      // of memory, on a device or the machine
	began, ended              time.Time // marks
	verdict                   diff.Verdict
	library                   string
}

// NewCollector begins with any rank of the run; its id is made of how the run began.
func NewCollector(run *snapshot.Run, about About) *Collector {
	return &Collector{
		ID: IDOf(run), about: about, tables: NewTables(), first: run, verdict: diff.Clean,
		hosts: make(map[string]int), trees: make(map[string]*snapshot.Tree), frames: make(map[string]bool), known: make(map[baseline.Function]bool),
	}
}

// IDOf is a run's id. It is the same for a copy of its folder in any place, and for the same run at a later time. A run whose start
// time is unknown is identified by its first two snapshots, since a verdict needs at least two.
func IDOf(run *snapshot.Run) string {
	sum := sha256.New()
	add := func(values []any) {
		text, err := json.Marshal(values)
		if err != nil { // a time beyond the year 9999
			text = fmt.Append(nil, values)
		}
		_, _ = sum.Write(text) // a hash takes all
	}
	if !run.Info.Started.IsZero() {
		add([]any{run.Info.Started.UTC(), run.Info.Command, run.Info.Workload, run.Info.Seed})
		return hex.EncodeToString(sum.Sum(nil)[:8])
	}
	for _, s := range run.Snapshots[:min(2, len(run.Snapshots))] {
		b := &s.Blocks
		add([]any{s.Mark.Step, s.Mark.Time.UTC(), s.Producer, s.Rank, s.PID, b.Len()})
		for _, column := range []any{b.Address, b.Size, b.Count, b.BirthTime} {
			_ = binary.Write(sum, binary.LittleEndian, column)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// Add adds one rank, or the run if it has none.
func (c *Collector) Add(run *snapshot.Run, r *diff.Result) {
	rank, host := r.Last.Rank, run.Info.Host
	if c.hosts[host] == 0 {
		c.order = append(c.order, host)
		c.trees[host] = run.Tree
	}
	c.hosts[host]++
	c.ranks++
	c.ranOut = c.ranOut || ranOut(run, r.Last)
	c.library = cmp.Or(c.library, r.Last.Producer)
	c.steps = max(c.steps, r.Last.Mark.Step)
	if t := r.First.Mark.Time; !t.IsZero() && (c.began.IsZero() || t.Before(c.began)) {
		c.began = t
	}
	if t := r.Last.Mark.Time; t.After(c.ended) {
		c.ended = t
	}
	verdict := verdictOf(r)
	if c.verdict == diff.Clean || verdict == diff.Leak {
		c.verdict = verdict
	}
	soonest := c.findings(rank, r, "")
	for _, child := range r.Children {
		c.findings(rank, child.Result, child.Role)
	}
	c.sites(rank, r)
	c.functions(run)
	c.series(rank, run)
	c.rank(rank, host, run, r, soonest)
	sentence, unseen := report.Headline(r), report.NotSeen(r)
	if c.about.Paths != Keep {
		sentence, unseen = "", "" // they name lines and files
	}
	c.tables["verdicts"].Append(c.ID, rank, string(verdict), sentence, unseen)
}

// verdictOf is clean only if the sentence beside it says "no leak found" without a doubt.
func verdictOf(r *diff.Result) diff.Verdict {
	leaks := r.Leaks()
	for _, c := range r.Children {
		leaks += c.Result.Leaks()
	}
	switch {
	case leaks > 0:
		return diff.Leak
	case r.Count(diff.Inconclusive) > 0 || len(r.Unaccounted()) > 0 || r.Doubt(r.Run().Info.Unseen) != "":
		return diff.Inconclusive
	}
	return diff.Clean
}

// findings returns the forecast that comes first.
func (c *Collector) findings(rank int, r *diff.Result, role string) (soonest *diff.Forecast) {
	perSecond := pace(r)
	for i := range r.Findings {
		f := &r.Findings[i]
		row := f.Rows[0]
		fingerprint := baseline.Fingerprint(row)
		rate := f.Rate.Bytes
		second := rate.Value * perSecond
		if f.Rate.Unit == diff.Second {
			second = rate.Value
		}
		step, at := -1, time.Time{}
		if f.RunsOut != nil && !f.RunsOut.Beyond && f.Verdict == diff.Leak {
			step, at = int(f.RunsOut.Step), outAt(r, f.RunsOut)
			if soonest == nil || f.RunsOut.After < soonest.After || f.RunsOut.After == soonest.After && f.RunsOut.Step < soonest.Step {
				soonest = f.RunsOut
			}
		}
		id := ""
		if f.Cause != nil {
			id = f.Cause.ID
		}
		if f.Verdict == diff.Leak {
			c.leaks++
		}
		g := f.Growth()
		c.tables["findings"].Append(c.ID, rank, fingerprint, site(row), row.On().String(), c.place(f), c.role(role),
			string(f.Verdict), string(f.Evidence), string(f.Rate.Unit), rate.Value, rate.Low, rate.High, second,
			int64(g.Bytes), g.Blocks, int64(f.After().Bytes), id, step, at)
		if h := f.Holder; h != nil {
			c.tables["holders"].Append(c.ID, rank, fingerprint, h.Kind, h.Path, h.Items)
		}
		for _, row := range f.Rows {
			c.stack(row)
		}
	}
	return soonest
}

// pace is steps per second; 0 if the marks have no times.
func pace(r *diff.Result) float64 {
	seconds := r.Last.Mark.Time.Sub(r.First.Mark.Time).Seconds()
	if r.First.Mark.Time.IsZero() || seconds <= 0 {
		return 0
	}
	return float64(r.Last.Mark.Step-r.First.Mark.Step) / seconds
}

func outAt(r *diff.Result, f *diff.Forecast) time.Time {
	if f == nil || f.Beyond || f.After <= 0 || r.Last.Mark.Time.IsZero() {
		return time.Time{}
	}
	return r.Last.Mark.Time.Add(f.After)
}

// role is what another process does. Names of scripts are paths.
func (c *Collector) role(role string) string {
	if strings.ContainsAny(role, "./") {
		return c.about.Paths.of(role)
	}
	return role
}

// place is a finding's line.
func (c *Collector) place(f *diff.Finding) string {
	row := f.Rows[0]
	if c.about.Paths == Keep || len(row.Frames) == 0 {
		return report.Place(f)
	}
	at := max(f.Headline, 0)
	return c.about.Paths.of(row.Frames[at].File) + ":" + strconv.Itoa(row.Frames[at].Line)
}

func site(row *diff.Row) string { return fmt.Sprintf("%016x", uint64(row.Hash)) }

// stack stores a stack once.
func (c *Collector) stack(row *diff.Row) {
	id := site(row)
	if c.frames[id] {
		return
	}
	c.frames[id] = true
	for depth, f := range row.Frames[:min(len(row.Frames), mostFrames)] {
		c.tables["frames"].Append(c.ID, id, depth, f.Function, c.about.Paths.of(f.File), f.Line)
	}
}

// sites stores the call sites that changed, and the largest of the others.
func (c *Collector) sites(rank int, r *diff.Result) {
	verdicts := make(map[*diff.Row]diff.Verdict)
	for i := range r.Findings {
		for _, row := range r.Findings[i].Rows {
			verdicts[row] = r.Findings[i].Verdict
		}
	}
	var still []*diff.Row
	add := func(row *diff.Row) {
		place := row.Label
		if i := frame.Headline(row.Frames); i >= 0 {
			place = c.about.Paths.of(row.Frames[i].File) + ":" + strconv.Itoa(row.Frames[i].Line)
		}
		c.tables["sites"].Append(c.ID, rank, site(row), baseline.Fingerprint(row), row.On().String(), place, string(verdicts[row]),
			row.Before.Blocks, int64(row.Before.Bytes), row.After.Blocks, int64(row.After.Bytes))
		c.stack(row)
	}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Before == row.After {
			still = append(still, row)
		} else {
			add(row)
		}
	}
	slices.SortStableFunc(still, func(a, b *diff.Row) int { return cmp.Compare(b.After.Bytes, a.After.Bytes) })
	for _, row := range still[:min(len(still), topSites)] {
		add(row)
	}
}

// functions stores which functions the run reached, so that a later run can be known to have reached what leaked.
func (c *Collector) functions(run *snapshot.Run) {
	for _, f := range baseline.Functions(run) {
		if of := baseline.FunctionOf(f); !c.known[of] && len(c.known) < mostFunctions {
			c.known[of] = true
			c.tables[functionsTable].Append(c.ID, of.Name, c.about.Paths.of(f.File))
		}
	}
}

// series stores the meters at snapshots, evenly thinned.
func (c *Collector) series(rank int, run *snapshot.Run) {
	every := (len(run.Snapshots) + mostPoints - 1) / mostPoints
	for i, s := range run.Snapshots {
		if i%max(every, 1) != 0 && i != len(run.Snapshots)-1 {
			continue
		}
		for _, d := range s.Devices {
			c.tables["series"].Append(c.ID, rank, s.Mark.Step, s.Mark.Time, deviceName(d),
				int64(d.Meters.Allocated), int64(d.Meters.Reserved), int64(d.Meters.Driver))
		}
	}
}

func deviceName(d snapshot.Device) string { return string(d.Kind) + ":" + strconv.Itoa(d.Index) }

// isGPU is true for devices of their own.
func isGPU(k snapshot.DeviceKind) bool {
	return !k.InProcess() && k != snapshot.Process && k != snapshot.SharedMemory && k != snapshot.Executable
}

// leading is the device that holds most: of GPUs, else of all.
func leading(s *snapshot.Snapshot) (lead snapshot.Device) {
	lead.Limit = snapshot.Unknown
	for i, d := range s.Devices {
		better := d.Meters.Allocated > lead.Meters.Allocated
		if i == 0 || isGPU(d.Kind) && (!isGPU(lead.Kind) || better) || better && isGPU(d.Kind) == isGPU(lead.Kind) {
			lead = d
		}
	}
	return lead
}

func (c *Collector) rank(rank int, host string, run *snapshot.Run, r *diff.Result, soonest *diff.Forecast) {
	lead := leading(r.Last)
	for _, d := range r.Last.Devices {
		if isGPU(d.Kind) {
			c.gpus++
		}
	}
	var x, y, seconds []float64
	peak := max(lead.Peak, lead.Meters.Allocated)
	for i, s := range run.Snapshots {
		for _, d := range s.Devices {
			if d.Kind != lead.Kind || d.Index != lead.Index {
				continue
			}
			peak = max(peak, d.Meters.Allocated)
			if i > 0 || len(run.Snapshots) < 4 { // the first interval is warm-up
				x, y = append(x, float64(s.Mark.Step)), append(y, float64(d.Meters.Allocated))
				seconds = append(seconds, s.Mark.Time.Sub(r.First.Mark.Time).Seconds())
			}
		}
	}
	slope, bySecond := 0., 0.
	if len(x) > 1 {
		if x[len(x)-1] > x[0] {
			slope = trend.TheilSen(x, y).Value
		}
		if seconds[len(x)-1] > seconds[0] && !r.First.Mark.Time.IsZero() {
			bySecond = trend.TheilSen(seconds, y).Value
		}
	}
	growth := r.Growth().Bytes
	c.live += int64(lead.Meters.Allocated)
	c.growth += int64(growth)
	step := int64(-1)
	if soonest != nil {
		step = soonest.Step
	}
	stage, replica := c.about.Mesh.Of(rank)
	c.tables["ranks"].Append(c.ID, rank, host, deviceName(lead), stage, replica, string(verdictOf(r)), r.Leaks(), r.Intermediate+2,
		r.First.Mark.Step, r.Last.Mark.Step, int64(lead.Meters.Allocated), int64(growth), int64(lead.Meters.Reserved), int64(peak), int64(lead.Limit),
		slope, bySecond, step, outAt(r, soonest))
}

// OutOfMemory is the status of a run that failed or was killed when memory had run out.
const OutOfMemory = "out of memory"

// ranOut reports whether the kernel killed a process of the run for want of memory, or a device had none.
func ranOut(run *snapshot.Run, last *snapshot.Snapshot) bool {
	return slices.ContainsFunc(run.Info.Notes, func(note string) bool { return strings.HasPrefix(note, snapshot.KernelKilled) }) ||
		slices.ContainsFunc(last.Devices, func(d snapshot.Device) bool { return d.OutOfMemory > 0 })
}

// Tables ends the run.
func (c *Collector) Tables() Tables {
	info := c.first.Info
	for _, host := range c.order {
		c.host(host, c.trees[host])
	}
	status, code := "unfinished", int64(-1)
	if info.ExitCode != nil {
		code = int64(*info.ExitCode)
	}
	ended := time.Time{}
	if info.Finished != nil {
		status, ended = "ended", *info.Finished
		if code > 128 || code < -1 {
			status = "killed"
		} else if code > 0 {
			status = "failed"
		}
	}
	if status != "ended" && status != "unfinished" && c.ranOut { // a program may outlive such an error
		status = OutOfMemory
	}
	paths := c.about.Paths
	c.tables["runs"].Append(c.ID, paths.of(filepath.Base(c.about.Path)), paths.of(c.about.Path), c.about.Added, info.Started, ended, status, code,
		c.about.Commands.of(strings.Join(info.Command, " ")), info.Workload, c.about.Commit, c.library, cmp.Or(info.Version, c.about.Version),
		c.ranks, len(c.hosts), c.gpus, c.steps, max(0, c.ended.Sub(c.began).Seconds()), string(c.verdict), c.leaks, c.live, c.growth)
	return c.tables
}

// host stores a machine with its processes.
func (c *Collector) host(name string, tree *snapshot.Tree) {
	processes, peak, limit, killed := int64(-1), int64(-1), int64(-1), int64(-1)
	if tree != nil {
		for _, p := range tree.Host {
			processes, peak = max(processes, int64(p.Processes)), max(peak, int64(p.RSS))
			limit, killed = max(limit, int64(p.Group.Limit)), max(killed, p.Group.Killed)
		}
		for _, p := range tree.Processes {
			first, last := p.Points[0], p.Points[len(p.Points)-1]
			most := first.Anonymous
			for _, point := range p.Points {
				most = max(most, point.Anonymous)
			}
			c.tables["processes"].Append(c.ID, name, p.PID, p.Parent, c.role(p.Role), first.Time, last.Time, int64(first.Anonymous), int64(last.Anonymous), int64(most))
		}
	}
	c.tables["hosts"].Append(c.ID, name, c.hosts[name], processes, peak, limit, killed)
}
