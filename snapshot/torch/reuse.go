package torch

import "sync"

// Memory without pointers is reused for the next file: for many small files, it is most of what they need.
var (
	windows    = sync.Pool{New: func() any { return new([window]byte) }}
	memoPages  = sync.Pool{New: func() any { return new([pageSize]slot) }}
	spanTables = sync.Pool{New: func() any { return new(spanTable) }}
)

// mostPages of a memo are kept for others.
const mostPages = 64

// release gives back what a machine that has read its file needs no more.
func (m *machine) release() {
	windows.Put(m.in.all)
	m.in.all, m.in.mem, m.in.buf, m.in.pos = nil, nil, nil, 0
	for _, page := range m.memo.pages[:min(len(m.memo.pages), mostPages)] {
		clear(page[:])
		memoPages.Put(page)
	}
	m.memo.pages = nil
	if t := m.quick.spans; t != nil {
		spanTables.Put(t)
		m.quick.spans = nil
	}
}
