package torch

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// The frames of most dicts are a list that occurred before: references to frames or, if nothing is shared, the same frames written
// again. Memo slots never change, so equal bytes mean equal frames, stored in the memo in the same order. The text of each distinct
// list is kept. It is found again by comparing it with the lists that followed the last one or begin alike, or else by its hash.
// Comparing runs at memory speed, and replaces reading.

const (
	// The lists that are kept, their bytes and slots; when full, all are forgotten.
	maxSpans     = 1 << 16
	maxSpanBytes = 8 << 20
	maxSpanSlots = 1 << 20
	// likelyBits is the size of the tables of likely spans, in bits of an index.
	likelyBits = 12
	// onces is the size of the table of texts that came once. A text that spells out
	// frames is kept when it comes again: many never do, and keeping them took a third
	// of the time.
	onces = 1 << 12
	// What the first kept text makes room for.
	firstTexts = 64 << 10
	firstSpans = 256
)

// span is the text of a list of frames, from after its mark up to and with
// APPENDS, and what the list stores in the memo, all of it by MEMOIZE.
type span struct {
	text, textEnd int32 // in spanTable.texts
	slot, slotEnd int32 // in spanTable.slots
	stack         slot
}

type spanTable struct {
	spans  []span // the first is none
	texts  []byte
	slots  []slot
	byHash map[uint64]uint32
	last   [2]uint32                  // newest first
	likely [2][1 << likelyBits]uint32 // what came after a span, and after two, and began alike
	once   [onces]uint32              // upper halves of hashes, by their lower bits
}

func (t *spanTable) forget() {
	if t.texts == nil {
		t.texts = make([]byte, 0, firstTexts)
		t.spans = make([]span, 0, firstSpans)
		t.byHash = make(map[uint64]uint32, firstSpans)
	}
	clear(t.byHash)
	*t = spanTable{spans: append(t.spans[:0], span{}), texts: t.texts[:0], slots: t.slots[:0], byHash: t.byHash}
}

// again reports whether a text of this hash came before, as far as is known.
func (t *spanTable) again(h uint64) bool {
	at := &t.once[h%onces]
	upper := uint32(h >> 32)
	known := *at == upper
	*at = upper
	return known
}

// places are those of a list among the likely ones, by the last span and by the last two.
type places struct{ one, two *uint32 }

// places returns those of a list that begins as b does.
func (t *spanTable) places(b *[reach]byte) places {
	const k1, k2, k3 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93, 0xc2b2ae3d27d4eb4f
	head := binary.LittleEndian.Uint64(b[0:])*k1 ^ uint64(t.last[0])*k2
	h1 := (head ^ binary.LittleEndian.Uint64(b[24:])) * k3
	h2 := (head ^ binary.LittleEndian.Uint64(b[16:])*k3 ^ uint64(t.last[1])) * k1
	return places{&t.likely[0][h1>>(64-likelyBits)], &t.likely[1][h2>>(64-likelyBits)]}
}

// met records the span that comes at these table indices.
func (t *spanTable) met(at places, id uint32) {
	*at.one, *at.two = id, id
	t.last[1], t.last[0] = t.last[0], id
}

// guess returns the likely span that b begins with; 0 for none.
func (t *spanTable) guess(b []byte, at places) uint32 {
	if t.begins(*at.two, b) {
		return *at.two
	}
	if t.begins(*at.one, b) {
		return *at.one
	}
	return 0
}

// begins reports whether b begins with a span.
func (t *spanTable) begins(id uint32, b []byte) bool {
	s := &t.spans[id]
	return id != 0 && bytes.HasPrefix(b, t.texts[s.text:s.textEnd])
}

// find returns the span of this text and hash, 0 if there is none.
func (t *spanTable) find(text []byte, h uint64) uint32 {
	id := t.byHash[h]
	if s := &t.spans[id]; !bytes.Equal(t.texts[s.text:s.textEnd], text) {
		return 0
	}
	return id
}

// keep makes a span of a text that find does not know.
func (t *spanTable) keep(text []byte, h uint64, stack slot, puts []slot) uint32 {
	if len(t.spans) >= maxSpans || len(t.texts)+len(text) > maxSpanBytes || len(t.slots)+len(puts) > maxSpanSlots {
		t.forget()
	}
	s := span{text: int32(len(t.texts)), slot: int32(len(t.slots)), stack: stack}
	t.texts = append(t.texts, text...)
	t.slots = append(t.slots, puts...)
	s.textEnd, s.slotEnd = int32(len(t.texts)), int32(len(t.slots))
	id := uint32(len(t.spans))
	t.spans = append(t.spans, s)
	t.byHash[h] = id
	return id
}

// read notes that a list was read which has these places, and makes a span of it, now or when it
// comes again.
func (t *spanTable) read(text []byte, at places, stack slot, puts []slot, now bool) {
	h := xxhash.Sum64(text)
	id := t.find(text, h)
	if id == 0 && (now || t.again(h)) {
		id = t.keep(text, h, stack, puts)
	}
	t.met(at, id)
}

// quickList reads a list of frames; b[p] is after EMPTY_LIST.
func (m *machine) quickList(b []byte, p int) (value, int) {
	q := &m.quick
	own := len(q.puts)
	open := p
	p = m.quickPut(b, open, goneSlot)
	stored := p > open
	s := slot(tagStack << payloadBits) // no frames
	switch opcode(b[p]) {
	case opMark:
		s, p = m.quickSpan(b, p+1)
	case opEmptyDict, opMemoGet1, opMemoGet4:
		f, end := m.quickFrame(b, p)
		switch {
		case end >= 0 && opcode(b[end]) == opAppend:
			q.frames = append(q.frames[:0], f)
			s, p = slot(tagStack<<payloadBits|m.symbols.list(q.frames)), end+1
		case opcode(b[p]) == opEmptyDict:
			p = -1
		}
		// Any other reference is the next key, and the list is empty.
	}
	if p < 0 {
		return value{}, -1
	}
	if stored {
		q.puts[own] = s
	}
	return value{vStack, uint64(s & maxPayload)}, m.quickEnd(b, p, stored, s)
}

func (m *machine) spans() *spanTable {
	if m.quick.spans == nil {
		m.quick.spans = spanTables.Get().(*spanTable)
		m.quick.spans.forget()
	}
	return m.quick.spans
}

// quickSpan finds the stack that the frames from b[p] to APPENDS mean, and the
// position after.
func (m *machine) quickSpan(b []byte, p int) (slot, int) {
	if p+reach > len(b) {
		return 0, -1
	}
	q := &m.quick
	t, rest := m.spans(), b[p:]
	at := t.places((*[reach]byte)(rest))
	if id := t.guess(rest, at); id != 0 {
		t.met(at, id)
		s := &t.spans[id]
		if s.slotEnd > s.slot {
			q.puts = append(q.puts, t.slots[s.slot:s.slotEnd]...)
		}
		return s.stack, p + int(s.textEnd-s.text)
	}
	if end := referencesEnd(b, p); opcode(b[end]) == opAppends {
		text := b[p : end+1]
		if id := t.find(text, xxhash.Sum64(text)); id != 0 {
			t.met(at, id)
			return t.spans[id].stack, end + 1
		}
	}
	return m.newSpan(b, p, at)
}

// referencesEnd is the end of the references that begin at b[p].
func referencesEnd(b []byte, p int) int {
	for p+reach <= len(b) {
		switch opcode(b[p]) {
		case opMemoGet1:
			p += 2
		case opMemoGet4:
			p += 5
		default:
			return p
		}
	}
	return p
}

// newSpan reads the frames from b[p] on, and keeps their text, which has these places.
func (m *machine) newSpan(b []byte, p int, at places) (slot, int) {
	q := &m.quick
	own, numbered, start := len(q.puts), q.numbered, p
	q.numbered = false
	frames := q.frames[:0]
	low := m.memo.low()
read:
	for {
		if p+reach > len(b) || len(frames) >= mostItems {
			return 0, -1
		}
		w := (*[reach]byte)(b[p : p+reach])
		var f slot
		switch opcode(w[0]) {
		case opMemoGet1:
			f, p = low[w[1]], p+2
		case opMemoGet4:
			f, p = m.memo.get(uint64(binary.LittleEndian.Uint32(w[1:5]))), p+5
		case opEmptyDict:
			var id uint32
			if id, p = m.quickFrame(b, p); p < 0 {
				return 0, -1
			}
			f = slot(tagFrame<<payloadBits | id)
		case opAppends:
			p++
			break read
		}
		if f>>payloadBits != tagFrame {
			return 0, -1
		}
		frames = append(frames, uint32(f&maxPayload))
	}
	q.frames = frames
	stack := slot(tagStack<<payloadBits | m.symbols.list(q.frames))
	if !q.numbered { // else no other list has this text
		puts := q.puts[own:]
		q.spans.read(b[start:p], at, stack, puts, len(puts) == 0)
	}
	q.numbered = q.numbered || numbered
	return stack, p
}

// quickFrame reads a frame, or a reference to one, at b[p].
func (m *machine) quickFrame(b []byte, p int) (frame uint32, end int) {
	if opcode(b[p]) != opEmptyDict {
		s, end := m.quickGet(b, p)
		if s>>payloadBits != tagFrame {
			return 0, -1
		}
		return uint32(s & maxPayload), end
	}
	if p+reach > len(b) {
		return 0, -1
	}
	q := &m.quick
	own := len(q.puts)
	open := p + 1
	p = m.quickPut(b, open, goneSlot)
	stored := p > open
	if opcode(b[p]) != opMark {
		return 0, -1
	}
	p++
	f := rawFrame{name: kwEmpty, file: kwEmpty, line: -1}
	isFrame := false
	for n := 0; opcode(b[p]) != opSetItems; n++ {
		var key slot
		key, p = m.quickGet(b, p)
		if key>>payloadBits != tagString || n >= mostItems {
			return 0, -1
		}
		var v value
		if v, p = m.quickScalar(b, p); p < 0 || p+reach > len(b) {
			return 0, -1
		}
		switch id := keyword(key & maxPayload); {
		case id == kwName && v.k == vString:
			f.name, isFrame = uint32(v.n), true
		case id == kwFilename && v.k == vString:
			f.file, isFrame = uint32(v.n), true
		case id == kwLine && v.k == vInt:
			f.line = int64(v.n)
		case id == kwName || id == kwFilename || id == kwLine:
			return 0, -1
		}
	}
	if !isFrame {
		return 0, -1
	}
	id := m.symbols.frame(f)
	s := slot(tagFrame<<payloadBits | id)
	if stored {
		q.puts[own] = s
	}
	return id, m.quickEnd(b, p+1, stored, s)
}
