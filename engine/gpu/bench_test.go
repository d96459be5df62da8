package gpu

import (
	"fmt"
	"testing"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/mem"
)

// tensor takes a segment for a contiguous tensor.
func tensor(tb testing.TB, d *Device, dims ...int) engine.View {
	tb.Helper()
	shape := engine.ShapeOf(dims...)
	size := max(int64(shape.Elements())*engine.ElementSize, engine.ElementSize)
	m, err := d.Allocate(size)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Free(m); err != nil {
			tb.Error(err)
		}
	})
	return engine.View{Buffer: mem.Buffer{Memory: m, Size: size}, Shape: shape, Strides: shape.RowMajor()}
}

func BenchmarkSmallOperation(b *testing.B) {
	d := open(b)
	k := New(d)
	x, y, z := tensor(b, d, 64), tensor(b, d, 64), tensor(b, d, 64)
	k.Binary(engine.Add, z, x, y)
	if err := k.Sync(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for range 1000 {
			k.Binary(engine.Add, z, x, y)
		}
		if err := k.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/operation")
}

func BenchmarkAdd(b *testing.B) {
	d := open(b)
	k := New(d)
	x, y, z := tensor(b, d, 1<<20), tensor(b, d, 1<<20), tensor(b, d, 1<<20)
	b.SetBytes(3 << 22)
	for b.Loop() {
		k.Binary(engine.Add, z, x, y)
		if err := k.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, n := range []int{64, 512, 2048, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := open(b)
			k := New(d)
			x, y, z := tensor(b, d, 1, n, n), tensor(b, d, 1, n, n), tensor(b, d, 1, n, n)
			k.MatMul(z, x, y) // the first one compiles
			if err := k.Sync(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				k.MatMul(z, x, y)
				if err := k.Sync(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*float64(n*n*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

// BenchmarkConv2d is a convolution of 3 by 3 as ResNets have it, on 32 images of 56 by 56 with 64 channels.
func BenchmarkConv2d(b *testing.B) {
	d := open(b)
	o, _ := eager(b, d, mem.Options{Untracked: true})
	err := engine.Run(o, func(*engine.Scope) error {
		x, filters := o.Full(1, 32, 64, 56, 56), o.Full(1, 64, 64, 3, 3)
		for b.Loop() {
			o.Conv2d(x, filters, engine.Square(3, 1, 1)).Release()
			if err := o.Sync(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(2*32*56*56*64*64*9*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
