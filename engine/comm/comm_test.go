package comm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/comm"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/nn"
	"github.com/memdiag/memdiag/engine/optim"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

func kernels() engine.Kernels { return cpu.New(1) }

// newGroup returns a group of so many ranks, whose devices must be empty when the
// test ends.
func newGroup(t *testing.T, ranks int) (*comm.Group, []*mem.Device) {
	t.Helper()
	devices := comm.Devices(ranks, mem.Host(), mem.Options{})
	t.Cleanup(func() {
		for _, d := range devices {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return comm.NewGroup(kernels, devices...), devices
}

func TestCollectives(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		t.Run(fmt.Sprintf("of %d ranks", ranks), func(t *testing.T) {
			g, devices := newGroup(t, ranks)
			err := g.Run(t.Context(), func(r *comm.Rank) error {
				o := r.Ops()
				defer o.Begin().End()
				if r.Size() != ranks || r.Device() != devices[r.Index()] || o.Device() != r.Device() {
					return fmt.Errorf("size %d, device %v", r.Size(), r.Device())
				}
				mine := float32(r.Index() + 1)
				a, b := o.Full(mine, 2, 3), o.FromFloats([]float32{mine, 10 * mine}, 2)
				if err := r.AllReduce(a, o.Permute(b, 0)); err != nil {
					return err
				}
				sum := float32(ranks*(ranks+1)) / 2
				if got := append(o.Floats(a), o.Floats(b)...); !slices.Equal(got, []float32{sum, sum, sum, sum, sum, sum, sum, 10 * sum}) {
					return fmt.Errorf("the sums are %v", got)
				}

				labels := o.FromInts([]int32{int32(r.Index()), 7}, 2)
				all, err := r.AllGather(labels)
				if err != nil {
					return err
				}
				defer all.Release()
				var want []int32
				for i := range ranks {
					want = append(want, int32(i), 7)
				}
				if got := o.Ints(all); !slices.Equal(got, want) || all.Shape() != engine.ShapeOf(ranks, 2) || all.Owner() != snapshot.OwnedByComm {
					return fmt.Errorf("gathered %v %v of %v", all, got, all.Owner().Names())
				}

				return r.Barrier()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBuffersOfACollectiveCountForIt(t *testing.T) {
	g, _ := newGroup(t, 2)
	err := g.Run(t.Context(), func(r *comm.Rank) error {
		o := r.Ops()
		targets := o.Full(1, 4)
		defer targets.Release()
		var kept []*engine.Tensor
		for step := range 3 {
			gathered, err := r.AllGather(targets)
			if err != nil {
				return err
			}
			kept = append(kept, gathered)
			if err := r.AllReduce(targets); err != nil {
				return err
			}
			want := map[snapshot.Owners]int{snapshot.OwnedByUser: 1, snapshot.OwnedByComm: step + 1}
			if diff := cmp.Diff(want, enginetest.Owners(r.Device())); diff != "" {
				return fmt.Errorf("step %d: %s", step, diff)
			}
		}
		for _, k := range kept {
			k.Release()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestARankThatIsElsewhereIsNamed(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		name string
		f    func(ctx context.Context, cancel func(), r *comm.Rank) error
		want string
		is   error
	}{
		{"one that fails", func(_ context.Context, _ func(), r *comm.Rank) error {
			if r.Index() == 1 {
				return own
			}
			if err := r.Barrier(); err == nil || !strings.Contains(err.Error(), "barrier: rank 1: own") {
				return fmt.Errorf("the others get %w", err)
			}
			return nil
		}, "rank 1: own", own},
		{"one that misuses an operation", func(_ context.Context, _ func(), r *comm.Rank) error {
			if r.Index() == 2 {
				r.Ops().Full(1, -1)
			}
			return r.Barrier()
		}, "rank 2: shape: axis 0 has the negative extent -1", nil},
		{"one that ends early", func(_ context.Context, _ func(), r *comm.Rank) error {
			if r.Index() == 0 {
				return nil
			}
			return r.Barrier()
		}, "has ended; every rank takes part in every collective", nil},
		{"one in another collective", func(_ context.Context, _ func(), r *comm.Rank) error {
			defer r.Ops().Begin().End()
			if r.Index() == 1 {
				return r.Barrier()
			}
			return r.AllReduce(r.Ops().Full(1, 2))
		}, "rank 1 is in barrier of [], rank 0 in all-reduce of [[2]]", nil},
		{"one with another shape", func(_ context.Context, _ func(), r *comm.Rank) error {
			defer r.Ops().Begin().End()
			return r.AllReduce(r.Ops().Full(1, 2+r.Index()/2))
		}, "rank 2 is in all-reduce of [[3]], rank 0 in all-reduce of [[2]]", nil},
		{"a run that is cancelled", func(_ context.Context, cancel func(), r *comm.Rank) error {
			if r.Index() == 1 {
				cancel()
				time.Sleep(time.Millisecond)
			}
			for {
				if err := r.Barrier(); err != nil {
					return err
				}
			}
		}, "canceled", context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := newGroup(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := g.Run(ctx, func(r *comm.Rank) error { return c.f(ctx, cancel, r) })
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			// The group is whole again.
			if err := g.Run(t.Context(), (*comm.Rank).Barrier); err != nil {
				t.Errorf("a run after it: %v", err)
			}
		})
	}
}

func TestAPanicOfARankGoesOnWhereTheGroupRuns(t *testing.T) {
	g, _ := newGroup(t, 3)
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "rank 1: wild") || !strings.Contains(p, "comm_test.go") {
			t.Errorf("recovered %q, want the panic and its stack", p)
		}
	}()
	err := g.Run(t.Context(), func(r *comm.Rank) error {
		if r.Index() == 1 {
			panic("wild")
		}
		return r.Barrier()
	})
	t.Errorf("no panic, but %v", err)
}

// regression is 8 examples; each rank has a part of them.
func regression(o engine.Ops, part, parts int) (x, y *engine.Tensor) {
	var xs, ys []float32
	for i := part * 8 / parts; i < (part+1)*8/parts; i++ {
		a, b := float32(i)/8, float32(i*5%8)/8
		xs, ys = append(xs, a, b, a*b), append(ys, 2*a-b)
	}
	return o.FromFloats(xs, len(ys), 3), o.FromFloats(ys, len(ys), 1)
}

// trainOn trains a small network for 20 steps on a part of the examples, and
// returns its parameters.
func trainOn(o engine.Ops, part, parts int, average func([]*engine.Tensor) error, barrier func(snapshot.Mark) error) (parameters []float32, err error) {
	d := autodiff.New(o)
	r := engine.NewRandom(1)
	first, second := nn.NewLinear(d, r, 3, 16), nn.NewLinear(d, r, 16, 1)
	model := nn.Parameters(first, second)
	d.Track(model...)
	descent := optim.NewSGD(d, model, 0.05, 0.9)
	defer func() {
		descent.Release()
		for _, p := range model {
			parameters = append(parameters, o.Floats(p)...)
			p.Release()
		}
	}()
	loop := train.Loop{Devices: []*mem.Device{o.Device()}}
	loop.OnBarrier(barrier)
	return nil, loop.Run(context.Background(), 20, func() (train.Metrics, error) {
		return train.Metrics{}, engine.Run(d, func(*engine.Scope) error {
			x, y := regression(d, part, parts)
			off := d.Sub(second.Forward(d, d.Tanh(first.Forward(d, x))), y)
			if err := d.Backward(engine.Mean(d, d.Mul(off, off))); err != nil {
				return err
			}
			if err := average(model); err != nil {
				return err
			}
			descent.Step()
			return d.Sync()
		})
	})
}

// TestRanksTogetherTrainAsOneOnTheWholeBatch: the mean of the ranks' gradients is
// the gradient of the whole batch, up to the order of additions. After 20 steps
// parameters agree to 2e-6, about 20 steps of half a unit in the last place each;
// among ranks, to the bit.
func TestRanksTogetherTrainAsOneOnTheWholeBatch(t *testing.T) {
	nothing := func(snapshot.Mark) error { return nil }
	alone, _ := enginetest.NewEager(t)
	want, err := trainOn(alone, 0, 1, func([]*engine.Tensor) error { return nil }, nothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{2, 4} {
		g, _ := newGroup(t, ranks)
		got := make([][]float32, ranks)
		err := g.Run(t.Context(), func(r *comm.Rank) (err error) {
			got[r.Index()], err = trainOn(r.Ops(), r.Index(), ranks, r.AverageGradients, nothing)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, x := range got[0] {
			worst = max(worst, math.Abs(float64(x-want[i])))
		}
		if t.Logf("%d ranks: off by %.2g at most", ranks, worst); worst > 2e-6 || len(got[0]) != len(want) {
			t.Errorf("%d ranks: parameters are off by %g", ranks, worst)
		}
		for rank := range ranks {
			if !slices.Equal(got[rank], got[0]) {
				t.Errorf("rank %d ends with other parameters than rank 0", rank)
			}
		}
		// Without the average, ranks go apart: the test above can fail.
		err = g.Run(t.Context(), func(r *comm.Rank) (err error) {
			got[r.Index()], err = trainOn(r.Ops(), r.Index(), ranks, func([]*engine.Tensor) error { return nil }, nothing)
			return err
		})
		if err != nil || slices.Equal(got[0], got[1]) {
			t.Errorf("ranks that do not meet: %v", err)
		}
	}
}

func TestEachRankRecordsIntoTheOneFolder(t *testing.T) {
	const ranks = 3
	g, _ := newGroup(t, ranks)
	out, err := rundir.Create(t.TempDir(), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	err = g.Run(t.Context(), func(r *comm.Rank) error {
		recorder, err := train.NewRankRecorder(out, r.Index(), 10, 20, nil, r.Device())
		if err != nil {
			return err
		}
		_, err = trainOn(r.Ops(), r.Index(), ranks, r.AverageGradients, recorder.Barrier)
		return errors.Join(err, recorder.Wait())
	})
	if err := errors.Join(err, out.Finish(0, time.Now())); err != nil {
		t.Fatal(err)
	}
	for rank := range ranks {
		run, err := files.OpenRank(out.Dir(), rank)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Snapshots) != 3 || len(run.Series.Points) != 21 {
			t.Fatalf("rank %d: %d snapshots, %d points", rank, len(run.Snapshots), len(run.Series.Points))
		}
		last := run.Snapshots[2]
		if d := last.Devices[0]; last.Rank != rank || d.Index != rank || last.Mark.Step != 20 || d.Meters.Allocated != 8*512 {
			t.Errorf("rank %d: rank %d, step %d, %+v", rank, last.Rank, last.Mark.Step, d)
		}
	}
}

// A tensor that is not there once ended the process of all ranks.
func TestACollectiveOfNothingIsTheRanksError(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(r *comm.Rank) error
		want string
	}{
		{"all-gather", func(r *comm.Rank) error { _, err := r.AllGather(nil); return err }, "all-gather: the tensor is nil"},
		{"all-reduce", func(r *comm.Rank) error { return r.AllReduce(nil) }, "all-reduce: the tensor is nil"},
		{"gradients", func(r *comm.Rank) error { return r.AverageGradients([]*engine.Tensor{nil}) }, "average gradients: the tensor is nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := newGroup(t, 2)
			if err := g.Run(t.Context(), c.f); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}
