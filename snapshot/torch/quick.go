package torch

import "encoding/binary"

// This file, shapes.go and spans.go are a short cut past the machine for nearly all of a large file: the dicts of a trace, of a
// segment's blocks and of the annotations, as picklers write them. It reads one such dict at a time, directly from the window. If a
// dict has anything unusual, no state has changed yet, and the machine reads it, or rejects it.

const (
	// reach is how much of the window a field other than a list or string may
	// take: three instructions of at most ten bytes.
	reach = 32
	// quickAhead is how much of the file should lie ahead, if it is that long, so
	// that a dict and its list of frames are seldom cut by the window's end.
	quickAhead = window / 16
	// mostItems is where CPython's pickler begins a second batch. A list or dict of that length may continue, and is left to the
	// machine.
	mostItems = 1000
	// quickFields is one more than the greatest place in the dicts' roles.
	quickFields = blTenantStack + 1
)

// quickReader is the state of the short cut.
type quickReader struct {
	off      bool   // set if dicts are kept, and in tests that compare
	item     object // the dict that is read
	tenant   object // of its history
	ends     []int  // where its values end
	shapes   shapes
	puts     []slot // what it stores in the memo, one after the other
	numbered bool   // whether some of it was stored by instructions that give its number
	frames   []uint32
	spans    *spanTable
}

const goneSlot = slot(tagGone << payloadBits)

// quickItems reads dicts from the input as items of the list at the innermost mark, as long as it can; or the only item of the list on
// top of the stack.
func (m *machine) quickItems() error {
	if m.quick.off {
		return nil
	}
	if n := len(m.stack); n > m.floor() && m.stack[n-1].k == vObject {
		if l := &m.objects[m.stack[n-1].n]; l.isList && quickRole(l) != anything {
			_, err := m.quickItem(l, quickRole(l), true)
			return err
		}
	}
	list := m.marked()
	if list < 0 {
		return nil
	}
	l := &m.objects[list]
	r := quickRole(l)
	if r == anything && l.role != segments {
		return nil
	}
	if err := m.closeSibling(); err != nil || len(m.stack) != m.floor() {
		return err
	}
	if l.role == segments {
		return m.quickSegment()
	}
	for m.in.ready(quickAhead) && opcode(m.in.buf[m.in.pos]) == opEmptyDict {
		if ok, err := m.quickItem(l, r, false); !ok || err != nil {
			return err
		}
		l.early = true
	}
	return nil
}

// quickRole is the role of the list's items if they are read here.
func quickRole(l *object) role {
	if r := itemRole(l.role, false); r == entry || r == block || r == annotation {
		return r
	}
	return anything
}

// quickSegment opens a segment, and reads the part before the list of its blocks. Segments are few, and their sizes are written in so
// many ways that shapes would not pay.
func (m *machine) quickSegment() error {
	q := &m.quick
	if !m.in.ready(quickAhead) {
		return nil
	}
	q.puts, q.numbered = q.puts[:0], false
	end := m.quickDict(m.in.buf, m.in.pos, segment, &q.item)
	if end < 0 || opcode(m.in.buf[end]) != opEmptyList {
		return nil
	}
	m.at = m.in.offset()
	if err := m.openContainer(false); err != nil {
		return err
	}
	o := &m.objects[m.stack[len(m.stack)-1].n]
	o.set, o.values, o.early = q.item.set, q.item.values, true
	if opcode(m.in.buf[m.in.pos+1]) != opMark {
		o.slot = int64(m.memo.count) // the segment is the first value that is stored
	}
	if err := m.storePuts(); err != nil {
		return err
	}
	m.in.pos = end
	if err := m.mark(); err != nil {
		return err
	}
	return m.push(value{vString, uint64(kwBlocks)})
}

// quickItem reads one dict as an item of l, and, if it is the only one, the instruction that appends it. It reports whether it did.
func (m *machine) quickItem(l *object, r role, only bool) (ok bool, err error) {
	q := &m.quick
	q.puts, q.numbered = q.puts[:0], false
	b := m.in.buf
	end := m.quickShape(b, m.in.pos, r, &q.item)
	if end < 0 {
		q.puts, q.numbered = q.puts[:0], false
		if end = m.quickDict(b, m.in.pos, r, &q.item); end >= 0 {
			m.learn(b, m.in.pos, end, r)
		}
	}
	switch {
	case end < 0:
		return false, nil
	case only && (end+reach > len(b) || opcode(b[end]) != opAppend):
		return false, nil
	case only:
		end++
	case !endsItem(b[end:]):
		return false, nil
	}
	m.at = m.in.offset()
	if err := m.storePuts(); err != nil {
		return false, err
	}
	const usual = 4
	m.in.steps += usual
	m.in.pos = end
	l.items++
	return true, m.build.item(l, &q.item)
}

// quickFrames takes a list of frames from the input, as the value of a key. Only a key
// may follow it, or the dict's end: before anything else items may be added to it.
func (m *machine) quickFrames() error {
	q := &m.quick
	n := len(m.stack)
	if q.off || n == m.floor() || m.stack[n-1] != (value{vString, uint64(kwFrames)}) || !m.in.ready(quickAhead) {
		return nil
	}
	q.puts, q.numbered = q.puts[:0], false
	b, p := m.in.buf, m.in.pos+1
	if p+reach > len(b) {
		return nil
	}
	v, end := m.quickList(b, p)
	if end < 0 || end+reach > len(b) {
		return nil
	}
	if opcode(b[end]) != opSetItems {
		key, at := m.quickGet(b, end)
		if key>>payloadBits != tagString {
			return nil
		}
		switch opcode(b[at]) {
		case opAppend, opMemoize, opMemoPut1, opMemoPut4, opFrame: // it may be an item
			return nil
		}
	}
	m.at = m.in.offset()
	if err := m.storePuts(); err != nil {
		return err
	}
	m.in.pos = end
	return m.push(v)
}

// storePuts stores what was read in the memo.
func (m *machine) storePuts() error {
	if err := m.bounded(); err != nil {
		return err
	}
	if !m.memo.push(m.quick.puts) {
		return m.fail("memo entry %d is stored out of turn", m.memo.count)
	}
	return m.memoBounded()
}

// nextSlot is the memo number of the next stored value.
func (m *machine) nextSlot() uint64 { return uint64(m.memo.count + len(m.quick.puts)) }

// endsItem reports whether what follows a dict of a list's makes it complete: the next
// dict, the list's end, or one of them after the beginning of a pickle's frame. Before
// anything else more items may be added to it. There are reach-5 bytes.
func endsItem(b []byte) bool {
	op := opcode(b[0])
	if op == opFrame {
		op = opcode(b[9])
	}
	return op == opEmptyDict || op == opAppends
}

// quickDict reads the dict at b[p] into o, and returns the position of its end; for a segment, the position of the value of its blocks;
// or -1. It changes nothing else but interned strings and the list of puts.
func (m *machine) quickDict(b []byte, p int, r role, o *object) int {
	if p+reach > len(b) {
		return -1
	}
	o.role, o.set = r, 0
	o.values = [fieldRoom]uint64{}
	if r != tenant {
		m.quick.ends = m.quick.ends[:0]
	}
	open := p + 1
	p = m.quickPut(b, open, goneSlot)
	stored := p > open
	if opcode(b[p]) != opMark {
		if endsItem(b[p:]) { // nothing is in it
			return p
		}
		return -1
	}
	p++
	fields := &fieldOf[r]
	low := m.memo.low()
	for n := 0; ; n++ {
		if p+reach > len(b) || n >= mostItems {
			return -1
		}
		var key slot
		switch opcode(b[p]) {
		case opMemoGet1:
			key, p = low[b[p+1]], p+2
		case opMemoGet4:
			key, p = m.memo.get(uint64(binary.LittleEndian.Uint32(b[p+1:]))), p+5
		case opString1: // of a dict that C++ recreated
			var v value
			if v, p = m.quickText(b, p+2, int(b[p+1])); p < 0 || p+reach > len(b) {
				return -1
			}
			key = slotOf(v)
		case opSetItems:
			if r == segment { // without blocks: a list after it is none of its
				return -1
			}
			return m.quickEnd(b, p+1, stored, goneSlot)
		default:
			return -1
		}
		if key>>payloadBits != tagString {
			return -1
		}
		id := keyword(key & maxPayload)
		if id == kwBlocks && r == segment {
			return p
		}
		if id == kwHistory && r == block && opcode(b[p]) == opEmptyList {
			if p = m.quickHistory(b, p, o); p < 0 {
				return -1
			}
			m.quick.ends = append(m.quick.ends, p)
			continue
		}
		var v value
		if v, p = m.quickUsual(b, p); p < 0 || v.k == vObject {
			return -1
		}
		if r != tenant {
			m.quick.ends = append(m.quick.ends, p)
		}
		if id >= numKeywords || fields[id].want == wantNothing {
			continue
		}
		f := fields[id]
		if v.k != wantedKind[f.want] {
			return -1
		}
		o.put(f.at, v.n)
	}
}

// quickUsual is quickValue for usual values.
func (m *machine) quickUsual(b []byte, p int) (value, int) {
	switch w := (*[reach - 5]byte)(b[p:]); opcode(w[0]) {
	case opMemoGet1:
		s := m.memo.get(uint64(w[1]))
		return value{kindOf[s>>payloadBits], uint64(s & maxPayload)}, p + 2
	case opMemoGet4:
		s := m.memo.get(uint64(binary.LittleEndian.Uint32(w[1:])))
		return value{kindOf[s>>payloadBits], uint64(s & maxPayload)}, p + 5
	case opInt4:
		return value{vInt, uint64(int32(binary.LittleEndian.Uint32(w[1:])))}, p + 5
	case opLong1:
		if w[1]-1 < 8 {
			shift := 64 - 8*uint(w[1])
			return value{vInt, uint64(int64(binary.LittleEndian.Uint64(w[2:])<<shift) >> shift)}, p + 2 + int(w[1])
		}
	}
	return m.quickValue(b, p)
}

// wantedKind is the one kind that a field takes here; the machine takes more.
var wantedKind = [...]kind{
	wantNothing: vNone, wantInt: vInt, wantString: vString, wantBool: vBool, wantStack: vStack, wantPair: vPair,
	wantFrames: vStack,
	wantList:   vObject, // none: lists that mean something are the machine's
}

// quickEnd is the position after the instruction that completes a container. libtorch memoises the container here, CPython before its
// items. If a mark follows, there are more items.
func (m *machine) quickEnd(b []byte, p int, stored bool, s slot) int {
	if p+reach > len(b) || opcode(b[p]) == opMark {
		return -1
	}
	end := m.quickPut(b, p, s)
	if stored && end > p {
		return -1
	}
	return end
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

// quickPut notes that the instruction at b[p], if it is a put, stores s, and returns the position after it. A value that is stored
// under another number than the next is left to the machine: the instruction then is no key, value or end here.
func (m *machine) quickPut(b []byte, p int, s slot) int {
	q := &m.quick
	switch opcode(b[p]) {
	case opMemoize:
		q.puts = append(q.puts, s)
		return p + 1
	case opMemoPut1:
		if uint64(b[p+1]) == m.nextSlot() {
			q.puts, q.numbered = append(q.puts, s), true
			return p + 2
		}
	case opMemoPut4:
		if uint64(binary.LittleEndian.Uint32(b[p+1:])) == m.nextSlot() {
			q.puts, q.numbered = append(q.puts, s), true
			return p + 5
		}
	}
	return p
}

// quickValue reads the value at b[p] and returns the position after it, or -1
// for a value that is the machine's. There are reach bytes from p on.
func (m *machine) quickValue(b []byte, p int) (value, int) {
	if opcode(b[p]) == opEmptyList {
		return m.quickList(b, p+1)
	}
	return m.quickScalar(b, p)
}

func (m *machine) quickScalar(b []byte, p int) (value, int) {
	switch opcode(b[p]) {
	case opMemoGet1, opMemoGet4:
		s, at := m.quickGet(b, p)
		if k := kindOf[s>>payloadBits]; k != vObject {
			return value{k, uint64(s & maxPayload)}, at
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

// quickHistory reads the list of a block's tenants at b[p]; the first counts.
func (m *machine) quickHistory(b []byte, p int, o *object) int {
	if opcode(b[p]) != opEmptyList {
		return -1
	}
	own := len(m.quick.puts)
	open := p + 1
	p = m.quickPut(b, open, goneSlot)
	stored := p > open
	end := opAppend // of a single tenant
	if opcode(b[p]) == opMark {
		end = opAppends
		p++
	}
	n := 0
	m.quick.tenant.set = 0
	m.build.tenant(o, &m.quick.tenant)
	for opcode(b[p]) == opEmptyDict {
		if p = m.quickDict(b, p, tenant, &m.quick.tenant); p < 0 || n >= mostItems {
			return -1
		}
		if n == 0 {
			m.build.tenant(o, &m.quick.tenant)
		}
		n++
		if opcode(b[p]) == end {
			break
		}
	}
	switch {
	case (n > 0 || end == opAppends) && opcode(b[p]) == end:
		p++
	case n > 0 || end == opAppends || opcode(b[p]) == opAppend:
		return -1
	}
	m.in.steps += int64(n)
	s := goneSlot
	if n == 0 {
		s = tagStack << payloadBits // an empty list, whatever it is referred to for
	}
	if stored {
		m.quick.puts[own] = s
	}
	return m.quickEnd(b, p, stored, s)
}
