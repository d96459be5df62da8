package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/autodiff/registry"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// registryNets are programs on a tape that keeps a registry of its nodes, as Burn's
// does. The registry's records are on the host there. Here they are blocks of the
// device, so that they are counted with all else; but for L08, which shows
// on the host alone.
func registryNets() []Workload {
	net := func(id, alias, title, cause string, growth func(d draws) Growth) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Leak, Cause: cause,
			Truth: func(seed int64) Truth {
				g := growth(draws{id, seed})
				return Truth{Steps: rhythm{g.Every, g.First}.runFor(15), Growth: []Growth{g}}
			},
			New: func(c Config) (Instance, error) {
				n, err := newRegistryNet(c, registryOptionsOf(draws{id, c.Seed}, c.Fixed))
				if err != nil {
					return nil, err
				}
				return n, nil
			},
		}
	}
	return []Workload{
		net("L04", "orphan-roots", "the optimizer replaces parameters, and the old leaves' nodes stay", "tape-nodes-orphaned", func(d draws) Growth {
			g := records(d, 2, 0)
			g.Rest = g.Live(Count{2, 2}) // those in use, and those that the next Backward sweeps
			g.Aside = g.Live(Count{1, 1})
			return g
		}),
		net("L05", "output-held", "an output that is held over backward leaves its node behind", "tape-nodes-orphaned", func(d draws) Growth {
			g := records(d, 1, 0)
			g.Rest = g.Live(Count{1, 1}) // until the next Backward
			return g
		}),
		net("L06", "tracked-probe", "parameters that no backward comes to are looked at, as tracked ones", "forward-only-graph", probed),
		net("L07", "gradient-never-used", "a gradient is asked for, and no backward comes by", "gradient-never-used", func(d draws) Growth {
			return records(d, 1, 1)
		}),
		net("L08", "second-index", "nodes are freed, and their entries in an index on the host are not", "host-index", func(d draws) Growth {
			g := records(d, 0, 1)
			g.Meter = OnHost
			return g
		}),
	}
}

// records is a growth of so many nodes, and entries of the index, each time.
func records(d draws, nodes, entries int64) Growth {
	beat := d.rhythm()
	return Growth{
		Marker: d.id, Event: PerStep, Every: beat.every, First: beat.first, Blocks: nodes + entries,
		Bytes: snapshot.Bytes(nodes)*registry.NodeBytes() + snapshot.Bytes(entries)*registry.EntryBytes(),
		Shape: Linear, Owner: snapshot.OwnedByTape,
	}
}

// probed is what a look at the embedding leaves: the nodes of three operations, and
// the two results that backward would read of them, magnitudes and their largest.
func probed(d draws) Growth {
	inputs, _ := registryExtents(d)
	g := records(d, 3, 3)
	g.Blocks, g.Bytes = g.Blocks+2, g.Bytes+snapshot.Bytes(4*inputs*inputs+4)
	return g
}

// registryOptions are what tells the programs on a registry apart.
type registryOptions struct {
	draws   draws
	rules   registry.Rules
	beat    rhythm // of what follows
	replace bool   // parameters by new ones, rather than write to them
	hold    bool   // the output, until the metric is computed after backward
	mask    bool   // make a mask
	asked   bool   // for the mask's gradient
	probe   bool   // look at the parameters
	tracked bool   // while they are tracked
	host    bool   // account for the records as memory of the host
}

// registryOptionsOf are those of one workload: the rules under which it leaks, or
// those of the fix, be it the registry's or the program's.
func registryOptionsOf(d draws, fixed bool) registryOptions {
	o := registryOptions{draws: d, beat: d.rhythm()}
	switch d.id {
	case "L04":
		o.rules, o.replace = registry.RulesOriginal, true
		if fixed {
			o.rules = registry.RulesRoots
		}
	case "L05":
		o.rules, o.hold = registry.RulesRoots, true
		if fixed {
			o.rules = registry.RulesAbsentParents
		}
	case "L06":
		o.rules, o.probe, o.tracked = registry.RulesLatest, true, !fixed
	case "L07":
		o.rules, o.mask, o.asked = registry.RulesComponents, true, !fixed
	case "L08":
		o.rules, o.mask, o.asked, o.host = registry.RulesAllGraphs, true, true, true
		if fixed {
			o.rules = registry.RulesIndex
		}
	}
	return o
}

// registryNet trains one layer on a tape with a registry.
type registryNet struct {
	registryOptions
	seed   int64
	ops    *autodiff.Ops
	tape   *registry.Registry
	weight *engine.Tensor // [inputs outputs]
	bias   *engine.Tensor // [outputs]
	// embedding was learnt before, and is still tracked; nil but for probes.
	embedding *engine.Tensor // [inputs inputs]
	host      *mem.Device    // nil where records are on the device that trains
	rows      int
	steps     int64
	measured  []float64
}

func newRegistryNet(c Config, options registryOptions) (*registryNet, error) {
	d := options.draws
	n := &registryNet{registryOptions: options, seed: c.Seed, rows: d.between("rows", 4, 32)}
	inner := engine.NewEager(c.Kernels, c.Device)
	records := c.Device
	if options.host {
		n.host = newHostAccount()
		records = n.host
	}
	n.tape = registry.New(registry.Options{Rules: options.rules, Records: records})
	n.ops = autodiff.NewOn(inner, n.tape)
	inputs, outputs := registryExtents(d)
	err := engine.Run(inner, func(*engine.Scope) error {
		r := engine.NewRandom(uint64(c.Seed))
		weight, bias := inner.Rand(r.Draw(), inputs, outputs), inner.Full(0, outputs)
		if n.probe {
			n.embedding = inner.Rand(r.Draw(), inputs, inputs).Keep()
		}
		n.weight, n.bias = weight.Keep(), bias.Keep()
		return nil
	})
	if err != nil {
		return nil, err
	}
	n.leaf(n.weight)
	n.leaf(n.bias)
	if n.embedding != nil {
		n.leaf(n.embedding)
	}
	return n, nil
}

// registryExtents draws the layer's.
func registryExtents(d draws) (inputs, outputs int) {
	return d.between("inputs", 3, 16), d.between("outputs", 2, 8)
}

// due says whether the step under way is one of those in which it happens.
func (n *registryNet) due() bool { return n.beat.due(n.steps) }

// leaf has a parameter's gradient gathered.
func (n *registryNet) leaf(p *engine.Tensor) {
	n.ops.Track(p)
}

// Step trains on one batch.
func (n *registryNet) Step() (m train.Metrics, err error) {
	n.steps++
	err = engine.Run(n.ops, func(*engine.Scope) error {
		if n.probe && n.due() {
			n.measured = append(n.measured, n.largest())
		}
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
		if n.hold && n.due() {
			held = out.Retain()
		}
		if n.mask && n.due() {
			n.measured = append(n.measured, n.masked(out))
		}
		off := o.Sub(out, target)
		return o.Sum(o.Mul(off, off))
	})
	return loss, held
}

// largest looks for parameters that have grown out of range. What it computes of
// those that train, the step's backward sweeps.
func (n *registryNet) largest() float64 {
	var o engine.Ops = n.ops
	if !n.tracked {
		o = o.Valid()
	}
	var largest float64
	for _, p := range []*engine.Tensor{n.weight, n.bias, n.embedding} {
		at := engine.Tidy(o, func() *engine.Tensor {
			return o.MaxOver(o.Reshape(o.Abs(p), p.Shape().Elements()), 0) //leak:L06
		})
		largest = max(largest, float64(o.Floats(at)[0]))
		at.Release()
	}
	return largest
}

// masked is the mean of the outputs that a mask lets through. The mask is to be
// learnt in a later version of the program; in this one it is only looked through.
func (n *registryNet) masked(out *engine.Tensor) float64 {
	v := n.ops.Valid()
	open := make([]float32, out.Dim(1))
	for i := range open {
		open[i] = float32((i + 1) % 2)
	}
	mask := v.FromFloats(open, len(open))
	if n.asked {
		n.ops.Track(mask) //leak:L07 leak:L08
	}
	return float64(v.Floats(engine.Mean(v, v.Mul(out, mask)))[0])
}

// moved is a parameter after a step of gradient descent.
func (n *registryNet) moved(p *engine.Tensor) *engine.Tensor {
	v := n.ops.Valid()
	next := engine.Tidy(v, func() *engine.Tensor {
		return v.Sub(p, engine.Scale(v, autodiff.Grad(p), 0.02))
	})
	if !n.replace || !n.due() {
		v.Assign(p, next)
		autodiff.ZeroGrad(p)
		return p
	}
	next.Keep()
	p.Release()
	n.leaf(next) //leak:L04
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
	x = v.FromFloats(numbers(n.rows*inputs), n.rows, inputs)
	if n.embedding != nil {
		x = v.Tanh(v.MatMul(x, n.embedding))
	}
	return x, v.FromFloats(numbers(n.rows*outputs), n.rows, outputs)
}

// Measured lists the mean of each output that was held or masked, and what probes
// found.
func (n *registryNet) Measured() []float64 { return n.measured }

// Model is the program itself.
func (n *registryNet) Model() any { return n }

// Host accounts for records on the host; nil where there are none.
func (n *registryNet) Host() *mem.Device { return n.host }

// Close releases everything, the registry's own records included.
func (n *registryNet) Close() error {
	n.weight.Release()
	n.bias.Release()
	if n.embedding != nil {
		n.embedding.Release()
	}
	n.tape.Release()
	if n.host != nil {
		return n.host.Close()
	}
	return nil
}
