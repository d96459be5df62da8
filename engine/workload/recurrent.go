package workload

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// recurrentNets are programs that carry a state from one window of a sequence to
// the next.
func recurrentNets() []Workload {
	return []Workload{{
		ID: "L02", Alias: "hidden-state", Title: "the memory carried between windows keeps the graph of all before",
		Label: Leak, Families: []Family{LongSequences}, Cause: "graph-retained",
		Truth: func(seed int64) Truth {
			s := recurrentSizesOf(draws{"L02", seed})
			return Truth{Steps: 120, Growth: []Growth{{
				Marker: "L02", Event: PerStep, Every: 1, First: s.first,
				// The window's mean, and the new memory.
				Blocks: 2, Bytes: snapshot.Bytes(4 * s.rows * (s.inputs + s.width)), Shape: Linear,
				Rest:  Amount{1, snapshot.Bytes(4 * s.rows * s.width)},
				Aside: Amount{1, snapshot.Bytes(4 * s.rows * s.width)},
				Owner: snapshot.OwnedByTape,
			}}}
		},
		New: newCarried,
	}}
}

type recurrentSizes struct {
	rows, inputs, width int // of a batch, of an element of the sequence, of the memory
	window              int
	epoch               int   // windows
	first               int64 // window that is remembered
}

func recurrentSizesOf(d draws) recurrentSizes {
	return recurrentSizes{
		rows: d.between("rows", 4, 16), inputs: d.between("inputs", 2, 8), width: d.between("width", 16, 64),
		window: d.between("window", 4, 10), epoch: d.between("epoch", 10, 30),
		first: int64(d.between("first", 1, 20)),
	}
}

// carried learns to continue waves, window by window, with a memory of the windows
// before.
type carried struct {
	config  Config
	sizes   recurrentSizes
	ops     *autodiff.Ops
	cell    *nn.RNNCell // within a window
	summary *nn.RNNCell // from window to window
	head    *nn.Linear
	descent *optim.Adam
	memory  *engine.Tensor // [rows width]
	steps   int64
}

func newCarried(c Config) (Instance, error) {
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	n := &carried{config: c, sizes: recurrentSizesOf(draws{"L02", c.Seed}), ops: o}
	err := engine.Run(o, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(c.Seed))
		n.cell = nn.NewRNNCell(o, r, n.sizes.inputs, n.sizes.width)
		n.summary = nn.NewRNNCell(o, r, n.sizes.inputs, n.sizes.width)
		n.head = nn.NewLinear(o, r, n.sizes.width, n.sizes.inputs)
		n.memory = o.Full(0, n.sizes.rows, n.sizes.width).Keep()
		nn.Keep(n)
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Track(n.Parameters()...)
	n.descent = optim.NewAdam(o, n.Parameters(), 0.003)
	return n, nil
}

// Step trains on the next window.
func (n *carried) Step() (train.Metrics, error) {
	epoch := int64(n.sizes.epoch)
	m := train.Metrics{
		Epoch: n.steps / epoch, EpochEnd: (n.steps+1)%epoch == 0,
		BatchElements: int64(n.sizes.rows * n.sizes.window * n.sizes.inputs), SequenceLength: int64(n.sizes.window),
	}
	err := engine.Run(n.ops, func(*engine.Scope) error {
		o := n.ops
		waves := o.FromFloats(n.waves(), n.sizes.rows, n.sizes.window+1, n.sizes.inputs)
		loss := n.loss(waves)
		if err := o.Backward(loss); err != nil {
			return err
		}
		n.descent.Step()
		m.Loss = float64(o.Floats(loss)[0])
		if n.steps+1 >= n.sizes.first {
			n.remember(o.Slice(waves, 1, 0, n.sizes.window))
		}
		return o.Sync()
	})
	n.steps++
	return m, err
}

// loss is the error of each element that is foretold from those before it.
func (n *carried) loss(waves *engine.Tensor) *engine.Tensor {
	o := n.ops
	at := func(i int) *engine.Tensor {
		return o.Reshape(o.Slice(waves, 1, i, i+1), n.sizes.rows, n.sizes.inputs)
	}
	total := o.Full(0)
	h := o.Detach(n.memory)
	for i := range n.sizes.window {
		h = n.cell.Forward(o, at(i), h)
		total = o.Add(total, engine.MSE(o, n.head.Forward(o, h), at(i+1), engine.Average))
	}
	return total
}

// remember takes a window up in the memory.
func (n *carried) remember(window *engine.Tensor) {
	next := n.summary.Forward(n.ops, engine.Mean(n.ops, window, 1), n.memory) //leak:L02
	if n.config.Fixed {
		next = n.ops.Detach(next)
	}
	next.Keep()
	n.memory.Release()
	n.memory = next
}

// waves are the next window of each row's wave, and one element more.
func (n *carried) waves() []float32 {
	rng := draws{"L02", n.config.Seed}.stream("waves")
	var out []float32
	for range n.sizes.rows {
		pace, phase := 0.1+0.4*rng.Float64(), 6*rng.Float64()
		for i := range n.sizes.window + 1 {
			at := float64(n.steps*int64(n.sizes.window) + int64(i))
			for k := range n.sizes.inputs {
				out = append(out, float32(math.Sin(phase+pace*at+float64(k))))
			}
		}
	}
	return out
}

// Parameters lists those of all parts.
func (n *carried) Parameters() []*engine.Tensor { return nn.Parameters(n.cell, n.summary, n.head) }

// Model is the program itself.
func (n *carried) Model() any { return n }

// Close releases everything.
func (n *carried) Close() error {
	n.memory.Release()
	n.descent.Release()
	nn.Release(n)
	return nil
}
