package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/snapshot"
)

// replays are programs that keep experience to train on it again.
func replays() []Workload {
	replay := func(id, alias, title string, label Label, cause string) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: label, Cause: cause,
			Truth: func(seed int64) Truth {
				d := draws{id, seed}
				r := replayOf(d)
				g := Growth{
					Marker: id, Event: PerStep, Every: r.beat.every, First: r.beat.first, Blocks: 2,
					Bytes: snapshot.Bytes(4 * (d.sizes().features + 1)), Shape: Linear, Owner: snapshot.OwnedByCache,
				}
				full := Amount{2 * r.capacity, snapshot.Bytes(r.capacity) * g.Bytes}
				if label == Leak {
					g.Rest = full
				} else {
					g.Bound = full
				}
				return Truth{Steps: r.steps, Growth: []Growth{g}}
			},
			New: shared(id, newReplaying),
		}
	}
	// Only who knows that there is an end can tell it from L38 until then.
	filling := replay("D06", "replay-filling", "examples are kept to train on them again, in a ring that is not yet full when the run ends", Bounded, "")
	filling.Bounds = func(seed int64) []snapshot.Bound {
		return []snapshot.Bound{{Where: "replaying.step", Blocks: 2 * replayOf(draws{"D06", seed}).capacity}}
	}
	return []Workload{
		replay("L38", "replay-without-cap", "examples are kept to train on the last ones again, in a list that forgets none", Leak, "cache-without-bound"),
		replay("D05", "replay-full", "examples are kept to train on them again, in a ring that is full before the run ends", Bounded, ""),
		filling,
	}
}

// replayDraws is how a replay buffer fills.
type replayDraws struct {
	beat            rhythm
	capacity, steps int64
}

func replayOf(d draws) replayDraws {
	r := replayDraws{beat: d.rhythm()}
	r.steps = r.beat.runFor(15)
	items := (r.steps-r.beat.first)/r.beat.every + 1
	switch d.id {
	case "D05":
		r.capacity = items * int64(d.between("full", 20, 60)) / 100
	case "D06":
		r.capacity = items * int64(d.between("full", 120, 190)) / 100
	default:
		r.capacity = items / 5
	}
	return r
}

// replaying keeps the first example of a batch, with its label, and trains on some of
// the last that it kept (Rolnick et al. 2019).
type replaying struct {
	*trainer
	replayDraws
	buffer *data.Replay
	rng    *rand.Rand
}

func newReplaying(t *trainer) (any, error) {
	r := &replaying{trainer: t, replayDraws: replayOf(t.draws), rng: t.draws.stream("replayed")}
	capacity := int(r.capacity)
	if t.draws.id == "L38" && !t.config.Fixed {
		capacity = 0
	}
	r.buffer = data.NewReplay(capacity)
	t.on.loss, t.on.step = r.loss, r.step
	t.on.close = r.buffer.Release
	return r, nil
}

// loss is the loss of the batch, and of what is replayed.
func (r *replaying) loss(_ *batch, _, loss *engine.Tensor) *engine.Tensor {
	if r.buffer.Len() == 0 {
		return loss
	}
	const rows = 4
	o := r.ops
	again := r.buffer.SampleLast(o, r.rng, rows, int(r.capacity))
	logits := r.model.Forward(o, o.Reshape(again[0], rows, r.sizes.features))
	return o.Add(loss, engine.CrossEntropy(o, logits, o.Reshape(again[1], rows), nil))
}

func (r *replaying) step(b *batch, _ *engine.Tensor) error {
	if !r.beat.due(r.trainer.steps) {
		return nil
	}
	v := r.ops.Valid()
	first := func(t *engine.Tensor) *engine.Tensor { return v.Slice(t, 0, 0, 1) }
	r.buffer.Add(v.Copy(first(b.x)), v.Copy(first(b.labels))) //leak:L38 held:D05 held:D06
	r.adds(r.draws.id)
	return nil
}
