package workload

import (
	"math"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/snapshot"
)

// sequences are programs whose memory follows the length of what they read: they
// take the rows of a batch for one sequence, and tell the class of each row.
func sequences() []Workload {
	reader := func(w Workload, growth func(c contextDraws) Growth, attach func(*trainer) (any, error)) Workload {
		w.Truth = func(seed int64) Truth {
			return Truth{Steps: contextSteps, Growth: []Growth{growth(contextOf(draws{w.ID, seed}))}}
		}
		w.New = func(c Config) (Instance, error) {
			d := draws{w.ID, c.Seed}
			return attached(c, d, contextOf(d).sizes, attach)
		}
		return w
	}
	return []Workload{
		reader(Workload{
			ID: "D10", Alias: "growing-sequence", Title: "a curriculum of ever longer sequences, and a table of positions as long as the longest",
			Label: Bounded, Families: []Family{LongSequences},
		}, func(c contextDraws) Growth { return c.table("D10", c.length(contextSteps)) }, newTagger),
		reader(Workload{
			ID: "D09", Alias: "sorted-by-length", Title: "each epoch goes from short to long sequences, and the table of positions is as long as the last",
			Label: Bounded, Families: []Family{DynamicGraphs, LongSequences},
		}, func(c contextDraws) Growth { return c.table("D09", c.length(int64(c.sizes.epoch))) }, newTagger),
		reader(Workload{
			ID: "D30", Alias: "cache-per-sequence", Title: "attention remembers the document that is being read, and forgets it at its end",
			Label: Bounded, Families: []Family{LongSequences},
		}, func(c contextDraws) Growth { return c.table("D30", c.span*int64(c.sizes.maxRows())) }, newDocumentReader),
		reader(Workload{
			ID: "L19", Alias: "plans-without-end", Title: "a table of positions is kept for each length, and there is no end of lengths",
			Label: Leak, Families: []Family{DynamicGraphs}, Cause: "cache-without-bound",
		}, func(c contextDraws) Growth {
			return Growth{
				Marker: "L19", Event: PerShape, Every: 1, First: 1, Blocks: 1, Bytes: snapshot.Bytes(4 * c.sizes.features), Unit: "row", Shape: Linear,
				// The tables of all buckets, each as long as its longest.
				Rest:  Amount{lengthBuckets, snapshot.Bytes(4 * c.sizes.features * lengthBucket * lengthBuckets * (lengthBuckets + 1) / 2)},
				Owner: snapshot.OwnedByCache,
			}
		}, newLengthTables),
	}
}

// contextSteps is how long these programs run.
const contextSteps = 200

// contextDraws is how long sequences are.
type contextDraws struct {
	id    string
	sizes sizes
	span  int64 // steps until a document ends, or sequences get longer by one
}

func contextOf(d draws) contextDraws {
	c := contextDraws{id: d.id, sizes: d.sizes(), span: int64(d.between("span", 4, 25))}
	switch d.id {
	case "D09", "D10":
		c.sizes.rows = 8 // of what is held out: as short as the first
	case "L19":
		c.sizes.features, c.sizes.hidden, c.sizes.layers = d.between("features", 4, 8), d.between("hidden", 8, 12), 1
	}
	return c
}

// length is the length of the sequence in a step, counted from 1.
func (c contextDraws) length(step int64) int64 {
	if c.id == "D09" {
		return 8 + 2*((step-1)%int64(c.sizes.epoch))
	}
	return 8 + step/c.span
}

// table is one block with a row of features for each element of a sequence.
func (c contextDraws) table(marker string, longest int64) Growth {
	row := snapshot.Bytes(4 * c.sizes.features)
	return Growth{
		Marker: marker, Event: PerStep, Every: 1, First: 1, Blocks: 1, Bytes: row, Unit: "element", Shape: BytesOnly,
		Bound: Amount{1, row * snapshot.Bytes(longest)}, Owner: snapshot.OwnedByCache,
	}
}

// sinusoids tell the positions of a sequence apart: [length width] (Vaswani et al.
// 2017).
func sinusoids(v engine.Ops, length, width int) *engine.Tensor {
	table := make([]float32, 0, length*width)
	for at := range length {
		for i := range width {
			angle := float64(at) / math.Pow(10000, float64(i/2*2)/float64(width))
			table = append(table, float32(math.Sin(angle+float64(i%2)*math.Pi/2)))
		}
	}
	return v.FromFloats(table, length, width)
}

// newAttention makes attention over sequences of a batch's rows, which trains with
// the model.
func newAttention(t *trainer) (*nn.MultiHeadAttention, error) {
	var a *nn.MultiHeadAttention
	err := engine.Run(t.ops, func(*engine.Scope) error {
		a = nn.NewMultiHeadAttention(t.ops, engine.NewRandom(uint64(t.config.Seed)+1), t.sizes.features, 1, true)
		nn.Keep(a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	t.train(a.Parameters()...)
	return a, nil
}

// attend adds to each row of x [n d] what it makes of the rows up to itself in
// context [s d]; x are its last n.
func attend(o engine.Ops, a *nn.MultiHeadAttention, x, context *engine.Tensor) *engine.Tensor {
	n, d := x.Dim(0), x.Dim(1)
	head := func(l *nn.Linear, x *engine.Tensor) *engine.Tensor {
		return o.Reshape(l.Forward(o, x), 1, 1, x.Dim(0), d)
	}
	seen := engine.Attention(o, head(a.Query, x), head(a.Key, context), head(a.Value, context), 1/float32(math.Sqrt(float64(d))), true)
	return o.Add(x, a.Out.Forward(o, o.Reshape(seen, n, d)))
}

// tagger reads a sequence with attention, to which a table tells the positions. It
// is recreated for a longer sequence; where lengths go up and down, for each.
type tagger struct {
	*trainer
	contextDraws
	attention *nn.MultiHeadAttention
	positions *engine.Tensor // [length features]; nil before the first sequence
}

func newTagger(t *trainer) (any, error) {
	g := &tagger{trainer: t, contextDraws: contextOf(t.draws)}
	t.sequences = true
	t.data.rows = func(step int64, _ int) int { return int(g.length(step + 1)) }
	t.on.input = g.encode
	t.on.step = func(b *batch, _ *engine.Tensor) error {
		t.addsUnits(t.draws.id, b.rows())
		return nil
	}
	var err error
	if g.attention, err = newAttention(t); err != nil {
		return nil, err
	}
	t.on.close = func() {
		releaseOne(&g.positions)
		nn.Release(g.attention)
	}
	return g, nil
}

func (g *tagger) encode(o engine.Ops, b *batch) *engine.Tensor {
	length, width := int(b.rows()), b.x.Dim(1)
	if g.positions == nil || g.positions.Dim(0) < length || g.positions.Dim(0) > length && g.id == "D09" {
		releaseOne(&g.positions)
		g.positions = sinusoids(o.Valid(), length, width).Own(snapshot.OwnedByCache) //held:D10 held:D09
	}
	x := o.Add(b.x, o.Slice(g.positions, 0, 0, length))
	return attend(o, g.attention, x, x)
}

// documentReader reads documents batch by batch, with attention over all of the
// document that it has read (Dai et al. 2019).
type documentReader struct {
	*trainer
	span      int64 // batches of a document
	attention *nn.MultiHeadAttention
	read      *engine.Tensor // [rows features] of the document until now; nil at its start
}

func newDocumentReader(t *trainer) (any, error) {
	r := &documentReader{trainer: t, span: contextOf(t.draws).span}
	t.on.input, t.on.step = r.encode, r.remember
	var err error
	if r.attention, err = newAttention(t); err != nil {
		return nil, err
	}
	t.on.close = func() {
		releaseOne(&r.read)
		nn.Release(r.attention)
	}
	return r, nil
}

// encode reads what is held out as documents of one batch.
func (r *documentReader) encode(o engine.Ops, b *batch) *engine.Tensor {
	if b.heldOut {
		return attend(o, r.attention, b.x, b.x)
	}
	if r.steps%r.span == 0 { // the first batch of a document
		releaseOne(&r.read)
	}
	return attend(o, r.attention, b.x, r.until(o, b))
}

// until is the document with a batch after what was read of it.
func (r *documentReader) until(o engine.Ops, b *batch) *engine.Tensor {
	if r.read == nil {
		return o.Copy(b.x)
	}
	return o.Concat(0, r.read, b.x)
}

// remember takes a batch up in what was read.
func (r *documentReader) remember(b *batch, _ *engine.Tensor) error {
	longer := r.until(r.ops.Valid(), b).Own(snapshot.OwnedByCache) //held:D30
	releaseOne(&r.read)
	r.read = longer
	r.addsUnits("D30", int64(longer.Dim(0)))
	return nil
}

// Lengths of L19's sequences go up to lengthBuckets times lengthBucket.
const (
	lengthBucket  = 125
	lengthBuckets = 8
)

// lengthTables keeps a table of positions for each length of input; repaired, for
// each length rounded up.
type lengthTables struct {
	*trainer
	byLength map[int]*engine.Tensor // [length features]
	seen     map[int]bool
}

func newLengthTables(t *trainer) (any, error) {
	p := &lengthTables{trainer: t, byLength: make(map[int]*engine.Tensor), seen: make(map[int]bool)}
	t.sequences = true
	rng := t.draws.stream("lengths")
	t.data.rows = func(int64, int) int { return 1 + rng.IntN(lengthBuckets*lengthBucket) }
	t.on.input = p.encode
	t.on.close = func() { releaseMap(p.byLength) }
	return p, nil
}

func (p *lengthTables) encode(o engine.Ops, b *batch) *engine.Tensor {
	rows := int(b.rows())
	if !p.seen[rows] {
		p.seen[rows] = true
		p.addsUnits("L19", b.rows())
	}
	key := rows
	if p.config.Fixed {
		key = (rows + lengthBucket - 1) / lengthBucket * lengthBucket
	}
	if p.byLength[key] == nil {
		p.byLength[key] = sinusoids(o.Valid(), key, b.x.Dim(1)).Own(snapshot.OwnedByCache) //leak:L19
	}
	return o.Add(b.x, o.Slice(p.byLength[key], 0, 0, rows))
}
