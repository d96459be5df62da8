package workload

import (
	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// featurePyramid is L30: a detector whose module appends to a list in every
// forward pass and never clears it.
func featurePyramid() Workload {
	return Workload{
		ID: "L30", Alias: "feature-pyramid", Title: "features kept on the module of a detector",
		Label: Leak, Families: []Family{LargeImages}, Cause: "activations-kept",
		Truth: func(seed int64) Truth { return Truth{Steps: 100, Growth: []Growth{featuresKept(seed)}} },
		New:   newDetection,
	}
}

// Pyramid is a small one-stage detector with a feature pyramid (Lin et al. 2017):
// a backbone that halves the image four times, lateral connections, a way back
// up, and a head on the finest level that says for each cell what lies on it and
// how far its edges are.
type Pyramid struct {
	backbone []*nn.Conv2d // 64 → 32 → 16 → 8 → 4 pixels
	lateral  []*nn.Conv2d // of each level, to one width
	head     *nn.Conv2d
	class    *nn.Conv2d
	box      *nn.Conv2d

	features []*engine.Tensor // finest maps, for a look at them after Forward
	fixed    bool             // features do not outlive Forward
}

// NewPyramid draws the parameters; see nn for who owns them.
func NewPyramid(o engine.Ops, r *engine.Random) *Pyramid {
	const width = 32
	p := &Pyramid{}
	in := 3
	for _, out := range []int{16, 32, 64, 64} {
		p.backbone = append(p.backbone, nn.NewConv2d(o, r, in, out, engine.Square(3, 2, 1)))
		p.lateral = append(p.lateral, nn.NewConv2d(o, r, out, width, engine.Square(1, 1, 0)))
		in = out
	}
	p.head = nn.NewConv2d(o, r, width, 16, engine.Square(3, 1, 1))
	p.class = nn.NewConv2d(o, r, 16, data.Classes, engine.Square(1, 1, 0))
	p.box = nn.NewConv2d(o, r, 16, 4, engine.Square(1, 1, 0))
	return p
}

// Parameters lists them from the image to the outputs.
func (p *Pyramid) Parameters() []*engine.Tensor {
	var modules []nn.Module
	for i := range p.backbone {
		modules = append(modules, p.backbone[i], p.lateral[i])
	}
	return nn.Parameters(append(modules, p.head, p.class, p.box)...)
}

// Forward maps images [n 3 64 64] to the logits of each cell's class [n 4 32 32]
// and its distances to the four edges [n 4 32 32], in image sizes.
func (p *Pyramid) Forward(o engine.Ops, x *engine.Tensor) (class, box *engine.Tensor) {
	if p.fixed {
		defer p.forget()
	}
	var levels []*engine.Tensor
	for _, stage := range p.backbone {
		x = o.ReLU(stage.Forward(o, x))
		levels = append(levels, x)
	}
	coarsest := len(levels) - 1
	merged := p.lateral[coarsest].Forward(o, levels[coarsest])
	for i := coarsest - 1; i >= 0; i-- {
		merged = o.Add(p.lateral[i].Forward(o, levels[i]), engine.Upsample2x(o, merged))
	}
	p.features = append(p.features, o.ReLU(merged).Keep()) //leak:L30
	hidden := o.ReLU(p.head.Forward(o, p.features[len(p.features)-1]))
	return p.class.Forward(o, hidden), p.box.Forward(o, hidden)
}

// forget releases the features that are kept. What backward reads of them, the
// tape holds.
func (p *Pyramid) forget() {
	for _, f := range p.features {
		f.Release()
	}
	p.features = nil
}

// Sizes of the images and of the grid of cells on them.
const (
	detectionSize = 64
	detectionGrid = 32
)

// detection trains a Pyramid on generated rectangles.
type detection struct {
	sizes   detectionSizes
	ops     *autodiff.Ops
	data    data.Rectangles
	model   *Pyramid
	descent *optim.SGD
	steps   int64
}

func startDetection(c Config, s detectionSizes) (*detection, error) {
	o := autodiff.New(engine.NewEager(c.Kernels, c.Device))
	d := &detection{sizes: s, ops: o, data: data.Rectangles{Seed: uint64(c.Seed), Size: detectionSize, Grid: detectionGrid}}
	err := engine.Run(o, func(*engine.Scope) error {
		d.model = NewPyramid(o, engine.NewRandom(uint64(c.Seed)))
		nn.Keep(d.model)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.model.fixed = c.Fixed
	o.Track(d.model.Parameters()...)
	d.descent = optim.NewSGD(o, d.model.Parameters(), 0.03, 0.9)
	return d, nil
}

// Step trains on one batch.
func (d *detection) Step() (train.Metrics, error) {
	epoch := int64(d.sizes.epoch)
	m := train.Metrics{Epoch: d.steps / epoch, EpochEnd: (d.steps+1)%epoch == 0}
	err := engine.Run(d.ops, func(*engine.Scope) error {
		batch := d.data.Batch(d.steps, d.sizes.images)
		m.BatchElements = int64(len(batch.Images))
		loss := d.loss(batch)
		if err := d.ops.Backward(loss); err != nil {
			return err
		}
		d.descent.Step()
		m.Loss = float64(d.ops.Floats(loss)[0])
		return d.ops.Sync()
	})
	d.steps++
	return m, err
}

// loss is the cross entropy of the cells' classes, background and objects at equal
// weight, plus the mean error of the edges on objects.
func (d *detection) loss(b *data.Detections) *engine.Tensor {
	o, cells := d.ops, b.N*detectionGrid*detectionGrid
	class, box := d.model.Forward(o, o.FromFloats(b.Images, b.N, 3, detectionSize, detectionSize))

	logits := o.Reshape(o.Permute(class, 0, 2, 3, 1), cells, data.Classes)
	entropy := engine.CrossEntropy(o, logits, o.FromInts(b.Labels, cells), o.FromFloats(b.Weights, cells))

	off := o.Abs(o.Sub(box, o.FromFloats(b.Boxes, b.N, 4, detectionGrid, detectionGrid)))
	inside := o.FromFloats(b.Inside, b.N, 1, detectionGrid, detectionGrid)
	edges := engine.Scale(o, o.Sum(o.Mul(off, inside)), 1/float32(4*b.Objects))
	return o.Add(entropy, edges)
}

// Model is the *Pyramid.
func (d *detection) Model() any { return d.model }

// Close releases parameters, optimizer state and the features that were kept.
func (d *detection) Close() error {
	d.model.forget()
	d.descent.Release()
	nn.Release(d.model)
	return nil
}

// detectionSizes are how many images a batch has, and how many steps an epoch.
type detectionSizes struct{ images, epoch int }

func detectionOf(d draws) detectionSizes {
	return detectionSizes{images: d.between("images", 2, 6), epoch: d.between("epoch", 60, 120)}
}

// featuresKept is what the module's list grows by: 32 channels of 32 by 32 of each
// image.
func featuresKept(seed int64) Growth {
	return Growth{
		Marker: "L30", Event: PerStep, Every: 1, First: 1, Blocks: 1,
		Bytes: snapshot.Bytes(4 * detectionOf(draws{"L30", seed}).images * 32 * detectionGrid * detectionGrid),
		Shape: Linear, Owner: snapshot.OwnedByUser,
	}
}

// newDetection is startDetection for those who want an Instance, and none with an
// error.
func newDetection(c Config) (Instance, error) {
	d, err := startDetection(c, detectionOf(draws{"L30", c.Seed}))
	if err != nil {
		return nil, err
	}
	return d, nil
}
