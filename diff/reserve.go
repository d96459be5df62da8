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

// Reserve is a device whose allocator went on taking memory, or on waiting for it,
// while its live memory did not grow: no leak, but memory that others cannot have. Or
// it is the process itself, whose memory grew steadily and which no stack explains:
// that may be a leak of what nobody recorded.
type Reserve struct {
	Device snapshot.Device
	Meter  cause.Meter // any but none
	// Growth is that of reserved memory after warm-up; with PendingFree of what was freed
	// and is still in use by a stream, and with UnsplitWaste of what blocks take beyond
	// what was requested.
	Growth   snapshot.Bytes
	Rate     Rate           // of Growth, in bytes, with Host; else zero
	From, To float64        // the places on the series' axis between which Growth was measured, with Host; else 0
	Live     snapshot.Bytes // growth of live memory meanwhile; with UnsplitWaste of requested, with Host of recorded memory
	Free     snapshot.Bytes // reserved and not in use, in the last snapshot
	Largest  snapshot.Bytes // of the free blocks
	Trim     snapshot.Bytes // in segments without a block in use: what emptying the cache frees
	Blocks   bool           // the last snapshot has the device's blocks; else Largest and Trim are unknown
	Cause    *cause.Cause
	CauseWhy string
	// Graph keeps a graph of autograd's that grows, which is likely to be of Growth; with Host, nil
	// where none was found.
	Graph *snapshot.Holder
	// Frames, with Host, are of the line at which malloc's memory grew while it ran, innermost first; nil if it is unknown.
	Frames []snapshot.Frame
	// Leaks, with Host: a finding says that it does.
	Leaks bool
	// Uneven, with Host: it grew by much, but not steadily.
	Uneven bool
	// Mapped, with Host: the process took it from the system itself, past malloc.
	Mapped bool
	// Uncounted, with Mapped: it may be malloc's, which gives no figures.
	Uncounted bool
	// Processes are those that grew, with Host, of the others that the command had; nil for the one that was recorded.
	Processes *Processes

	noTensors bool // the program is known to have none
}

// reserves looks at every device but the process itself, which has no cache that a
// program could empty: for memory that waits to be freed, for what blocks take beyond
// what was requested, and for reserved memory.
func (r *Result) reserves() []Reserve {
	out := slices.DeleteFunc(r.growingProcesses(), func(e Reserve) bool {
		return accounts(r.Children, &e) || e.Processes.Shared && (2*r.segments() >= e.Growth || r.tensorsInSegments(&e))
	})
	if !r.Comparable {
		return out // what one process holds more has not grown
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
		// Most producers tell what was requested; a zero is none of the others.
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

// segments is by how much shared memory has grown whose stacks are known, in all recorded processes.
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

// wasteShare is how much of what was requested must be lost to rests of blocks to be
// told of: rounding goes up and down with the sizes.
const wasteShare = 0.05

// unexplainedShare is how much of what the process held after warm-up must be added
// for growth without a stack to be told: allocators gather fragments, and libraries
// fill caches.
const unexplainedShare = 0.1

// ruledShare is that of growth as along a ruler, which fragments and caches do not show.
const ruledShare = 0.01

// overheadShare is how much beside what was recorded may be the headers and rounding of
// just that.
const overheadShare = 0.25

// ruled is true for many points of which the middle half of the intervals add about the same
// for their length. The others may jump: a recorder's own tables come and go, and so does
// what a step has under way.
func ruled(x, y []float64) bool {
	rates := make([]float64, 0, len(y))
	for i := 1; i < len(y); i++ {
		rates = append(rates, (y[i]-y[i-1])/(x[i]-x[i-1]))
	}
	slices.Sort(rates)
	n := len(rates)
	return len(y) > series.Climbing && rates[n/4] > 0 && rates[n-1-n/4] <= 2*rates[n/4]
}

// unexplained is the steady growth of the process's own memory without that of what
// was recorded in the same memory; nil where there is none to tell of.
func (r *Result) unexplained() *Reserve {
	at, rest := r.Series.Unrecorded()
	if len(rest) > 0 && watchedAlone(r.Series.Devices[at]) {
		return nil // what each process takes is a row, and is judged by process
	}
	return r.growsBesides(rest)
}

// growsBesides is unexplained, of what the process held beyond what was recorded at each mark.
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

// risesFrom reports whether floors rise from a point on that was looked for among all of them.
func risesFrom(at int, rest []float64) bool {
	t := trend.HamedRao(rest[at:])
	return t.Z > 0 && t.P*float64(len(rest)) <= judge.Significant
}

// steadily reports whether rising floors go on rising, by more than fragments and caches gather.
func steadily(w Without, x, rest []float64) bool {
	grown := rest[len(rest)-1] - rest[0]
	// What one snapshot has more, such as a copy under way, is no jump that carries most of the growth.
	if on, _ := w.KeepsRising(x, series.Lasting(rest)); !on {
		return false
	}
	// What adds the same again and again is no walk, whatever jumps there are between. Neither is what never falls:
	// on a busy machine a program's speed varies, and its growth with it.
	drifts := grown >= unexplainedShare*rest[0] && (2*trend.DriftAlong(x, rest) <= judge.Significant || trend.Climbs(x, rest, series.Climbing, series.LongestGap))
	return drifts || grown >= ruledShare*rest[0] && ruled(x, rest)
}

// multiplies reports whether rising floors, which are not shown to be steady, have at least doubled, by no small part of the process,
// and go on: a buffer that is replaced by larger ones rises in a few jumps. So does a cache that fills, but neither is known to have
// stopped.
func (r *Result) multiplies(x, rest []float64) bool {
	on, _ := r.options.Without.KeepsRising(x, rest)
	process, _ := r.Series.Unrecorded()
	held, grown := float64(r.Series.Meters[process][len(r.Series.Marks)-1].Allocated), rest[len(rest)-1]-rest[0]
	return on && rest[0] > 0 && grown >= rest[0] && grown >= unexplainedShare*(held-grown)
}

// knownRates is how many floors the growth of the process must have for its rate to be known, and knownWithin how far below it the
// rate's interval may reach.
const knownRates, knownWithin = 10, 0.5

// judgeProcess makes a leak of steady growth of the process's own memory, as malloc counts it, that no stack explains, where nothing
// else leaks, the rate is known well, and it is no small part of the process: libraries fill rings, as PyTorch's flight recorder of
// collectives. Where the heap of the language was not recorded, it may be a cache of the program's that fills.
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

// OfProcess reports whether a finding is of the process itself, and not of a stack.
func (f *Finding) OfProcess() bool { return f.Rows[0].Device.Kind == snapshot.Process }

// explained is by how much the process's own memory has grown since warm-up as recorded stacks did.
func (r *Result) explained() snapshot.Bytes {
	s := r.Series
	at, _ := s.Unrecorded()
	all := s.Meters[at]
	return all[len(all)-1].Allocated - all[s.WarmUp()].Allocated - r.Besides()
}

// floorsBeyond are floors, from the least on, of what the process held beyond what was recorded at each mark; nil unless they
// rise beyond chance.
func (r *Result) floorsBeyond(beyond []float64) (x, rest []float64) {
	s := r.Series
	from := s.WarmUp()
	if len(beyond)-from < series.Testable {
		return nil, nil
	}
	return risingFloors(s.Axis.X[from:], beyond[from:])
}

// risingFloors are floors of y along x, from the least on; nil unless they rise beyond chance.
func risingFloors(x, y []float64) (at, rest []float64) {
	at, rest = trend.Floors(x, y, series.Windows)
	// What came before the least was given back: a recorder that looks at fewer steps from then on has
	// no more of its own.
	lowest := slices.Index(rest, slices.Min(rest))
	if at, rest = at[lowest:], rest[lowest:]; len(rest) < series.Testable {
		return nil, nil
	}
	if t := trend.HamedRao(rest); t.Z <= 0 || t.P > judge.Significant {
		return nil, nil
	}
	return at, rest
}

// ofProcess is growth of the process as floorsBeyond returns it.
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

// Besides is by how much the process's own memory has grown since warm-up beyond what was
// recorded in it, steadily or not; 0 where that is not known.
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

// Unexplained is ProcessGrowth unless a finding calls it a leak; nil for none.
func (r *Result) Unexplained() *Reserve {
	if e := r.ProcessGrowth(); e != nil && !e.Leaks {
		return e
	}
	return nil
}

// Unaccounted is Unexplained and the steady growth of the command's other processes. A run without a
// leak is not known to be without one where there is any.
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

// growsAlone is the growth of a meter over marks after warm-up; nil unless it rose
// twice or more, since every program takes memory when it begins, and the growth of
// what is live explains less than half of it.
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

// reserve adds what the last snapshot shows of a device, and the cause.
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

// privateGrowth is by how much a device's private pools grew after warm-up.
func (r *Result) privateGrowth(device snapshot.Device) snapshot.Bytes {
	from := r.First
	if all := r.run.Snapshots; len(all) > 2 {
		from = all[series.WarmUp(len(all))]
	}
	return inPrivate(r.Last, device) - inPrivate(from, device)
}

// inPrivate is what segments of private pools take of a device.
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

// look measures what is reserved and not in use.
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

// String says it in one sentence.
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

// Fix is what to do about it; "" without a cause.
func (e *Reserve) Fix() string {
	if e.Cause == nil {
		return ""
	}
	if e.Line() != nil {
		return e.Cause.Fix
	}
	return cmp.Or(e.Cause.Unplaced, e.Cause.Fix)
}

// Between is where Growth was measured: "from step 40 to step 267".
func (e *Reserve) Between() string {
	return "from " + e.Rate.Unit.Moment(e.From) + " to " + e.Rate.Unit.Moment(e.To)
}
