package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/metric"
	"github.com/memdiag/memdiag/snapshot"
)

// metricPrograms are programs that measure while they train.
func metricPrograms() []Workload {
	return []Workload{
		{
			ID: "L11", Alias: "metric-copy", Title: "a metric is copied to be computed, after each batch, epoch and evaluation",
			Label: Leak, Cause: "metric-copies",
			Truth: func(seed int64) Truth {
				d := draws{"L11", seed}
				s, beat := d.sizes(), d.rhythm()
				// An accuracy's state is a sum, and what was rounded off it.
				copies := Growth{Every: 1, First: 1, Blocks: 2, Bytes: 8, Shape: Linear, Owner: snapshot.OwnedByUser}
				batch, epoch, eval := copies, copies, copies
				batch.Marker, batch.Event, batch.Every, batch.First = "L11/batch", PerStep, beat.every, beat.first
				epoch.Marker, epoch.Event = "L11/epoch", PerEpoch
				eval.Marker, eval.Event = "L11/eval", PerEvaluation
				return Truth{Steps: max(beat.runFor(10), runFor(10, max(int64(s.epoch), int64(s.evalEvery)))), Growth: []Growth{batch, epoch, eval}}
			},
			New: shared("L11", newMetricCopies),
		},
		{
			ID: "L12", Alias: "metric-not-reset", Title: "a metric that stores every batch is never reset",
			Label: Leak, Cause: "metric-not-reset",
			Truth: func(seed int64) Truth {
				s := draws{"L12", seed}.sizes()
				g := listed("L12")
				g.Rest = listBound(s)
				return Truth{Steps: 6 * int64(s.epoch), Growth: []Growth{g}}
			},
			New: shared("L12", newListMetric),
		},
		{
			ID: "D16", Alias: "metric-reset", Title: "a metric that lists what it saw is reset after each epoch",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				s := draws{"D16", seed}.sizes()
				g := listed("D16")
				g.Bound = listBound(s)
				return Truth{Steps: 6 * int64(s.epoch), Growth: []Growth{g}}
			},
			New: shared("D16", newListMetric),
		},
	}
}

// metricCopies measures the accuracy of the epoch so far, and of each evaluation.
type metricCopies struct {
	*trainer
	beat    rhythm
	running *metric.Accuracy
	held    *metric.Accuracy
	copies  []*metric.Accuracy
}

func newMetricCopies(t *trainer) (any, error) {
	v := t.ops.Valid()
	m := &metricCopies{trainer: t, beat: t.draws.rhythm(), running: metric.NewAccuracy(v), held: metric.NewAccuracy(v)}
	t.on.step, t.on.epoch = m.step, m.epoch
	t.on.evaluated, t.on.evaluation = m.evaluated, m.evaluation
	t.on.close = func() {
		for _, c := range append(m.copies, m.running, m.held) {
			c.Reset()
		}
	}
	return m, nil
}

func (m *metricCopies) step(b *batch, logits *engine.Tensor) error {
	m.running.Update(logits, b.labels)
	if m.beat.due(m.steps) {
		accuracy := m.running
		if !m.config.Fixed {
			accuracy = m.keep(m.running.Clone()) //leak:L11/batch
		}
		m.measure(accuracy.Compute())
		m.adds("L11/batch")
	}
	return nil
}

func (m *metricCopies) epoch() error {
	accuracy := m.running
	if !m.config.Fixed {
		accuracy = m.keep(m.running.Clone()) //leak:L11/epoch
	}
	m.measure(accuracy.Compute())
	m.adds("L11/epoch")
	m.running.Reset()
	return nil
}

func (m *metricCopies) evaluated(b *batch, logits *engine.Tensor) error {
	m.held.Update(logits, b.labels)
	return nil
}

func (m *metricCopies) evaluation() error {
	accuracy := m.held
	if !m.config.Fixed {
		accuracy = m.keep(m.held.Clone()) //leak:L11/eval
	}
	m.measure(accuracy.Compute())
	m.adds("L11/eval")
	m.held.Reset()
	return nil
}

// keep lists a copy for a report at the end.
func (m *metricCopies) keep(a *metric.Accuracy) *metric.Accuracy {
	m.copies = append(m.copies, a)
	return a
}

// listed is the growth of a metric that lists scores and labels: two blocks a
// batch, of four bytes a row each.
func listed(marker string) Growth {
	return Growth{Marker: marker, Event: PerStep, Every: 1, First: 1, Blocks: 2, Bytes: 8, Unit: "row", Shape: Linear, Owner: snapshot.OwnedByUser}
}

// listBound is the most that such a metric lists in an epoch.
func listBound(s sizes) Amount {
	return Amount{2 * int64(s.epoch), snapshot.Bytes(8 * s.epoch * s.maxRows())}
}

// listMetric measures how well the first class is separated from the others. As metrics
// do whose call gives the value of the batch alone, each takes the batch up all the
// same, for the value of the epoch.
type listMetric struct {
	*trainer
	marker string
	area   *metric.AUROC
}

func newListMetric(t *trainer) (any, error) {
	m := &listMetric{trainer: t, marker: t.draws.id, area: metric.NewAUROC(t.ops.Valid())}
	t.on.step, t.on.epoch = m.step, m.epoch
	t.on.close = m.area.Reset
	return m, nil
}

func (m *listMetric) step(b *batch, logits *engine.Tensor) error {
	v := m.ops.Valid()
	scores := v.Reshape(v.Neg(v.Slice(logits, 1, 0, 1)), int(b.rows()))
	m.area.Update(scores, b.labels) //leak:L12 held:D16
	m.addsUnits(m.marker, b.rows())

	now := metric.NewAUROC(v)
	now.Update(scores, b.labels)
	m.measure(now.Compute())
	now.Reset()
	return nil
}

func (m *listMetric) epoch() error {
	if m.marker == "D16" {
		m.measure(m.area.Compute())
	}
	if m.config.Fixed || m.marker == "D16" {
		m.area.Reset()
	}
	return nil
}
