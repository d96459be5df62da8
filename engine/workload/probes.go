package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// probes are programs that look at parameters.
func probes() []Workload {
	return []Workload{{
		ID: "L06", Alias: "tracked-probe", Title: "statistics are computed of tracked parameters, and summed up",
		Label: Leak, Cause: "graph-retained",
		Truth: func(seed int64) Truth {
			d := draws{"L06", seed}
			g := copyGrowth("L06", d.sizes())
			g.Event, g.Every, g.Owner = PerStep, probeEvery(d), snapshot.OwnedByTape
			g.First = g.Every
			return Truth{Steps: runFor(15, g.Every), Growth: []Growth{g}}
		},
		New: shared("L06", newProbe),
	}}
}

// probeEvery draws how many steps pass from probe to probe.
func probeEvery(d draws) int64 { return d.everyOf(3, 5, 8, 10, 20) }

// probe watches how far parameters have moved from where they began.
type probe struct {
	*trainer
	every  int64
	starts []*engine.Tensor
	total  *engine.Tensor // of the squares of all distances
}

func newProbe(t *trainer) (any, error) {
	p := &probe{trainer: t, every: probeEvery(t.draws)}
	t.on.step = p.step
	t.on.close = func() {
		releaseAll(&p.starts)
		if p.total != nil {
			p.total.Release()
		}
	}
	return p, engine.Run(t.ops, func(*engine.Scope) error {
		v := t.ops.Valid()
		for _, parameter := range t.model.Parameters() {
			p.starts = append(p.starts, v.Copy(parameter).Keep())
		}
		p.total = v.Full(0).Keep()
		return nil
	})
}

func (p *probe) step(*batch, *engine.Tensor) error {
	if p.steps%p.every != 0 {
		return nil
	}
	var o engine.Ops = p.ops
	if p.config.Fixed {
		o = o.Valid()
	}
	for i, parameter := range p.model.Parameters() {
		moved := p.distance(o, parameter, p.starts[i]) //leak:L06
		total := o.Add(p.total, moved).Keep()
		p.total.Release()
		p.total = total
	}
	p.adds("L06")
	p.measure(float64(o.Floats(p.total)[0]))
	return nil
}

// distance is the sum of the squares of what a parameter has moved by.
func (p *probe) distance(o engine.Ops, parameter, start *engine.Tensor) *engine.Tensor {
	off := o.Sub(parameter, start)
	return o.Sum(o.Mul(off, off))
}
