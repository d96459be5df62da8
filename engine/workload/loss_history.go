package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// lossHistories are programs that add up losses.
func lossHistories() []Workload {
	return []Workload{{
		ID: "L01", Alias: "loss-history", Title: "the sum of losses keeps the graph of each",
		Label: Leak, Cause: "graph-retained",
		Truth: func(seed int64) Truth {
			d := draws{"L01", seed}
			s, beat := d.sizes(), d.rhythm()
			return Truth{Steps: beat.runFor(12), Growth: []Growth{{
				Marker: "L01", Event: PerStep, Every: beat.every, First: beat.first,
				// What ReLU puts out, and backward would read.
				Blocks: int64(s.layers), Bytes: snapshot.Bytes(4 * s.layers * s.rows * s.hidden),
				Shape: Linear, Owner: snapshot.OwnedByTape,
			}}}
		},
		New: shared("L01", newLossHistory),
	}}
}

// lossHistory watches how active the features of a batch held out are, a penalty
// that is to be added to the loss one day, and sums it up.
type lossHistory struct {
	*trainer
	beat    rhythm
	heldOut *batch
	total   *engine.Tensor
}

func newLossHistory(t *trainer) (any, error) {
	h := &lossHistory{trainer: t, beat: t.draws.rhythm()}
	t.on.step = h.watch
	return h, engine.Run(t.ops, func(*engine.Scope) error {
		h.heldOut = t.data.heldOut(0).upload(t.ops)
		h.total = t.ops.Full(0).Keep()
		h.heldOut.x.Keep()
		h.heldOut.labels.Keep()
		t.on.close = func() {
			h.total.Release()
			h.heldOut.x.Release()
			h.heldOut.labels.Release()
		}
		return nil
	})
}

// penalty is the sum of the squares of a batch's features.
func (h *lossHistory) penalty(b *batch) *engine.Tensor {
	f := h.model.Features(h.ops, b.x)
	return h.ops.Sum(h.ops.Mul(f, f))
}

// watch adds the loss of this moment to the sum.
func (h *lossHistory) watch(*batch, *engine.Tensor) error {
	if !h.beat.due(h.steps) {
		return nil
	}
	loss := h.penalty(h.heldOut) //leak:L01
	if h.config.Fixed {
		loss = h.ops.Detach(loss)
	}
	total := h.ops.Add(h.total, loss).Keep()
	h.total.Release()
	h.total = total
	h.adds("L01")
	h.measure(float64(h.ops.Floats(h.total)[0]))
	return nil
}
