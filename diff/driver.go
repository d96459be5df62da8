package diff

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// event is a point of a run at which a site gains blocks that stay until the end.
type event struct {
	mark snapshot.Mark
	// phase is the phase of the point or, for a training point, the phase right before it; "" after training.
	phase  string
	inside bool // the point is in the phase
	epoch  bool // the last step of an epoch, or the first of the next
	// turn counts the phases that have begun by then, each of which may have several points. epochs counts those that
	// have ended.
	turn, epochs int
}

// follows describes what a site's growth follows.
type follows struct {
	driver cause.Driver // "" if unknown
	every  int64        // median number of steps between two times
	times  int64        // how often it grew
	pauses bool         // it stops at times, and then continues at this pace
}

// driver returns what a site's growth follows. That needs counters or births with at least three events, or snapshots
// that count events.
func (r *Result) driver(row *Row) follows {
	events, all := r.events(row)
	if events == nil {
		if f := r.counted(row); f.driver != "" {
			return f
		}
		if row.Births.Sampled() {
			return everyStep(&row.Births)
		}
		events = birthEvents(row)
	}
	if len(events) < 3 {
		return follows{}
	}
	var d cause.Driver
	var turn func(event) int
	// If all events coincide with several phases, growth follows the one within which it happens, or else the rarest.
	rarest := atMost
	for _, c := range []struct {
		driver cause.Driver
		is     func(event) bool
		turn   func(event) int
	}{
		{cause.Checkpoints, func(e event) bool { return saves(e.phase) }, func(e event) int { return e.turn }},
		{cause.Evaluations, func(e event) bool { return evaluates(e.phase) }, func(e event) int { return e.turn }},
		{cause.Epochs, func(e event) bool { return e.epoch }, func(e event) int { return e.epochs }},
	} {
		chance := share(all, c.is)
		if chance > atMost || !followed(events, c.is) {
			continue
		}
		if within := share(events, func(e event) bool { return c.is(e) && e.inside }) >= 1-exceptions; within || chance <= rarest {
			d, turn, rarest = c.driver, c.turn, chance
			if within {
				break
			}
		}
	}
	if d != "" {
		events = slices.CompactFunc(events, func(a, b event) bool { return turn(a) == turn(b) })
	}
	gaps := make([]float64, 0, len(events))
	for i := 1; i < len(events); i++ {
		gaps = append(gaps, float64(events[i].mark.Step-events[i-1].mark.Step))
	}
	f := follows{driver: d, every: 1, times: int64(len(events))}
	if len(gaps) > 0 {
		sorted := slices.Clone(gaps)
		slices.Sort(sorted)
		f.every = int64(sorted[len(sorted)/2])
	}
	if d != "" {
		return f
	}
	f.driver = cause.Steps
	mean, deviation := meanAndDeviation(gaps)
	switch late := gaps[len(gaps)/2:]; {
	case len(gaps) < gapped:
	case len(late) >= gapped && slices.Min(late) == slices.Max(late):
		f.every = int64(late[0]) // its pace became constant after a different start
	case mean >= 2 && deviation > irregular*mean:
		f.driver = cause.Irregular
	case mean > pauses*float64(f.every):
		f.pauses = true
	}
	return f
}

func followed(events []event, is func(event) bool) bool {
	n := float64(len(events))
	missed := (1 - share(events, is)) * n
	return missed <= exceptions*n || n >= 5 && missed < 1.5
}

// share is the share of events for which is holds; 0 for no events.
func share(of []event, is func(event) bool) float64 {
	n := 0
	for _, e := range of {
		if is(e) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(of)))
}

func evaluates(phase string) bool {
	return strings.HasPrefix(phase, "eval") || strings.HasPrefix(phase, "valid") || strings.HasPrefix(phase, "test")
}

func saves(phase string) bool {
	return strings.HasPrefix(phase, "checkpoint") || strings.HasPrefix(phase, "save") || strings.HasPrefix(phase, "saving")
}

// events returns the points of the run's counters at which the site gains blocks that are never freed, or bytes if
// its blocks are replaced; and all points in the same form. Both are nil for a run without counters.
func (r *Result) events(row *Row) (events, all []event) {
	c := r.run.Series
	if c == nil || len(c.Points) < 3 {
		return nil, nil
	}
	site := slices.IndexFunc(c.Sites, func(s snapshot.SeriesSite) bool {
		d := c.Devices[s.Device]
		return series.SiteKey{Device: series.DeviceOf(d), Hash: c.Stacks.Hash(s.Stack)} == row.Key
	})
	if site < 0 {
		return nil, nil
	}
	points := c.Points
	if r.Last != nil {
		// Growth after the last snapshot does not count.
		until := func(p snapshot.Point) bool {
			return p.Mark.Step == r.Last.Mark.Step && p.Mark.Phase == r.Last.Mark.Phase
		}
		if i := slices.IndexFunc(points, until); i >= 0 {
			points = points[:i+1]
		}
	}
	held := make([]int64, len(points))
	for i := range points {
		at := points[i].Sites
		k := sort.Search(len(at), func(k int) bool { return at[k].Site >= int32(site) })
		if k < len(at) && at[k].Site == int32(site) {
			held[i] = at[k].Count
			if row.Growth().Blocks <= 0 {
				held[i] = int64(at[k].Bytes)
			}
		}
	}
	for i := len(held) - 2; i >= 0; i-- {
		held[i] = min(held[i], held[i+1])
	}
	for i, e := range places(points) {
		if i == 0 {
			continue
		}
		all = append(all, e)
		if held[i] > held[i-1] {
			events = append(events, e)
		}
	}
	return events, all
}

// places returns, for each point, where in the training it lies.
func places(points []snapshot.Point) []event {
	out := make([]event, len(points))
	training := points[0].Mark.Phase
	last := -1 // index of the last training point
	turn, epochs := 0, 0
	steps, full := 0, 0 // steps of this epoch, and of the one before
	for i := range points {
		m := points[i].Mark
		out[i].mark = m
		if m.Phase != training {
			if points[i-1].Mark.Phase != m.Phase {
				turn++
			}
			out[i].phase, out[i].inside, out[i].turn, out[i].epochs = m.Phase, true, turn, epochs
			continue
		}
		if i > 0 && points[i-1].Mark.Phase != training {
			out[i].phase = points[i-1].Mark.Phase
		}
		// The mark before the first step belongs to no epoch.
		if last > 0 && points[last].Mark.Epoch != m.Epoch {
			epochs++
			out[last].epoch, out[i].epoch = true, true
			out[last].epochs = epochs
			steps, full = 0, steps
		}
		steps++
		out[i].turn, out[i].epochs = turn, epochs
		last = i
	}
	// The run ends where this epoch does, if that has as many steps as the one before.
	if last > 0 && steps == full {
		out[last].epoch, out[last].epochs = true, epochs+1
	}
	return out
}

// birthEvents returns the steps in which the site's new blocks were born.
func birthEvents(row *Row) []event {
	steps := slices.Clone(row.Births.Steps)
	slices.Sort(steps)
	var events []event
	for _, s := range slices.Compact(steps) {
		events = append(events, event{mark: snapshot.Mark{Step: s}})
	}
	return events
}

func meanAndDeviation(v []float64) (mean, deviation float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		deviation += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, math.Sqrt(deviation)
}

// everyStep is what growth follows if only some steps were recorded: each step, if the steps with a birth stand for
// nearly all steps; else it is unknown.
func everyStep(b *series.Births) follows {
	weight := make(map[int64]int64, len(b.Steps))
	for i, step := range b.Steps {
		weight[step] = max(weight[step], b.Weights[i])
	}
	stand := int64(0)
	for _, w := range weight {
		stand += w
	}
	length := 1 + slices.Max(b.Steps) - slices.Min(b.Steps)
	if len(weight) < 3 || float64(stand) < standFor*float64(length) {
		return follows{}
	}
	return follows{driver: cause.Steps, every: 1, times: length}
}
