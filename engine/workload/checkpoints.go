package workload

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// checkpointPrograms are programs that keep copies of a model.
func checkpointPrograms() []Workload {
	return []Workload{
		{
			ID: "L24", Alias: "best-models", Title: "a copy of the model is kept for each epoch, to have the best",
			Label: Leak, Cause: "model-copies-kept",
			Truth: func(seed int64) Truth {
				s := draws{"L24", seed}.sizes()
				g := copyGrowth("L24", s)
				g.Event = PerEpoch
				g.Rest = Amount{g.Blocks, g.Bytes} // the best
				return Truth{Steps: runFor(10, int64(s.epoch)), Growth: []Growth{g}}
			},
			New: shared("L24", newModelCopies),
		},
		{
			ID: "L23", Alias: "checkpoint-staging", Title: "a writer keeps the copies that it wrote",
			Label: Leak, Cause: "staging-kept",
			Truth: func(seed int64) Truth {
				d := draws{"L23", seed}
				every, _ := lastCheckpoints(d)
				g := copyGrowth("L23", d.sizes())
				g.Event, g.Owner = PerCheckpoint, snapshot.OwnedByCache
				return Truth{Steps: runFor(12, every), Growth: []Growth{g}}
			},
			New: shared("L23", newStaging),
		},
		{
			ID: "D12", Alias: "double-buffer", Title: "a checkpoint is written from a copy, which lives for a few steps",
			Label: Bounded, Families: []Family{LargeImages},
			Truth: func(seed int64) Truth {
				d := draws{"D12", seed}
				g := Growth{Marker: "D12", Event: PerCheckpoint, Every: 1, First: 1, Blocks: pyramidTensors, Bytes: 4 * pyramidElements, Shape: Linear, Owner: snapshot.OwnedByCache}
				g.Bound = Amount{g.Blocks, g.Bytes}
				every, _ := lastCheckpoints(d)
				return Truth{Steps: max(60, 6*every), Growth: []Growth{g}}
			},
			New: newStagedDetection,
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

// modelCopies keeps copies of the model: of each epoch, for the best of them, or of
// the last checkpoints.
type modelCopies struct {
	*trainer
	room   int // of the last checkpoints; 0 for copies of epochs
	copies []modelCopy
}

// modelCopy is the model as it was.
type modelCopy struct {
	parameters []*engine.Tensor
	loss       float64 // on a batch held out
}

func newModelCopies(t *trainer) (any, error) {
	m := &modelCopies{trainer: t}
	if t.draws.id == "D17" {
		every, room := lastCheckpoints(t.draws)
		t.on.checkpointEvery, m.room = every, int(room)
		t.on.checkpoint = m.copy
	} else {
		t.on.epoch = m.copy
	}
	t.on.close = func() {
		for len(m.copies) > 0 {
			m.forget(0)
		}
	}
	return m, nil
}

// copy keeps the model as it is, and measures how far it is from the oldest
// checkpoint, or from the best epoch.
func (m *modelCopies) copy() error {
	v := m.ops.Valid()
	b := m.data.heldOut(0).upload(v)
	now := modelCopy{loss: float64(v.Floats(engine.CrossEntropy(v, m.model.Forward(v, b.x), b.labels, nil))[0])}
	for _, p := range m.model.Parameters() {
		now.parameters = append(now.parameters, v.Copy(p).Keep()) //leak:L24 held:D17
	}
	m.copies = append(m.copies, now)
	m.adds(m.draws.id)
	if len(m.copies) > m.room && m.room > 0 {
		m.forget(0)
	}
	from := 0
	if m.room == 0 {
		from = m.best()
	}
	for i, p := range m.copies[from].parameters {
		m.measure(float64(v.Floats(engine.L1(v, p, now.parameters[i], engine.Average))[0]))
	}
	if m.config.Fixed && len(m.copies) == 2 {
		m.forget(1 - from)
	}
	return nil
}

// best is the copy with the least loss.
func (m *modelCopies) best() (at int) {
	for i, c := range m.copies {
		if c.loss < m.copies[at].loss {
			at = i
		}
	}
	return at
}

func (m *modelCopies) forget(at int) {
	releaseAll(&m.copies[at].parameters)
	m.copies = slices.Delete(m.copies, at, at+1)
}

// staging copies the model for a writer, which has always written it by the next
// step.
type staging struct {
	*trainer
	staged [][]*engine.Tensor // by checkpoint
}

func newStaging(t *trainer) (any, error) {
	s := &staging{trainer: t}
	t.on.checkpointEvery, _ = lastCheckpoints(t.draws)
	t.on.checkpoint = s.checkpoint
	t.on.close = func() {
		for i := range s.staged {
			releaseAll(&s.staged[i])
		}
	}
	return s, nil
}

func (s *staging) checkpoint() error {
	var copies []*engine.Tensor
	for _, p := range s.model.Parameters() {
		copies = append(copies, s.ops.Valid().Copy(p).Own(snapshot.OwnedByCache)) //leak:L23
	}
	s.staged = append(s.staged, copies)
	s.adds("L23")
	s.measure(write(s.ops, copies))
	if s.config.Fixed {
		releaseAll(&copies)
		s.staged = nil
	}
	return nil
}

// write is the writer. The file is no longer than its checksum. Tensors are brought to the host one after the other.
func write(o engine.Ops, tensors []*engine.Tensor) (sum float64) {
	file := fnv.New32a()
	v := o.Valid()
	for _, t := range tensors {
		_ = binary.Write(file, binary.LittleEndian, v.Floats(t)) // a hash takes all
	}
	return float64(file.Sum32())
}

// The parameters of a Pyramid.
const (
	pyramidTensors  = 22
	pyramidElements = pyramidBackbone + pyramidLateral + pyramidHeads
	pyramidBackbone = 9*(3*16+16*32+32*64+64*64) + 16 + 32 + 64 + 64
	pyramidLateral  = 32*(16+32+64+64) + 4*32
	pyramidHeads    = 9*32*16 + 16 + 16*4 + 4 + 16*4 + 4
)

// stagedDetection trains the detector without its leak, and writes checkpoints.
type stagedDetection struct {
	*detection
	every, left int64 // steps between checkpoints, and until the copy is written
	staged      []*engine.Tensor
	written     int64     // checkpoints
	sums        []float64 // of their files
}

func newStagedDetection(c Config) (Instance, error) {
	d := draws{"D12", c.Seed}
	c.Fixed = true
	inner, err := startDetection(c, detectionOf(d))
	if err != nil {
		return nil, err
	}
	s := &stagedDetection{detection: inner}
	s.every, _ = lastCheckpoints(d)
	return s, nil
}

// Step trains, and writes what was staged a few steps ago.
func (s *stagedDetection) Step() (train.Metrics, error) {
	if s.left--; s.left == 0 {
		s.sums = append(s.sums, write(s.ops, s.staged))
		releaseAll(&s.staged)
	}
	return s.detection.Step()
}

// Measured lists the checksums of the files.
func (s *stagedDetection) Measured() []float64 { return s.sums }

// Phases is a checkpoint at an interval.
func (s *stagedDetection) Phases() []train.Phase {
	return []train.Phase{{Name: train.Checkpointing, When: train.Interval{Every: s.every}, Step: func(int64) (train.Metrics, error) {
		return train.Metrics{}, engine.Run(s.ops, func(*engine.Scope) error {
			for _, p := range s.model.Parameters() {
				s.staged = append(s.staged, s.ops.Valid().Copy(p).Own(snapshot.OwnedByCache)) //held:D12
			}
			s.left = 3
			s.written++
			return s.ops.Sync()
		})
	}}}
}

// Count is how many checkpoints were made.
func (s *stagedDetection) Count(string) Count { return Count{s.written, s.written} }

// Model is the program itself.
func (s *stagedDetection) Model() any { return s }

// Close releases everything.
func (s *stagedDetection) Close() error {
	releaseAll(&s.staged)
	return s.detection.Close()
}
