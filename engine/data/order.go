package data

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Order says in which order an epoch goes through a data set.
type Order uint8

// The orders. Bucketed is a shuffle in which examples of like length share a
// batch, so that little is padding: within each Window of batches, examples are
// sorted by length, and then the batches are shuffled. Sorted goes through the
// epoch from short to long, which makes memory rise within each epoch.
const (
	InOrder Order = iota
	Shuffled
	Bucketed
	Sorted
)

// Options say how a Loader makes batches. The batches depend on the first five
// and on Start only: neither on Workers nor on timing.
type Options struct {
	Batch  int // examples a batch; at least 1
	Order  Order
	Seed   uint64 // of the shuffles; each epoch has its own
	Window int    // batches that Bucketed sorts together; 0 for 16
	// Partial keeps the last batch of an epoch where fewer examples are left than a
	// batch has; else they sit the epoch out.
	Partial bool
	// Start is how many batches to pass over: those that an earlier run has had.
	Start int64

	Workers int // goroutines that make batches; 0 for 1
	Queue   int // batches that may be made or in the making before they are asked for; 0 for two a worker
	// Prefetch is how many batches may wait on the device. The queue there grows by
	// one a step until it is that long.
	Prefetch int
}

const defaultWindow = 16

// most bounds Workers, Queue and Prefetch: beyond it is a mistake, which would
// show as a process without memory.
const most = 1 << 16

// planned is a batch that is still to be made.
type planned struct {
	examples []int
	epoch    int64
	last     bool
}

// plan knows the batches of every epoch.
type plan struct {
	options Options
	lengths []int // nil where the order needs none
	n       int
}

func newPlan(set Dataset, o Options) (*plan, error) {
	p := &plan{options: o, n: set.Len()}
	switch {
	case p.n < 1:
		return nil, fmt.Errorf("a data set of %d examples; at least 1 is needed", p.n)
	case o.Batch < 1:
		return nil, fmt.Errorf("batches of %d examples; at least 1 is needed", o.Batch)
	case p.batches() == 0:
		return nil, fmt.Errorf("a data set of %d examples does not fill a batch of %d; Partial would take what there is", p.n, o.Batch)
	case o.Start < 0 || o.Workers < 0 || o.Queue < 0 || o.Prefetch < 0 || o.Window < 0:
		return nil, fmt.Errorf("below 0: one of Start %d, Window %d, Workers %d, Queue %d, Prefetch %d", o.Start, o.Window, o.Workers, o.Queue, o.Prefetch)
	case o.Workers > most || o.Queue > most || o.Prefetch > most:
		return nil, fmt.Errorf("%d workers, a queue of %d and a prefetch of %d; each is at most %d", o.Workers, o.Queue, o.Prefetch, most)
	case o.Order > Sorted:
		return nil, fmt.Errorf("there is no order %d", o.Order)
	}
	if o.Order == Bucketed || o.Order == Sorted {
		s, ok := set.(Sequences)
		if !ok {
			return nil, fmt.Errorf("batches by length need a data set that tells lengths, as Sequences does")
		}
		p.lengths = make([]int, p.n)
		for i := range p.lengths {
			p.lengths[i] = s.Length(i)
		}
	}
	return p, nil
}

// batches counts those of an epoch.
func (p *plan) batches() int {
	full := p.n / p.options.Batch
	if p.options.Partial && p.n%p.options.Batch != 0 {
		return full + 1
	}
	return full
}

// epoch lists the batches of one epoch in order.
func (p *plan) epoch(epoch int64) []planned {
	rng := rand.New(rand.NewPCG(p.options.Seed, uint64(epoch)))
	order := make([]int, p.n)
	for i := range order {
		order[i] = i
	}
	if p.options.Order == Shuffled || p.options.Order == Bucketed {
		rng.Shuffle(p.n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	switch p.options.Order {
	case Sorted:
		p.byLength(order)
	case Bucketed:
		// No more than there is: the product could wrap else.
		batches := min(cmp.Or(p.options.Window, defaultWindow), p.n/p.options.Batch+1)
		for window := range slices.Chunk(order, batches*min(p.options.Batch, p.n)) {
			p.byLength(window)
		}
	}
	var batches []planned
	for examples := range slices.Chunk(order, p.options.Batch) {
		batches = append(batches, planned{examples: examples, epoch: epoch})
	}
	batches = batches[:p.batches()] // without a last one that is not full
	if p.options.Order == Bucketed {
		// Short and long batches mix over the whole epoch.
		rng.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
	}
	batches[len(batches)-1].last = true
	return batches
}

func (p *plan) byLength(examples []int) {
	slices.SortStableFunc(examples, func(a, b int) int { return cmp.Compare(p.lengths[a], p.lengths[b]) })
}

// from yields all batches to come, the first Start of them left out, until yield
// says no.
func (p *plan) from(yield func(planned) bool) {
	each := int64(p.batches())
	skip := p.options.Start % each
	for epoch := p.options.Start / each; ; epoch++ {
		for _, b := range p.epoch(epoch)[skip:] {
			if !yield(b) {
				return
			}
		}
		skip = 0
	}
}
