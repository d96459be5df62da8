package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// lossHistories are programs that add up losses.
func lossHistories() []Workload {
	return []Workload{{
		ID: "L01", Alias: "loss-history", Title: "the sum of validation losses keeps the graph of each",
		Label: Leak, Cause: "graph-retained",
		Truth: func(seed int64) Truth {
			d := draws{"L01", seed}
			s, beat := d.sizes(), d.rhythm()
			return Truth{Steps: beat.runFor(12), Growth: []Growth{{
				Marker: "L01", Event: PerStep, Every: beat.every, First: beat.first,
				// What backward would read: each ReLU's result, the chances and their logarithms,
				// how far off they are, and what the mean is scaled by.
				Blocks: int64(s.layers) + 4, Bytes: snapshot.Bytes(4*s.layers*s.rows*s.hidden + 3*4*s.rows*s.classes + 4),
				Shape: Linear, Owner: snapshot.OwnedByTape,
			}}}
		},
		New: shared("L01", newLossHistory),
	}}
}

// lossHistory adds up the loss of a batch held out, to see its mean at the end: how
// far chances are from the truth, squared (Brier 1950).
type lossHistory struct {
	*trainer
	beat  rhythm
	x     *engine.Tensor // [rows features], held out
	truth *engine.Tensor // [rows classes], 1 for the right class
	total *engine.Tensor
}

func newLossHistory(t *trainer) (any, error) {
	h := &lossHistory{trainer: t, beat: t.draws.rhythm()}
	t.on.step = h.validate
	return h, engine.Run(t.ops, func(*engine.Scope) error {
		batch := t.data.heldOut(0)
		truth := make([]float32, len(batch.labels)*t.sizes.classes)
		for i, label := range batch.labels {
			truth[i*t.sizes.classes+int(label)] = 1
		}
		h.x = batch.upload(t.ops).x.Keep()
		h.truth = t.ops.FromFloats(truth, len(batch.labels), t.sizes.classes).Keep()
		h.total = t.ops.Full(0).Keep()
		t.on.close = func() {
			h.total.Release()
			h.x.Release()
			h.truth.Release()
		}
		return nil
	})
}

// validate adds the loss of this moment.
func (h *lossHistory) validate(*batch, *engine.Tensor) error {
	if !h.beat.due(h.steps) {
		return nil
	}
	loss := engine.MSE(h.ops, engine.Softmax(h.ops, h.model.Forward(h.ops, h.x)), h.truth, engine.Average) //leak:L01
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
