package workload

import (
	"hash/fnv"
	"math/rand/v2"
)

// draws are the random choices of one workload: each has a name, and depends on
// that, on the workload and on the seed only. So the truth and the program draw the
// same, in any order.
type draws struct {
	id   string
	seed int64
}

// stream is a source of its own for what is drawn again and again.
func (d draws) stream(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(d.id + "/" + name))
	return rand.New(rand.NewPCG(uint64(d.seed), h.Sum64()))
}

// between draws from [low, high].
func (d draws) between(name string, low, high int) int {
	return low + d.stream(name).IntN(high-low+1)
}

// everyOf draws one of the values for how many events pass for one that adds.
func (d draws) everyOf(values ...int64) int64 {
	return values[d.stream("every").IntN(len(values))]
}

// share draws from [low, high).
func (d draws) share(name string, low, high float64) float64 {
	return low + (high-low)*d.stream(name).Float64()
}

// optimizer draws which one trains: 0 for momentum, which keeps one copy of the
// parameters, or 1 for Adam, which keeps two.
func (d draws) optimizer() int { return d.between("optimizer", 0, 1) }

// rhythm is when something happens again and again: in a first step, and every so
// many steps after it.
type rhythm struct{ every, first int64 }

// rhythm draws one: mostly every few steps, and up to every 20.
func (d draws) rhythm() rhythm {
	every := d.everyOf(1, 1, 2, 3, 5, 10, 20)
	return rhythm{every, every + int64(d.between("first", 0, 20))}
}

// due says whether it happens in a step.
func (r rhythm) due(step int64) bool { return step >= r.first && (step-r.first)%r.every == 0 }

// runFor is how many steps show it so many times; not below 120.
func (r rhythm) runFor(times int64) int64 { return max(120, r.first+times*r.every) }

// sizes are the extents of a training.
type sizes struct {
	rows, features, hidden, layers, classes int
	// noise is how much smaller or larger than rows a batch may be, as a share.
	noise float64
	// epoch and evalEvery are in steps, evalSteps in batches.
	epoch, evalEvery, evalSteps int
}

// sizes draws them.
func (d draws) sizes() sizes {
	return sizes{
		rows: d.between("rows", 16, 48), features: d.between("features", 12, 40),
		hidden: d.between("hidden", 16, 48), layers: d.between("layers", 1, 3), classes: d.between("classes", 3, 8),
		noise: d.share("noise", 0, 0.3),
		epoch: d.between("epoch", 9, 31), evalEvery: d.between("eval every", 7, 25), evalSteps: d.between("eval steps", 2, 5),
	}
}

// maxRows is the most rows that a batch has.
func (s sizes) maxRows() int { return s.rows + int(s.noise*float64(s.rows)) }

// runFor is how many steps show at least so many events, if each takes so
// many steps; not below 120.
func runFor(times, steps int64) int64 { return max(120, times*steps) }

// parameters counts those of a classifier, and their elements.
func (s sizes) parameters() (tensors, elements int) {
	in := s.features
	for range s.layers {
		elements += in*s.hidden + s.hidden
		in = s.hidden
	}
	return 2 * (s.layers + 1), elements + in*s.classes + s.classes
}
