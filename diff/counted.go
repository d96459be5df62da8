package diff

import (
	"math"

	"github.com/memdiag/memdiag/diff/cause"
)

// fits is how far a site's blocks may be from the events, in blocks per event, at all marks but a share exceptions.
// closer is the largest squared distance from the events, as a share of that from even growth by steps.
const (
	fits   = 0.3
	closer = 0.25
)

// counted returns what a site's growth follows according to the events that snapshots count: its blocks follow the
// number of epochs, evaluations or checkpoints so far, and not the steps. If several fit equally, epochs come first.
func (r *Result) counted(row *Row) follows {
	if r.Series == nil {
		return follows{} // there is none for two snapshots
	}
	site := r.Series.Site(row)
	if site == nil || r.Series.Axis.Unit != Step {
		return follows{}
	}
	events := make(map[int64]map[string]int64) // by step
	for _, s := range r.run.Snapshots {
		if s.Events != nil {
			events[s.Mark.Step] = s.Events
		}
	}
	from, last := r.Series.WarmUp(), len(r.Series.Marks)-1
	before, ok := events[r.Series.Marks[0].Step]
	if !ok || last-from+1 < leastCounted {
		return follows{}
	}
	best, least := follows{}, math.Inf(1)
	for _, c := range []struct {
		driver cause.Driver
		is     func(name string) bool
	}{
		{cause.Epochs, func(name string) bool { return name == "epoch" }},
		{cause.Evaluations, evaluates},
		{cause.Checkpoints, saves},
	} {
		var steps, blocks, counts []float64
		for i := from; i <= last; i++ {
			known, ok := events[r.Series.Marks[i].Step]
			if !ok {
				return follows{}
			}
			steps = append(steps, r.Series.Axis.X[i])
			blocks = append(blocks, float64(site.Blocks[i]))
			counts = append(counts, total(known, c.is))
		}
		end := len(steps) - 1
		times, length := counts[end]-counts[0], steps[end]-steps[0]
		each := (blocks[end] - blocks[0]) / times
		if times < 3 || times > atMost*length || each < 1-fits {
			continue
		}
		far, squares, even := 0, 0., 0.
		for i := range steps {
			off := (blocks[i]-blocks[0])/each - (counts[i] - counts[0])
			line := (blocks[i]-blocks[0])/each - times*(steps[i]-steps[0])/length
			squares, even = squares+off*off, even+line*line
			if math.Abs(off) > fits {
				far++
			}
		}
		if float64(far) > exceptions*float64(len(steps)) || squares >= closer*even || squares >= least {
			continue
		}
		least = squares
		// Growth during warm-up is included.
		best = follows{driver: c.driver, every: int64(math.Round(length / times)), times: int64(counts[end] - total(before, c.is))}
	}
	return best
}

// total is the number of events with such a name.
func total(events map[string]int64, is func(name string) bool) float64 {
	n := int64(0)
	for name, times := range events {
		if is(name) {
			n += times
		}
	}
	return float64(n)
}

// leastCounted is how many marks after warm-up are needed to distinguish events from steps.
const leastCounted = 6
