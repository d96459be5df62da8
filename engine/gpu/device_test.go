package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/snapshot"
)

// eager returns operations on a device, and its allocator, which must be empty when
// the test ends.
func eager(tb testing.TB, d *Device, o mem.Options) (*engine.Eager, *mem.Device) {
	tb.Helper()
	device := mem.NewDevice(d, o)
	tb.Cleanup(func() {
		if err := device.Close(); err != nil {
			tb.Error(err)
		}
	})
	return engine.NewEager(New(d), device), device
}

// slack is how far the driver's figure may be off ours: where it is the process's own
// (a software driver that reports none), Go and the driver take and give back as well.
const slack = 16 * snapshot.MiB

func TestTheDriverSeesWhatIsReserved(t *testing.T) {
	total := snapshot.GiB
	if testing.Short() {
		total /= 4
	}
	agree(t, open(t), total, slack)
}

// agree takes and gives back total in segments of several sizes, and holds the driver's
// figure to what is reserved, up to within.
func agree(t *testing.T, d *Device, total, within snapshot.Bytes) {
	t.Helper()
	device := mem.NewDevice(d, mem.Options{})
	start := device.Meters().Driver
	if start == snapshot.Unknown {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no figure of the driver to compare with")
		}
		t.Skip("the driver does not tell")
	}
	compare := func(when string) {
		t.Helper()
		m := device.Meters()
		off := m.Driver - start - m.Reserved
		t.Logf("%s: %s are reserved, the driver's figure is off by %s", when, m.Reserved, off)
		if off < -within || off > within {
			t.Errorf("%s: %s are reserved, the driver's figure rose by %s", when, m.Reserved, m.Driver-start)
		}
	}
	for _, c := range []struct {
		name string
		size int64
	}{
		{"many small segments", 1 << 20},
		{"segments that blocks share", 6 << 20},
		{"a segment a block", 96 << 20},
	} {
		var blocks []*mem.Storage
		for sum := int64(0); sum < int64(total); sum += c.size {
			s, err := device.Alloc(c.size, snapshot.OwnedByUser)
			if err != nil {
				t.Fatal(err)
			}
			blocks = append(blocks, s)
		}
		if m := device.Meters(); m.Reserved < total {
			t.Errorf("%s: only %s are reserved", c.name, m.Reserved)
		}
		compare(c.name)
		for _, s := range blocks {
			s.Release(snapshot.OwnedByUser)
		}
		compare(c.name + ", cached")
		device.Trim()
		if m := device.Meters(); m.Reserved != 0 {
			t.Errorf("%s are reserved after a trim", m.Reserved)
		}
		compare(c.name + ", given back")
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}

func TestStagingTakesNothingMore(t *testing.T) {
	d := open(t)
	k := New(d)
	const n = (3*stagingBytes + 1000) / engine.ElementSize // more than all batches carry
	v := tensor(t, d, n)
	src, dst := make([]byte, n*engine.ElementSize), make([]byte, n*engine.ElementSize)
	for i := range src {
		src[i] = byte(i * 7 / 3)
	}
	segments := d.segments.Load()
	var before snapshot.Bytes
	for round := range 20 {
		clear(dst)
		k.Upload(v, src)
		k.Download(dst, v)
		if err := k.Sync(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dst, src) {
			t.Fatal("other bytes came back")
		}
		if round == 0 { // pages of the staging memory count once they are touched
			before = d.Used()
		}
	}
	if after := d.Used(); after-before > slack || d.segments.Load() != segments {
		t.Errorf("the driver's figure rose by %s", after-before)
	}
}

func TestABlockThatTheDeviceMayUseIsPending(t *testing.T) {
	d := open(t)
	o, device := eager(t, d, mem.Options{})
	a := o.Full(2, 1000)
	where := a.Storage().Buffer()
	b := o.Add(a, a) // queued, not begun
	a.Release()
	if got := count(device, snapshot.Pending); got != 1 {
		t.Errorf("%d blocks are pending, want the one that a sum reads", got)
	}
	if m := device.Meters(); m.Active-m.Allocated != 4096 {
		t.Errorf("meters %+v: 4 KiB more are active than allocated", m)
	}
	c := o.Full(5, 1000)
	if c.Storage().Buffer() == where {
		t.Error("the block was given out while a sum was to read it")
	}
	if err := o.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := count(device, snapshot.Pending); got != 0 {
		t.Errorf("%d blocks are pending after a sync", got)
	}
	e := o.Full(7, 1000)
	if e.Storage().Buffer() != where {
		t.Error("the block is not used again after a sync")
	}
	if got := o.Floats(b)[999]; got != 4 {
		t.Errorf("2 + 2 is %g", got)
	}
	for _, t := range []*engine.Tensor{b, c, e} {
		t.Release()
	}
}

func count(d *mem.Device, state snapshot.State) (n int) {
	for _, s := range mem.Take(snapshot.Mark{}, d).Blocks.State {
		if s == state {
			n++
		}
	}
	return n
}

// caught returns what f panics with.
func caught(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

func TestTooMuchIsAnErrorThatNamesTheTopSites(t *testing.T) {
	d := open(t)
	for _, c := range []struct {
		name string
		o    mem.Options
		dims []int
		want string
	}{
		{"the limit", mem.Options{Limit: 40 * snapshot.MiB}, []int{64, 1 << 18}, "the limit is 40.0 MiB"},
		{"more than one allocation has", mem.Options{}, []int{1 << 20, 1 << 20}, "one allocation has at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, device := eager(t, d, c.o)
			held := o.Full(1, 1<<20)
			defer held.Release()
			var full *mem.OutOfMemoryError
			if err := caught(func() { o.Full(0, c.dims...) }); !errors.As(err, &full) || !strings.Contains(err.Error(), c.want) || len(full.Top) != 1 {
				t.Errorf("got %v, want %q and what is held", err, c.want)
			}
			if m := device.Meters(); m.Allocated != 4*snapshot.MiB {
				t.Errorf("%s are allocated after the refusal", m.Allocated)
			}
		})
	}
}

func TestViewsWithoutElementsAreNoWork(t *testing.T) {
	d := open(t)
	k := New(d)
	none, image, index := tensor(t, d, 0, 3), tensor(t, d, 0, 2, 4, 4), tensor(t, d, 0)
	table, two := tensor(t, d, 5, 3), tensor(t, d, 1, 3)
	k.Fill(none, 1)
	k.Rand(none, engine.Draw{})
	k.Upload(none, nil)
	k.Download(nil, none)
	k.Copy(none, none)
	k.CopyStrided(none, none)
	k.Unary(engine.Exp, none, none)
	k.Binary(engine.Add, none, none, none)
	k.Where(none, none, none, none)
	k.Gather(none, table, index)
	k.ScatterAdd(table, index, none)
	k.Im2Col(tensor(t, d, 0, 8, 9), image, engine.Square(2, 1, 0))
	k.Col2Im(image, tensor(t, d, 0, 8, 9), engine.Square(2, 1, 0))
	k.MatMul(tensor(t, d, 0, 2, 2), tensor(t, d, 0, 2, 3), tensor(t, d, 0, 3, 2))
	k.Fill(two, 9)
	k.Reduce(engine.ReduceSum, two, none)
	if err := k.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := floats(k, two); got[0] != 0 || got[2] != 0 {
		t.Errorf("the sum of nothing is %v", got)
	}
}

func floats(k engine.Kernels, v engine.View) []float32 {
	host := make([]byte, v.Shape.Elements()*engine.ElementSize)
	k.Download(host, v)
	out := make([]float32, v.Shape.Elements())
	for i := range out {
		out[i] = math.Float32frombits(binary.NativeEndian.Uint32(host[4*i:]))
	}
	return out
}

// TestWhatIsTooLargeForABindingIsCut lets kernels see 4 KiB at once, and compares with
// what they make of all of it.
func TestWhatIsTooLargeForABindingIsCut(t *testing.T) {
	d := open(t)
	k := New(d)
	random := func(dims ...int) engine.View {
		v := tensor(t, d, dims...)
		k.Rand(v, engine.Draw{Key: uint64(len(dims))})
		return v
	}
	a, b, wide := random(6, 30, 40), random(30, 40), random(3, 30, 50)
	spread := b
	spread.Shape, spread.Strides = a.Shape, engine.Strides{0, 40, 1}
	image := random(5, 2, 12, 12)
	left, right := random(4, 50, 20), random(4, 20, 16)
	shared := right
	shared.Strides[0] = 0
	limit := &d.physical.properties.limits.maxStorageBufferRange
	whole := *limit
	for name, f := range map[string]struct {
		dst []int
		run func(dst engine.View)
	}{
		"unary":  {[]int{6, 30, 40}, func(dst engine.View) { k.Unary(engine.Sqrt, dst, a) }},
		"binary": {[]int{6, 30, 40}, func(dst engine.View) { k.Binary(engine.Add, dst, a, spread) }},
		"where":  {[]int{6, 30, 40}, func(dst engine.View) { k.Where(dst, spread, a, spread) }},
		"rand":   {[]int{3, 1234}, func(dst engine.View) { k.Rand(dst, engine.Draw{Key: 1, Stream: 2}) }},
		"strided copy": {[]int{3, 30, 40}, func(dst engine.View) {
			v := wide
			v.Shape = dst.Shape
			k.CopyStrided(dst, v)
		}},
		"strided fill": {[]int{3, 30, 50}, func(dst engine.View) {
			k.Fill(dst, 0)
			dst.Shape.Dims[2] = 41
			k.Fill(dst, 3)
		}},
		"reduce": {[]int{6, 1, 40}, func(dst engine.View) {
			k.Reduce(engine.ReduceSum, dst, engine.View{Buffer: a.Buffer, Shape: engine.ShapeOf(6, 3, 40), Strides: a.Strides})
		}},
		"matmul":                          {[]int{4, 50, 16}, func(dst engine.View) { k.MatMul(dst, left, right) }},
		"matmul of rows with one operand": {[]int{4, 50, 16}, func(dst engine.View) { k.MatMul(dst, left, shared) }},
		"im2col":                          {[]int{5, 8, 36}, func(dst engine.View) { k.Im2Col(dst, image, engine.Square(2, 2, 0)) }},
	} {
		t.Run(name, func(t *testing.T) {
			cut, dst := tensor(t, d, f.dst...), tensor(t, d, f.dst...)
			f.run(dst)
			*limit = 4096
			f.run(cut)
			*limit = whole
			if err := k.Sync(); err != nil {
				t.Fatal(err)
			}
			want, got := floats(k, dst), floats(k, cut)
			for i, w := range want {
				if got[i] != w {
					t.Fatalf("element %d is %g cut, %g whole", i, got[i], w)
				}
			}
		})
	}
	t.Run("what cannot be cut is an error", func(t *testing.T) {
		*limit = 4096
		defer func() { *limit = whole }()
		k.Reduce(engine.ReduceSum, tensor(t, d, 1, 1, 1), a)
		if err := k.Sync(); err == nil || !strings.Contains(err.Error(), "at most 4.00 KiB of a tensor at once; reduce sum has one over 28.1 KiB") {
			t.Errorf("got %v", err)
		}
		if err := k.Sync(); err != nil {
			t.Errorf("a second sync still gives %v", err)
		}
	})
}

func TestASegmentIsGivenBackOnce(t *testing.T) {
	d := open(t)
	m, err := d.Allocate(2 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(m); err != nil {
		t.Fatal(err)
	}
	if err := d.Free(m); err == nil {
		t.Error("a second free is no error")
	}
	host, err := mem.Host().Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Free(host); err == nil {
		t.Error("another driver's segment was taken")
	}
	if err := mem.Host().Free(host); err != nil {
		t.Error(err)
	}
}
