package data_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/snapshot"
)

func TestAReplayBufferKeepsWhatItsCapacitySays(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity int
		want     []int // items after each of ten additions
	}{
		{"a ring drops its oldest item", 4, []int{1, 2, 3, 4, 4, 4, 4, 4, 4, 4}},
		{"without a bound it grows", 0, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			r := data.NewReplay(c.capacity)
			for i, want := range c.want {
				scope := o.Begin()
				r.Add(o.Full(float32(i), 3), o.FromInts([]int32{int32(i)}))
				scope.End()
				owners := map[snapshot.Owners]int{snapshot.OwnedByCache: 2 * want}
				if diff := cmp.Diff(owners, enginetest.Owners(d)); diff != "" || r.Len() != want {
					t.Fatalf("after item %d: %d items; %s", i, r.Len(), diff)
				}
			}
			scope := o.Begin()
			batch := r.Sample(o, rand.New(rand.NewPCG(1, 2)), 200)
			states, labels := o.Floats(batch[0]), o.Ints(batch[1])
			if batch[0].Shape() != engine.ShapeOf(200, 3) || batch[1].Shape() != engine.ShapeOf(200) {
				t.Errorf("shapes %v, %v", batch[0].Shape(), batch[1].Shape())
			}
			var drawn []int
			for i, l := range labels {
				if !slices.Contains(drawn, int(l)) {
					drawn = append(drawn, int(l))
				}
				if !slices.Equal(states[3*i:3*i+3], slices.Repeat([]float32{float32(l)}, 3)) {
					t.Fatalf("row %d: state %v beside label %d", i, states[3*i:3*i+3], l)
				}
			}
			slices.Sort(drawn)
			var newest []int
			for i := 10 - r.Len(); i < 10; i++ {
				newest = append(newest, i)
			}
			if !slices.Equal(drawn, newest) {
				t.Errorf("200 draws gave the items %v, want %v", drawn, newest)
			}
			scope.End()
			r.Release()
			if n := enginetest.Live(d); n != 0 || r.Len() != 0 {
				t.Errorf("%d blocks, %d items after Release", n, r.Len())
			}
		})
	}
}

func TestTheLastItemsAreTheNewest(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity int
		last     int
		want     []int32 // all that is ever drawn after ten additions
	}{
		{"of a list", 0, 3, []int32{7, 8, 9}},
		{"of a ring that has come round, wherever its oldest item is", 4, 3, []int32{7, 8, 9}},
		{"more than there are is all", 4, 9, []int32{6, 7, 8, 9}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, _ := enginetest.NewEager(t)
			r := data.NewReplay(c.capacity)
			for i := range int32(10) {
				r.Add(o.FromInts([]int32{i}))
			}
			scope := o.Begin()
			drawn := o.Ints(r.SampleLast(o, rand.New(rand.NewPCG(1, 2)), 200, c.last)[0])
			scope.End()
			slices.Sort(drawn)
			if diff := cmp.Diff(c.want, slices.Compact(drawn)); diff != "" {
				t.Error(diff)
			}
			r.Release()
		})
	}
}

func TestAReplayBufferRefusesWhatDoesNotGoTogether(t *testing.T) {
	o, d := enginetest.NewEager(t)
	r := data.NewReplay(2)
	defer r.Release()
	r.Add(o.Full(1, 3))
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"another shape", func() { r.Add(o.Full(1, 4)) }},
		{"another type", func() { r.Add(o.FromInts([]int32{1, 2, 3}, 3)) }},
		{"another number", func() { r.Add(o.Full(1, 3), o.Full(1, 3)) }},
		{"an item of nothing", func() { r.Add() }},
		{"a tensor of none", func() { r.Add(nil) }},
		{"a tensor that was released, of an item of one", func() { x := o.Full(1, 3); x.Release(); r.Add(x) }},
		{"a sample of an empty buffer", func() { data.NewReplay(1).Sample(o, nil, 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := engine.Run(o, func(*engine.Scope) error {
				c.do()
				return nil
			})
			if err == nil || r.Len() != 1 || enginetest.Live(d) != 1 {
				t.Errorf("error %v, %d items, %d blocks", err, r.Len(), enginetest.Live(d))
			}
		})
	}
}

// The tensors before the one at fault were once taken over and never released.
func TestAnItemThatIsRefusedIsNotTakenOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		second func(o engine.Ops, first *engine.Tensor) *engine.Tensor
	}{
		{"the second tensor was released", func(o engine.Ops, _ *engine.Tensor) *engine.Tensor { x := o.Full(1, 8); x.Release(); return x }},
		{"the second tensor is nil", func(engine.Ops, *engine.Tensor) *engine.Tensor { return nil }},
		{"the second tensor is the first", func(_ engine.Ops, first *engine.Tensor) *engine.Tensor { return first }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			r := data.NewReplay(2)
			err := engine.Run(o, func(*engine.Scope) error {
				first := o.Full(1, 8)
				r.Add(first, c.second(o, first))
				return nil
			})
			if err == nil || !strings.HasPrefix(err.Error(), "replay add") || r.Len() != 0 || enginetest.Live(d) != 0 {
				t.Errorf("error %v, %d items, %d blocks", err, r.Len(), enginetest.Live(d))
			}
		})
	}
}
