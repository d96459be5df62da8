package gemm

// batch is many small products of one shape. Every member computes some of them
// alone.
type batch struct {
	count, m, n, k      int
	a, b                Operand
	c                   []float32
	ldc                 int
	aStep, bStep, cStep int
	accumulate          bool
	group               int // products a ticket
}

func (d *batch) work(t *tickets, s *space) {
	for {
		first := t.take() * d.group
		if first >= d.count {
			s.release()
			return
		}
		for i := first; i < min(first+d.group, d.count); i++ {
			j := s.plan(1, d.m, d.n, d.k, d.a.after(i*d.aStep), d.b.after(i*d.bStep), d.c[i*d.cStep:], d.ldc, d.accumulate)
			s.own.reset()
			j.work(&s.own, s)
		}
	}
}
