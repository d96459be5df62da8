package data_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/data"
	"github.com/memdiag/memdiag/engine/enginetest"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// numbers is a data set of n examples: [i, i] and the label i.
type numbers struct {
	n    int
	made atomic.Int64
	at   func(i int) error // may fail or panic
}

func (s *numbers) Len() int { return s.n }

func (s *numbers) Example(i int) ([]data.Array, error) {
	s.made.Add(1)
	if s.at != nil {
		if err := s.at(i); err != nil {
			return nil, err
		}
	}
	return []data.Array{{Shape: []int{2}, Floats: []float32{float32(i), float32(i)}}, {Ints: []int32{int32(i)}}}, nil
}

// sentences are sequences of i%7+1 tokens i, with a weight a token and a label.
type sentences int

func (s sentences) Len() int            { return int(s) }
func (s sentences) Length(i int) int    { return i%7 + 1 }
func (s sentences) tokens(i int) int    { return i%7 + 1 }
func (s sentences) label(i int) []int32 { return []int32{int32(i)} }

func (s sentences) Example(i int) ([]data.Array, error) {
	n := s.tokens(i)
	return []data.Array{
		{Shape: []int{n}, Ints: slices.Repeat([]int32{int32(i)}, n)},
		{Shape: []int{n, 2}, Floats: slices.Repeat([]float32{1, 2}, n)},
		{Ints: s.label(i)},
	}, nil
}

// take reads so many batches and closes the loader.
func take(t testing.TB, set data.Dataset, o data.Options, n int) []*data.Host {
	t.Helper()
	l, err := data.NewLoader(set, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var batches []*data.Host
	for range n {
		b, err := l.NextHost()
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, b)
	}
	return batches
}

func TestBatchesDependNeitherOnWorkersNorOnTiming(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		o := data.Options{
			Batch: rapid.IntRange(1, 8).Draw(r, "batch"), Order: data.Order(rapid.IntRange(0, 3).Draw(r, "order")),
			Seed: rapid.Uint64().Draw(r, "seed"), Partial: true, Window: rapid.IntRange(0, 4).Draw(r, "window"),
		}
		set := sentences(rapid.IntRange(1, 40).Draw(r, "examples"))
		each := (int(set) + o.Batch - 1) / o.Batch
		want := take(t, set, o, 3*each)
		o.Workers, o.Queue = rapid.IntRange(1, 5).Draw(r, "workers"), rapid.IntRange(1, 9).Draw(r, "queue")
		if diff := cmp.Diff(want, take(t, set, o, 3*each)); diff != "" {
			r.Fatalf("with %d workers: %s", o.Workers, diff)
		}
		o.Start = rapid.Int64Range(0, int64(3*each)).Draw(r, "start")
		if diff := cmp.Diff(want[o.Start:], take(t, set, o, 3*each)[:3*each-int(o.Start)]); diff != "" {
			r.Fatalf("from batch %d on: %s", o.Start, diff)
		}
		for epoch := range 3 {
			var seen []int
			for i, b := range want[epoch*each : (epoch+1)*each] {
				seen = append(seen, b.Examples...)
				if b.Epoch != int64(epoch) || b.EpochEnd != (i == each-1) {
					r.Fatalf("batch %d of epoch %d says epoch %d, end %v", i, epoch, b.Epoch, b.EpochEnd)
				}
			}
			if slices.Sort(seen); len(seen) != int(set) || seen[0] != 0 || len(slices.Compact(seen)) != int(set) {
				r.Fatalf("epoch %d does not go through every example once", epoch)
			}
		}
	})
}

func TestOrders(t *testing.T) {
	padding := func(order data.Order) (n int, lengths []int) {
		for _, b := range take(t, sentences(140), data.Options{Batch: 10, Order: order, Seed: 3}, 14) {
			for _, l := range b.Lengths {
				n += b.Longest() - l
			}
			lengths = append(lengths, b.Longest())
		}
		return n, lengths
	}
	shuffled, _ := padding(data.Shuffled)
	bucketed, lengths := padding(data.Bucketed)
	sorted, ascending := padding(data.Sorted)
	if bucketed >= shuffled/4 || slices.IsSorted(lengths) {
		t.Errorf("buckets pad %d, a shuffle %d; lengths %v", bucketed, shuffled, lengths)
	}
	if sorted != 0 || !slices.IsSorted(ascending) {
		t.Errorf("sorted batches pad %d; lengths %v", sorted, ascending)
	}
	two := take(t, &numbers{n: 20}, data.Options{Batch: 20, Order: data.Shuffled}, 2)
	if slices.Equal(two[0].Examples, two[1].Examples) || slices.IsSorted(two[0].Examples) {
		t.Errorf("two epochs: %v, %v", two[0].Examples, two[1].Examples)
	}
	if b := take(t, &numbers{n: 7}, data.Options{Batch: 3}, 3); b[2].Epoch != 1 || !b[1].EpochEnd {
		t.Errorf("of 7 examples, two batches of 3 make an epoch; got %+v", b[2])
	}
}

func TestSequencesArePaddedToTheLongestOfTheirBatch(t *testing.T) {
	got := take(t, sentences(3), data.Options{Batch: 3}, 1)[0]
	want := []data.Array{
		{Shape: []int{3, 3}, Ints: []int32{0, 0, 0, 1, 1, 0, 2, 2, 2}},
		{Shape: []int{3, 3, 2}, Floats: []float32{1, 2, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 1, 2, 1, 2, 1, 2}},
		{Shape: []int{3}, Ints: []int32{0, 1, 2}},
	}
	if diff := cmp.Diff(want, got.Arrays); diff != "" {
		t.Error(diff)
	}
	if mask := []float32{1, 0, 0, 1, 1, 0, 1, 1, 1}; !slices.Equal(got.Mask(), mask) || !slices.Equal(got.Lengths, []int{1, 2, 3}) {
		t.Errorf("lengths %v, mask %v", got.Lengths, got.Mask())
	}
}

func TestALoaderSaysWhatItCannotDo(t *testing.T) {
	for _, c := range []struct {
		name string
		set  data.Dataset
		o    data.Options
		want string
	}{
		{"a batch of nothing", &numbers{n: 3}, data.Options{}, "batches of 0 examples"},
		{"a set smaller than a batch", &numbers{n: 3}, data.Options{Batch: 4}, "does not fill a batch of 4"},
		{"no examples at all", &numbers{}, data.Options{Batch: 4, Partial: true}, "0 examples"},
		{"fewer examples than none", &numbers{n: -5}, data.Options{Batch: 2}, "-5 examples"},
		{"fewer examples than none in one batch", &numbers{n: -5}, data.Options{Batch: math.MaxInt, Partial: true}, "-5 examples"},
		{"a queue that no machine holds", &numbers{n: 5}, data.Options{Batch: 2, Queue: 1 << 40}, "each is at most 65536"},
		{"workers that no machine runs", &numbers{n: 5}, data.Options{Batch: 2, Workers: math.MaxInt}, "each is at most 65536"},
		{"a start before the first batch", &numbers{n: 3}, data.Options{Batch: 1, Start: -1}, "below 0: one of Start -1,"},
		{"buckets without lengths", &numbers{n: 3}, data.Options{Batch: 1, Order: data.Bucketed}, "need a data set that tells lengths"},
		{"an order that there is not", &numbers{n: 3}, data.Options{Batch: 1, Order: 9}, "no order 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := data.NewLoader(c.set, c.o)
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// uneven lies about its examples.
type uneven struct {
	numbers
	second []data.Array
}

func (u *uneven) Example(i int) ([]data.Array, error) {
	if i == 1 {
		return u.second, nil
	}
	return u.numbers.Example(i)
}

func TestExamplesThatDoNotGoTogetherAreAnError(t *testing.T) {
	label := data.Array{Ints: []int32{1}}
	for _, c := range []struct {
		name   string
		second []data.Array
		want   string
	}{
		{"another shape", []data.Array{{Shape: []int{3}, Floats: make([]float32, 3)}, label}, "example 1: array 0, float32 [3], does not go with example 0's, float32 [2]"},
		{"another type", []data.Array{{Shape: []int{2}, Ints: make([]int32, 2)}, label}, "example 1: array 0, int32 [2], does not go with example 0's, float32 [2]"},
		{"fewer arrays", []data.Array{{Shape: []int{2}, Floats: make([]float32, 2)}}, "example 1 has 1 arrays, and example 0 has 2"},
		{"fewer elements than the shape says", []data.Array{{Shape: []int{2}, Floats: make([]float32, 1)}, label}, "example 1: array 0 has the shape [2], and 1 floats and 0 ints"},
		{"an extent below 0", []data.Array{{Shape: []int{-2}}, label}, "example 1: array 0 has the shape [-2], and 0 floats and 0 ints"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := data.NewLoader(&uneven{numbers{n: 2}, c.second}, data.Options{Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if _, err := l.NextHost(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFaultsOfTheDataComeInTheirPlace(t *testing.T) {
	broken := errors.New("unreadable")
	set := &numbers{n: 10, at: func(i int) error {
		if i == 4 {
			return broken
		}
		return nil
	}}
	o, _ := enginetest.NewEager(t)
	defer o.Begin().End()
	l, err := data.NewLoader(set, data.Options{Batch: 2, Workers: 3, Prefetch: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 2 {
		if _, err := l.Next(o); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := l.Next(o); !errors.Is(err, broken) || err.Error() != "example 4: unreadable" {
			t.Fatalf("the third batch: %v", err)
		}
	}

	wild, err := data.NewLoader(&numbers{n: 2, at: func(int) error { panic("wild") }}, data.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer wild.Close()
	if p := panicOf(func() { _, _ = wild.NextHost() }); p != "wild" {
		t.Errorf("recovered %v, want the data set's own panic", p)
	}
	if _, err := wild.NextHost(); err == nil || !strings.Contains(err.Error(), "ended with a panic: wild") {
		t.Errorf("a call after the panic returns %v", err)
	}
}

func panicOf(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}

// A batch of MaxInt examples once made the count of batches wrap, which ended the
// process in the goroutine that plans.
func TestABatchLargerThanTheSetIsAllOfIt(t *testing.T) {
	for _, order := range []data.Order{data.InOrder, data.Shuffled, data.Bucketed, data.Sorted} {
		t.Run(fmt.Sprintf("in order %d", order), func(t *testing.T) {
			o := data.Options{Batch: math.MaxInt, Partial: true, Order: order, Window: math.MaxInt}
			for _, b := range take(t, sentences(9), o, 2) {
				if slices.Sort(b.Examples); !slices.Equal(b.Examples, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) || !b.EpochEnd {
					t.Errorf("got %v, the last of its epoch: %v", b.Examples, b.EpochEnd)
				}
			}
		})
	}
}

// A panic of the goroutine that plans once ended the process.
func TestAnEpochThatCannotBeListedPanicsInTheCaller(t *testing.T) {
	l, err := data.NewLoader(&numbers{n: math.MaxInt}, data.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p := panicOf(func() { _, _ = l.NextHost() }); p == nil {
		t.Error("no panic")
	}
	if _, err := l.NextHost(); err == nil {
		t.Error("a batch after the panic")
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	for _, queue := range []int{1, 3, 8} {
		t.Run(fmt.Sprintf("of %d batches", queue), func(t *testing.T) {
			set := &numbers{n: 100}
			l, err := data.NewLoader(set, data.Options{Batch: 2, Workers: 4, Queue: queue})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 { // as long as nobody asks, no more come
				time.Sleep(2 * time.Millisecond)
				if made := set.made.Load(); made > int64(2*queue) {
					t.Errorf("%d examples were made for a queue of %d batches of 2", made, queue)
				}
			}
			l.Close()
		})
	}
}

func TestCloseEndsEveryGoroutine(t *testing.T) {
	for _, taken := range []int{0, 1, 50} {
		l, err := data.NewLoader(&numbers{n: 64}, data.Options{Batch: 4, Workers: 4})
		if err != nil {
			t.Fatal(err)
		}
		for range taken {
			if _, err := l.NextHost(); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
		l.Close()
		stacks := make([]byte, 1<<20)
		if s := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(s, "data.NewLoader") {
			t.Errorf("after %d batches and a close there runs:\n%s", taken, s)
		}
		if _, err := l.NextHost(); err == nil || err.Error() != "the loader is closed" {
			t.Errorf("a closed loader gives %v", err)
		}
	}
}

func TestWhatIsPrefetchedCountsForTheCacheUntilHandedOver(t *testing.T) {
	o, d := enginetest.NewEager(t)
	l, err := data.NewLoader(sentences(70), data.Options{Batch: 7, Prefetch: 3, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(6) {
		scope := o.Begin()
		b, err := l.Next(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Ints(b.Tensors[2]); got[0] != int32(7*step) {
			t.Errorf("step %d: the batch begins with example %d", step, got[0])
		}
		m := b.Metrics()
		if m.SequenceLength != 7 || m.BatchElements != 49 || m.EpochEnd {
			t.Errorf("step %d: %+v", step, m)
		}
		waiting := min(int(step)+1, 3)
		want := map[snapshot.Owners]int{snapshot.OwnedByUser: 3, snapshot.OwnedByCache: 3 * waiting}
		if diff := cmp.Diff(want, enginetest.Owners(d)); diff != "" {
			t.Errorf("step %d: %s", step, diff)
		}
		scope.End()
		if got := enginetest.Live(d); got != int64(3*waiting) {
			t.Errorf("step %d: %d blocks are live after it, want %d", step, got, 3*waiting)
		}
	}
	l.Close()
}

func TestABatchThatDoesNotFitLeavesNothing(t *testing.T) {
	d := mem.NewDevice(mem.Host(), mem.Options{Limit: 2 * snapshot.MiB})
	o := engine.NewEager(cpu.New(1), d)
	l, err := data.NewLoader(&numbers{n: 1 << 17}, data.Options{Batch: 1 << 15, Queue: 1})
	if err != nil {
		t.Fatal(err)
	}
	next := func() error {
		return engine.Run(o, func(*engine.Scope) error {
			b, err := l.Next(o)
			if err == nil && o.Ints(b.Tensors[1])[0] != 0 {
				t.Error("the batch that did not fit is gone")
			}
			return err
		})
	}
	others := []*engine.Tensor{o.Full(1, 1<<18), o.Full(1, 1<<18)}
	first := next()
	if _, ok := errors.AsType[*mem.OutOfMemoryError](first); !ok || enginetest.Live(d) != 2 {
		t.Errorf("got %v, want the device to be full; %d blocks are live", first, enginetest.Live(d))
	}
	others[0].Release()
	others[1].Release()
	if err := next(); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestAPassGoesThroughOnce(t *testing.T) {
	var seen []int
	for b, err := range data.Pass(&numbers{n: 7}, data.Options{Batch: 3, Partial: true}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, b.Examples...)
	}
	if !slices.Equal(seen, []int{0, 1, 2, 3, 4, 5, 6}) {
		t.Errorf("went through %v", seen)
	}
	fails := 0
	for _, err := range data.Pass(&numbers{n: 9, at: func(int) error { return errors.New("no") }}, data.Options{Batch: 3}) {
		if err != nil {
			fails++
		}
	}
	for _, err := range data.Pass(&numbers{n: 1}, data.Options{}) {
		if err != nil {
			fails++
		}
	}
	if fails != 2 {
		t.Errorf("two passes that cannot be made gave %d errors", fails)
	}
}
