package diff

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/judge"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/frame"
)

// Reserve is a device whose allocator went on to take memory, or to wait for it, while its live memory did not grow:
// no leak, but memory that others cannot use. Or it is the process itself, whose memory grew steadily without a stack
// that explains it: that may be a leak that was not recorded.
type Reserve struct {
	Device snapshot.Device
	Meter  cause.Meter // never none
	// Growth is the growth of reserved memory after warm-up; with PendingFree, of memory that was freed and that a
	// stream still uses; with UnsplitWaste, of block sizes beyond the requested sizes; with Host, of the process's
	// own memory beyond recorded stacks.
	Growth   snapshot.Bytes
	Rate     Rate           // of Growth, in bytes, with Host; else zero Rate
	From, To float64        // with Host: where on the series' axis Growth was measured; else 0
	Live     snapshot.Bytes // growth of live memory in the same time; with UnsplitWaste of requested memory, with Host of recorded memory
	Free     snapshot.Bytes // reserved and not in use, in the last snapshot
	Largest  snapshot.Bytes // the largest free block
	Trim     snapshot.Bytes // in segments without a block in use: emptying the cache frees it
	Blocks   bool           // the last snapshot has the device's blocks; else Largest and Trim are unknown
	Cause    *cause.Cause
	CauseWhy string
	// Graph, with Host, is the holder of a growing autograd graph, which probably causes Growth; nil if none was
	// found.
	Graph *snapshot.Holder
	// Frames, with Host, is the stack of the line that ran while malloc's memory grew, innermost first; nil if
	// unknown.
	Frames []snapshot.Frame
	// Leaks, with Host: a finding reports it as a leak.
	Leaks bool
	// Uneven, with Host: it grew much, but not steadily.
	Uneven bool
	// Mapped, with Host: the process took it from the system directly, without malloc.
	Mapped bool
	// Uncounted, with Mapped: it may be malloc's, which reports no figures here.
	Uncounted bool
	// Processes, with Host, are other processes of the command that grew; nil for the recorded process.
	Processes *Processes

	noTensors bool // the program is known to have no tensors
}

// reserves checks every device but the process, which has no cache to empty: for memory that waits to be freed, for
// block sizes beyond the requested sizes, and for reserved memory. It also returns growth of processes.
func (r *Result) reserves() []Reserve {
	out := slices.DeleteFunc(r.growingProcesses(), func(e Reserve) bool {
		return accounts(r.Children, &e) || e.Processes.Shared && (2*r.segments() >= e.Growth || r.tensorsInSegments(&e))
	})
	if !r.Comparable {
		return out // a difference between two processes is not growth
	}
	if e := r.unexplained(); e != nil {
		out = append(out, *e)
	}
	for d := range r.Series.Devices {
		if len(r.Series.Meters[d]) != len(r.Series.Marks) || r.Series.Devices[d].Kind == snapshot.Process {
			continue
		}
		_, meters := r.Series.Metered(d)
		if len(meters) < 4 {
			continue
		}
		tail := meters[series.WarmUp(len(meters)):]
		device := r.Series.Devices[d]
		pending := growsAlone(tail, func(m snapshot.Meters) snapshot.Bytes { return m.Active - m.Allocated }, func(m snapshot.Meters) snapshot.Bytes { return m.Allocated })
		if pending != nil {
			pending.Meter = cause.PendingFree
			out = append(out, r.reserve(*pending, device))
		}
		// Most producers record requested sizes; zero means unknown.
		if first := tail[0].Requested; first > 0 {
			waste := growsAlone(tail, func(m snapshot.Meters) snapshot.Bytes { return m.Allocated - m.Requested }, func(m snapshot.Meters) snapshot.Bytes { return m.Requested })
			if waste != nil && float64(waste.Growth) >= wasteShare*float64(first) {
				waste.Meter = cause.UnsplitWaste
				out = append(out, r.reserve(*waste, device))
			}
		}
		reserved := growsAlone(tail, func(m snapshot.Meters) snapshot.Bytes { return m.Reserved }, func(m snapshot.Meters) snapshot.Bytes { return m.Active })
		if reserved != nil {
			out = append(out, r.reserve(*reserved, device))
		}
	}
	return out
}

// segments is the growth, in all recorded processes, of shared memory whose stacks are known.
func (r *Result) segments() (grown snapshot.Bytes) {
	for _, run := range append([]*snapshot.Run{r.run}, r.run.Children...) {
		if n := len(run.Snapshots); n > 0 {
			grown += inSegments(run.Snapshots[n-1]) - inSegments(run.Snapshots[0])
		}
	}
	return grown
}

func inSegments(s *snapshot.Snapshot) (held snapshot.Bytes) {
	for i := range s.Devices {
		if s.Devices[i].Kind == snapshot.SharedMemory {
			held += s.Devices[i].Meters.Allocated
		}
	}
	return held
}

// wasteShare is the least share of requested memory that unused rests of blocks must reach to be reported: rounding
// varies with the sizes.
const wasteShare = 0.05

// unexplainedShare is the least growth without a stack to be reported, as a share of what the process held after
// warm-up: allocators fragment, and libraries fill caches.
const unexplainedShare = 0.1

// ruledShare is the same for growth along a straight line, which fragments and caches do not show.
const ruledShare = 0.01

// overheadShare is how much memory may be the headers and rounding of recorded blocks, as a share of these.
const overheadShare = 0.25

// ruled reports whether, among many points, the middle half of the intervals have about the same rate, up to a factor
// of two. The others may jump: a recorder's own tables and a step's temporary memory come and go.
func ruled(x, y []float64) bool {
	rates := make([]float64, 0, len(y))
	for i := 1; i < len(y); i++ {
		rates = append(rates, (y[i]-y[i-1])/(x[i]-x[i-1]))
	}
	slices.Sort(rates)
	n := len(rates)
	return len(y) > series.Climbing && rates[n/4] > 0 && rates[n-1-n/4] <= 2*rates[n/4]
}

// unexplained is the steady growth of the process's own memory beyond what was recorded in it; nil if there is none
// to report.
func (r *Result) unexplained() *Reserve {
	at, rest := r.Series.Unrecorded()
	if len(rest) > 0 && watchedAlone(r.Series.Devices[at]) {
		return nil // the memory of each process is a row there, and is judged by process
	}
	return r.growsBesides(rest)
}

// growsBesides is unexplained for the process's memory beyond recorded blocks at each mark.
func (r *Result) growsBesides(beyond []float64) *Reserve {
	x, rest := r.floorsBeyond(beyond)
	if rest == nil {
		return nil
	}
	if at := series.Onset(x, rest); at > 0 && risesFrom(at, rest) {
		x, rest = x[at:], rest[at:]
	}
	steady := steadily(r.options.Without, x, rest)
	if !steady && !r.multiplies(x, rest) {
		return nil
	}
	if explained := r.explained(); rest[len(rest)-1]-rest[0] < overheadShare*float64(explained) {
		return nil
	}
	e := r.ofProcess(x, rest)
	e.Uneven = !steady
	return e
}

// risesFrom reports whether floors rise from a point on; the point was chosen among all.
func risesFrom(at int, rest []float64) bool {
	t := trend.HamedRao(rest[at:])
	return t.Z > 0 && t.P*float64(len(rest)) <= judge.Significant
}

// goesOn reports whether rising floors rise up to the end. Additional memory at one snapshot, such as a copy in
// progress, is no jump with most of the growth.
func goesOn(w Without, x, rest []float64) bool {
	on, _ := w.KeepsRising(x, series.Lasting(rest))
	return on
}

// steadily reports whether rising floors continue to rise, by more than fragments and caches.
func steadily(w Without, x, rest []float64) bool {
	grown := rest[len(rest)-1] - rest[0]
	if !goesOn(w, x, rest) {
		return false
	}
	// Equal growth again and again is no random walk, whatever jumps lie between. Neither is memory that never falls:
	// on a busy machine a program's speed varies, and its growth too.
	drifts := grown >= unexplainedShare*rest[0] && (2*trend.DriftAlong(x, rest) <= judge.Significant || trend.Climbs(x, rest, series.Climbing, series.LongestGap))
	return drifts || grown >= ruledShare*rest[0] && ruled(x, rest)
}

// multiplies reports whether rising floors that are not shown to be steady have at least doubled, by a large part of
// the process, and continue to rise. A buffer that larger ones replace rises in a few jumps. So does a cache that
// fills; neither is known to have stopped.
func (r *Result) multiplies(x, rest []float64) bool {
	on, _ := r.options.Without.KeepsRising(x, rest)
	process, _ := r.Series.Unrecorded()
	held, grown := float64(r.Series.Meters[process][len(r.Series.Marks)-1].Allocated), rest[len(rest)-1]-rest[0]
	return on && rest[0] > 0 && grown >= rest[0] && grown >= unexplainedShare*(held-grown)
}

// knownRates is how many floors of the process's memory are needed to know its rate, and knownWithin how far below
// the rate its interval may reach, as a share of the rate.
const knownRates, knownWithin = 10, 0.5

// judgeProcess calls growth of the process's malloc memory that no stack explains a leak if it is steady, nothing
// else leaks, its rate is well known, and it is a large part of the process. Libraries fill rings, such as PyTorch's
// flight recorder of collectives. If the heap of the language was not recorded, it is not called a leak: a cache of
// the program may be filling.
func (r *Result) judgeProcess() {
	e := r.Unexplained()
	if slices.ContainsFunc(r.run.Info.Unseen, func(u snapshot.Unseen) bool { return u.Device == snapshot.PythonHeap }) {
		return
	}
	if e == nil || e.Uneven || e.Cause == nil || r.Leaks() > 0 || e.Rate.Bytes.N < knownRates || e.Rate.Bytes.Low < knownWithin*e.Rate.Bytes.Value {
		return
	}
	at, rest := r.Series.Unrecorded()
	held := snapshot.Bytes(rest[len(rest)-1])
	if float64(e.Growth) < unexplainedShare*float64(held-e.Growth) {
		return
	}
	row := &Row{Device: r.Series.Devices[at], Label: "memory of the process outside recorded stacks", Before: Tally{Bytes: held - e.Growth}, After: Tally{Bytes: held}, Frames: e.Frames}
	row.Key.Device = series.DeviceOf(row.Device)
	why := *e.Cause
	why.Fix = e.Fix()
	r.Findings = append(r.Findings, Finding{
		Rows: []*Row{row}, Verdict: Leak, Evidence: Weak, Rate: e.Rate, Headline: frame.Headline(e.Frames), Holder: e.Graph, Cause: &why, CauseWhy: e.CauseWhy, Uncounted: true, RunsOut: r.forecast(row, e.Rate),
		Reasons: []string{fmt.Sprintf("memory from malloc grew steadily, beyond the %s that recorded stacks explain", snapshot.FormatBytes(float64(max(0, e.Live))))},
	})
	e.Leaks = true
}

// OfProcess reports whether a finding is the process itself, without a stack.
func (f *Finding) OfProcess() bool { return f.Rows[0].Device.Kind == snapshot.Process }

// explained is the growth of the process's own memory since warm-up that recorded stacks explain.
func (r *Result) explained() snapshot.Bytes {
	s := r.Series
	at, _ := s.Unrecorded()
	all := s.Meters[at]
	return all[len(all)-1].Allocated - all[s.WarmUp()].Allocated - r.Besides()
}

// floorsBeyond returns floors, from the lowest one, of the process's memory beyond recorded blocks; nil unless they
// rise beyond chance.
func (r *Result) floorsBeyond(beyond []float64) (x, rest []float64) {
	s := r.Series
	from := s.WarmUp()
	if len(beyond)-from < series.Testable {
		return nil, nil
	}
	return risingFloors(s.Axis.X[from:], beyond[from:])
}

// risingFloors returns floors of y along x, from the lowest one; nil unless they rise beyond chance.
func risingFloors(x, y []float64) (at, rest []float64) {
	at, rest = trend.Floors(x, y, series.Windows)
	// What came before the lowest floor was freed: a recorder that watches fewer steps from there on has less memory
	// of its own.
	lowest := slices.Index(rest, slices.Min(rest))
	if at, rest = at[lowest:], rest[lowest:]; len(rest) < series.Testable {
		return nil, nil
	}
	if t := trend.HamedRao(rest); t.Z <= 0 || t.P > judge.Significant {
		return nil, nil
	}
	return at, rest
}

// ofProcess describes growth of the process that floorsBeyond returned.
func (r *Result) ofProcess(x, rest []float64) *Reserve {
	s := r.Series
	at, _ := s.Unrecorded()
	e := &Reserve{
		Device: s.Devices[at], Meter: cause.Host, Growth: snapshot.Bytes(rest[len(rest)-1] - rest[0]), Live: r.explained(),
		Rate: Rate{Unit: s.Axis.Unit, Bytes: trend.Rate(x, rest)}, From: x[0], To: x[len(x)-1],
	}
	r.explainReserve(e)
	if i := slices.IndexFunc(r.Last.Holders, func(h snapshot.Holder) bool { return h.Kind == snapshot.Nodes }); i >= 0 {
		e.Graph = &r.Last.Holders[i]
		e.Cause, e.CauseWhy = cause.Find("graph-retained"), "autograd's graph grows"
	} else if len(r.Last.Native) > 0 {
		e.Frames = r.Last.Stacks.Frames(r.Last.Native[0])
		if e.Cause != nil {
			e.CauseWhy = "malloc's memory grows at this line, and no recorded stack explains it"
		}
	}
	return e
}

// Besides is the growth of the process's own memory since warm-up beyond what was recorded in it, steady or not; 0 if
// unknown.
func (r *Result) Besides() snapshot.Bytes {
	_, rest := r.Series.Unrecorded()
	if len(rest) == 0 {
		return 0
	}
	return snapshot.Bytes(rest[len(rest)-1] - rest[r.Series.WarmUp()])
}

// ProcessGrowth is the growth of the recorded process's own memory that no stack explains, steady or Uneven; nil for none.
func (r *Result) ProcessGrowth() *Reserve {
	i := slices.IndexFunc(r.Reserves, func(e Reserve) bool { return e.Meter == cause.Host && e.Processes == nil })
	if i < 0 {
		return nil
	}
	return &r.Reserves[i]
}

// Unexplained is ProcessGrowth, unless a finding reports it as a leak; nil for none.
func (r *Result) Unexplained() *Reserve {
	if e := r.ProcessGrowth(); e != nil && !e.Leaks {
		return e
	}
	return nil
}

// Unaccounted is Unexplained and the steady growth of the command's other processes. If there is any, a run without a
// found leak may still leak.
func (r *Result) Unaccounted() (out []*Reserve) {
	if e := r.Unexplained(); e != nil {
		out = append(out, e)
	}
	for i := range r.Reserves {
		if e := &r.Reserves[i]; e.Processes != nil {
			out = append(out, e)
		}
	}
	return out
}

// growsAlone is the growth of a meter after warm-up. It is nil unless the meter rose at least twice, since every
// program takes memory when it begins, and the growth of live memory explains at most half of it.
func growsAlone(tail []snapshot.Meters, meter, live func(snapshot.Meters) snapshot.Bytes) *Reserve {
	rises, last := 0, tail[len(tail)-1]
	for i := 1; i < len(tail); i++ {
		if meter(tail[i]) > meter(tail[i-1]) {
			rises++
		}
	}
	e := &Reserve{Growth: meter(last) - meter(tail[0]), Live: live(last) - live(tail[0])}
	if rises < 2 || e.Growth <= 0 || meter(last) <= meter(tail[len(tail)/2]) || e.Live > e.Growth/2 {
		return nil
	}
	return e
}

// reserve adds the device's state in the last snapshot, and the cause.
func (r *Result) reserve(e Reserve, device snapshot.Device) Reserve {
	e.Device = device
	e.look(r.Last)
	switch {
	case e.Meter != "":
	case 2*r.privateGrowth(device) > e.Growth:
		e.Meter = cause.PrivatePool
	case e.Blocks && e.Trim < e.Free/2:
		e.Meter = cause.Fragmentation
	default:
		e.Meter = cause.CacheGrowth
	}
	r.explainReserve(&e)
	return e
}

func (r *Result) explainReserve(e *Reserve) {
	e.noTensors = r.noTensors()
	if fit := cause.Matches(&cause.Evidence{Meter: e.Meter, NoTensors: e.noTensors}); len(fit) > 0 {
		e.Cause, e.CauseWhy = fit[0].Cause, fit[0].Why
	}
}

// privateGrowth is the growth of a device's private pools after warm-up.
func (r *Result) privateGrowth(device snapshot.Device) snapshot.Bytes {
	from := r.First
	if all := r.run.Snapshots; len(all) > 2 {
		from = all[series.WarmUp(len(all))]
	}
	return inPrivate(r.Last, device) - inPrivate(from, device)
}

// inPrivate is the size of a device's segments in private pools.
func inPrivate(s *snapshot.Snapshot, device snapshot.Device) snapshot.Bytes {
	var total snapshot.Bytes
	for i := range s.Segments {
		seg := &s.Segments[i]
		if d := s.Devices[seg.Device]; seg.Private != "" && d.Kind == device.Kind && d.Index == device.Index {
			total += seg.Size
		}
	}
	return total
}

// look measures memory that is reserved and not in use.
func (e *Reserve) look(s *snapshot.Snapshot) {
	for i := range s.Segments {
		seg := &s.Segments[i]
		if d := s.Devices[seg.Device]; d.Kind != e.Device.Kind || d.Index != e.Device.Index || seg.NumBlocks == 0 {
			continue
		}
		e.Blocks = true
		var free snapshot.Bytes
		for at := seg.FirstBlock; at < seg.FirstBlock+seg.NumBlocks; at++ {
			if s.Blocks.State[at] == snapshot.Free {
				free += s.Blocks.Size[at]
				e.Largest = max(e.Largest, s.Blocks.Size[at])
			}
		}
		e.Free += free
		if free == seg.Size {
			e.Trim += free
		}
	}
	if e.Blocks {
		return
	}
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Kind == e.Device.Kind && d.Index == e.Device.Index {
			e.Free = max(0, d.Meters.Reserved-d.Meters.Active)
		}
	}
}

// String describes it in a sentence or two.
func (e *Reserve) String() string {
	name := "cache growth"
	if e.Cause != nil {
		name = e.Cause.Name
	}
	if e.Processes != nil {
		return e.Processes.sentence(e)
	}
	if e.Meter == cause.Host {
		rate := e.Rate.Bytes
		what := "memory that is not recorded may leak, such as an autograd graph (memdiag explain graph-retained) or memory of native code"
		switch {
		case e.noTensors && !e.Mapped:
			what = "memory that is not recorded may leak, such as memory of native code"
		case e.Uncounted:
			what = "this system's malloc gives no figures, so Python objects above 512 B and memory of native code are not recorded; record with --python-heap on to find a line of Python"
		case e.Mapped:
			what = "native code mapped it without malloc, such as a library's own allocator or buffer"
		case e.Graph != nil:
			what = "the likely cause is autograd's graph, which also grows"
		}
		how := "grew steadily"
		if e.Uneven {
			how = "grew in uneven steps"
		}
		where := "Source line unknown: " + what
		if at := e.Line(); at != nil {
			where = fmt.Sprintf("malloc's memory grew while %s:%d ran", at.File, at.Line)
		}
		return fmt.Sprintf("memory of the process %s by %s after warm-up, by %s a %s (%s to %s, 95 %% interval), beyond the %s that recorded stacks explain. %s",
			how, e.Growth, snapshot.FormatBytes(rate.Value), e.Rate.Unit, snapshot.FormatBytes(rate.Low), snapshot.FormatBytes(rate.High), max(e.Live, 0), where)
	}
	if e.Meter == cause.PendingFree {
		return fmt.Sprintf("memory of %s that was freed and that a stream still uses grew by %s after warm-up while live memory changed by %s. The program holds none of it: %s",
			series.DeviceOf(e.Device), e.Growth, e.Live, name)
	}
	if e.Meter == cause.UnsplitWaste {
		return fmt.Sprintf("allocator rounding on %s grew by %s after warm-up; requested memory changed by %s. This is allocator overhead, not a leak in the program: %s",
			series.DeviceOf(e.Device), e.Growth, e.Live, name)
	}
	text := fmt.Sprintf("reserved memory of %s grew by %s after warm-up while active memory changed by %s. That is no leak: %s. Now %s are free",
		series.DeviceOf(e.Device), e.Growth, e.Live, name, e.Free)
	if e.Blocks {
		text += fmt.Sprintf(", the largest block is %s, and emptying the cache would free %s", e.Largest, e.Trim)
	}
	return text
}

// Line is the line at which malloc's memory grew; nil if unknown.
func (e *Reserve) Line() *snapshot.Frame {
	if at := frame.Headline(e.Frames); at >= 0 {
		return &e.Frames[at]
	}
	return nil
}

// Fix is the remedy; "" without a cause.
func (e *Reserve) Fix() string {
	if e.Cause == nil {
		return ""
	}
	if e.Line() != nil {
		return e.Cause.Fix
	}
	return cmp.Or(e.Cause.Unplaced, e.Cause.Fix)
}

// Between names where Growth was measured: "from step 40 to step 267".
func (e *Reserve) Between() string {
	return "from " + e.Rate.Unit.Moment(e.From) + " to " + e.Rate.Unit.Moment(e.To)
}
