package workload

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/snapshot"
)

// caches are programs that keep results to use them again.
func caches() []Workload {
	return []Workload{
		{
			ID: "L18", Alias: "memo-without-cap", Title: "a teacher's answers are kept by the batch's number, and no batch comes twice",
			Label: Leak, Cause: "cache-without-bound",
			Truth: func(seed int64) Truth {
				d := draws{"L18", seed}
				g := memoGrowth(d)
				room := int64(memoRoom(d))
				g.Rest = Amount{room, snapshot.Bytes(room*int64(d.sizes().maxRows())) * g.Bytes}
				return Truth{Steps: runFor(max(12, 2*room), g.Every), Growth: []Growth{g}}
			},
			New: shared("L18", newDistilled),
		},
		{
			ID: "D04", Alias: "memo-with-cap", Title: "a cache of a teacher's answers by the batch's number forgets the oldest",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D04", seed}
				g := memoGrowth(d)
				room := int64(memoRoom(d))
				g.Bound = Amount{room, snapshot.Bytes(room*int64(d.sizes().maxRows())) * g.Bytes}
				return Truth{Steps: runFor(2*room, g.Every), Growth: []Growth{g}}
			},
			New: shared("D04", newDistilled),
		},
		{
			ID: "D03", Alias: "plans-by-shape", Title: "an input buffer for each of a few sizes of batch",
			Label: Bounded, Families: []Family{DynamicGraphs},
			Truth: func(seed int64) Truth {
				s := planSizes(draws{"D03", seed})
				g := Growth{Marker: "D03", Event: PerShape, Every: 1, First: 1, Blocks: 1, Bytes: 4, Unit: "number", Shape: Linear, Owner: snapshot.OwnedByCache}
				least := s.rows - int(s.noise*float64(s.rows))
				for bucket := planBucket(least); bucket <= planBucket(s.maxRows()); bucket += planStep {
					g.Bound.Blocks++
					g.Bound.Bytes += snapshot.Bytes(4 * bucket * s.features)
				}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: func(c Config) (Instance, error) {
				d := draws{"D03", c.Seed}
				return attached(c, d, planSizes(d), newPlans)
			},
		},
		{
			ID: "L31", Alias: "cache-regrown", Title: "attention looks back a few rows, and its cache is replaced by one with all rows until now",
			Label: Leak, Cause: "cache-regrown",
			Truth: func(seed int64) Truth {
				d := draws{"L31", seed}
				width, beat, room := regrownDraws(d)
				return Truth{Steps: beat.runFor(12), Growth: []Growth{{
					Marker: "L31", Event: PerStep, Every: beat.every, First: beat.first, Blocks: 1, Bytes: snapshot.Bytes(4 * width), Shape: BytesOnly,
					Rest:  Amount{1, snapshot.Bytes(4 * width * room)},
					Owner: snapshot.OwnedByUser,
				}}}
			},
			New: shared("L31", newRegrown),
		},
		{
			ID: "L32", Alias: "doubling-buffer", Title: "the path of an epoch is recorded in a buffer that doubles where it is full, and is never truncated",
			Label: Leak, Cause: "cache-regrown",
			Truth: func(seed int64) Truth {
				d := draws{"L32", seed}
				g := Growth{
					Marker: "L32", Event: PerStep, Every: 1, First: 1, Blocks: 1,
					Bytes: snapshot.Bytes(4 * doublingWidth(d)), Shape: Doubling, Owner: snapshot.OwnedByUser,
				}
				g.Rest = g.Live(Count{Times: int64(d.sizes().epoch)})
				return Truth{Steps: 300, Growth: []Growth{g}}
			},
			New: shared("L32", newDoubling),
		},
	}
}

// memoRoom draws how many answers a bounded memo keeps.
func memoRoom(d draws) int { return d.between("room", 3, 10) }

// memoGrowth is what a memo takes: every so many batches go to the teacher.
func memoGrowth(d draws) Growth {
	return Growth{
		Marker: d.id, Event: PerStep, Every: d.rhythm().every, First: 1,
		Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().classes), Unit: "row", Shape: Linear, Owner: snapshot.OwnedByCache,
	}
}

// distilled learns from a teacher as well, a model that is not trained any more and
// is asked once for a batch.
type distilled struct {
	*trainer
	every   int64
	room    int64 // 0 for no end
	teacher *classifier
	answers map[int64]*engine.Tensor // [rows classes] by the batch's number
}

func newDistilled(t *trainer) (any, error) {
	m := &distilled{trainer: t, every: t.draws.rhythm().every, answers: make(map[int64]*engine.Tensor)}
	if t.config.Fixed || t.draws.id == "D04" {
		m.room = int64(memoRoom(t.draws))
	}
	t.on.loss = m.loss
	err := engine.Run(t.ops, func(*engine.Scope) error {
		m.teacher = newClassifier(t.ops, engine.NewRandom(uint64(t.config.Seed)+1), t.sizes)
		nn.Keep(m.teacher)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.on.close = func() {
		releaseMap(m.answers)
		nn.Release(m.teacher)
	}
	return m, nil
}

// loss is the labels' loss, and how far the teacher's answers are.
func (m *distilled) loss(b *batch, logits, loss *engine.Tensor) *engine.Tensor {
	if b.step%m.every != 0 {
		return loss
	}
	off := engine.MSE(m.ops, logits, m.answer(b), engine.Average)
	return m.ops.Add(loss, engine.Scale(m.ops, off, 0.1))
}

// answer is the teacher's to a batch.
func (m *distilled) answer(b *batch) *engine.Tensor {
	if known := m.answers[b.step]; known != nil {
		return known
	}
	answer := m.teacher.Forward(m.ops.Valid(), b.x).Own(snapshot.OwnedByCache) //leak:L18 held:D04
	m.answers[b.step] = answer
	m.addsUnits(m.draws.id, b.rows())
	if oldest := b.step - m.room*m.every; m.room > 0 && m.answers[oldest] != nil {
		m.answers[oldest].Release()
		delete(m.answers, oldest)
	}
	return answer
}

// planStep is what batches are rounded up to, in rows.
const planStep = 4

// planBucket is a batch's size, rounded up.
func planBucket(rows int) int { return (rows + planStep - 1) / planStep * planStep }

// planSizes draws sizes with batches of many sizes.
func planSizes(d draws) sizes {
	s := d.sizes()
	s.noise = d.share("plan noise", 0.15, 0.4)
	return s
}

// plans has the model read from buffers that stay where they are, as programs must
// that are recorded and played back: one for each size of batch, rounded up.
type plans struct {
	*trainer
	bySize map[int]*engine.Tensor // [size features]
}

func newPlans(t *trainer) (any, error) {
	p := &plans{trainer: t, bySize: make(map[int]*engine.Tensor)}
	t.on.input = p.fill
	t.on.close = func() { releaseMap(p.bySize) }
	return p, nil
}

// fill writes a batch to the buffer of its size.
func (p *plans) fill(o engine.Ops, b *batch) *engine.Tensor {
	rows := int(b.rows())
	size := planBucket(rows)
	if p.bySize[size] == nil {
		p.bySize[size] = o.Full(0, size, p.sizes.features).Own(snapshot.OwnedByCache) //held:D03
		p.addsUnits("D03", int64(size*p.sizes.features))
	}
	filled := o.Slice(p.bySize[size], 0, 0, rows)
	o.Assign(filled, b.x)
	return filled
}

// regrownDraws draws the width of a cache's rows, when one comes, and
// how many a bounded one has.
func regrownDraws(d draws) (width int, beat rhythm, room int) {
	return d.between("width", 128, 1024), d.rhythm(), d.between("room", 2, 6)
}

// regrown reads the stream of batches with attention over the last rows that it
// made of them.
type regrown struct {
	*trainer
	width, room int
	beat        rhythm
	keys        *engine.Tensor // [features width]
	cache       *engine.Tensor // [rows width]; nil while there is none
}

func newRegrown(t *trainer) (any, error) {
	r := &regrown{trainer: t}
	r.width, r.beat, r.room = regrownDraws(t.draws)
	r.keys = t.ops.Rand(engine.NewRandom(uint64(t.config.Seed)+1).Draw(), t.sizes.features, r.width)
	t.on.step = r.step
	t.on.close = func() {
		r.keys.Release()
		releaseOne(&r.cache)
	}
	return r, nil
}

func (r *regrown) step(b *batch, _ *engine.Tensor) error {
	if !r.beat.due(r.steps) {
		return nil
	}
	v := r.ops.Valid()
	row := v.MatMul(engine.Mean(v, v.Reshape(b.x, 1, int(b.rows()), r.sizes.features), 1), r.keys)
	rows := []*engine.Tensor{row}
	if r.cache != nil {
		kept := r.cache.Dim(0)
		from := 0
		if r.config.Fixed {
			from = max(0, kept-r.room+1)
		}
		rows = []*engine.Tensor{v.Slice(r.cache, 0, from, kept), row}
	}
	grown := v.Concat(0, rows...).Keep() //leak:L31
	releaseOne(&r.cache)
	r.cache = grown
	r.adds("L31")
	r.measure(r.looksBack(row))
	return nil
}

// looksBack is the largest weight that attention gives to one of the last rows.
func (r *regrown) looksBack(row *engine.Tensor) float64 {
	v := r.ops.Valid()
	rows := r.cache.Dim(0)
	window := v.Slice(r.cache, 0, max(0, rows-r.room), rows)
	scores := v.MatMul(row, v.Permute(window, 1, 0))
	weights := engine.Softmax(v, engine.Scale(v, scores, 1/float32(math.Sqrt(float64(r.width)))))
	return float64(v.Floats(v.MaxOver(weights, 1))[0])
}

// doublingWidth draws the width of a buffer's rows.
func doublingWidth(d draws) int { return d.between("width", 32, 256) }

// doubling records where an epoch's batches lie in a space of fixed directions.
type doubling struct {
	*trainer
	width       int
	directions  *engine.Tensor // [features width]
	buffer      *engine.Tensor // [capacity width]; nil while nothing was appended
	used, start int            // rows in all, and those before the epoch
}

func newDoubling(t *trainer) (any, error) {
	d := &doubling{trainer: t, width: doublingWidth(t.draws)}
	d.directions = t.ops.Rand(engine.NewRandom(uint64(t.config.Seed)+1).Draw(), t.sizes.features, d.width)
	t.on.step, t.on.epoch = d.step, d.epoch
	t.on.close = func() {
		d.directions.Release()
		d.truncate()
	}
	return d, nil
}

// truncate gives the buffer back.
func (d *doubling) truncate() {
	releaseOne(&d.buffer)
	d.used = 0
}

func (d *doubling) step(b *batch, _ *engine.Tensor) error {
	v := d.ops.Valid()
	if d.buffer == nil || d.used == d.buffer.Dim(0) {
		larger := v.Full(0, max(1, 2*d.used), d.width).Keep() //leak:L32
		if d.buffer != nil {
			v.Assign(v.Slice(larger, 0, 0, d.used), d.buffer)
			d.buffer.Release()
		}
		d.buffer = larger
	}
	v.Assign(v.Slice(d.buffer, 0, d.used, d.used+1), engine.Mean(v, v.MatMul(b.x, d.directions), 0))
	d.used++
	d.adds("L32")
	return nil
}

// epoch measures how far the path went in each direction, at most.
func (d *doubling) epoch() error {
	v := d.ops.Valid()
	path := v.Slice(d.buffer, 0, d.start, d.used)
	reach := v.Add(v.MaxOver(path, 0), v.MaxOver(v.Neg(path), 0))
	d.measure(float64(v.Floats(v.MaxOver(reach, 0))[0]))
	if d.config.Fixed {
		d.truncate()
	}
	d.start = d.used
	return nil
}
