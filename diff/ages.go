package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Ages is a first verdict from one snapshot, by when its live blocks were born. The births of a leak are spread
// evenly over the run, those of a cache lie at its start, and those of temporary blocks are recent.
type Ages struct {
	Unit string // "step", "time" in Unix microseconds, or "event" of the allocator; "" if no birth is known
	// From and To are the range of the births: the run's steps, or the time that the recording covers.
	From, To int64
	Sites    []SiteAges // leaks first, then inconclusive, then bounded; more bytes first
	// Findings join the sites that leak, and then those that may, as Analyze does; more bytes first. Their Growth is
	// all that they hold.
	Findings []Finding
	// Why says why no site can be judged; "" if some can.
	Why string
}

// SiteAges is one site with the verdict from its births.
type SiteAges struct {
	Device   snapshot.Device
	Site     snapshot.Site
	Pattern  Pattern
	Verdict  Verdict
	Evidence Evidence
	Reasons  []string
	// Distinct counts the steps (or instants) with births. Gap is the longest stretch without one as a share of the
	// run, and P the chance of a random spread this uneven.
	Distinct int
	Gap, P   float64
	First    int64 // birth
	Sampled  bool  // only some steps were recorded: counts and sizes are estimates
	Unknown  int64 // blocks with unknown birth
	// Rate is the site's gain per step of the run; zero if births are times.
	Rate Rate
	// Holder is what retains the blocks, if the recorder found it; else nil. It is no variable if there are several
	// blocks, since a variable holds one.
	Holder *snapshot.Holder
}

// Pattern is where the births of a site's live blocks lie in the run.
type Pattern string

// Patterns of births.
const (
	Throughout Pattern = "throughout" // evenly, from near the start to now
	AtStart    Pattern = "at start"
	JustNow    Pattern = "just now"
	InWindow   Pattern = "in a window" // evenly, and up to now, but not from the start
	Scattered  Pattern = "scattered"   // any other way
	Unborn     Pattern = "unknown"     // the births of most blocks are unknown
)

// Inspect judges the sites of one snapshot by the births of their blocks. Blocks without a stack are not judged. Its
// false alarms are those that no single snapshot can avoid: bounded memory that has not yet reached its bound.
func Inspect(s *snapshot.Snapshot) *Ages {
	a := &Ages{}
	a.span(s)
	if a.Why != "" {
		return a
	}
	sites := s.Sites()
	for i := range sites {
		if sites[i].Stack != snapshot.NoStack {
			a.Sites = append(a.Sites, a.site(s, &sites[i]))
		}
	}
	slices.SortStableFunc(a.Sites, func(x, y SiteAges) int {
		return cmp.Or(cmp.Compare(order(x.Verdict), order(y.Verdict)), cmp.Compare(y.Site.Bytes, x.Site.Bytes))
	})
	a.find(s)
	return a
}

// shortestRecord is the shortest record whose times can show a leak: within one or two steps, the layers of a forward
// pass are allocated as evenly as a leak. The recordings of one step in ../shared/data/torch take 28 to 647 ms.
const shortestRecord = time.Second

// span sets the unit and the range of the births, or Why.
func (a *Ages) span(s *snapshot.Snapshot) {
	b := &s.Blocks
	live := func(known func(int) bool) bool {
		for i, state := range b.State {
			if state == snapshot.Live && known(i) {
				return true
			}
		}
		return false
	}
	switch {
	case b.BirthStep != nil && live(func(i int) bool { return b.BirthStep[i] != snapshot.NoStep }):
		a.Unit, a.To = "step", s.Mark.Step
		if s.Mark.Step == snapshot.NoStep {
			a.Why = "the snapshot has no step, although its blocks have birth steps"
		} else if s.Mark.Step < shortest {
			a.Why = fmt.Sprintf("the snapshot is of step %d, and a verdict from one takes %d steps", s.Mark.Step, shortest)
		}
	case b.BirthTime != nil && live(func(i int) bool { return b.BirthTime[i] > 0 }):
		a.Unit, a.To = "time", series.LastInstant(s)
		if !s.History.First.IsZero() {
			a.From = s.History.First.UnixMicro()
		}
		if a.From == 0 || a.To <= a.From {
			a.Why = "blocks have a time of birth, but the file does not record when the recording began"
		} else if span := time.Duration(a.To-a.From) * time.Microsecond; span < shortestRecord {
			a.Why = fmt.Sprintf("the record covers %s, too short to distinguish a leak from a step's own memory; compare two snapshots of the run", cmp.Or(span.Round(time.Millisecond), span))
		}
	case b.BirthEvent != nil && live(func(i int) bool { return b.BirthEvent[i] > 0 }):
		a.Unit, a.To = "event", s.History.Events
	case b.Count != nil && !live(func(i int) bool { return b.Address[i] != 0 }):
		a.Why = "the file has totals by stack, and no ages of blocks"
	case s.History.Events > 0 && s.History.First.IsZero():
		a.Why = "the file records allocations without their times, and not in one order"
	case s.History.Events > 0:
		a.Why = "all of its live blocks are older than what the file records"
	default:
		a.Why = "the file does not record when its live blocks were allocated"
	}
}

// holderOfSite is the holder that the recorder found for the site's stack; nil for none, and for a holder of a single
// block if the site has several.
func holderOfSite(s *snapshot.Snapshot, site *snapshot.Site) *snapshot.Holder {
	for i := range s.Holders {
		if h := &s.Holders[i]; h.Stack == site.Stack && (h.Kind != "variable" && !holdsOne(h) || site.Count == 1) {
			return h
		}
	}
	return nil
}

// site judges one site.
func (a *Ages) site(s *snapshot.Snapshot, site *snapshot.Site) SiteAges {
	out := SiteAges{Device: s.Devices[site.Device], Site: *site, Evidence: Weak, Holder: holderOfSite(s, site)}
	events, all := a.births(s, site, &out)
	known := site.Count - out.Unknown
	if out.Distinct = len(events); out.Distinct == 0 || known < out.Unknown {
		out.call(Unborn, Inconclusive, "%d of its %d blocks are older than the recording", out.Unknown, site.Count)
		return out
	}
	low, high := float64(a.From), float64(a.To)
	out.First = int64(events[0])
	out.Gap = trend.LargestGap(events, low, high)
	var distance float64
	distance, out.P = trend.Uniform(events, low, high)
	if out.Sampled = all != nil; out.Sampled {
		d, _ := trend.Uniform(all, low, high)
		distance = min(distance, d)
	}
	if a.Unit == "step" {
		out.Rate = Rate{Unit: Step, Blocks: exactly(float64(known) / (high - low)), Bytes: exactly(float64(site.Bytes) / (high - low))}
	}
	a.judge(&out, events, all, distance)
	if out.Sampled && out.Verdict != Bounded {
		out.because("only some steps were recorded: counts and sizes are estimates")
	}
	if out.Verdict == Leak {
		a.doubt(s, &out)
	}
	out.prove(s)
	return out
}

// exactly is a rate from one snapshot, without an interval.
func exactly(v float64) trend.Slope { return trend.Slope{Value: v, Low: v, High: v, N: 1} }

// negligible reports whether the site takes next to nothing by the default horizon of comparisons.
func (o *SiteAges) negligible() bool {
	d := DefaultOptions()
	return o.Rate.Bytes.Value > 0 && o.Device.Kind != snapshot.Process && o.Device.Limit > 0 && o.Rate.Bytes.Value*float64(d.Horizon) < d.MinShare*float64(o.Device.Limit)
}

// births returns the distinct births of a site's blocks, ascending. If only some steps were recorded, and each birth
// stands for the steps up to the next, all includes those steps; else all is nil.
func (a *Ages) births(s *snapshot.Snapshot, site *snapshot.Site, out *SiteAges) (events, all []float64) {
	column, unknown := s.Blocks.BirthStep, snapshot.NoStep
	switch a.Unit {
	case "time":
		column, unknown = s.Blocks.BirthTime, 0
	case "event":
		column, unknown = s.Blocks.BirthEvent, 0
	}
	stands := make(map[float64]int64)
	sampled := false
	for _, row := range site.Rows {
		n := s.Blocks.CountOf(int(row))
		if column[row] == unknown {
			out.Unknown += n
			continue
		}
		at := float64(column[row])
		stands[at] = max(stands[at], n)
		sampled = sampled || n > 1
	}
	events = slices.Sorted(maps.Keys(stands))
	if !sampled || a.Unit != "step" {
		return events, nil
	}
	for i, at := range events {
		until := float64(a.To)
		if i+1 < len(events) {
			until = events[i+1]
		}
		for step := at; step < min(until, at+float64(stands[at])); step++ {
			all = append(all, step)
		}
	}
	return events, all
}

// judge sets the pattern of births and its verdict.
func (a *Ages) judge(out *SiteAges, events, all []float64, distance float64) {
	low, length := float64(a.From), float64(a.To-a.From)
	first, last := events[0], events[len(events)-1]
	even := func(from float64) bool {
		d, p := trend.Uniform(events, from, float64(a.To))
		if all != nil {
			estimated, _ := trend.Uniform(all, from, float64(a.To))
			d = min(d, estimated)
		}
		return p >= uneven || d <= nearlyEven
	}
	switch {
	case last <= low+early*length:
		out.call(AtStart, Bounded, "all of its blocks are from the first %.0f %% of %s: allocated once, and retained", 100*early, a.whole())
	case first >= low+(1-late)*length:
		out.call(JustNow, Bounded, "all of its blocks are from the last %.0f %% of %s: temporary, or recreated", 100*late, a.whole())
	case len(events) >= evenSteps && out.Gap <= widestOf(len(events)) && (out.P >= uneven || distance <= nearlyEven):
		out.call(Throughout, Leak, "its blocks were allocated in %d distinct %ss, evenly over %s (longest gap %.0f %%), and all are live", len(events), a.word(), a.whole(), 100*out.Gap)
	case len(events) >= evenSteps && last >= low+(1-widest)*length && even(first) && trend.LargestGap(events, first, float64(a.To)) <= widestOf(len(events)):
		out.call(InWindow, Inconclusive, "its blocks were allocated evenly, but only in the last %.0f %% of %s: a window of that length, or a leak that began then", 100*(low+length-first)/length, a.whole())
	default:
		out.call(Scattered, Inconclusive, "its blocks were allocated in %d distinct %ss, with a gap of %.0f %% of %s: one snapshot cannot show whether the call site grows", len(events), a.word(), 100*out.Gap, a.whole())
	}
}

// widestOf is the longest gap allowed for so many births.
func widestOf(births int) float64 {
	if births < manySteps {
		return min(widest, regular/float64(births))
	}
	return widest
}

// doubt raises a leak to strong evidence, or adds the reason against that.
func (a *Ages) doubt(s *snapshot.Snapshot, out *SiteAges) {
	switch {
	case out.Site.Bytes == 0:
		out.Verdict = Clean
		out.because("they have no size, so they use no device memory")
	case out.negligible():
		out.Verdict = Bounded
		out.because("at this rate it takes less than %.2g %% of the device in %d steps", 100*DefaultOptions().MinShare, DefaultOptions().Horizon)
	case a.Unit != "step":
		out.Verdict = Inconclusive
		out.because("steps are unknown, and the layers of one forward pass look the same; take a second snapshot to decide")
	case s.Mark.StepCounted:
		out.because("only steps of the recording are known; earlier allocations are unknown")
	case s.Mark.Epoch == 0:
		out.because("all growth is in the first epoch: memory that is released at an epoch's end looks the same")
	case s.Mark.Epoch == snapshot.NoStep:
		out.because("epochs are unknown: memory that is released at an epoch's end looks the same")
	case out.Distinct < manySteps:
		out.because("%d allocations are few; record more steps to be sure", out.Distinct)
	default:
		out.Evidence = Strong
		out.because("a buffer below its bound looks the same; take a later snapshot to decide")
	}
}

func (o *SiteAges) call(p Pattern, v Verdict, format string, args ...any) {
	o.Pattern, o.Verdict = p, v
	o.because(format, args...)
}

func (o *SiteAges) because(format string, args ...any) {
	o.Reasons = append(o.Reasons, fmt.Sprintf(format, args...))
}

// word is one unit of the births.
func (a *Ages) word() string {
	if a.Unit == "time" {
		return "instant"
	}
	return a.Unit
}

func (a *Ages) whole() string {
	if a.Unit == "time" {
		return "the time recorded"
	}
	return fmt.Sprintf("the %d %ss", a.To-a.From, a.Unit)
}
