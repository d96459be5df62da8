package diff

import (
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// Bounds of telling what growth follows.
const (
	// exceptions is the share of events that need not coincide with what growth is
	// said to follow; of five or more, one is let pass, since the end of a run may be
	// that of an epoch and nothing tells.
	exceptions = 0.1
	// atMost is the share of all steps that may coincide with it by themselves.
	atMost = 0.5
	// irregular is the least spread of the gaps between events, as a share of their
	// mean, that no rule makes; a coin thrown in each step has sqrt(1-p), which is
	// more for all that comes less often than every other step.
	irregular = 0.5
	// gapped is how many gaps a spread is told from.
	gapped = 5
)

// event is a point of a run at which a site gains blocks that stay to the end.
type event struct {
	mark snapshot.Mark
	// phase is the one that the point is of, or stands right behind of; "" for
	// training behind training.
	phase string
	epoch bool // the last step of an epoch, or the first of the next
}

// driver tells what a site's growth follows, and by how many steps its events are
// apart (their median; 0 for one or none). It is "" where the run does not tell:
// that needs counters, or births, of three events.
func (r *Result) driver(row *Row) (d cause.Driver, every int64) {
	events, all := r.events(row)
	if events == nil {
		events = birthEvents(row)
	}
	if len(events) < 3 {
		return "", 0
	}
	gaps := make([]float64, 0, len(events))
	for i := 1; i < len(events); i++ {
		gaps = append(gaps, float64(events[i].mark.Step-events[i-1].mark.Step))
	}
	sorted := slices.Clone(gaps)
	slices.Sort(sorted)
	every = int64(sorted[len(sorted)/2])
	// Of several that all events coincide with, growth follows the rarest.
	rarest := atMost
	for _, c := range []struct {
		driver cause.Driver
		is     func(event) bool
	}{
		{cause.Checkpoints, func(e event) bool { return saves(e.phase) }},
		{cause.Evaluations, func(e event) bool { return evaluates(e.phase) }},
		{cause.Epochs, func(e event) bool { return e.epoch }},
	} {
		if chance := share(all, c.is); chance <= rarest && followed(events, c.is) {
			d, rarest = c.driver, chance
		}
	}
	if d != "" {
		return d, every
	}
	mean, deviation := meanAndDeviation(gaps)
	if len(gaps) >= gapped && mean >= 2 && deviation > irregular*mean {
		return cause.Irregular, every
	}
	return cause.Steps, every
}

func followed(events []event, is func(event) bool) bool {
	n := float64(len(events))
	missed := (1 - share(events, is)) * n
	return missed <= exceptions*n || n >= 5 && missed < 1.5
}

// share is the part of the events that are so; 0 of none.
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

// events are the points of the run's counters at which the site gains blocks, or
// bytes where its blocks are replaced, that are never lost again; and all points,
// as events would be there. Both are nil for a run without counters.
func (r *Result) events(row *Row) (events, all []event) {
	c := r.run.Series
	if c == nil || len(c.Points) < 3 {
		return nil, nil
	}
	site := slices.IndexFunc(c.Sites, func(s snapshot.SeriesSite) bool {
		d := c.Devices[s.Device]
		return siteKey{d.Kind, d.Index, c.Stacks.Hash(s.Stack)} == row.key
	})
	if site < 0 {
		return nil, nil
	}
	held := make([]int64, len(c.Points))
	for i := range c.Points {
		at := c.Points[i].Sites
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
	for i, e := range places(c.Points) {
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

// places says of each point where in the training it stands.
func places(points []snapshot.Point) []event {
	out := make([]event, len(points))
	training := points[0].Mark.Phase
	last := -1 // training step seen
	for i := range points {
		m := points[i].Mark
		out[i].mark = m
		if m.Phase != training {
			out[i].phase = m.Phase
			continue
		}
		if i > 0 && points[i-1].Mark.Phase != training {
			out[i].phase = points[i-1].Mark.Phase
		}
		// The mark before the first step belongs to no epoch.
		if last > 0 && points[last].Mark.Epoch != m.Epoch {
			out[last].epoch, out[i].epoch = true, true
		}
		last = i
	}
	return out
}

// birthEvents are the steps at which the site's new blocks were born.
func birthEvents(row *Row) []event {
	steps := slices.Clone(row.births.steps)
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
