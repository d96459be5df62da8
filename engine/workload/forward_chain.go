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
		Truth: func(seed int64) Truth {
			rows, first := chainOf(draws{"L03", seed})
			state := Amount{1, snapshot.Bytes(4 * rows * chainState)}
			return Truth{Steps: 120, Growth: []Growth{{
				Marker: "L03", Event: PerStep, Every: 1, First: first,
				// What ReLU saves, and the output that is the next input.
				Blocks: 2, Bytes: snapshot.Bytes(4*rows*chainHidden) + state.Bytes, Shape: Linear,
				Rest: state, Aside: state, Owner: snapshot.OwnedByTape,
			}}}
		},
		New: newForwardChain,
	}}
}

// Sizes of the network, as they were reported.
const (
	chainState  = 4
	chainHidden = 8096
)

// chainOf draws how many games are played at once, 32 in the report, and the step
// in which they begin.
func chainOf(d draws) (rows int, first int64) {
	return 8 << d.between("rows", 0, 2), int64(d.between("first", 1, 20))
}

// forwardChain plays with a value network for a game of four numbers: it follows
// what the network makes of its own outputs.
type forwardChain struct {
	config Config
	rows   int
	first  int64
	ops    *autodiff.Ops
	hidden *nn.Linear
	out    *nn.Linear
	state  *engine.Tensor // [rows state]
	steps  int64
}

func newForwardChain(c Config) (Instance, error) {
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	f := &forwardChain{config: c, ops: o}
	f.rows, f.first = chainOf(draws{"L03", c.Seed})
	err := engine.Run(o, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(c.Seed))
		f.hidden = nn.NewLinear(o, r, chainState, chainHidden)
		f.out = nn.NewLinear(o, r, chainHidden, chainState)
		f.state = o.Rand(r.Draw(), f.rows, chainState).Keep()
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
	f.steps++
	m := train.Metrics{BatchElements: int64(f.rows * chainState)}
	err := engine.Run(f.ops, func(*engine.Scope) error {
		var o engine.Ops = f.ops
		if f.config.Fixed {
			o = o.Valid()
		}
		if f.steps >= f.first {
			next := f.forward(o, f.state).Keep() //leak:L03
			f.state.Release()
			f.state = next
		}
		m.Loss = float64(o.Floats(engine.Mean(o.Valid(), f.state))[0])
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
