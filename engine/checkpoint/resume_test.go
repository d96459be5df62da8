package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/checkpoint"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// points are 20 points on a line, with noise of their own.
type points struct{}

func (points) Len() int { return 20 }

func (points) Example(i int) ([]data.Array, error) {
	x := float32(i) / 20
	return []data.Array{
		{Shape: []int{2}, Floats: []float32{x, x * x}},
		{Shape: []int{1}, Floats: []float32{3*x + float32(i*7%5)/10}},
	}, nil
}

// program is a small training with all that a checkpoint must bring back: a
// model, the state of its optimizer, random draws for dropout, the order of data.
type program struct {
	ops    *autodiff.Ops
	random *engine.Random
	layers nn.Parts
	first  *nn.Linear
	second *nn.Linear
	adam   *optim.Adam
	loader *data.Loader
	steps  int64
	losses []uint64 // bits
}

func newProgram(t *testing.T, d *mem.Device, from *checkpoint.File) *program {
	t.Helper()
	o := autodiff.New(engine.NewEager(cpu.New(0), d))
	p := &program{ops: o, random: engine.NewRandom(5)}
	err := engine.Run(o, func(*engine.Scope) error {
		p.first, p.second = nn.NewLinear(o, p.random, 2, 16), nn.NewLinear(o, p.random, 16, 1)
		p.layers = nn.Parts{{Name: "first", Module: p.first}, {Name: "second", Module: p.second}}
		nn.Keep(p.layers)
		p.adam = optim.NewAdam(o, p.layers.Parameters(), 0.01)
		if from == nil {
			return nil
		}
		p.steps = from.Step
		p.random.Seek(from.Counters["random"])
		return errors.Join(
			from.Restore(o, checkpoint.Part("model", p.layers.State())),
			p.adam.Load(from.UploadPart(o, "optimizer")),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Track(p.layers.Parameters()...)
	if p.loader, err = data.NewLoader(points{}, data.Options{Batch: 3, Order: data.Shuffled, Seed: 9, Start: p.steps, Workers: 2, Prefetch: 2}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *program) state() checkpoint.State {
	return checkpoint.State{
		Step: p.steps, Counters: map[string]uint64{"random": p.random.Draws()},
		Tensors: append(checkpoint.Part("model", p.layers.State()), checkpoint.Part("optimizer", p.adam.State())...),
	}
}

func (p *program) step() (m train.Metrics, err error) {
	o := p.ops
	err = engine.Run(o, func(*engine.Scope) error {
		b, err := p.loader.Next(o)
		if err != nil {
			return err
		}
		m = b.Metrics()
		hidden := engine.Dropout(o, o.ReLU(p.first.Forward(o, b.Tensors[0])), 0.2, p.random.Draw())
		off := o.Sub(p.second.Forward(o, hidden), b.Tensors[1])
		loss := engine.Mean(o, o.Mul(off, off))
		if err := o.Backward(loss); err != nil {
			return err
		}
		p.adam.Step()
		m.Loss = float64(o.Floats(loss)[0])
		p.losses = append(p.losses, math.Float64bits(m.Loss))
		return o.Sync()
	})
	p.steps++
	return m, err
}

// close returns the parameters' elements and releases everything.
func (p *program) close() (elements [][]float32) {
	for _, t := range p.layers.Parameters() {
		elements = append(elements, p.ops.Floats(t))
	}
	p.loader.Close()
	p.adam.Release()
	nn.Release(p.layers)
	return elements
}

// TestARunThatIsResumedEndsAsOneThatWasNeverStopped trains for 25 steps at once;
// for some steps, and in a new program from the checkpoint for the others: losses
// and parameters are equal to the bit.
func TestARunThatIsResumedEndsAsOneThatWasNeverStopped(t *testing.T) {
	const steps, every = 25, 4
	_, d := enginetest.NewEager(t)
	whole := newProgram(t, d, nil)
	if err := (&train.Loop{}).Run(t.Context(), steps, whole.step); err != nil {
		t.Fatal(err)
	}
	want := whole.close()

	for _, staging := range []checkpoint.Staging{checkpoint.Blocking, checkpoint.OnHost, checkpoint.OnDevice} {
		for _, stop := range []int64{1, 4, 11, 20} {
			t.Run(fmt.Sprintf("staging %d, stopped after step %d", staging, stop), func(t *testing.T) {
				_, d := enginetest.NewEager(t)
				dir := t.TempDir()
				w, err := checkpoint.NewWriter(dir, checkpoint.Options{Staging: staging, Keep: 2, Background: engine.NewEager(cpu.New(1), d)})
				if err != nil {
					t.Fatal(err)
				}
				var marks []snapshot.Mark
				train1 := func(p *program, from, to int64) {
					t.Helper()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					loop := train.Loop{Devices: []*mem.Device{d}, Start: from, Phases: []train.Phase{
						w.Phase(p.ops, train.Interval{Every: every, EpochEnd: true}, p.state),
					}}
					loop.OnBarrier(func(m snapshot.Mark) error {
						marks = append(marks, m)
						if m.Step == to && m.Phase == train.Training && to < steps {
							cancel() // the run dies before the checkpoint that may be due here
						}
						return nil
					})
					err := loop.Run(ctx, steps, p.step)
					if err = errors.Join(err, w.Wait()); (err != nil) != (to < steps) {
						t.Fatal(err)
					}
				}
				first := newProgram(t, d, nil)
				train1(first, 0, stop)
				losses := first.losses
				first.close()

				var file *checkpoint.File
				if path, err := checkpoint.Latest(dir); err == nil {
					if file, err = checkpoint.Read(path); err != nil {
						t.Fatal(err)
					}
				} else if stop > every {
					t.Fatal(err)
				}
				second := newProgram(t, d, file)
				from := second.steps
				train1(second, from, steps)
				if last := marks[len(marks)-1]; last.Step < steps-1 {
					t.Errorf("the resumed run ended at %+v", last)
				}
				got := second.close()
				if !slices.Equal(append(losses[:from:from], second.losses...), whole.losses) {
					t.Errorf("from step %d on: losses differ", from)
				}
				for i := range want {
					if !slices.Equal(got[i], want[i]) {
						t.Errorf("from step %d on: parameter %d differs", from, i)
					}
				}
			})
		}
	}
}
