package torch

import (
	"slices"
)

// Tags of a memo slot; 0 is an empty slot.
const (
	tagString = 1 + iota
	tagFrame
	tagStack
	tagPair
	tagOpaque
	tagGone
	tagOpen
	tagBoxed
	tagKept
	tagPassed
)

var tagOf = [...]uint32{vString: tagString, vFrame: tagFrame, vStack: tagStack, vPair: tagPair, vOpaque: tagOpaque, vGone: tagGone, vKept: tagKept, vPassed: tagPassed, vObject: tagOpen}

// kindOf is the kind of a slot's value, by its tag; vObject if the slot alone does not determine it.
var kindOf = [16]kind{
	0: vObject, tagOpen: vObject, tagBoxed: vObject, 11: vObject, 12: vObject,
	13: vObject, 14: vObject, 15: vObject,
	tagString: vString, tagFrame: vFrame, tagStack: vStack, tagPair: vPair, tagOpaque: vOpaque, tagGone: vGone,
	tagKept: vKept, tagPassed: vPassed,
}

// slotOf packs a value that needs no box.
func slotOf(v value) slot { return slot(tagOf[v.k]<<payloadBits | uint32(v.n)) }

// store puts the top of the stack into the memo.
func (m *machine) store(i uint64) error {
	if len(m.stack) <= m.floor() {
		return m.missing("the memo is given no value")
	}
	v := m.stack[len(m.stack)-1]
	var s slot
	switch v.k {
	case vString, vFrame, vStack, vPair, vOpaque, vPassed, vGone, vKept:
		if v.n > maxPayload {
			return m.fullError()
		}
		s = slotOf(v)
	case vObject:
		o := &m.objects[v.n]
		if o.slot >= 0 {
			return m.fail("a container is memoised twice")
		}
		o.slot = int64(i)
		s = slotOf(v)
	default:
		if len(m.boxed) >= maxBoxed {
			return m.fail("more than %d plain values are memoised", maxBoxed)
		}
		s = slot(tagBoxed<<payloadBits | len(m.boxed))
		m.boxed = append(m.boxed, v)
	}
	if !m.memo.put(i, s) {
		return m.fail("memo entry %d is stored out of turn", i)
	}
	return m.memoBounded()
}

func (m *machine) memoBounded() error {
	if m.memo.count <= m.build.mostMemo {
		return nil
	}
	err := m.fail("it has %d entries to remember, more than a file of its size may", m.memo.count)
	err.Hint = liftHint
	return err
}

// load pushes what the memo holds.
func (m *machine) load(i uint64) error {
	s := m.memo.get(i)
	payload := uint64(s) & maxPayload
	switch tag := s >> payloadBits; tag {
	case 0:
		return m.fail("memo entry %d is used before it is stored", i)
	case tagBoxed:
		return m.push(m.boxed[payload])
	case tagOpen:
		return m.push(m.loadOpen(value{vObject, payload}))
	default:
		return m.push(value{kindOf[tag], payload})
	}
}

// keeps reports whether a dict is kept for later references. They are fewer than
// blocks may be, for each takes more room.
func (m *machine) keeps(o *object) bool {
	return m.keep && len(m.kept) < m.build.mostRows/4 && (o.role == block || o.role == entry || o.role == annotation)
}

func (m *machine) keepDict(o *object) value {
	k := keptDict{role: o.role, set: o.set}
	copy(k.values[:], o.values[:])
	m.kept = append(m.kept, k)
	return value{vKept, uint64(len(m.kept) - 1)}
}

// loadOpen is the value of a reference to a container on the stack. A frame or a stack must be complete, or it would contain itself: it
// is closed in place, and adding to it later is an error. A container that is being filled is a cycle, and the rest of the snapshot is
// never shared.
func (m *machine) loadOpen(v value) value {
	o := &m.objects[v.n]
	_, filling := slices.BinarySearch(m.marks, o.pos+1)
	switch {
	case filling:
		return value{k: vGone}
	case o.role == anything, o.isList && o.items == 0:
	case m.keeps(o):
		return m.keepDict(o)
	default:
		return value{k: vGone}
	}
	pos := o.pos
	m.stack[pos] = m.finish(v)
	return m.stack[pos]
}
