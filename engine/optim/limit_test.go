package optim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/autodiff"
	"github.com/memdiag/memdiag/engine/cpu"
	"github.com/memdiag/memdiag/engine/mem"
	"github.com/memdiag/memdiag/engine/optim"
)

// closed is the host's memory, which gives nothing more while it is full.
type closed struct {
	mem.Driver
	full bool
}

func (c *closed) Allocate(n int64) (mem.Memory, error) {
	if c.full {
		return nil, errors.New("full")
	}
	return c.Driver.Allocate(n)
}

// squeeze fills a device but for room tensors of n elements; what it returns
// makes it roomy again.
func squeeze(t *testing.T, o engine.Ops, driver *closed, room, n int) (roomy func()) {
	t.Helper()
	driver.full = true
	var ballast []*engine.Tensor
	for {
		err := engine.Run(o, func(*engine.Scope) error {
			ballast = append(ballast, o.Full(0, n).Keep())
			return nil
		})
		if err != nil {
			break
		}
	}
	for range room {
		if len(ballast) == 0 { // then new memory is the room
			driver.full = false
			break
		}
		ballast[len(ballast)-1].Release()
		ballast = ballast[:len(ballast)-1]
	}
	return func() {
		driver.full = false
		for _, b := range ballast {
			b.Release()
		}
	}
}

// stepper is an optimizer with its step.
type stepper interface {
	optimizer
	Step()
}

// A step that met a full device once left a parameter with a new mean and an old
// value, and its count of steps ahead.
func TestAStepThatMeetsAFullDeviceIsCompletedByTheNext(t *testing.T) {
	const n = 1 << 13
	sgd := func(o engine.Ops, p []*engine.Tensor) stepper { return optim.NewSGD(o, p, 0.1, 0.9) }
	adam := func(o engine.Ops, p []*engine.Tensor) stepper { return optim.NewAdamW(o, p, 0.1, 0.01) }
	for _, c := range []struct {
		name    string
		make    func(o engine.Ops, p []*engine.Tensor) stepper
		kernels func() engine.Kernels
		taken   int  // steps before the one that meets the full device
		whole   bool // a step that fails has moved nothing
		fails   int  // at least so often
	}{
		{"adam's first step, with kernels of its own, takes all or nothing", adam, cpuKernels, 0, true, 4},
		{"adam's first step, composed", adam, cpu.Reference, 0, false, 10},
		{"adam's second step, composed", adam, cpu.Reference, 1, false, 5},
		{"momentum's first step, with kernels of its own, takes all or nothing", sgd, cpuKernels, 0, true, 2},
		{"momentum's first step, composed", sgd, cpu.Reference, 0, false, 4},
		{"momentum's second step, composed", sgd, cpu.Reference, 1, false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			// trained returns parameters and state after a step that had so much room,
			// and after one more where that failed.
			trained := func(room int) (all [][]float32, failed bool) {
				driver := &closed{Driver: mem.Host()}
				d := mem.NewDevice(driver, mem.Options{})
				o := autodiff.New(engine.NewEager(c.kernels(), d))
				p := []*engine.Tensor{o.Full(1, n), o.Full(2, n)}
				o.Track(p...)
				opt := c.make(o, p)
				step := func(room int) error {
					backward := func() error { return o.Backward(o.Add(o.Sum(o.Mul(p[0], p[0])), o.Sum(p[1]))) }
					if err := engine.Run(o, func(*engine.Scope) error { return backward() }); err != nil {
						return err
					}
					if room >= 0 {
						defer squeeze(t, o, driver, room, n)()
					}
					return engine.Run(o, func(*engine.Scope) error { opt.Step(); return nil })
				}
				for range c.taken {
					if err := step(-1); err != nil {
						t.Fatal(err)
					}
				}
				before := ends(o, p...)
				if err := step(room); err != nil {
					failed = true
					if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full {
						t.Fatal(err)
					}
					if after := ends(o, p...); c.whole && !cmp.Equal(before, after) {
						t.Errorf("with room for %d tensors, a step that failed moved %v to %v", room, before, after)
					}
					if err := engine.Run(o, func(*engine.Scope) error { opt.Step(); return nil }); err != nil {
						t.Fatal(err)
					}
				}
				all = ends(o, p...)
				for _, s := range opt.State() {
					if s.Tensor.DType() == engine.Int32 {
						for _, steps := range o.Ints(s.Tensor) {
							all = append(all, []float32{float32(steps)})
						}
						continue
					}
					all = append(all, ends(o, s.Tensor)...)
				}
				for _, x := range p {
					if autodiff.Grad(x) != nil {
						t.Error("a gradient is left")
					}
					x.Release()
				}
				opt.Release()
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				return all, failed
			}
			want, _ := trained(-1)
			fails := 0
			for room := 0; ; room++ {
				got, failed := trained(room)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("with room for %d tensors: %s", room, diff)
				}
				if !failed {
					break
				}
				fails++
			}
			if fails < c.fails {
				t.Errorf("%d steps failed, want at least %d", fails, c.fails)
			}
		})
	}
}

func cpuKernels() engine.Kernels { return cpu.New(1) }

// ends are the first and the last element of each tensor.
func ends(o engine.Ops, tensors ...*engine.Tensor) (all [][]float32) {
	for _, t := range tensors {
		x := o.Floats(t)
		all = append(all, []float32{x[0], x[len(x)-1]})
	}
	return all
}

// What an average has half done cannot be told afterwards, so it
// changes all or nothing. The parameters lie in both of the device's pools.
func TestWhatMeetsAFullDeviceChangesAllOrNothing(t *testing.T) {
	sizes := []int{1 << 6, 1 << 19, 1 << 10}
	for _, c := range []struct {
		name string
		do   func(o *autodiff.Ops, p []*engine.Tensor, e *optim.EMA)
	}{
		{"averages that are updated", func(_ *autodiff.Ops, _ []*engine.Tensor, e *optim.EMA) { e.Update() }},
		{"averages that are swapped in", func(_ *autodiff.Ops, _ []*engine.Tensor, e *optim.EMA) { e.Swap() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			fails := 0
			for room := 0; ; room++ {
				driver := &closed{Driver: mem.Host()}
				d := mem.NewDevice(driver, mem.Options{})
				o := autodiff.New(engine.NewEager(cpu.New(1), d))
				var p []*engine.Tensor
				for i, n := range sizes {
					p = append(p, o.Full(float32(1+i), n))
				}
				o.Track(p...)
				e := optim.NewEMA(o, p, 0.5)
				all := func() [][]float32 {
					held := slices.Clone(p)
					for _, x := range p {
						held = append(held, e.Average(x), autodiff.Grad(x))
					}
					return ends(o, held...)
				}
				if err := engine.Run(o, func(*engine.Scope) error {
					e.Update()
					for _, x := range p {
						o.Valid().Assign(x, o.Valid().Full(5))
					}
					loss := o.Full(0)
					for _, x := range p {
						loss = o.Add(loss, o.Sum(o.Mul(x, x)))
					}
					return o.Backward(loss)
				}); err != nil {
					t.Fatal(err)
				}
				before := all()
				// Room in large blocks, and in the rest.
				small := squeeze(t, o, driver, room%3, 1<<7)
				large := squeeze(t, o, driver, room/3, 1<<19)
				err := engine.Run(o, func(*engine.Scope) error { c.do(o, p, e); return nil })
				large()
				small()
				after := all()
				if err != nil {
					fails++
					if _, full := errors.AsType[*mem.OutOfMemoryError](err); !full {
						t.Fatal(err)
					}
				}
				for i := range before {
					if changed := !cmp.Equal(before[i], after[i]); changed && err != nil {
						t.Errorf("with room %d, %v became %v", room, before[i], after[i])
					}
				}
				autodiff.ZeroGrad(p...)
				e.Release()
				for _, x := range p {
					x.Release()
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if err == nil {
					if cmp.Equal(before, after) {
						t.Error("nothing was changed")
					}
					break
				}
			}
			if fails == 0 {
				t.Error("the device was never too full")
			}
		})
	}
}
