package gemm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pool multiplies matrices with a fixed number of threads. It owns its worker
// goroutines and its packing buffers, which grow to what its products need: at
// most 6 MiB, with batches 6 MiB a thread. Any number of goroutines may use a
// Pool; their products are computed one after the other.
type Pool struct {
	mu      sync.Mutex // held while a product is computed
	spaces  []space    // one a member; the caller is member 0
	batch   batch
	calls   calls
	workers []*worker
	ended   sync.WaitGroup

	// What the members work at. state counts jobs above the bit open, which is set
	// while the job may be entered, and the workers that are inside below it. A
	// worker that wakes too late finds the job closed and is not waited for.
	job     job
	tickets tickets
	state   atomic.Uint64
}

const (
	open    = 1 << 16
	nextJob = open << 1
)

// worker is a goroutine of a pool. It is parked while it waits for wake.
type worker struct {
	wake   chan struct{}
	parked atomic.Bool
}

// job is work cut into tickets. Every member works until no ticket is left.
type job interface {
	work(t *tickets, s *space)
}

// tickets hands out the pieces of a job in order, and counts those finished.
type tickets struct {
	next, finished atomic.Int64
}

func (t *tickets) reset() {
	t.next.Store(0)
	t.finished.Store(0)
}

// take returns the next ticket. There is no end to them.
func (t *tickets) take() int { return int(t.next.Add(1) - 1) }

// await waits until so many are finished.
func (t *tickets) await(count int) {
	for spin := 0; t.finished.Load() < int64(count); spin++ {
		yield(spin)
	}
}

// NewPool returns a pool of so many threads, the goroutine that calls Multiply
// being one of them. Threads below 1 count as 1. Close ends the others.
func NewPool(threads int) *Pool {
	return newPool(threads, kernels()[0])
}

func newPool(threads int, kern *kernel) *Pool {
	p := &Pool{spaces: make([]space, max(1, threads))}
	for i := range p.spaces {
		p.spaces[i].kern = kern
	}
	for i := range p.spaces[1:] {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		p.ended.Go(func() { p.serve(w, &p.spaces[1+i]) })
	}
	return p
}

// Close ends the pool's workers and waits for them. The pool is of no use
// afterwards: Multiply panics.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		close(w.wake)
	}
	p.ended.Wait()
	p.workers, p.spaces = nil, nil
}

func (p *Pool) serve(w *worker, s *space) {
	last := p.state.Load() / nextJob
	for {
		if p.enter(&last) {
			p.job.work(&p.tickets, s)
			p.state.Add(^uint64(0))
			continue
		}
		if p.linger(last) {
			continue
		}
		w.parked.Store(true)
		if p.state.Load()/nextJob != last && w.parked.CompareAndSwap(true, false) {
			continue // a job came before anyone could see that the worker parks
		}
		if _, ok := <-w.wake; !ok {
			return
		}
	}
}

// enter reports whether there is a job newer than the last, and counts the
// worker in if it is open.
func (p *Pool) enter(last *uint64) bool {
	for {
		s := p.state.Load()
		if s/nextJob == *last {
			return false
		}
		if s&open == 0 {
			*last = s / nextJob
			return false
		}
		if p.state.CompareAndSwap(s, s+1) {
			*last = s / nextJob
			return true
		}
	}
}

// lingering is how long a worker looks for another job before it parks: about
// what parking and waking take, 50 µs on a virtual machine.
const lingering = 50 * time.Microsecond

// spins is how often a thread looks before it lets other goroutines run, about 2
// µs. Where all threads of a pool did so at each turn, they slept at the scheduler's
// lock, and a step of many small products took twice as long on two threads as on
// one.
const spins = 2000

// linger reports whether a new job came.
func (p *Pool) linger(last uint64) bool {
	for start := time.Now(); time.Since(start) < lingering; {
		for range spins {
			if p.state.Load()/nextJob != last {
				return true
			}
		}
		runtime.Gosched()
	}
	return false
}

// run does a job with at most so many members and returns when it is done.
func (p *Pool) run(j job, members int) {
	p.tickets.reset()
	if members > 1 {
		p.job = j
		p.state.Store((p.state.Load()/nextJob+1)*nextJob | open)
		for _, w := range p.workers[:members-1] {
			if w.parked.CompareAndSwap(true, false) {
				w.wake <- struct{}{}
			}
		}
	}
	j.work(&p.tickets, &p.spaces[0])
	if members > 1 {
		p.state.Add(^uint64(open - 1))
		for spin := 0; p.state.Load()%nextJob != 0; spin++ {
			yield(spin)
		}
		p.job = nil
	}
}

// yield is one turn of waiting for another member. It has at most a tile to
// finish: less than it takes to park and to be woken.
func yield(spin int) {
	if spin%spins == spins-1 {
		runtime.Gosched()
	}
}
