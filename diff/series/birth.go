package series

import (
	"fmt"
	"maps"
	"slices"

	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// Births are the birth steps, or else the birth times, of those blocks of a site that the base snapshot lacks.
type Births struct {
	Steps, Times []int64
	Weights      []int64 // Blocks for which each of the steps stands; nil if each stands for one
	Unknown      int
	Latest       int64 // the latest birth time, also of blocks with a step; 0 for none
}

func (b *Births) add(blocks *snapshot.Blocks, row int32) {
	if blocks.BirthTime != nil {
		b.Latest = max(b.Latest, blocks.BirthTime[row])
	}
	switch {
	case blocks.BirthStep != nil && blocks.BirthStep[row] != snapshot.NoStep:
		b.Steps = append(b.Steps, blocks.BirthStep[row])
		if blocks.Count != nil {
			b.Weights = append(b.Weights, blocks.Count[row])
		}
	case blocks.BirthTime != nil && blocks.BirthTime[row] > 0:
		b.Times = append(b.Times, blocks.BirthTime[row])
	default:
		b.Unknown++
	}
}

// Add adds births that were all seen, one by one, to others of this kind.
func (b *Births) Add(c *Births) {
	b.Steps, b.Times = append(b.Steps, c.Steps...), append(b.Times, c.Times...)
	b.Unknown, b.Latest = b.Unknown+c.Unknown, max(b.Latest, c.Latest)
}

// byStep returns the distinct birth steps, ascending, and for each the number of blocks born in it or before.
func (b *Births) byStep() (steps []int64, until []int64) {
	count := make(map[int64]int64, len(b.Steps))
	for i, step := range b.Steps {
		n := int64(1)
		if b.Weights != nil {
			n = b.Weights[i]
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

// Sampled reports whether the recorder saw only some of the blocks, each of which stands for several.
func (b *Births) Sampled() bool {
	return slices.ContainsFunc(b.Weights, func(n int64) bool { return n > 1 })
}

// MayBeUnseen reports whether the recorder may have missed later births by chance. There must be births in at least
// four recorded steps, and in both halves of the run. If births had continued at the rate of the first half, the
// chance to see so few of them in the second half is above Doubtful.
func (b *Births) MayBeUnseen(x []float64) bool {
	if !b.Sampled() || len(x) == 0 {
		return false
	}
	half := int64(x[0]+x[len(x)-1]) / 2
	weight := make(map[int64]int64, len(b.Steps))
	for i, step := range b.Steps {
		weight[step] = max(weight[step], b.Weights[i])
	}
	early, late := 0.0, 0
	for step, w := range weight {
		if step < half {
			early += float64(w)
		} else {
			late++
		}
	}
	return len(weight) >= SteadySteps && early > 0 && late > 0 && trend.PoissonTail(early/float64(slices.Max(b.Weights)), late) > Doubtful
}

// Spread describes when a site's new blocks were allocated between two snapshots.
type Spread struct {
	Blocks   int64   // blocks whose birth is known
	Distinct int     // Steps (or instants) in which a block was born
	gap      float64 // longest stretch without a birth, as a share of the time between the snapshots
	width    float64 // from the first birth to the last, as a share of that time
	length   float64 // of that time, in steps or microseconds
	inSteps  bool
	Recent   bool // the first birth lies in the second half
}

// Moment is a step, or NoStep, and the time at which it was observed, in Unix microseconds, or 0.
type Moment struct{ step, time int64 }

// Nowhen is the unknown moment.
var Nowhen = Moment{step: snapshot.NoStep}

// Spread describes the births after a moment or, if that is Nowhen, after the earlier snapshot. It is unknown if most
// blocks have no recorded birth or no time passed between the snapshots.
func (b *Births) Spread(from, to *snapshot.Snapshot, since Moment) (Spread, bool) {
	values, inSteps := b.Steps, true
	low, high := from.Mark.Step, to.Mark.Step
	switch {
	case len(b.Times) > len(b.Steps) && from.History.Process != to.History.Process:
		return Spread{}, false // the times of two processes cannot be compared
	case len(b.Times) > len(b.Steps):
		values, inSteps = b.Times, false
		low, high = LastInstant(from), LastInstant(to)
		if low == 0 && !to.History.First.IsZero() {
			low = to.History.First.UnixMicro()
		}
		if since.time > 0 {
			low = since.time
			values = after(values, low)
		}
	case low == snapshot.NoStep || high == snapshot.NoStep:
		return Spread{}, false
	case since.step != snapshot.NoStep:
		low = since.step
		values = after(values, low)
	}
	if len(values) == 0 || len(values) < b.Unknown || high <= low {
		return Spread{}, false
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	events := make([]float64, len(sorted))
	for i, v := range sorted {
		events[i] = float64(v)
	}
	s := Spread{Blocks: int64(len(values)), Distinct: len(events), inSteps: inSteps, length: float64(high - low)}
	s.gap = trend.LargestGap(events, float64(low), float64(high))
	s.width = (events[len(events)-1] - events[0]) / s.length
	s.Recent = events[0] > (float64(low)+float64(high))/2
	return s, true
}

// after returns the values that are not below least.
func after(values []int64, least int64) []int64 {
	return slices.DeleteFunc(slices.Clone(values), func(v int64) bool { return v < least })
}

// LastInstant is when the snapshot was taken, in Unix microseconds; 0 if its file does not record it.
func LastInstant(s *snapshot.Snapshot) int64 {
	switch {
	case !s.History.Last.IsZero():
		return s.History.Last.UnixMicro()
	case !s.Mark.Time.IsZero():
		return s.Mark.Time.UnixMicro()
	}
	return 0
}

// Steady reports the pattern of a leak: births in at least four distinct steps, and no stretch longer than LongestGap
// of the whole without one. State that is allocated at the first step, or a window of the last few steps, never does
// that.
func (s Spread) Steady() bool { return s.Distinct >= SteadySteps && s.gap <= LongestGap }

// AtOnce reports the pattern of state that is allocated once, and of a window of recent steps: all births within a
// quarter of the time. A run of a few steps is too short for that.
func (s Spread) AtOnce() bool { return s.width <= AtOnce && (!s.inSteps || s.length >= quarters) }

func (s Spread) String() string {
	switch {
	case s.Distinct == 1 && s.inSteps:
		return "its new blocks were allocated in one step"
	case s.Distinct == 1:
		return "its new blocks were allocated at one time"
	}
	unit := "instants"
	if s.inSteps {
		unit = "steps"
	}
	return fmt.Sprintf("its new blocks were allocated in %d distinct %s; the longest gap is %.0f %% of the time that was judged", s.Distinct, unit, 100*s.gap)
}

// Distinct returns the steps in order, each once.
func Distinct(steps []int64) []int64 {
	return slices.Compact(slices.Sorted(slices.Values(steps)))
}

// BirthsKnown reports whether births are known for at least half of the row's new blocks.
func (r *Row) BirthsKnown() bool {
	known := len(r.Births.Steps) + len(r.Births.Times)
	return known > 0 && known >= r.Births.Unknown
}
