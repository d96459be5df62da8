package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/snapshot"
)

// hookedNets are programs that look at activations by hooks.
func hookedNets() []Workload {
	return []Workload{{
		ID: "L09", Alias: "hook-not-removed", Title: "each step adds a hook that keeps activations",
		Label: Leak, Cause: "hook-not-removed",
		Truth: func(seed int64) Truth {
			d := draws{"L09", seed}
			s := d.sizes()
			return Truth{Steps: 120, Growth: []Growth{{
				Marker: "L09", Event: PerStep, Every: 1, First: hooksFrom(d),
				Blocks: int64(s.layers), Bytes: snapshot.Bytes(4 * s.layers * s.hidden), Shape: Quadratic,
				Owner: snapshot.OwnedByUser,
			}}}
		},
		New: shared("L09", newHooked),
	}}
}

// hooksFrom draws the step from which on activations are looked at.
func hooksFrom(d draws) int64 { return int64(d.between("first", 1, 12)) }

// hooked looks at how active each feature is.
type hooked struct {
	*trainer
	first  int64
	means  []*engine.Tensor // of each hidden layer, [hidden]
	handle autodiff.Handle
}

func newHooked(t *trainer) (any, error) {
	h := &hooked{trainer: t, first: hooksFrom(t.draws)}
	t.on.before = h.add
	t.on.step = h.look
	t.on.close = func() { releaseAll(&h.means) }
	return h, nil
}

// add hooks the forward pass that comes.
func (h *hooked) add() {
	if h.steps+1 < h.first {
		return
	}
	v := h.ops.Valid()
	h.handle = h.ops.OnForward(func(op string, out *engine.Tensor) {
		if op == "relu" {
			h.means = append(h.means, engine.Mean(v, out, 0).Keep()) //leak:L09
		}
	})
}

// look measures the last layer's mean.
func (h *hooked) look(*batch, *engine.Tensor) error {
	if h.steps < h.first {
		return nil
	}
	h.adds("L09")
	for _, x := range h.ops.Floats(h.means[len(h.means)-1]) {
		h.measure(float64(x))
	}
	if h.config.Fixed {
		h.handle.Remove()
		releaseAll(&h.means)
	}
	return nil
}
