package torch

// A memo slot is one value in 32 bits, a tag of 4 and a payload of 28, because
// a file of 2 GB has some twenty million of them and nearly all are written
// once and never read.
type slot uint32

const (
	payloadBits = 28
	maxPayload  = 1<<payloadBits - 1
)

// fewMemo is how many entries a small file may have; larger ones may have one more for
// each byte. A file of 2 GB has twenty million, and may be packed fiftyfold.
const fewMemo = 8 << 20

// memo is the pickle's table of objects that can be referred to again. Slots
// are numbered by the pickler in the order in which it stores them.
type memo struct {
	pages []*[pageSize]slot
	count int // slots stored
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
	// ahead is how much larger than the count of stored values a number may be. Picklers number without gaps, but Python 2 starts at 1.
	ahead = 1 << 14
)

// get returns slot i, or 0 if nothing was stored.
func (m *memo) get(i uint64) slot {
	if p := i >> pageBits; p < uint64(len(m.pages)) {
		return m.pages[p][i&(pageSize-1)]
	}
	return 0
}

// low returns the slots that one byte can name.
func (m *memo) low() *[256]slot {
	if len(m.pages) == 0 {
		return new([256]slot)
	}
	return (*[256]slot)(m.pages[0][:])
}

// put stores into an empty slot; it reports whether it could.
func (m *memo) put(i uint64, s slot) bool {
	if i > uint64(m.count)+ahead {
		return false
	}
	m.grow(int(i >> pageBits))
	at := &m.pages[i>>pageBits][i&(pageSize-1)]
	if *at != 0 {
		return false
	}
	*at = s
	m.count++
	return true
}

// grow makes room for page p.
func (m *memo) grow(p int) {
	for p >= len(m.pages) {
		m.pages = append(m.pages, memoPages.Get().(*[pageSize]slot))
	}
}

// push stores into the next slots; it reports whether all were empty.
func (m *memo) push(all []slot) bool {
	for _, s := range all {
		p := m.count >> pageBits
		if p >= len(m.pages) {
			m.grow(p)
		}
		at := &m.pages[p][m.count&(pageSize-1)]
		if *at != 0 {
			return false
		}
		*at = s
		m.count++
	}
	return true
}

// replace overwrites a slot that put has stored.
func (m *memo) replace(i uint64, s slot) { m.pages[i>>pageBits][i&(pageSize-1)] = s }
