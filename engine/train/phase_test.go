package train_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/files"
	"github.com/memdiag/memdiag/snapshot/rundir"
)

// diary notes what a loop does, in order.
type diary struct{ lines []string }

func (d *diary) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// epochsOf makes a step; every so many steps make an epoch.
func epochsOf(each int64) func() (train.Metrics, error) {
	var done int64
	return func() (train.Metrics, error) {
		m := train.Metrics{Epoch: done / each, EpochEnd: done%each == each-1, BatchElements: 8}
		done++
		return m, nil
	}
}

func TestPhasesRunBehindTheStepsThatTheyAreDueAt(t *testing.T) {
	var d diary
	loop := train.Loop{Phases: []train.Phase{
		{
			Name: train.Evaluating, When: train.Interval{EpochEnd: true}, Steps: 2,
			Step: func(i int64) (train.Metrics, error) {
				return train.Metrics{Loss: float64(1 + 2*i), BatchElements: 100, Epoch: 77}, nil
			},
			Done: func(m snapshot.Mark, loss float64) error {
				d.add("evaluated after %d: %g", m.Step, loss)
				return nil
			},
		},
		{Name: train.Checkpointing, When: train.Interval{Every: 2}, Step: func(i int64) (train.Metrics, error) {
			d.add("save %d", i)
			return train.Metrics{}, nil
		}},
	}}
	loop.OnBarrier(func(m snapshot.Mark) error {
		d.add("%s %d, epoch %d, %d elements", m.Phase, m.Step, m.Epoch, m.BatchElements)
		return nil
	})
	if err := loop.Run(t.Context(), 4, epochsOf(3)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"train 0, epoch 0, 0 elements",
		"train 1, epoch 0, 8 elements",
		"train 2, epoch 0, 8 elements",
		"save 0", "checkpoint 2, epoch 0, 0 elements",
		"train 3, epoch 0, 8 elements",
		"eval 3, epoch 0, 100 elements", "eval 3, epoch 0, 100 elements", "evaluated after 3: 2",
		"train 4, epoch 1, 8 elements",
		"save 0", "checkpoint 4, epoch 1, 0 elements",
	}
	if !slices.Equal(d.lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(d.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestAContinuedRunCountsFromWhereItStopped(t *testing.T) {
	var d diary
	loop := train.Loop{Start: 7, Phases: []train.Phase{{Name: "save", When: train.Interval{Every: 4}, Step: func(int64) (train.Metrics, error) { return train.Metrics{}, nil }}}}
	loop.OnBarrier(func(m snapshot.Mark) error {
		d.add("%s %d", m.Phase, m.Step)
		return nil
	})
	if err := loop.Run(t.Context(), 9, epochsOf(100)); err != nil {
		t.Fatal(err)
	}
	if want := []string{"train 7", "train 8", "save 8", "train 9"}; !slices.Equal(d.lines, want) {
		t.Errorf("got %q, want %q", d.lines, want)
	}
}

func TestFaultsOfPhasesSayWhere(t *testing.T) {
	own := errors.New("own")
	for _, c := range []struct {
		name string
		loop train.Loop
		want string
	}{
		{"a phase's step", train.Loop{Phases: []train.Phase{{Name: "eval", When: train.Interval{Every: 2}, Step: func(int64) (train.Metrics, error) { return train.Metrics{}, own }}}}, "eval after step 2: own"},
		{"what a phase is done with", train.Loop{Phases: []train.Phase{{
			Name: "eval", When: train.Interval{Every: 1}, Step: func(int64) (train.Metrics, error) { return train.Metrics{}, nil },
			Done: func(snapshot.Mark, float64) error { return own },
		}}}, "eval after step 1: own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.loop.Run(t.Context(), 5, epochsOf(3)); !errors.Is(err, own) || err.Error() != c.want {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestAPanicLeavesNoTemporaries lets a step of each phase die halfway, by a misuse
// that the engine knows, which becomes an error, and by one that it does not.
func TestAPanicLeavesNoTemporaries(t *testing.T) {
	for _, phase := range []string{train.Training, train.Evaluating, train.Checkpointing} {
		for _, wild := range []bool{false, true} {
			t.Run(fmt.Sprintf("in %s, wild %v", phase, wild), func(t *testing.T) {
				o, d := enginetest.NewEager(t)
				kept := o.Full(1, 8)
				defer kept.Release()
				die := func() error {
					return engine.Run(o, func(*engine.Scope) error {
						sum := o.Add(o.Full(1, 8), kept)
						inner := o.Begin() // left open by the panic
						o.Mul(sum, sum)
						if wild {
							panic("wild")
						}
						o.Add(sum, o.Full(1, 7))
						inner.End()
						return nil
					})
				}
				loop := train.Loop{Devices: []*mem.Device{d}}
				step := epochsOf(10)
				if phase == train.Training {
					step = func() (train.Metrics, error) { return train.Metrics{}, die() }
				} else {
					loop.Phases = []train.Phase{{Name: phase, When: train.Interval{Every: 1}, Step: func(int64) (train.Metrics, error) { return train.Metrics{}, die() }}}
				}
				err, panicked := func() (err error, panicked any) { //nolint:staticcheck // the panic is the second outcome, not the error
					defer func() { panicked = recover() }()
					return loop.Run(t.Context(), 3, step), nil
				}()
				known, ok := errors.AsType[*engine.Error](err)
				if wild != (panicked == "wild") || wild == ok {
					t.Errorf("error %v (%v), panic %v", err, known, panicked)
				}
				if n := enginetest.Live(d); n != 1 {
					t.Errorf("%d blocks are live, want the one that is kept", n)
				}
			})
		}
	}
}

func TestARecorderTellsPhasesAndRanksApart(t *testing.T) {
	out, err := rundir.Create(t.TempDir(), snapshot.Info{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{0, 1} {
		o, d := enginetest.NewEager(t)
		r, err := train.NewRankRecorder(out, rank, 2, 5, nil, d)
		if err != nil {
			t.Fatal(err)
		}
		var kept []*engine.Tensor
		loop := train.Loop{Devices: []*mem.Device{d}, Phases: []train.Phase{{
			Name: train.Evaluating, When: train.Interval{Every: 2}, Step: func(int64) (train.Metrics, error) { return train.Metrics{}, nil },
		}}}
		loop.OnBarrier(r.Barrier)
		err = loop.Run(t.Context(), 5, func() (train.Metrics, error) {
			for range rank + 1 {
				kept = append(kept, o.Full(1, 8))
			}
			return train.Metrics{}, nil
		})
		if err := errors.Join(err, r.Wait()); err != nil {
			t.Fatal(err)
		}
		for _, k := range kept {
			k.Release()
		}
	}
	if err := out.Finish(0, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, rank := range []int{0, 1} {
		run, err := files.OpenRank(out.Dir(), rank)
		if err != nil {
			t.Fatal(err)
		}
		var steps, live []int64
		for _, s := range run.Snapshots {
			steps = append(steps, s.Mark.Step)
			var n int64
			for _, site := range s.Sites() {
				n += site.Count
			}
			live = append(live, n)
			if s.Rank != rank {
				t.Errorf("a snapshot of rank %d among those of %d", s.Rank, rank)
			}
		}
		each := int64(rank + 1)
		if !slices.Equal(steps, []int64{0, 2, 4, 5}) || !slices.Equal(live, []int64{0, 2 * each, 4 * each, 5 * each}) {
			t.Errorf("rank %d: blocks %v at steps %v", rank, live, steps)
		}
		var phases []string
		for _, p := range run.Series.Points {
			phases = append(phases, fmt.Sprint(p.Mark.Phase, p.Mark.Step))
		}
		if want := []string{"train0", "train1", "train2", "eval2", "train3", "train4", "eval4", "train5"}; !slices.Equal(phases, want) {
			t.Errorf("rank %d: the series has %q", rank, phases)
		}
	}
}
