// Package cpu holds the kernels for host memory: fast ones, and the slow clear
// reference that every backend is held against.
package cpu

import (
	"math/bits"
	"runtime"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/engine/cpu/gemm"
)

// New returns kernels that use up to this many threads; 0 means one a core.
// Results do not depend on the number of threads.
func New(threads int) engine.Kernels {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	k := &kernels{threads: threads, pool: gemm.NewPool(threads), spaces: make([]workspace, threads)}
	for i := range k.spaces {
		k.spaces[i].products = gemm.NewPool(1)
	}
	// Kernels have no end of their own; the pool's threads wait for no more work
	// once nobody can ask for it.
	runtime.AddCleanup(k, (*gemm.Pool).Close, k.pool)
	return k
}

type kernels struct {
	threads int
	pool    *gemm.Pool
	spaces  []workspace // one a thread
	floats  []float32   // room for what threads make for each other
	sticky  error
}

// grain is how many elements make a piece of work worth another thread: at 0.1 to
// 1 ns an element, some times what it costs to hand it over.
const grain = 1 << 15

// split runs f over [0,n) in pieces, on several threads, and waits. cost is the
// work in elements of one unit. There are more pieces than threads, since some
// threads start late.
func (k *kernels) split(n, cost int, f func(from, to int)) {
	switch pieces := k.pieces(n, cost); {
	case n == 0:
	case pieces == 1:
		f(0, n)
	default:
		k.pool.Do(pieces, func(p, _ int) { f(n*p/pieces, n*(p+1)/pieces) })
	}
}

// pieces is how many split makes; 1 is for the calling thread.
func (k *kernels) pieces(n, cost int) int {
	if k.threads == 1 {
		return 1
	}
	return max(1, min(4*k.threads, n, work(n, cost)/grain))
}

// each runs f over [0,n), one unit at a time, on several threads, and waits. cost
// is as for split. Each call has a thread's workspace to itself, and leaves there
// nothing that another call reads.
func (k *kernels) each(n, cost int, f func(i int, s *workspace)) {
	if k.threads == 1 || n == 1 || work(n, cost) < 2*grain {
		for i := range n {
			f(i, &k.spaces[0])
		}
		return
	}
	k.pool.Do(n, func(i, thread int) { f(i, &k.spaces[thread]) })
}

// take returns n numbers, undefined ones; they are the kernel's until its end.
func (k *kernels) take(n int) []float32 {
	if cap(k.floats) < n {
		k.floats = make([]float32, n)
	}
	return k.floats[:n]
}

// workspace is host memory of one thread, for what a kernel makes on the way. It
// grows to what the largest call needs.
type workspace struct {
	products *gemm.Pool // of the one thread
	floats   []float32
}

// take returns n numbers, undefined ones; they are the caller's until the next
// take.
func (s *workspace) take(n int) []float32 {
	if cap(s.floats) < n {
		s.floats = make([]float32, n)
	}
	return s.floats[:n]
}

// work is n·cost, held at the largest int.
func work(n, cost int) int {
	hi, lo := bits.Mul64(uint64(n), uint64(max(cost, 1)))
	if hi != 0 || lo > 1<<62 {
		return 1 << 62
	}
	return int(lo)
}

// operands is the most views that one loop walks.
const operands = 4

// loops is a nest of loops over up to four views of one shape. Axes that every
// view crosses without a gap are fused, so most nests have one or two axes.
type loops struct {
	rank    int
	dims    [engine.MaxRank]int
	strides [engine.MaxRank][operands]int
}

// nest plans the loops over views of equal shape. Where there is no element there
// is one loop of none, however far the outer axes go.
func nest(shape engine.Shape, strides ...engine.Strides) loops {
	var l loops
	if shape.Elements() == 0 {
		l.rank = 1
		return l
	}
	for axis := range shape.Rank {
		if shape.Dims[axis] == 1 {
			continue
		}
		var st [operands]int
		for v := range strides {
			st[v] = strides[v][axis]
		}
		if last := l.rank - 1; last >= 0 && fused(l.strides[last], st, shape.Dims[axis]) {
			l.dims[last] *= shape.Dims[axis]
			l.strides[last] = st
			continue
		}
		l.dims[l.rank], l.strides[l.rank] = shape.Dims[axis], st
		l.rank++
	}
	if l.rank == 0 { // one element
		l.rank, l.dims[0] = 1, 1
	}
	return l
}

func fused(outer, inner [operands]int, extent int) bool {
	for v := range outer {
		if outer[v] != inner[v]*extent {
			return false
		}
	}
	return true
}

// inner returns the extent and strides of the innermost loop.
func (l *loops) inner() (int, [operands]int) { return l.dims[l.rank-1], l.strides[l.rank-1] }

// rows calls f with the offsets at which each innermost loop of the outer
// iterations [from, to) starts.
func (l *loops) rows(from, to int, f func(at [operands]int)) {
	if from == to {
		return
	}
	var index [engine.MaxRank]int
	var at [operands]int
	for axis, rest := l.rank-2, from; axis >= 0; axis-- {
		index[axis] = rest % l.dims[axis]
		rest /= l.dims[axis]
		for v := range at {
			at[v] += index[axis] * l.strides[axis][v]
		}
	}
	for i := from; i < to; i++ {
		f(at)
		for axis := l.rank - 2; axis >= 0; axis-- {
			index[axis]++
			for v := range at {
				at[v] += l.strides[axis][v]
			}
			if index[axis] < l.dims[axis] {
				break
			}
			for v := range at {
				at[v] -= index[axis] * l.strides[axis][v]
			}
			index[axis] = 0
		}
	}
}

// outer counts the iterations around the innermost loop.
func (l *loops) outer() int {
	n := 1
	for _, d := range l.dims[:l.rank-1] {
		n *= d
	}
	return n
}

// run calls f for runs of n elements: at says where each starts in every view,
// step how far its elements lie apart. Pieces go to several threads.
func (k *kernels) run(l loops, f func(n int, at, step [operands]int)) {
	n, step := l.inner()
	units, cost := n, 1
	if l.rank > 1 {
		units, cost = l.outer(), n
	}
	switch {
	case k.pieces(units, cost) > 1:
		k.runApart(l, f)
	case l.rank > 1:
		l.rows(0, units, func(at [operands]int) { f(n, at, step) })
	case n > 0:
		f(n, [operands]int{}, step)
	}
}

// runApart is run on several threads. It is apart because what they share goes on
// the heap.
func (k *kernels) runApart(l loops, f func(n int, at, step [operands]int)) {
	n, step := l.inner()
	if l.rank > 1 {
		k.split(l.outer(), n, func(from, to int) {
			l.rows(from, to, func(at [operands]int) { f(n, at, step) })
		})
		return
	}
	k.split(n, 1, func(from, to int) {
		var at [operands]int
		for v := range at {
			at[v] = from * step[v]
		}
		f(to-from, at, step)
	})
}
