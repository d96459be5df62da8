package train_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

func TestBarriersCountTheStepsCompleted(t *testing.T) {
	o, d := enginetest.NewEager(t)
	var marks []snapshot.Mark
	second := 0
	loop := train.Loop{Devices: []*mem.Device{d}, Now: func() time.Time { return time.Unix(int64(len(marks)), 0) }}
	loop.OnBarrier(func(m snapshot.Mark) error {
		marks = append(marks, m)
		return nil
	})
	loop.OnBarrier(func(snapshot.Mark) error {
		if second++; second != len(marks) {
			t.Error("hooks do not run in the order in which they were added")
		}
		return nil
	})
	var kept []*engine.Tensor
	step := func() (train.Metrics, error) {
		kept = append(kept, o.Full(1, 4))
		return train.Metrics{Epoch: int64(len(kept) / 2), BatchElements: 10, SequenceLength: 5}, nil
	}
	if err := loop.Run(t.Context(), 2, step); err != nil {
		t.Fatal(err)
	}
	want := []snapshot.Mark{
		{Step: 0, Phase: "train", Time: time.Unix(0, 0)},
		{Step: 1, Phase: "train", BatchElements: 10, SequenceLength: 5, Time: time.Unix(1, 0)},
		{Step: 2, Phase: "train", Epoch: 1, BatchElements: 10, SequenceLength: 5, Time: time.Unix(2, 0)},
	}
	if diff := cmp.Diff(want, marks); diff != "" {
		t.Error(diff)
	}
	s := mem.Take(marks[2], d)
	var births []int64
	for i, state := range s.Blocks.State {
		if state == snapshot.Live {
			births = append(births, s.Blocks.BirthStep[i])
		}
	}
	if slices.Sort(births); !slices.Equal(births, []int64{0, 1}) {
		t.Errorf("blocks were born at %v, want one in each step", births)
	}
	for _, k := range kept {
		k.Release()
	}
}

func TestARunEndsWithTheFirstError(t *testing.T) {
	own := errors.New("own")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	cases := []struct {
		name  string
		ctx   context.Context
		want  string
		is    error
		steps int
		step  error
		hook  error
	}{
		{"an error of a step names the step", t.Context(), "step 1: own", own, 1, own, nil},
		{"an error of a hook names the barrier", t.Context(), "barrier after step 0: own", own, 0, nil, own},
		{"a cancelled context ends it between steps", cancelled, "context canceled", context.Canceled, 0, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var loop train.Loop
			loop.OnBarrier(func(snapshot.Mark) error { return c.hook })
			steps := 0
			err := loop.Run(c.ctx, 3, func() (train.Metrics, error) {
				steps++
				return train.Metrics{}, c.step
			})
			if !errors.Is(err, c.is) || err.Error() != c.want || steps != c.steps {
				t.Errorf("got %q after %d steps, want %q after %d", err, steps, c.want, c.steps)
			}
		})
	}
}

type layer struct{ Weight *engine.Tensor }

type model struct {
	Self     *model // a cycle
	plain    *engine.Tensor
	released *engine.Tensor
	features []*engine.Tensor
	Layers   []*layer
	byName   map[string]*engine.Tensor
	grid     [][]*engine.Tensor
	Any      any
	weights  []float32
	ops      engine.Ops // not followed: its scopes list every temporary
}

func TestHoldersFindWhereTensorsHang(t *testing.T) {
	o, d := enginetest.NewEager(t)
	other, _ := enginetest.NewEager(t)
	m := &model{plain: o.Full(1, 4), released: o.Full(1, 4), weights: make([]float32, 1<<21), ops: o}
	m.released.Release()
	m.Self = m
	for range 3 {
		m.features = append(m.features, o.Full(1, 4))
		m.Layers = append(m.Layers, &layer{o.Full(2, 4)})
	}
	m.byName = map[string]*engine.Tensor{"a": o.Full(1, 4), "b": m.features[0]}
	m.grid = [][]*engine.Tensor{nil, {o.Full(1, 4)}, {o.Full(1, 4), o.Full(1, 4)}}
	m.Any = layer{o.Full(1, 4)}
	elsewhere := &layer{other.Full(1, 4)}
	s := mem.Take(snapshot.Mark{}, d)
	scope := o.Begin()
	o.Full(1, 4) // after the snapshot, and the scope's

	type held struct {
		path, kind string
		items      int
	}
	want := map[held]bool{
		{"model.plain", "attribute", 0}:      true,
		{"model.features", "list", 3}:        true,
		{"model.Layers[].Weight", "list", 3}: true,
		{"model.byName", "map", 2}:           true,
		{"model.grid[]", "list", 3}:          true,
		{"model.Any.Weight", "attribute", 0}: true,
	}
	got := map[held]bool{}
	holders := train.Holders(m, s, d)
	for _, h := range holders {
		got[held{h.Path, h.Kind, h.Items}] = true
		if h.Stack == snapshot.NoStack || int(h.Stack) >= s.Stacks.Len() {
			t.Errorf("%+v names no stack of the snapshot", h)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(held{})); diff != "" {
		t.Error(diff)
	}
	feature := slices.IndexFunc(holders, func(h snapshot.Holder) bool { return h.Path == "model.features" })
	if next := holders[feature+1]; next.Path != "model.byName" || next.Stack != holders[feature].Stack {
		t.Errorf("after the list of three comes %+v, want the map of two that holds the same stack", next)
	}
	if again := train.Holders(m, s, d); !slices.Equal(holders, again) {
		t.Error("a second walk finds them in another order")
	}
	if found := train.Holders(elsewhere, s, d); len(found) != 0 {
		t.Errorf("tensors of another device are found: %+v", found)
	}
	if found := train.Holders((*model)(nil), s, d); found != nil {
		t.Errorf("no model holds %+v", found)
	}
	scope.End()
	for _, t := range slices.Concat(m.features, m.grid[1], m.grid[2], []*engine.Tensor{m.plain, m.byName["a"], m.Any.(layer).Weight, elsewhere.Weight}) {
		t.Release()
	}
	for _, l := range m.Layers {
		l.Weight.Release()
	}
}
