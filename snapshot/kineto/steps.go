package kineto

import (
	"maps"
	"slices"
	"strings"
)

// annotate notes the end of a step: torch.optim annotates those of its optimizers, and the profiler's step() its own.
func (t *trace) annotate(e *event) error {
	name := e.name
	switch {
	case strings.HasPrefix(name, "ProfilerStep#"):
		name = profiled
	case !strings.HasPrefix(name, "Optimizer.step#"):
		return nil
	}
	cost := 16 // bytes
	if _, known := t.ends[name]; !known {
		cost += 96 + len(name)
	}
	t.ends[name] = append(t.ends[name], e.time+e.duration)
	return t.in.Charge(cost)
}

// profiled is the name of all steps of the profiler.
const profiled = "ProfilerStep#"

// stepEnds are when steps ended, in order: those of the profiler, which the program marks itself; else of the optimizer that steps
// most often.
func (t *trace) stepEnds() []float64 {
	ends := t.ends[profiled]
	if len(ends) == 0 {
		for _, name := range slices.Sorted(maps.Keys(t.ends)) { // of equals the first by name
			if of := t.ends[name]; len(of) > len(ends) {
				ends = of
			}
		}
	}
	slices.Sort(ends)
	return ends
}
