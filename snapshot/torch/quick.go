package torch

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// This file is a short cut past the machine for what nearly all of a large
// file is: the dicts of a trace, of a segment's blocks and of the annotations,
// written as picklers write them. It takes one such dict at a time, straight
// from the window. Where a dict holds anything else, nothing has happened yet,
// and the machine reads it; what the machine refuses, it refuses.
//
// The frames of most dicts are a list of references to frames that came
// before. Slots of the memo never change, so equal bytes mean equal frames: the
// bytes of each distinct list are kept, and found again by comparing them with
// those that followed last time, or by their hash.

const (
	// reach is how much of the window a field other than a list or string may
	// take: two instructions of nine bytes.
	reach = 32
	// quickAhead is how much of the file should lie ahead, if it is that long, so that a dict and
	// its list of frames are seldom cut by the window's end.
	quickAhead = window / 4
	// mostFrames is where CPython's pickler begins a second batch. A list
	// that long may go on, and is the machine's.
	mostFrames = 1000
	// quickFields is one more than the greatest place in the dicts' roles.
	quickFields = blTenantStack + 1
	// The lists kept, and their bytes; when full, all are forgotten.
	maxSpans     = 1 << 16
	maxSpanBytes = 8 << 20
)

// span is the text of a list of references, from behind its mark up to and
// with APPENDS.
type span struct {
	text  []byte
	stack slot
	next  uint32 // the span that followed last time
}

// quickReader is the state of the short cut.
type quickReader struct {
	item   object // the dict that is read
	puts   [8]put // what it stores in the memo
	stored int
	spans  []span // the first is none
	byHash map[uint64]uint32
	bytes  int // in all spans
	last   uint32
	frames []uint32
}

type put struct {
	at uint64
	s  slot
}

func (q *quickReader) forget() {
	q.spans = append(q.spans[:0], span{})
	q.byHash = make(map[uint64]uint32)
	q.bytes, q.last = 0, 0
}

// quickItems takes dicts from the input as items of the list on which the
// innermost mark stands, as long as it can.
func (m *machine) quickItems() error {
	list := m.marked()
	if list < 0 {
		return nil
	}
	l := &m.objects[list]
	r := itemRole(l.role, false)
	if r != entry && r != block && r != annotation {
		return nil
	}
	if err := m.closeSibling(); err != nil || len(m.stack) != m.floor() {
		return err
	}
	for m.in.ready(quickAhead) {
		end, ok := m.quickDict(r)
		if !ok {
			return nil
		}
		m.at = m.in.offset()
		for _, p := range m.quick.puts[:m.quick.stored] {
			if !m.memo.put(p.at, p.s) {
				return m.fail("memo entry %d is stored out of turn", p.at)
			}
		}
		m.in.pos = end
		l.items++
		if err := m.build.item(l, &m.quick.item); err != nil {
			return err
		}
	}
	return nil
}

// quickDict reads the dict at the next byte into q.item, and returns where it
// ends. It changes nothing else but what may be interned.
func (m *machine) quickDict(r role) (end int, ok bool) {
	q := &m.quick
	b, p := m.in.buf, m.in.pos
	if p+reach > len(b) || opcode(b[p]) != opEmptyDict {
		return 0, false
	}
	q.item.role, q.item.set = r, 0
	clear(q.item.values[:quickFields])
	q.stored = 0
	p = m.quickPut(b, p+1, slot(tagGone<<payloadBits))
	if p < 0 || opcode(b[p]) != opMark {
		return 0, false
	}
	p++
	fields := &fieldOf[r]
	low := m.memo.low()
	for p+reach <= len(b) && opcode(b[p]) != opSetItems {
		key, at := low[b[p+1]], p+2
		if opcode(b[p]) != opMemoGet1 {
			key, at = m.quickGet(b, p)
		}
		if key>>payloadBits != tagString {
			return 0, false
		}
		v, at := m.quickValue(b, at)
		if at < 0 {
			return 0, false
		}
		p = at
		id := key & maxPayload
		if id >= slot(numKeywords) {
			continue
		}
		f := fields[id]
		switch {
		case f.want == wantNothing:
			continue
		case f.want == wantInt && v.k == vInt, f.want == wantString && v.k == vString, f.want == wantStack && v.k == vStack:
			q.item.put(f.at, v.n)
		default:
			return 0, false
		}
	}
	if p+reach > len(b) {
		return 0, false
	}
	p++
	// A dict of the usual size is not added to; libtorch memoises it now.
	if opcode(b[p]) == opMark || isPut(opcode(b[p])) {
		return 0, false
	}
	return p, true
}

func isPut(op opcode) bool {
	return op == opMemoize || op == opMemoPut1 || op == opMemoPut4 || op == opMemoPut
}

// quickGet returns what the reference at b[p] means, 0 if it is none.
func (m *machine) quickGet(b []byte, p int) (slot, int) {
	switch opcode(b[p]) {
	case opMemoGet1:
		return m.memo.get(uint64(b[p+1])), p + 2
	case opMemoGet4:
		return m.memo.get(uint64(binary.LittleEndian.Uint32(b[p+1:]))), p + 5
	}
	return 0, p
}

// quickPut notes that the instruction at b[p], if it is one, stores s. It
// returns the position behind, or -1 if it cannot be noted.
func (m *machine) quickPut(b []byte, p int, s slot) int {
	q := &m.quick
	var at uint64
	switch opcode(b[p]) {
	case opMemoize:
		at = uint64(m.memo.count + q.stored)
		p++
	case opMemoPut1:
		at = uint64(b[p+1])
		p += 2
	case opMemoPut4:
		at = uint64(binary.LittleEndian.Uint32(b[p+1:]))
		p += 5
	default:
		return p
	}
	if q.stored == len(q.puts) {
		return -1
	}
	q.puts[q.stored] = put{at, s}
	q.stored++
	return p
}

// quickValue reads the value at b[p] and returns the position behind it, or -1
// for a value that is the machine's. There are reach bytes from p on.
func (m *machine) quickValue(b []byte, p int) (value, int) {
	switch op := opcode(b[p]); op {
	case opMemoGet1, opMemoGet4:
		s, at := m.quickGet(b, p)
		switch tag := s >> payloadBits; tag {
		case tagString, tagStack, tagPair, tagOpaque, tagGone, tagFrame:
			return value{kindOf[tag], uint64(s & maxPayload)}, at
		}
		return value{}, -1
	case opInt1, opInt2, opInt4, opLong1:
		v, at := quickInt(b, p)
		if at >= 0 && (opcode(b[at]) == opInt1 || opcode(b[at]) == opInt2) {
			return m.quickPair(b, at, v)
		}
		return v, at
	case opNone:
		return value{k: vNone}, p + 1
	case opTrue:
		return value{vBool, 1}, p + 1
	case opFalse:
		return value{vBool, 0}, p + 1
	case opString1:
		return m.quickText(b, p+2, int(b[p+1]))
	case opString4:
		return m.quickText(b, p+5, int(binary.LittleEndian.Uint32(b[p+1:])))
	case opEmptyList:
		return m.quickList(b, p+1)
	}
	return value{}, -1
}

func quickInt(b []byte, p int) (value, int) {
	switch opcode(b[p]) {
	case opInt1:
		return value{vInt, uint64(b[p+1])}, p + 2
	case opInt2:
		return value{vInt, uint64(binary.LittleEndian.Uint16(b[p+1:]))}, p + 3
	case opInt4:
		return value{vInt, uint64(int32(binary.LittleEndian.Uint32(b[p+1:])))}, p + 5
	}
	n := int(b[p+1])
	if n < 1 || n > 8 {
		return value{}, -1
	}
	shift := 64 - 8*uint(n)
	return value{vInt, uint64(int64(binary.LittleEndian.Uint64(b[p+2:])<<shift) >> shift)}, p + 2 + n
}

// quickPair reads the rest of a tuple of two ints.
func (m *machine) quickPair(b []byte, p int, first value) (value, int) {
	second, p := quickInt(b, p)
	if opcode(b[p]) != opTuple2 {
		return value{}, -1
	}
	v := m.pair(first.n, second.n)
	return v, m.quickPut(b, p+1, slotOf(v))
}

func (m *machine) quickText(b []byte, p, n int) (value, int) {
	if n > longest || p+n+reach > len(b) {
		return value{}, -1
	}
	v := value{vString, uint64(m.symbols.intern(b[p : p+n]))}
	return v, m.quickPut(b, p+n, slotOf(v))
}

// quickList reads a list of references to frames; b[p] is behind EMPTY_LIST.
// A list is memoised before its items by CPython, behind them by libtorch.
func (m *machine) quickList(b []byte, p int) (value, int) {
	q := &m.quick
	before := q.stored
	p = m.quickPut(b, p, slot(tagStack<<payloadBits))
	if p < 0 {
		return value{}, -1
	}
	s := slot(tagStack << payloadBits)
	if opcode(b[p]) == opMark {
		s, p = m.quickSpan(b, p+1)
	} else if one, at := m.quickGet(b, p); at > p && opcode(b[at]) == opAppend {
		if one>>payloadBits != tagFrame {
			return value{}, -1
		}
		q.frames = append(q.frames[:0], uint32(one&maxPayload))
		s, p = slot(tagStack<<payloadBits|m.symbols.list(q.frames)), at+1
	}
	if p < 0 || p+reach > len(b) || opcode(b[p]) == opMark {
		return value{}, -1 // cut, or there is more to the list
	}
	if q.stored > before {
		q.puts[before].s = s
	} else if p = m.quickPut(b, p, s); p < 0 {
		return value{}, -1
	}
	return value{vStack, uint64(s & maxPayload)}, p
}

// quickSpan finds the stack that the references from b[p] to APPENDS mean, and
// the position behind.
func (m *machine) quickSpan(b []byte, p int) (slot, int) {
	q := &m.quick
	if len(q.spans) == 0 {
		q.forget()
	}
	last := &q.spans[q.last]
	if next := &q.spans[last.next]; len(next.text) > 0 && bytes.HasPrefix(b[p:], next.text) {
		q.last = last.next
		return next.stack, p + len(next.text)
	}
	end := p
	for count := 0; ; count++ {
		if end+reach > len(b) || count >= mostFrames {
			return 0, -1
		}
		op := opcode(b[end])
		if op == opMemoGet1 {
			end += 2
		} else if op == opMemoGet4 {
			end += 5
		} else {
			break
		}
	}
	if opcode(b[end]) != opAppends {
		return 0, -1
	}
	end++
	text := b[p:end]
	h := xxhash.Sum64(text)
	id, ok := q.byHash[h]
	if !ok || !bytes.Equal(q.spans[id].text, text) {
		if id, ok = m.keepSpan(text, h); !ok {
			return 0, -1
		}
	}
	q.spans[q.last].next = id
	q.last = id
	return q.spans[id].stack, end
}

// keepSpan looks the references of a new span up.
func (m *machine) keepSpan(text []byte, h uint64) (id uint32, ok bool) {
	q := &m.quick
	q.frames = q.frames[:0]
	for p := 0; p < len(text)-1; {
		var s slot
		s, p = m.quickGet(text, p)
		if s>>payloadBits != tagFrame {
			return 0, false
		}
		q.frames = append(q.frames, uint32(s&maxPayload))
	}
	stack := slot(tagStack<<payloadBits | m.symbols.list(q.frames))
	if len(q.spans) >= maxSpans || q.bytes+len(text) > maxSpanBytes {
		q.forget()
	}
	id = uint32(len(q.spans))
	q.spans = append(q.spans, span{text: bytes.Clone(text), stack: stack})
	q.byHash[h] = id
	q.bytes += len(text)
	return id, true
}
