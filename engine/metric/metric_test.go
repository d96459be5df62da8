package metric_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/metric"
)

// step runs f in a scope, as a training step does.
func step(t testing.TB, o engine.Ops, f func()) {
	t.Helper()
	if err := engine.Run(o, func(*engine.Scope) error {
		f()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestMean(t *testing.T) {
	cases := []struct {
		name    string
		batches [][]float32
		want    float64
	}{
		{"every element counts the same, whichever batch it came in", [][]float32{{1, 2, 3}, {10}}, 4},
		{"no elements have no mean", nil, math.NaN()},
		{"a batch without bound has a mean without bound, and those after it do not change that", [][]float32{{1}, {float32(math.Inf(1)), 2}, {3}}, math.Inf(1)},
		{"infinities of both signs have no mean", [][]float32{{float32(math.Inf(1))}, {float32(math.Inf(-1))}}, math.NaN()},
		{"small numbers are not lost beside a large sum", append([][]float32{{1 << 26}}, ones(64)...), ((1 << 26) + 64) / 65.0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, d := enginetest.NewEager(t)
			m := metric.NewMean(o)
			for i, b := range c.batches {
				step(t, o, func() { m.Update(o.FromFloats(b, len(b))) })
				if got := enginetest.Live(d); got != 2 {
					t.Errorf("%d blocks are live after update %d, want the state's 2", got, i+1)
				}
			}
			got := m.Compute()
			if again := m.Compute(); !same(got, c.want) || !same(again, c.want) {
				t.Errorf("the mean is %v, then %v, want %v", got, again, c.want)
			}
			m.Reset()
			if got := enginetest.Live(d); got != 0 {
				t.Errorf("%d blocks are live after a reset", got)
			}
			step(t, o, func() { m.Update(o.Full(7, 2)) })
			if got := m.Compute(); got != 7 {
				t.Errorf("the mean is %v after a reset and 7, 7", got)
			}
			m.Reset()
		})
	}
}

func ones(n int) [][]float32 {
	all := make([][]float32, n)
	for i := range all {
		all[i] = []float32{1}
	}
	return all
}

func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func TestAccuracyCountsRowsWhoseLargestLogitIsTheLabels(t *testing.T) {
	o, d := enginetest.NewEager(t)
	a := metric.NewAccuracy(o)
	step(t, o, func() {
		a.Update(o.FromFloats([]float32{1, 2, 3, 9, 0, 0}, 2, 3), o.FromInts([]int32{2, 1}, 2))
		a.Update(o.FromFloats([]float32{5, 5, 0}, 1, 3), o.FromInts([]int32{0}, 1)) // of equals the first
		a.Update(o.FromFloats([]float32{-1, -2, -3}, 1, 3), o.FromInts([]int32{0}, 1))
	})
	if got := a.Compute(); got != 0.75 {
		t.Errorf("accuracy is %v, want 3 of 4", got)
	}
	if got := enginetest.Live(d); got != 2 {
		t.Errorf("%d blocks are live, want the state's 2", got)
	}
	err := engine.Run(o, func(*engine.Scope) error { a.Update(o.Full(0, 2, 3), o.FromInts([]int32{0}, 1)); return nil })
	if err == nil {
		t.Error("one label for two rows is no error")
	}
	a.Reset()
	if got := a.Compute(); !math.IsNaN(got) {
		t.Errorf("accuracy of no rows is %v", got)
	}
}

func TestListJoinsWhatItHolds(t *testing.T) {
	o, d := enginetest.NewEager(t)
	l := metric.NewList(o)
	if l.Compute() != nil {
		t.Error("an empty list has something to join")
	}
	step(t, o, func() {
		both := o.FromInts([]int32{1, 2, 3, 4, 5, 6}, 3, 2)
		l.Update(o.Slice(both, 0, 0, 1))
		l.Update(o.Slice(both, 0, 1, 3))
	})
	if got := enginetest.Live(d); got != 2 || l.Len() != 2 {
		t.Errorf("%d blocks are live and %d tensors held, want 2", got, l.Len())
	}
	step(t, o, func() {
		all := l.Compute()
		if diff := cmp.Diff([]int32{1, 2, 3, 4, 5, 6}, o.Ints(all)); diff != "" || all.Shape() != engine.ShapeOf(3, 2) {
			t.Error(all, diff)
		}
	})
	l.Reset()
	if got := enginetest.Live(d); got != 0 {
		t.Errorf("%d blocks are live after a reset", got)
	}
}

func TestAUROC(t *testing.T) {
	cases := []struct {
		name   string
		scores []float32
		labels []int32
		want   float64
	}{
		{"a perfect order has the whole area", []float32{1, 2, 3, 4}, []int32{0, 0, 1, 1}, 1},
		{"the reverse order has none", []float32{4, 3, 2, 1}, []int32{0, 0, 1, 1}, 0},
		{"equal scores count by half", []float32{2, 2, 2}, []int32{0, 1, 0}, 0.5},
		{"one pair of four is in the wrong order", []float32{1, 3, 2, 4}, []int32{0, 0, 1, 1}, 0.75},
		{"positives alone have no area", []float32{1, 2}, []int32{1, 1}, math.NaN()},
		{"a score that is not a number spoils the area", []float32{1, float32(math.NaN())}, []int32{0, 1}, math.NaN()},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, _ := enginetest.NewEager(t)
			a := metric.NewAUROC(o)
			step(t, o, func() {
				scores, labels := o.FromFloats(c.scores, len(c.scores)), o.FromInts(c.labels, len(c.labels))
				a.Update(o.Slice(scores, 0, 0, 1), o.Slice(labels, 0, 0, 1))
				a.Update(o.Slice(scores, 0, 1, len(c.scores)), o.Slice(labels, 0, 1, len(c.labels)))
			})
			if got := a.Compute(); !same(got, c.want) {
				t.Errorf("the area is %v, want %v", got, c.want)
			}
			a.Reset()
			if got := a.Compute(); !math.IsNaN(got) {
				t.Errorf("the area of nothing is %v", got)
			}
		})
	}
}

// TestAUROCIsTheShareOfPairsInOrder holds the area by ranks against counting all
// pairs.
func TestAUROCIsTheShareOfPairsInOrder(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(rt, "n")
		scores, labels := make([]float32, n), make([]int32, n)
		for i := range n {
			scores[i] = float32(rapid.IntRange(0, 6).Draw(rt, "score"))
			labels[i] = int32(rapid.IntRange(0, 1).Draw(rt, "label"))
		}
		won, pairs := 0.0, 0.0
		for i := range n {
			for j := range n {
				if labels[i] == 1 && labels[j] == 0 {
					pairs++
					switch {
					case scores[i] > scores[j]:
						won++
					case scores[i] == scores[j]:
						won += 0.5
					}
				}
			}
		}
		a := metric.NewAUROC(o)
		defer a.Reset()
		step(t, o, func() { a.Update(o.FromFloats(scores, n), o.FromInts(labels, n)) })
		if got, want := a.Compute(), won/pairs; !same(got, want) && math.Abs(got-want) > 1e-12 {
			rt.Errorf("the area is %v, of the pairs %v are in order", got, want)
		}
	})
}

// TestMergeIsAsIfOneHadSeenAll shares batches out to two ranks, on a device each.
func TestMergeIsAsIfOneHadSeenAll(t *testing.T) {
	left, _ := enginetest.NewEager(t)
	right, _ := enginetest.NewEager(t)
	mean, accuracy, area := metric.NewMean(left), metric.NewAccuracy(left), metric.NewAUROC(left)
	otherMean, otherAccuracy, otherArea := metric.NewMean(right), metric.NewAccuracy(right), metric.NewAUROC(right)
	step(t, left, func() {
		mean.Update(left.Full(1 << 25))
		mean.Update(left.Full(1))
		accuracy.Update(left.FromFloats([]float32{1, 0}, 1, 2), left.FromInts([]int32{0}, 1))
		area.Update(left.FromFloats([]float32{1, 4}, 2), left.FromInts([]int32{0, 1}, 2))
	})
	step(t, right, func() {
		otherMean.Update(right.Full(1 << 25))
		otherMean.Update(right.Full(3))
		otherAccuracy.Update(right.FromFloats([]float32{1, 0}, 1, 2), right.FromInts([]int32{1}, 1))
		otherArea.Update(right.FromFloats([]float32{2, 3}, 2), right.FromInts([]int32{1, 0}, 2))
	})
	clone := mean.Clone()
	mean.Merge(otherMean)
	accuracy.Merge(otherAccuracy)
	area.Merge(otherArea)
	got := []float64{mean.Compute(), accuracy.Compute(), area.Compute(), clone.Compute(), otherMean.Compute()}
	want := []float64{((1 << 26) + 4) / 4.0, 0.5, 0.75, ((1 << 25) + 1) / 2.0, ((1 << 25) + 3) / 2.0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, m := range []interface{ Reset() }{mean, accuracy, area, clone, otherMean, otherAccuracy, otherArea} {
		m.Reset()
	}
}

func TestAMeanWithoutBoundStaysSoWhereItIsMerged(t *testing.T) {
	o, _ := enginetest.NewEager(t)
	mean, other := metric.NewMean(o), metric.NewMean(o)
	step(t, o, func() {
		mean.Update(o.Full(1))
		other.Update(o.Full(float32(math.Inf(-1))))
		mean.Merge(other)
		mean.Update(o.Full(2))
	})
	if got := mean.Compute(); !math.IsInf(got, -1) {
		t.Errorf("the mean is %v", got)
	}
	mean.Reset()
	other.Reset()
}

func TestClonesShareNoState(t *testing.T) {
	o, d := enginetest.NewEager(t)
	accuracy, list, area := metric.NewAccuracy(o), metric.NewList(o), metric.NewAUROC(o)
	update := func(m interface{}) {
		step(t, o, func() {
			switch m := m.(type) {
			case *metric.Accuracy:
				m.Update(o.FromFloats([]float32{1, 0}, 1, 2), o.FromInts([]int32{0}, 1))
			case *metric.List:
				m.Update(o.Full(1, 2))
			case *metric.AUROC:
				m.Update(o.FromFloats([]float32{0, 1}, 2), o.FromInts([]int32{0, 1}, 2))
			}
		})
	}
	for _, m := range []any{accuracy, list, area} {
		update(m)
	}
	before := enginetest.Live(d)
	a, l, u := accuracy.Clone(), list.Clone(), area.Clone()
	if got := enginetest.Live(d); got != 2*before {
		t.Errorf("%d blocks are live with clones, %d without", got, before)
	}
	accuracy.Reset()
	list.Reset()
	area.Reset()
	if a.Compute() != 1 || l.Len() != 1 || u.Compute() != 1 {
		t.Errorf("after a reset of the originals the clones hold %v, %d, %v", a.Compute(), l.Len(), u.Compute())
	}
	a.Reset()
	l.Reset()
	u.Reset()
}

func TestMetricsKeepNoGraph(t *testing.T) {
	inner, _ := enginetest.NewEager(t)
	o := autodiff.New(inner)
	m, l := metric.NewMean(o), metric.NewList(o)
	for range 5 {
		step(t, o, func() {
			x := o.Full(2, 3)
			o.Track(x)
			y := o.Mul(x, x)
			m.Update(y)
			l.Update(y)
		})
		if got := o.Nodes(); got != 0 {
			t.Fatalf("%d nodes are alive after a step", got)
		}
	}
	if m.Compute() != 4 {
		t.Errorf("the mean is %v", m.Compute())
	}
	m.Reset()
	l.Reset()
}

// An area whose labels had no room once kept the scores alone.
func TestAMergeThatMeetsAFullDeviceTakesUpNothing(t *testing.T) {
	const n = 3 << 14 // scores and labels of 192 KiB each
	from, _ := enginetest.NewEager(t)
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 2 << 20})
	to := engine.NewEager(cpu.New(1), d)
	area, other := metric.NewAUROC(to), metric.NewAUROC(from)
	step(t, to, func() { area.Update(to.FromFloats([]float32{1, 4}, 2), to.FromInts([]int32{0, 1}, 2)) })
	step(t, from, func() { other.Update(from.Full(5, n), from.FromInts(make([]int32, n), n)) })
	ballast := []*engine.Tensor{to.Full(0, 1<<18), to.Full(0, 700<<8)} // of 2 MiB, 324 KiB are left
	err := engine.Run(to, func(*engine.Scope) error { area.Merge(other); return nil })
	if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full {
		t.Errorf("got the error %v", err)
	}
	if got := area.Compute(); got != 1 {
		t.Errorf("the area is %v, as if some of the other's rows had come", got)
	}
	for _, b := range ballast {
		b.Release()
	}
	step(t, to, func() { area.Merge(other) })
	if got := area.Compute(); !(got < 1) {
		t.Errorf("with room the area is %v", got)
	}
	area.Reset()
	other.Reset()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A mean once took up the large part of another's sum, and not the small one, or a
// part of its sum and not its count.
func TestAMeanThatMeetsAFullDeviceTakesUpNothing(t *testing.T) {
	from, _ := enginetest.NewEager(t)
	other := metric.NewMean(from)
	step(t, from, func() {
		for _, v := range []float32{1 << 24, 1, 1, 1} {
			other.Update(from.Full(v, 1))
		}
	})
	defer other.Reset()
	for _, test := range []struct {
		name string
		to   func(o engine.Ops) *metric.Mean
		was  float64
		is   float64
	}{
		{
			name: "a mean that has been given something",
			to:   func(o engine.Ops) *metric.Mean { m := metric.NewMean(o); m.Update(o.Full(2, 1)); return m },
			was:  2, is: (1<<24 + 5) / 5.,
		},
		{
			name: "an empty mean",
			to:   metric.NewMean,
			was:  math.NaN(), is: (1<<24 + 3) / 4.,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := mem.NewDevice(mem.Host(), mem.Options{Limit: 2 << 20})
			o := engine.NewEager(cpu.New(1), d)
			var m *metric.Mean
			step(t, o, func() { m = test.to(o) })
			var ballast []*engine.Tensor
			for engine.Run(o, func(*engine.Scope) error { ballast = append(ballast, o.Full(0).Keep()); return nil }) == nil {
			}
			// One block more is free each time, until the merge finds room.
			for full := true; full; {
				err := engine.Run(o, func(*engine.Scope) error { m.Merge(other); return nil })
				_, full = errors.AsType[*mem.OutOfMemoryError](err)
				want := test.is
				switch {
				case full:
					want = test.was
				case err != nil:
					t.Fatal(err)
				}
				if got := m.Compute(); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
					t.Fatalf("with %d blocks of ballast left the mean is %v, want %v", len(ballast), got, want)
				}
				ballast[len(ballast)-1].Release()
				ballast = ballast[:len(ballast)-1]
			}
			m.Reset()
			for _, b := range ballast {
				b.Release()
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
