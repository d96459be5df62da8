package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// registryNets are programs on a tape that keeps a registry of its nodes, as Burn's
// does. What leaks are the registry's records, on the host there and blocks of the
// device here, so that they are counted with all else.
func registryNets() []Workload {
	node, entry := registry.NodeBytes(), registry.EntryBytes()
	net := func(id, alias, title, cause string, g Growth) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Leak, Cause: cause,
			Truth: func(int64) Truth { return Truth{Steps: 120, Growth: []Growth{g}} },
			New: func(c Config) (Instance, error) {
				n, err := newRegistryNet(c, registryOptionsOf(id, c.Fixed))
				if err != nil {
					return nil, err
				}
				return n, nil
			},
		}
	}
	// records is a growth of so many nodes, and entries of the index, in each step.
	records := func(marker string, nodes, entries int64) Growth {
		return Growth{
			Marker: marker, Event: PerStep, Every: 1, First: 1, Blocks: nodes + entries,
			Bytes: snapshot.Bytes(nodes)*node + snapshot.Bytes(entries)*entry, Shape: Linear, Owner: snapshot.OwnedByTape,
		}
	}
	// What the next Backward sweeps is rightly there until then.
	leaves, outputs := records("L04", 2, 0), records("L05", 1, 0)
	leaves.Base = 1 // those in use
	leaves.Rest, outputs.Rest = leaves.Live(Count{1, 1}), outputs.Live(Count{1, 1})
	return []Workload{
		net("L04", "orphan-roots", "the optimizer replaces parameters, and the old leaves' nodes stay", "tape-nodes-orphaned", leaves),
		net("L05", "output-held", "an output that is held over backward leaves its node behind", "tape-nodes-orphaned", outputs),
		net("L07", "gradient-never-used", "a gradient is asked for, and no backward comes by", "gradient-never-used", records("L07", 1, 1)),
		net("L08", "second-index", "nodes are freed, and their entries in an index are not", "tape-nodes-orphaned", records("L08", 0, 1)),
	}
}

// registryOptions are what tells the programs on a registry apart.
type registryOptions struct {
	rules   registry.Rules
	replace bool // parameters by new ones, rather than write to them
	hold    bool // the output, until the metric is computed behind backward
	mask    bool // make a mask in each step
	asked   bool // for the mask's gradient
}

// registryOptionsOf are those of one workload: the rules under which it leaks, or
// those of the fix, be it the registry's or the program's.
func registryOptionsOf(id string, fixed bool) registryOptions {
	var o registryOptions
	switch id {
	case "L04":
		o = registryOptions{rules: registry.RulesOriginal, replace: true}
		if fixed {
			o.rules = registry.RulesRoots
		}
	case "L05":
		o = registryOptions{rules: registry.RulesRoots, hold: true}
		if fixed {
			o.rules = registry.RulesAbsentParents
		}
	case "L07":
		o = registryOptions{rules: registry.RulesComponents, mask: true, asked: !fixed}
	case "L08":
		o = registryOptions{rules: registry.RulesAllGraphs, mask: true, asked: true}
		if fixed {
			o.rules = registry.RulesIndex
		}
	}
	return o
}

// registryNet trains one layer on a tape with a registry.
type registryNet struct {
	registryOptions
	seed     int64
	ops      *autodiff.Ops
	tape     *registry.Registry
	weight   *engine.Tensor // [inputs outputs]
	bias     *engine.Tensor // [outputs]
	rows     int
	steps    int64
	measured []float64
}

func newRegistryNet(c Config, options registryOptions) (*registryNet, error) {
	d := draws{"registry", c.Seed}
	n := &registryNet{registryOptions: options, seed: c.Seed, rows: d.between("rows", 4, 32)}
	inner := engine.NewEager(c.Kernels, c.Device)
	n.tape = registry.New(registry.Options{Rules: options.rules, Records: c.Device})
	n.ops = autodiff.NewOn(inner, n.tape)
	inputs, outputs := d.between("inputs", 3, 16), d.between("outputs", 2, 8)
	err := engine.Run(inner, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(c.Seed))
		weight, bias := inner.Rand(r.Draw(), inputs, outputs), inner.Full(0, outputs)
		n.weight, n.bias = weight.Keep(), bias.Keep()
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.leaf(n.weight)
	n.leaf(n.bias)
	return n, nil
}

// leaf has a parameter's gradient gathered.
func (n *registryNet) leaf(p *engine.Tensor) {
	n.ops.Track(p) //leak:L04
}

// Step trains on one batch.
func (n *registryNet) Step() (m train.Metrics, err error) {
	n.steps++
	err = engine.Run(n.ops, func(*engine.Scope) error {
		loss, out := n.loss()
		if err := n.ops.Backward(loss); err != nil {
			return err
		}
		m.Loss = float64(n.ops.Floats(loss)[0])
		m.BatchElements = int64(n.rows * n.weight.Dim(0))
		v := n.ops.Valid()
		if out != nil {
			n.measured = append(n.measured, float64(v.Floats(engine.Mean(v, out))[0]))
			out.Release()
		}
		n.weight, n.bias = n.moved(n.weight), n.moved(n.bias)
		return v.Sync()
	})
	return m, err
}

// loss computes what is to fall, and releases all on the way to it but an output
// that is to be held.
func (n *registryNet) loss() (loss, held *engine.Tensor) {
	o := n.ops
	x, target := n.batch()
	loss = engine.Tidy(o, func() *engine.Tensor {
		out := o.Sigmoid(o.Add(o.MatMul(x, n.weight), n.bias)) //leak:L05
		if n.hold {
			held = out.Retain()
		}
		if n.mask {
			n.unused()
		}
		off := o.Sub(out, target)
		return o.Sum(o.Mul(off, off))
	})
	return loss, held
}

// unused makes a mask that a later version of the program is to learn.
func (n *registryNet) unused() {
	mask := n.ops.Full(1, 8)
	if n.asked {
		n.ops.Track(mask) //leak:L07 leak:L08
	}
}

// moved is a parameter behind a step of gradient descent.
func (n *registryNet) moved(p *engine.Tensor) *engine.Tensor {
	v := n.ops.Valid()
	next := engine.Tidy(v, func() *engine.Tensor {
		return v.Sub(p, engine.Scale(v, autodiff.Grad(p), 0.02))
	})
	if !n.replace {
		v.Assign(p, next)
		autodiff.ZeroGrad(p)
		return p
	}
	next.Keep()
	p.Release()
	n.leaf(next)
	return next
}

// batch draws inputs, and what is to come of them.
func (n *registryNet) batch() (x, target *engine.Tensor) {
	rng := rand.New(rand.NewPCG(uint64(n.seed), uint64(n.steps)))
	numbers := func(count int) []float32 {
		out := make([]float32, count)
		for i := range out {
			out[i] = rng.Float32()
		}
		return out
	}
	v := n.ops.Valid()
	inputs, outputs := n.weight.Dim(0), n.weight.Dim(1)
	return v.FromFloats(numbers(n.rows*inputs), n.rows, inputs), v.FromFloats(numbers(n.rows*outputs), n.rows, outputs)
}

// Measured lists the mean of each output that was held.
func (n *registryNet) Measured() []float64 { return n.measured }

// Model is the program itself.
func (n *registryNet) Model() any { return n }

// Close releases everything, the registry's own records included.
func (n *registryNet) Close() error {
	n.weight.Release()
	n.bias.Release()
	n.tape.Release()
	return nil
}
