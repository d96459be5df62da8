package workload

import (
	"math/rand/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// lazyPrograms are programs that make something when it is first needed, a number
// of times, and never again.
func lazyPrograms() []Workload {
	lazy := func(id, alias, title string, bound func(d draws) Amount, attach func(*trainer) (any, error)) Workload {
		return Workload{
			ID: id, Alias: alias, Title: title, Label: Bounded,
			Truth: func(seed int64) Truth {
				return Truth{Steps: 160, Growth: []Growth{{
					Marker: id, Event: PerRebuild, Every: 1, First: 1, Blocks: 1, Bytes: 4, Unit: "number", Shape: Linear,
					Bound: bound(draws{id, seed}), Owner: snapshot.OwnedByCache,
				}}}
			},
			New: shared(id, attach),
		}
	}
	return []Workload{
		unfrozen(),
		lazy("D19", "workers-warm-up", "the workers of a loader start one by one, each with a buffer for its batch", func(d draws) Amount {
			n, s := int64(len(workerStarts(d))), d.sizes()
			return Amount{n, snapshot.Bytes(4*s.maxRows()*s.features) * snapshot.Bytes(n)}
		}, newWorkers),
		lazy("D22", "handles-by-thread", "each thread adds up sums of its own, from its first batch on", func(d draws) Amount {
			n, s := int64(threadCount(d)), d.sizes()
			return Amount{n, snapshot.Bytes(4*s.classes*s.features) * snapshot.Bytes(n)}
		}, newThreads),
		lazy("D28", "autotuning", "tiles of many sizes are tried in the first steps, each with a workspace", func(d draws) Amount {
			var all Amount
			for _, width := range tileWidths(d) {
				all.Blocks++
				all.Bytes += snapshot.Bytes(4 * d.sizes().maxRows() * width)
			}
			return all
		}, newTiled),
	}
}

// unfrozen is D14, whose layers get their state in the shared step of the optimizer.
func unfrozen() Workload {
	sizesOf := func(d draws) sizes {
		s := d.sizes()
		s.layers = d.between("deep", 3, 5)
		return s
	}
	return Workload{
		ID: "D14", Alias: "layers-unfrozen", Title: "layers are unfrozen one by one, and get their state then",
		Label: Bounded, Cause: "optimizer-state",
		Truth: func(seed int64) Truth {
			d := draws{"D14", seed}
			g := copyGrowth("D14", sizesOf(d))
			g.Event, g.Owner = PerRebuild, snapshot.OwnedByOptim
			copies := int64(1 + d.optimizer())
			g.Blocks, g.Bytes = copies*g.Blocks, snapshot.Bytes(copies)*g.Bytes
			g.Bound = Amount{g.Blocks, g.Bytes}
			return Truth{Steps: 160, Growth: []Growth{g}}
		},
		New: func(c Config) (Instance, error) {
			d := draws{"D14", c.Seed}
			return attached(c, d, sizesOf(d), func(t *trainer) (any, error) {
				frozen := t.model.layers[:len(t.model.layers)-1]
				for _, l := range frozen {
					t.ops.Untrack(l.Parameters()...)
				}
				every := int64(t.draws.between("unfreeze every", 8, 15))
				t.on.step = func(*batch, *engine.Tensor) error {
					if t.steps%every == 0 && len(frozen) > 0 {
						last := len(frozen) - 1
						t.ops.Track(frozen[last].Parameters()...)
						frozen = frozen[:last]
						t.adds("D14")
					}
					return nil
				}
				return t, nil
			})
		},
	}
}

// workerStarts draws the steps after which another worker of a loader starts: soon,
// then ever more slowly.
func workerStarts(d draws) []int64 {
	var at []int64
	for i := range d.between("workers", 4, 6) {
		at = append(at, int64(1)<<i-1)
	}
	return at
}

// workers bring batches to the model, each in a buffer of its own, in turns. One
// more starts while the model had to wait.
type workers struct {
	*trainer
	starts  []int64
	turn    int
	buffers []*engine.Tensor // [most rows features], of the workers that run
}

func newWorkers(t *trainer) (any, error) {
	w := &workers{trainer: t, starts: workerStarts(t.draws)}
	t.on.input = w.bring
	t.on.close = func() { releaseAll(&w.buffers) }
	return w, nil
}

func (w *workers) bring(o engine.Ops, b *batch) *engine.Tensor {
	most, width := w.sizes.maxRows(), w.sizes.features
	if n := len(w.buffers); n < len(w.starts) && w.starts[n] <= w.steps {
		w.buffers = append(w.buffers, o.Full(0, most, width).Own(snapshot.OwnedByCache)) //held:D19
		w.addsUnits("D19", int64(most*width))
	}
	w.turn = (w.turn + 1) % len(w.buffers)
	brought := o.Slice(w.buffers[w.turn], 0, 0, int(b.rows()))
	o.Assign(brought, b.x)
	return brought
}

// threadCount draws how many threads there are.
func threadCount(d draws) int { return d.between("threads", 3, 8) }

// threads sum up the rows of each class, each for itself: a batch goes to the first
// that is idle, which is one of the first mostly.
type threads struct {
	*trainer
	idle *rand.Rand
	sums []*engine.Tensor // [classes features] of each thread; nil before its first batch
}

func newThreads(t *trainer) (any, error) {
	h := &threads{trainer: t, idle: t.draws.stream("idle"), sums: make([]*engine.Tensor, threadCount(t.draws))}
	t.on.step, t.on.epoch = h.step, h.epoch
	t.on.close = func() {
		for i := range h.sums {
			releaseOne(&h.sums[i])
		}
	}
	return h, nil
}

func (h *threads) step(b *batch, _ *engine.Tensor) error {
	v := h.ops.Valid()
	thread := min(h.idle.IntN(len(h.sums)), h.idle.IntN(len(h.sums)))
	if h.sums[thread] == nil {
		h.sums[thread] = v.Full(0, h.sizes.classes, h.sizes.features).Own(snapshot.OwnedByCache) //held:D22
		h.addsUnits("D22", int64(h.sizes.classes*h.sizes.features))
	}
	v.Assign(h.sums[thread], v.Add(h.sums[thread], v.ScatterAdd(b.x, b.labels, h.sizes.classes)))
	return nil
}

// epoch puts the sums of all threads together, and begins anew.
func (h *threads) epoch() error {
	v := h.ops.Valid()
	total := v.Full(0, h.sizes.classes, h.sizes.features)
	for _, sum := range h.sums {
		if sum != nil {
			total = v.Add(total, sum)
			v.Assign(sum, v.Full(0))
		}
	}
	h.measure(float64(v.Floats(v.MaxOver(v.MaxOver(total, 1), 0))[0]))
	return nil
}

// tileWidths draws the widths of tiles that are tried.
func tileWidths(d draws) []int {
	rng := d.stream("tiles")
	var widths []int
	for range 5 + rng.IntN(8) {
		widths = append(widths, 1+rng.IntN(d.sizes().features))
	}
	return widths
}

// tiled projects what the model reads by a product in tiles. In each of the first
// steps another width of tiles is tried, and then the one of least padding stays.
type tiled struct {
	*trainer
	projection *engine.Tensor // [features features]
	widths     []int
	best       int
	spaces     []*engine.Tensor // [most rows width], of all widths that were tried
}

func newTiled(t *trainer) (any, error) {
	p := &tiled{trainer: t, widths: tileWidths(t.draws)}
	p.projection = t.ops.Rand(engine.NewRandom(uint64(t.config.Seed)+1).Draw(), t.sizes.features, t.sizes.features)
	t.on.input = p.project
	t.on.close = func() {
		p.projection.Release()
		releaseAll(&p.spaces)
	}
	return p, nil
}

// padding is how many columns too much tiles of a width compute.
func (p *tiled) padding(width int) int { return (width - p.sizes.features%width) % width }

// project computes x·projection.
func (p *tiled) project(o engine.Ops, b *batch) *engine.Tensor {
	at := p.best
	if !b.heldOut && len(p.spaces) < len(p.widths) {
		at = len(p.spaces)
		most := p.sizes.maxRows()
		p.spaces = append(p.spaces, o.Full(0, most, p.widths[at]).Own(snapshot.OwnedByCache)) //held:D28
		p.addsUnits("D28", int64(most*p.widths[at]))
		if p.padding(p.widths[at]) < p.padding(p.widths[p.best]) {
			p.best = at
		}
	}
	var tiles []*engine.Tensor
	for from := 0; from < p.sizes.features; from += p.widths[at] {
		to := min(from+p.widths[at], p.sizes.features)
		tile := o.Slice(o.Slice(p.spaces[at], 0, 0, int(b.rows())), 1, 0, to-from)
		o.Assign(tile, o.MatMul(b.x, o.Slice(p.projection, 1, from, to)))
		tiles = append(tiles, o.Copy(tile))
	}
	return o.Concat(1, tiles...)
}
