package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// forwardChains are programs that go forward again and again, and never back.
func forwardChains() []Workload {
	return []Workload{{
		ID: "L03", Alias: "forward-chain", Title: "each output is the next input, and nobody calls backward",
		Label: Leak, Cause: "pending-graph",
		Truth: func(int64) Truth {
			return Truth{Steps: 120, Growth: []Growth{{
				Marker: "L03", Event: PerStep, Every: 1, First: 1,
				// What ReLU saves, and the output that is the next input.
				Blocks: 2, Bytes: 4*chainBatch*chainHidden + 4*chainBatch*chainState, Shape: Linear,
				Rest:  Amount{1, 4 * chainBatch * chainState},
				Aside: Amount{1, 4 * chainBatch * chainState},
				Owner: snapshot.OwnedByTape,
			}}}
		},
		New: newForwardChain,
	}}
}

// Sizes of the network and its batch, as they were reported.
const (
	chainBatch  = 32
	chainState  = 4
	chainHidden = 8096
)

// forwardChain plays with a value network for a game of four numbers: it follows
// what the network makes of its own outputs.
type forwardChain struct {
	config Config
	ops    *autodiff.Ops
	hidden *nn.Linear
	out    *nn.Linear
	state  *engine.Tensor // [batch state]
}

func newForwardChain(c Config) (Instance, error) {
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	f := &forwardChain{config: c, ops: o}
	err := engine.Run(o, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(c.Seed))
		f.hidden = nn.NewLinear(o, r, chainState, chainHidden)
		f.out = nn.NewLinear(o, r, chainHidden, chainState)
		f.state = o.Rand(r.Draw(), chainBatch, chainState).Keep()
		nn.Keep(f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	o.Track(f.Parameters()...)
	return f, nil
}

// forward maps a state to the next.
func (f *forwardChain) forward(o engine.Ops, state *engine.Tensor) *engine.Tensor {
	return f.out.Forward(o, o.ReLU(f.hidden.Forward(o, state)))
}

// Step goes forward once.
func (f *forwardChain) Step() (train.Metrics, error) {
	m := train.Metrics{BatchElements: chainBatch * chainState}
	err := engine.Run(f.ops, func(*engine.Scope) error {
		var o engine.Ops = f.ops
		if f.config.Fixed {
			o = o.Valid()
		}
		next := f.forward(o, f.state).Keep() //leak:L03
		f.state.Release()
		f.state = next
		m.Loss = float64(o.Floats(engine.Mean(o.Valid(), next))[0])
		return o.Sync()
	})
	return m, err
}

// Parameters lists those of both layers.
func (f *forwardChain) Parameters() []*engine.Tensor { return nn.Parameters(f.hidden, f.out) }

// Model is the program itself.
func (f *forwardChain) Model() any { return f }

// Close releases everything.
func (f *forwardChain) Close() error {
	f.state.Release()
	nn.Release(f)
	return nil
}
