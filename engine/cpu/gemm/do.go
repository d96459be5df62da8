package gemm

// Do calls f once for each piece from 0 to pieces-1, on the pool's threads, and
// returns when every call has. Calls that run at the same time have different
// numbers of thread, from 0 to one less than the pool's threads, so that each may
// have a workspace. f may not use the pool.
func (p *Pool) Do(pieces int, f func(piece, thread int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.spaces == nil {
		panic("gemm: the pool is closed")
	}
	p.calls = calls{pool: p, pieces: pieces, f: f}
	p.run(&p.calls, max(1, min(pieces, len(p.spaces))))
	p.calls = calls{}
}

// calls is the job of Do: a ticket is a piece.
type calls struct {
	pool   *Pool
	pieces int
	f      func(piece, thread int)
}

func (c *calls) work(t *tickets, s *space) {
	thread := 0
	for &c.pool.spaces[thread] != s {
		thread++
	}
	for piece := t.take(); piece < c.pieces; piece = t.take() {
		c.f(piece, thread)
	}
}
