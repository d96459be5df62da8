package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// sequences are programs whose memory follows the length of what they read.
func sequences() []Workload {
	return []Workload{
		{
			ID: "D10", Alias: "growing-sequence", Title: "a curriculum of ever longer sequences, of which the last is kept",
			Label: Bounded, Families: []Family{LongSequences},
			Truth: func(seed int64) Truth {
				c := contextOf(draws{"D10", seed})
				return Truth{Steps: contextSteps, Growth: []Growth{c.growth("D10", c.length(contextSteps))}}
			},
			New: shared("D10", newSequenceReader),
		},
		{
			ID: "D30", Alias: "cache-per-sequence", Title: "a cache grows with a sequence, and is emptied at its end",
			Label: Bounded, Families: []Family{LongSequences},
			Truth: func(seed int64) Truth {
				c := contextOf(draws{"D30", seed})
				return Truth{Steps: contextSteps, Growth: []Growth{c.growth("D30", c.span)}}
			},
			New: shared("D30", newSequenceReader),
		},
		{
			ID: "D09", Alias: "sorted-by-length", Title: "each epoch goes from short to long sequences, and the last is kept",
			Label: Bounded, Families: []Family{DynamicGraphs, LongSequences},
			Truth: func(seed int64) Truth {
				d := draws{"D09", seed}
				c := contextOf(d)
				return Truth{Steps: contextSteps, Growth: []Growth{c.growth("D09", int64(d.sizes().epoch))}}
			},
			New: shared("D09", newSequenceReader),
		},
		{
			ID: "L19", Alias: "plans-without-end", Title: "a plan is kept for each length, and there is no end of lengths",
			Label: Leak, Families: []Family{DynamicGraphs}, Cause: "cache-without-bound",
			Truth: func(seed int64) Truth {
				d := draws{"L19", seed}
				g := Growth{
					Marker: "L19", Event: PerShape, Every: 1, First: 1,
					Blocks: 1, Bytes: snapshot.Bytes(4 * contextOf(d).width), Shape: Linear, Owner: snapshot.OwnedByCache,
				}
				g.Rest = Amount{lengthBuckets, lengthBuckets * g.Bytes}
				return Truth{Steps: contextSteps, Growth: []Growth{g}}
			},
			New: shared("L19", newLengthPlans),
		},
	}
}

// contextSteps is how long these programs run.
const contextSteps = 200

// contextDraws is how long sequences are.
type contextDraws struct {
	id    string
	width int
	span  int64 // steps until a sequence ends, or gets longer by one
	epoch int64
}

func contextOf(d draws) contextDraws {
	return contextDraws{id: d.id, width: d.between("width", 32, 256), span: int64(d.between("span", 4, 25)), epoch: int64(d.sizes().epoch)}
}

// length is that of the sequence at so many completed steps.
func (c contextDraws) length(steps int64) int64 {
	switch c.id {
	case "D09":
		return 1 + (steps-1)%c.epoch
	case "D30":
		return 1 + (steps-1)%c.span
	}
	return 8 + steps/c.span
}

func (c contextDraws) growth(marker string, longest int64) Growth {
	return Growth{
		Marker: marker, Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * c.width), Unit: "element", Shape: BytesOnly,
		Bound: Amount{1, snapshot.Bytes(4*c.width) * snapshot.Bytes(longest)}, Owner: snapshot.OwnedByUser,
	}
}

// sequenceReader keeps what was made of the sequence that is being read.
type sequenceReader struct {
	*trainer
	contextDraws
	read *engine.Tensor // [length width]; nil before the first step
}

func newSequenceReader(t *trainer) (any, error) {
	c := &sequenceReader{trainer: t, contextDraws: contextOf(t.draws)}
	// D30 reads one element a step, of input that is always as long.
	if t.draws.id != "D30" {
		t.sequence = func() int64 { return c.length(t.steps + 1) }
	}
	t.on.step = func(*batch, *engine.Tensor) error {
		c.forget()
		length := c.length(t.steps)
		c.read = t.ops.Full(0, int(length), c.width).Keep() //held:D10 held:D30 held:D09
		t.addsUnits(t.draws.id, length)
		return nil
	}
	t.on.close = c.forget
	return c, nil
}

func (c *sequenceReader) forget() {
	if c.read != nil {
		c.read.Release()
		c.read = nil
	}
}

// lengthBuckets is how many lengths there are once they are rounded up.
const lengthBuckets = 8

// lengthPlans keeps a plan for each length of input.
type lengthPlans struct {
	*trainer
	width    int
	length   int64
	byLength map[int64]*engine.Tensor
	seen     map[int64]bool
}

func newLengthPlans(t *trainer) (any, error) {
	p := &lengthPlans{
		trainer: t, width: contextOf(t.draws).width,
		byLength: make(map[int64]*engine.Tensor), seen: make(map[int64]bool),
	}
	const longest = 4096
	rng := t.draws.stream("lengths")
	p.length = 1 + rng.Int64N(longest)
	t.sequence = func() int64 { return p.length }
	t.on.step = func(*batch, *engine.Tensor) error {
		key := p.length
		if !p.seen[key] {
			p.seen[key] = true
			p.adds("L19")
		}
		if t.config.Fixed {
			key = (key - 1) * lengthBuckets / longest
		}
		if p.byLength[key] == nil {
			p.byLength[key] = t.ops.Full(0, p.width).Own(snapshot.OwnedByCache) //leak:L19
		}
		p.length = 1 + rng.Int64N(longest)
		return nil
	}
	t.on.close = func() { releaseMap(p.byLength) }
	return p, nil
}
