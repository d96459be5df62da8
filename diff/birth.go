package diff

import (
	"fmt"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// births are the birth steps, or else times, of a site's blocks that the base
// snapshot lacks.
type births struct {
	steps, times []int64
	weights      []int64 // blocks of each of the steps; nil where each is one
	unknown      int
	latest       int64 // the last of all times, also of those with a step; 0 for none
}

func (b *births) add(blocks *snapshot.Blocks, row int32) {
	if blocks.BirthTime != nil {
		b.latest = max(b.latest, blocks.BirthTime[row])
	}
	switch {
	case blocks.BirthStep != nil && blocks.BirthStep[row] != snapshot.NoStep:
		b.steps = append(b.steps, blocks.BirthStep[row])
		if blocks.Count != nil {
			b.weights = append(b.weights, blocks.Count[row])
		}
	case blocks.BirthTime != nil && blocks.BirthTime[row] > 0:
		b.times = append(b.times, blocks.BirthTime[row])
	default:
		b.unknown++
	}
}

// byStep are the distinct birth steps, ascending, with how many blocks were born up to
// and in each.
func (b *births) byStep() (steps []int64, until []int64) {
	count := make(map[int64]int64, len(b.steps))
	for i, step := range b.steps {
		n := int64(1)
		if b.weights != nil {
			n = b.weights[i]
		}
		count[step] += n
	}
	total := int64(0)
	for _, step := range slices.Sorted(maps.Keys(count)) {
		total += count[step]
		steps, until = append(steps, step), append(until, total)
	}
	return steps, until
}

// sampled reports whether some of the blocks were seen, each of which stands for several.
func (b *births) sampled() bool {
	return slices.ContainsFunc(b.weights, func(n int64) bool { return n > 1 })
}

// mayBeUnseen holds for births in four or more of the recorded steps, in both halves of the
// run, of which the recorder may have missed the later ones by chance: had they gone on
// at the rate of the first half, it would have seen as few of them too often.
func (b *births) mayBeUnseen(x []float64) bool {
	if !b.sampled() || len(x) == 0 {
		return false
	}
	half := int64(x[0]+x[len(x)-1]) / 2
	weight := make(map[int64]int64, len(b.steps))
	for i, step := range b.steps {
		weight[step] = max(weight[step], b.weights[i])
	}
	early, late := 0.0, 0
	for step, w := range weight {
		if step < half {
			early += float64(w)
		} else {
			late++
		}
	}
	return len(weight) >= steadySteps && early > 0 && late > 0 && trend.PoissonTail(early/float64(slices.Max(b.weights)), late) > doubtful
}

// spread says how a site's new blocks came into being between two snapshots.
type spread struct {
	blocks   int64   // whose birth is known
	distinct int     // steps (or instants) in which a block was born
	gap      float64 // longest stretch without a birth, as a share of the whole
	width    float64 // from the first birth to the last, as a share of the whole
	length   float64 // of the whole, in steps or microseconds
	inSteps  bool
	recent   bool // the first birth lies in the second half
}

// moment is a step, or NoStep, and the time at which it was seen, in Unix microseconds,
// or 0.
type moment struct{ step, time int64 }

// nowhen is the moment that tells nothing.
var nowhen = moment{step: snapshot.NoStep}

// spread is of the births after a moment, or after the earlier snapshot where that
// tells nothing. It is not known where most blocks have no birth or the stretch has no
// length.
func (b *births) spread(from, to *snapshot.Snapshot, since moment) (spread, bool) {
	values, inSteps := b.steps, true
	low, high := from.Mark.Step, to.Mark.Step
	switch {
	case len(b.times) > len(b.steps) && from.History.Process != to.History.Process:
		return spread{}, false // one has no time before the other's
	case len(b.times) > len(b.steps):
		values, inSteps = b.times, false
		low, high = lastInstant(from), lastInstant(to)
		if low == 0 && !to.History.First.IsZero() {
			low = to.History.First.UnixMicro()
		}
		if since.time > 0 {
			low = since.time
			values = after(values, low)
		}
	case low == snapshot.NoStep || high == snapshot.NoStep:
		return spread{}, false
	case since.step != snapshot.NoStep:
		low = since.step
		values = after(values, low)
	}
	if len(values) == 0 || len(values) < b.unknown || high <= low {
		return spread{}, false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	events := make([]float64, len(sorted))
	for i, v := range sorted {
		events[i] = float64(v)
	}
	s := spread{blocks: int64(len(values)), distinct: len(events), inSteps: inSteps, length: float64(high - low)}
	s.gap = trend.LargestGap(events, float64(low), float64(high))
	s.width = (events[len(events)-1] - events[0]) / s.length
	s.recent = events[0] > (float64(low)+float64(high))/2
	return s, true
}

// after are the values from a least one on.
func after(values []int64, least int64) []int64 {
	return slices.DeleteFunc(slices.Clone(values), func(v int64) bool { return v < least })
}

// lastInstant is when the snapshot was taken, in Unix microseconds, as far as
// its file tells; 0 where it does not.
func lastInstant(s *snapshot.Snapshot) int64 {
	switch {
	case !s.History.Last.IsZero():
		return s.History.Last.UnixMicro()
	case !s.Mark.Time.IsZero():
		return s.Mark.Time.UnixMicro()
	}
	return 0
}

// steady is the pattern of a leak: births in at least four distinct steps, and
// no stretch longer than longestGap of the whole without one. State made at the first step, or a window
// of the last few steps, never does.
func (s spread) steady() bool { return s.distinct >= steadySteps && s.gap <= longestGap }

// atOnce is the pattern of state that is made once, and of a window of recent
// steps: all births within a quarter of the stretch. A stretch of a few steps is
// too short to have quarters.
func (s spread) atOnce() bool { return s.width <= atOnce && (!s.inSteps || s.length >= quarters) }

func (s spread) String() string {
	switch {
	case s.distinct == 1 && s.inSteps:
		return "its new blocks were born in one step"
	case s.distinct == 1:
		return "its new blocks were born in one instant"
	}
	unit := "instants"
	if s.inSteps {
		unit = "steps"
	}
	return fmt.Sprintf("its new blocks were born in %d distinct %s; the longest gap is %.0f %% of the time", s.distinct, unit, 100*s.gap)
}

func distinct(steps []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(steps)))
}

// BirthsKnown reports whether it is known of most of the row's new blocks when they were allocated.
func (r *Row) BirthsKnown() bool {
	known := len(r.births.steps) + len(r.births.times)
	return known > 0 && known >= r.births.unknown
}
