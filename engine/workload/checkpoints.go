package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// checkpointPrograms are programs that keep copies of a model.
func checkpointPrograms() []Workload {
	return []Workload{
		{
			ID: "L24", Alias: "best-models", Title: "a copy of the best model so far is kept for each epoch",
			Label: Leak, Cause: "model-copies-kept",
			Truth: func(seed int64) Truth {
				s := draws{"L24", seed}.sizes()
				g := copyGrowth("L24", s)
				g.Event = PerEpoch
				g.Rest = Amount{g.Blocks, g.Bytes}
				return Truth{Steps: runFor(10, int64(s.epoch)), Growth: []Growth{g}}
			},
			New: shared("L24", newModelCopies),
		},
		{
			ID: "D17", Alias: "last-checkpoints", Title: "the last few checkpoints stay in memory",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D17", seed}
				every, room := lastCheckpoints(d)
				g := copyGrowth("D17", d.sizes())
				g.Event = PerCheckpoint
				g.Bound = Amount{room * g.Blocks, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: runFor(3*room, every), Growth: []Growth{g}}
			},
			New: shared("D17", newModelCopies),
		},
	}
}

// copyGrowth is what a copy of a model takes.
func copyGrowth(marker string, s sizes) Growth {
	parameters, elements := s.parameters()
	return Growth{
		Marker: marker, Every: 1, First: 1, Blocks: int64(parameters), Bytes: snapshot.Bytes(4 * elements), Shape: Linear,
		Owner: snapshot.OwnedByUser,
	}
}

// lastCheckpoints draws how often one is made, and how many stay.
func lastCheckpoints(d draws) (every, room int64) {
	return int64(d.between("checkpoint every", 5, 15)), int64(d.between("room", 2, 4))
}

// modelCopies keeps copies of the model: of each epoch, or the last checkpoints.
type modelCopies struct {
	*trainer
	room   int64 // 0 for no end
	copies [][]*engine.Tensor
}

func newModelCopies(t *trainer) (any, error) {
	m := &modelCopies{trainer: t}
	switch {
	case t.draws.id == "D17":
		t.on.checkpointEvery, m.room = lastCheckpoints(t.draws)
		t.on.checkpoint = m.copy
	case t.config.Fixed:
		m.room = 1
		fallthrough
	default:
		t.on.epoch = m.copy
	}
	t.on.close = func() { m.forget(0) }
	return m, nil
}

// copy keeps the model as it is, and forgets old copies.
func (m *modelCopies) copy() error {
	var parameters []*engine.Tensor
	for _, p := range m.model.Parameters() {
		parameters = append(parameters, m.ops.Valid().Copy(p).Keep()) //leak:L24 held:D17
	}
	m.copies = append(m.copies, parameters)
	m.adds(m.draws.id)
	if m.room > 0 {
		m.forget(m.room)
	}
	return nil
}

// forget leaves so many of the last copies.
func (m *modelCopies) forget(left int64) {
	for int64(len(m.copies)) > left {
		releaseAll(&m.copies[0])
		m.copies = m.copies[1:]
	}
}
