package data

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/train"
	"github.com/memdiag/memdiag/snapshot"
)

// Loader makes the batches of a Dataset, epoch after epoch without end. Workers
// make them ahead on the host; Next brings them to the device. One goroutine uses
// a loader. A panic of the data set, or of the planning, goes to that goroutine
// and ends the loader.
type Loader struct {
	set     Dataset
	options Options
	// queue holds what the workers make, in order, each with its place to arrive: so
	// the order is the plan's, and the queue's room bounds what is made.
	queue   chan promise
	done    chan struct{}
	workers sync.WaitGroup
	ahead   []*Batch // on the device, not handed over yet
	again   *Host    // did not fit on the device
	broken  error    // what every further Next returns
}

// promise is a batch that a worker is going to make.
type promise struct {
	planned
	made chan made
}

type made struct {
	host  *Host
	err   error
	panic any // the data set's own, or the planning's
}

// NewLoader starts the workers. The caller owes a Close.
func NewLoader(set Dataset, o Options) (*Loader, error) {
	p, err := newPlan(set, o)
	if err != nil {
		return nil, err
	}
	workers := cmp.Or(o.Workers, 1)
	l := &Loader{
		set: set, options: o,
		queue: make(chan promise, cmp.Or(o.Queue, 2*workers)), done: make(chan struct{}),
	}
	work := make(chan promise)
	l.workers.Go(func() {
		defer close(work)
		defer func() {
			if p := recover(); p != nil { // an epoch too long to be listed
				last := promise{made: make(chan made, 1)}
				last.made <- made{panic: p}
				l.send(l.queue, last)
			}
		}()
		for b := range p.from {
			next := promise{b, make(chan made, 1)}
			if !l.send(l.queue, next) || !l.send(work, next) {
				return
			}
		}
	})
	for range workers {
		l.workers.Go(func() {
			for next := range work {
				next.made <- l.make(next.planned)
			}
		})
	}
	return l, nil
}

// send reports whether the promise went through before the loader was closed.
func (l *Loader) send(to chan<- promise, p promise) bool {
	select {
	case to <- p:
		return true
	case <-l.done:
		return false
	}
}

// make makes a batch.
func (l *Loader) make(p planned) (m made) {
	defer func() { m.panic = recover() }()
	m.host, m.err = collate(l.set, p)
	return m
}

// NextHost returns the next batch without bringing it to a device, for those who
// do not use Next. An error of the data set comes in the place of the batch that
// it befell, and ends the loader: each further call returns it, or tells of the
// panic.
func (l *Loader) NextHost() (*Host, error) {
	if h := l.again; h != nil {
		l.again = nil
		return h, nil
	}
	if l.broken != nil {
		return nil, l.broken
	}
	m := <-(<-l.queue).made
	if m.panic != nil {
		l.broken = fmt.Errorf("the loader has ended with a panic: %v", m.panic)
		panic(m.panic)
	}
	l.broken = m.err
	return m.host, m.err
}

// Batch is a batch on a device.
type Batch struct {
	*Host
	// Tensors are the arrays, one for one, in the scope that was open in Next.
	Tensors []*engine.Tensor
}

// Metrics are what a step on this batch says of its input; the loss is left to
// the step. BatchElements are those of the first array, padding included.
func (b *Batch) Metrics() train.Metrics {
	m := train.Metrics{Epoch: b.Epoch, EpochEnd: b.EpochEnd, SequenceLength: int64(b.Longest())}
	if len(b.Tensors) > 0 {
		m.BatchElements = int64(b.Tensors[0].Shape().Elements())
	}
	return m
}

// Next brings the next batch to the device: its tensors are the user's, in the
// innermost open scope. With Prefetch, one more is uploaded while fewer than that
// wait; those count for the cache until they are handed over, so that what waits
// at a barrier is the same in every run. It waits for workers, and panics as
// operations do where the device is full; a further call tries that batch again.
// Errors are those of NextHost.
func (l *Loader) Next(o engine.Ops) (*Batch, error) {
	for range 2 {
		if len(l.ahead) > l.options.Prefetch {
			break
		}
		if err := l.fetch(o); err != nil {
			if len(l.ahead) == 0 {
				return nil, err
			}
			break // the batch at hand is good
		}
	}
	b := l.ahead[0]
	l.ahead = l.ahead[1:]
	for i, t := range b.Tensors {
		b.Tensors[i] = o.Detach(t)
		t.Release()
	}
	return b, nil
}

// fetch uploads one more batch.
func (l *Loader) fetch(o engine.Ops) error {
	h, err := l.NextHost()
	if err != nil {
		return err
	}
	l.again = h
	scope := o.Begin()
	defer scope.End()
	b := Upload(o, h)
	for _, t := range b.Tensors {
		t.Own(snapshot.OwnedByCache)
	}
	l.again = nil
	l.ahead = append(l.ahead, b)
	return nil
}

// Upload brings a batch to the device, in the innermost open scope.
func Upload(o engine.Ops, h *Host) *Batch {
	b := &Batch{Host: h}
	for i := range h.Arrays {
		b.Tensors = append(b.Tensors, h.Arrays[i].Upload(o))
	}
	return b
}

// Upload makes a tensor of the array.
func (a *Array) Upload(o engine.Ops) *engine.Tensor {
	if a.Floats != nil {
		return o.FromFloats(a.Floats, a.Shape...)
	}
	return o.FromInts(a.Ints, a.Shape...)
}

// errClosed is what a closed loader returns.
var errClosed = errors.New("the loader is closed")

// Close stops the workers, waits until they have ended and releases the batches
// that wait on the device. A second Close does nothing.
func (l *Loader) Close() {
	if errors.Is(l.broken, errClosed) {
		return
	}
	l.broken = errClosed
	close(l.done)
	l.workers.Wait()
	for _, b := range l.ahead {
		for _, t := range b.Tensors {
			t.Release()
		}
	}
	l.ahead = nil
}

// Pass goes through a data set once, epoch 0 of the options, without workers.
// After an error it ends.
func Pass(set Dataset, o Options) iter.Seq2[*Host, error] {
	return func(yield func(*Host, error) bool) {
		p, err := newPlan(set, o)
		if err != nil {
			yield(nil, fmt.Errorf("pass: %w", err))
			return
		}
		for _, b := range p.epoch(0) {
			h, err := collate(set, b)
			if !yield(h, err) || err != nil {
				return
			}
		}
	}
}
