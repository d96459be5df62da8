package workload

import (
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// lazyPrograms are programs that make something when it is first needed, a number
// of times, and never again.
func lazyPrograms() []Workload {
	lazy := func(id, alias, title, cause string) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Bounded, Cause: cause,
			Truth: func(seed int64) Truth {
				p := planOf(draws{id, seed})
				g := Growth{
					Marker: id, Event: PerRebuild, Every: 1, First: 1, Blocks: 1, Bytes: 4, Unit: "number", Shape: Linear,
					Owner: lazyOwner(id),
				}
				for _, r := range p {
					g.Bound.Blocks++
					g.Bound.Bytes += snapshot.Bytes(4 * r.elements)
				}
				return Truth{Steps: 160, Growth: []Growth{g}}
			},
			New: shared(id, newLazy),
		}
	}
	return []Workload{
		lazy("D14", "layers-unfrozen", "layers are unfrozen one by one, and get their state then", "optimizer-state"),
		lazy("D19", "workers-warm-up", "the workers of a loader start one by one", ""),
		lazy("D22", "handles-by-thread", "each thread makes a handle when it first has work", ""),
		lazy("D28", "autotuning", "candidates are tried in the first steps, each with a workspace", ""),
	}
}

// lazyOwner is who holds what a program makes.
func lazyOwner(id string) snapshot.Owners {
	if id == "D14" {
		return snapshot.OwnedByOptim
	}
	return snapshot.OwnedByCache
}

// resource is something that is made once.
type resource struct {
	step     int64 // in which it is first needed
	elements int
}

// planOf draws what is made, and when, in the order of time. All of it is made in
// the first half of a run of 160 steps.
func planOf(d draws) []resource {
	rng := d.stream("resources")
	var plan []resource
	switch d.id {
	case "D14": // at equal intervals, each layer larger than the one before
		every := int64(8 + rng.IntN(8))
		for i := range int64(3 + rng.IntN(3)) {
			plan = append(plan, resource{(i + 1) * every, 256 << i})
		}
	case "D19": // soon, then ever more slowly, all of one size
		elements := 512 + rng.IntN(2048)
		for i := range 4 + rng.IntN(3) {
			plan = append(plan, resource{int64(1) << i, elements})
		}
	case "D22": // at any time, all of one size
		elements := 128 + rng.IntN(1024)
		for range 3 + rng.IntN(6) {
			plan = append(plan, resource{1 + int64(rng.IntN(80)), elements})
		}
	case "D28": // step by step, of any size
		for i := range 5 + rng.IntN(8) {
			plan = append(plan, resource{int64(1 + i), 64 + rng.IntN(8192)})
		}
	}
	slices.SortFunc(plan, func(a, b resource) int { return int(a.step - b.step) })
	return plan
}

// lazyResources makes what is needed in the step in which it is first needed.
type lazyResources struct {
	*trainer
	plan []resource // still to be made
	made []*engine.Tensor
}

func newLazy(t *trainer) (any, error) {
	l := &lazyResources{trainer: t, plan: planOf(t.draws)}
	t.on.step = l.step
	t.on.close = func() { releaseAll(&l.made) }
	return l, nil
}

func (l *lazyResources) step(*batch, *engine.Tensor) error {
	for len(l.plan) > 0 && l.plan[0].step <= l.steps {
		l.made = append(l.made, l.ops.Full(0, l.plan[0].elements).Own(lazyOwner(l.draws.id))) //held:D14 held:D19 held:D22 held:D28
		l.addsUnits(l.draws.id, int64(l.plan[0].elements))
		l.plan = l.plan[1:]
	}
	return nil
}
