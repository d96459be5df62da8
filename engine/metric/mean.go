package metric

import "github.com/memdiag/memdiag/engine"

// Mean averages numbers, such as losses, over batches. Every element counts the
// same, whichever batch it came in.
type Mean struct {
	sum   sum
	count int64
}

// NewMean returns an empty mean; it takes no device memory before Update.
func NewMean(o engine.Ops) *Mean { return &Mean{sum: sum{ops: o.Valid()}} }

// Update takes the elements of a tensor of any shape up, which stays the
// caller's. One update's sum is a float32; what the updates make together is kept
// to about 48 bits.
func (m *Mean) Update(values *engine.Tensor) {
	scope := m.sum.ops.Begin()
	defer scope.End()
	m.sum.add(m.sum.ops.Sum(values))
	m.count += int64(values.Shape().Elements())
}

// Compute waits for the device and returns the mean; NaN of no elements.
func (m *Mean) Compute() float64 { return m.sum.value() / float64(m.count) }

// Reset forgets everything and gives the state back.
func (m *Mean) Reset() {
	m.sum.reset()
	m.count = 0
}

// Clone is a mean of the same elements with state of its own.
func (m *Mean) Clone() *Mean { return &Mean{sum: m.sum.clone(), count: m.count} }

// Merge takes up what another mean was given, such as another rank's, whose
// device may be another; it waits for that one. Neither may be in use elsewhere.
// Where the device is too full, nothing is taken up.
func (m *Mean) Merge(other *Mean) {
	m.sum.merge(&other.sum)
	m.count += other.count
}
