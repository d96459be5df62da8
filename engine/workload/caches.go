package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// caches are programs that keep results to use them again.
func caches() []Workload {
	return []Workload{
		{
			ID: "L18", Alias: "memo-without-cap", Title: "results are kept by the batch's number, and no batch comes twice",
			Label: Leak, Cause: "cache-without-bound",
			Truth: func(seed int64) Truth {
				d := draws{"L18", seed}
				g := memoGrowth(d)
				room := int64(memoRoom(d))
				g.Rest = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: runFor(max(12, 2*room), g.Every), Growth: []Growth{g}}
			},
			New: shared("L18", newMemo),
		},
		{
			ID: "D04", Alias: "memo-with-cap", Title: "a cache by the batch's number forgets its oldest entries",
			Label: Bounded,
			Truth: func(seed int64) Truth {
				d := draws{"D04", seed}
				g := memoGrowth(d)
				room := int64(memoRoom(d))
				g.Bound = Amount{room, snapshot.Bytes(room) * g.Bytes}
				return Truth{Steps: runFor(2*room, g.Every), Growth: []Growth{g}}
			},
			New: shared("D04", newMemo),
		},
		{
			ID: "D03", Alias: "plans-by-shape", Title: "a workspace for each size of batch, of which there are a few",
			Label: Bounded, Families: []Family{DynamicGraphs},
			Truth: func(seed int64) Truth {
				s := planSizes(draws{"D03", seed})
				g := Growth{Marker: "D03", Event: PerShape, Every: 1, First: 1, Blocks: 1, Bytes: 4, Unit: "number", Shape: Linear, Owner: snapshot.OwnedByCache}
				least := s.rows - int(s.noise*float64(s.rows))
				for bucket := planBucket(least); bucket <= planBucket(s.maxRows()); bucket += planStep {
					g.Bound.Blocks++
					g.Bound.Bytes += snapshot.Bytes(4 * bucket * s.hidden)
				}
				return Truth{Steps: 120, Growth: []Growth{g}}
			},
			New: func(c Config) (Instance, error) {
				d := draws{"D03", c.Seed}
				return attached(c, d, planSizes(d), newPlans)
			},
		},
		{
			ID: "L31", Alias: "cache-regrown", Title: "a cache is replaced by a larger one again and again",
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
			ID: "L32", Alias: "doubling-buffer", Title: "a buffer doubles where it is full, and is never truncated",
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

// memoRoom draws how many results a bounded memo keeps.
func memoRoom(d draws) int { return d.between("room", 3, 10) }

// memoGrowth is what a memo takes: every so many batches have one key.
func memoGrowth(d draws) Growth {
	return Growth{
		Marker: d.id, Event: PerStep, Every: d.rhythm().every, First: 1,
		Blocks: 1, Bytes: snapshot.Bytes(4 * d.sizes().features), Shape: Linear, Owner: snapshot.OwnedByUser,
	}
}

// memo computes what each batch's features are scaled by, once a batch.
type memo struct {
	*trainer
	every  int64
	room   int // 0 for no end
	scales map[int64]*engine.Tensor
}

func newMemo(t *trainer) (any, error) {
	m := &memo{trainer: t, every: t.draws.rhythm().every, scales: make(map[int64]*engine.Tensor)}
	if t.config.Fixed || t.draws.id == "D04" {
		m.room = memoRoom(t.draws)
	}
	t.on.step = m.step
	t.on.close = func() { releaseMap(m.scales) }
	return m, nil
}

func (m *memo) step(b *batch, _ *engine.Tensor) error {
	key := b.step / m.every
	if m.scales[key] == nil {
		m.scales[key] = m.ops.Valid().Recip(engine.Mean(m.ops.Valid(), b.x, 0)).Keep() //leak:L18 held:D04
		m.adds(m.draws.id)
	}
	if old, ok := m.scales[key-int64(m.room)]; ok && m.room > 0 {
		old.Release()
		delete(m.scales, key-int64(m.room))
	}
	m.measure(float64(m.ops.Floats(m.scales[key])[0]))
	return nil
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

// plans keeps a workspace for each size of batch.
type plans struct {
	*trainer
	bySize map[int]*engine.Tensor
}

func newPlans(t *trainer) (any, error) {
	p := &plans{trainer: t, bySize: make(map[int]*engine.Tensor)}
	t.on.step = p.step
	t.on.close = func() { releaseMap(p.bySize) }
	return p, nil
}

func (p *plans) step(b *batch, _ *engine.Tensor) error {
	size := planBucket(int(b.rows()))
	if p.bySize[size] == nil {
		p.bySize[size] = p.ops.Full(0, size, p.sizes.hidden).Own(snapshot.OwnedByCache) //held:D03
		p.addsUnits("D03", int64(size*p.sizes.hidden))
	}
	return nil
}

// regrownDraws draws the width of a cache's rows, when one comes, and
// how many a bounded one has.
func regrownDraws(d draws) (width int, beat rhythm, room int) {
	return d.between("width", 128, 1024), d.rhythm(), d.between("room", 2, 6)
}

// regrown caches a row of positions for each length that was asked for.
type regrown struct {
	*trainer
	width, room int
	beat        rhythm
	cache       *engine.Tensor // [rows width]; nil while there is none
}

func newRegrown(t *trainer) (any, error) {
	r := &regrown{trainer: t}
	r.width, r.beat, r.room = regrownDraws(t.draws)
	t.on.step = r.step
	t.on.close = func() {
		if r.cache != nil {
			r.cache.Release()
		}
	}
	return r, nil
}

func (r *regrown) step(*batch, *engine.Tensor) error {
	if !r.beat.due(r.steps) {
		return nil
	}
	v := r.ops.Valid()
	rows := []*engine.Tensor{v.Full(float32(r.steps), 1, r.width)}
	if r.cache != nil {
		kept := r.cache.Dim(0)
		from := 0
		if r.config.Fixed {
			from = max(0, kept-r.room+1)
		}
		rows = append(rows[:0], v.Slice(r.cache, 0, from, kept), rows[0])
	}
	grown := v.Concat(0, rows...).Keep() //leak:L31
	if r.cache != nil {
		r.cache.Release()
	}
	r.cache = grown
	r.adds("L31")
	r.measure(float64(v.Floats(v.Slice(r.cache, 0, r.cache.Dim(0)-1, r.cache.Dim(0)))[0]))
	return nil
}

// doublingWidth draws the width of a buffer's rows.
func doublingWidth(d draws) int { return d.between("width", 32, 256) }

// doubling appends to a buffer on the device.
type doubling struct {
	*trainer
	width  int
	used   int
	buffer *engine.Tensor // [capacity width]; nil while nothing was appended
}

func newDoubling(t *trainer) (any, error) {
	d := &doubling{trainer: t, width: doublingWidth(t.draws)}
	t.on.step, t.on.epoch = d.step, d.epoch
	t.on.close = d.truncate
	return d, nil
}

// truncate gives the buffer back.
func (d *doubling) truncate() {
	if d.buffer != nil {
		d.buffer.Release()
	}
	d.buffer, d.used = nil, 0
}

func (d *doubling) step(_ *batch, logits *engine.Tensor) error {
	v := d.ops.Valid()
	if d.buffer == nil || d.used == d.buffer.Dim(0) {
		larger := v.Full(0, max(1, 2*d.used), d.width).Keep() //leak:L32
		if d.buffer != nil {
			v.Assign(v.Slice(larger, 0, 0, d.used), d.buffer)
			d.buffer.Release()
		}
		d.buffer = larger
	}
	row := v.Slice(d.buffer, 0, d.used, d.used+1)
	v.Assign(row, engine.Mean(v, logits))
	d.used++
	d.adds("L32")
	d.measure(float64(v.Floats(row)[0]))
	return nil
}

func (d *doubling) epoch() error {
	if d.config.Fixed {
		d.truncate()
	}
	return nil
}
