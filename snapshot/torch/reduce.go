package torch

// finish closes an object and returns what it is to those who refer to it.
func (m *machine) finish(v value) value {
	if v.k != vObject {
		return v
	}
	o := &m.objects[v.n]
	out := value{k: vGone}
	switch {
	case o.role == anything && !o.isList:
		out.k = vPassed
		if o.has(frName) || o.has(frFile) {
			f := rawFrame{name: kwEmpty, file: kwEmpty, line: -1}
			if o.has(frName) {
				f.name = uint32(o.values[frName])
			}
			if o.has(frFile) {
				f.file = uint32(o.values[frFile])
			}
			if o.has(frLine) {
				f.line = int64(o.values[frLine])
			}
			out = value{vFrame, uint64(m.symbols.frame(f))}
		}
	case o.gone:
		out.k = vGone
	case o.role == anything && o.mixed:
		out.k = vPassed
	case o.role == anything:
		out = value{vStack, uint64(m.symbols.list(o.frames))}
	case o.role == poolID && o.items == 2 && o.set == 3:
		out = m.pair(o.values[0], o.values[1])
	case o.isList && o.items == 0:
		out = value{vStack, 0} // empty, as it is wherever else it is referred to
	case m.keeps(o) && o.slot >= 0:
		out = m.keepDict(o)
	}
	if o.slot >= 0 {
		m.memo.replace(uint64(o.slot), slotOf(out))
	}
	const kept = 1 << 10 // frames, room for which the next list finds
	m.listed -= len(o.frames)
	if o.frames = o.frames[:0]; cap(o.frames) > kept {
		o.frames = nil
	}
	m.idle = append(m.idle, uint32(v.n))
	return out
}

func (m *machine) pair(a, b uint64) value {
	key := [2]uint64{a, b}
	id, ok := m.pairIDs[key]
	if !ok {
		id = uint64(len(m.pairs))
		m.symbols.spent += pairCost
		m.pairs = append(m.pairs, key)
		m.pairIDs[key] = id
	}
	return value{vPair, id}
}

// discard drops a value into something that is not looked at. A part of the
// snapshot that was already reduced must not end there.
func (m *machine) discard(v value) error {
	if v.k == vObject {
		if r := m.objects[v.n].role; r != anything {
			return m.fail("%s lies in an unexpected place", r)
		}
		m.finish(v)
	}
	return nil
}

// checkParent checks that an object got its role from the container that it is added to.
func (m *machine) checkParent(v value, parent uint64) error {
	if v.k == vObject {
		if o := &m.objects[v.n]; o.role != anything && o.parent != parent && o.other != parent {
			return m.fail("%s lies in an unexpected place", o.role)
		}
	}
	return nil
}

// checkTarget checks that items can be added to a container: it is open, or ignored.
func (m *machine) checkTarget(container value, isList bool) error {
	if container.k == vOpaque || container.k == vObject && m.objects[container.n].isList == isList {
		return nil
	}
	return m.fail("items are added to %s", m.describe(container))
}

// appendItem puts v at the end of a list.
func (m *machine) appendItem(list, v value) error {
	if list.k == vOpaque {
		return m.discard(v)
	}
	if err := m.checkTarget(list, true); err != nil {
		return err
	}
	l := &m.objects[list.n]
	if err := m.checkParent(v, l.serial); err != nil {
		return err
	}
	l.items++
	switch {
	case l.role == anything:
		if v = m.finish(v); v.k == vFrame && !l.mixed {
			if m.listed++; m.listed > maxListed {
				return m.fail("open lists have more than %d frames", maxListed)
			}
			l.frames = append(l.frames, uint32(v.n))
		} else {
			l.mixed = true
			l.gone = l.gone || v.k == vGone
		}
		return nil
	case l.role == poolID:
		if v = m.finish(v); v.k == vInt && l.items <= 2 {
			l.put(uint8(l.items-1), v.n)
		}
		return nil
	case l.role == traces && v == value{vStack, 0}: // an empty list, shared
		m.build.record.devices = l.items
		return nil
	case v.k == vKept && m.kept[v.n].role == itemRole(l.role, false):
		k := &m.kept[v.n]
		o := object{role: k.role, set: k.set}
		copy(o.values[:], k.values[:])
		return m.build.item(l, &o)
	case l.role.isHost() && (v.k != vObject || m.objects[v.n].role == anything):
		m.finish(v)
		m.build.odd++
		return nil
	case v.k == vGone && !m.keep:
		m.shared = true
		return m.fail("%s holds %s", l.role, m.describe(v))
	case v.k != vObject || m.objects[v.n].role == anything:
		err := m.fail("%s holds %s", l.role, m.describe(v))
		if l.role == segments {
			err.Hint = m.writerHint()
		}
		return err
	}
	if err := m.build.item(l, &m.objects[v.n]); err != nil {
		return err
	}
	m.finish(v)
	return nil
}

// setItem puts v under key into a dict.
func (m *machine) setItem(dict, key, v value) error {
	if err := m.discard(key); err != nil {
		return err
	}
	if dict.k == vOpaque {
		return m.discard(v)
	}
	if err := m.checkTarget(dict, false); err != nil {
		return err
	}
	switch key.k {
	case vObject, vPassed, vGone, vFrame, vStack, vKept: // Python refuses it too
		return m.fail("a key is %s, which no key can be", m.describe(key))
	}
	d := &m.objects[dict.n]
	d.items++
	var f field
	if key.k == vString && key.n < uint64(numKeywords) {
		f = fieldOf[d.role][key.n]
	}
	isList := false
	if v.k == vObject {
		if err := m.checkParent(v, d.serial); err != nil {
			return err
		}
		if o := &m.objects[v.n]; o.role != anything {
			isList = o.isList
			m.build.value(d, o)
		}
		v = m.finish(v)
	}
	switch f.want {
	case wantNothing:
		return nil
	case wantList:
		empty := v == value{vStack, 0} || v.k == vNone
		again := v.k == vGone && d.role <= wrapper && m.build.begun[valueRole(d.role, keyword(key.n), true)]
		if !isList && !empty && !again {
			return m.fail("%q is %s, not a list that can be read", keywords[key.n], m.describe(v))
		}
		switch {
		case isList || !empty:
		case d.role == segment:
			return m.noBlocks(d, v.k == vStack)
		case d.role == block:
			m.build.tenant(d, &object{})
		}
		return nil
	case wantStack:
		if v.k == vGone {
			return m.fail("the frames of %s refer to %s", d.role, v.k)
		}
	}
	// The last value of a key counts.
	if v.k == wantedKind[f.want] || f.want == wantBool && v.k == vInt {
		d.put(f.at, v.n)
		return nil
	}
	d.set, d.values[f.at] = d.set&^(1<<f.at), 0
	if v.k != vNone && d.role != anything && f.want != wantFrames {
		m.build.odd++
	}
	return nil
}

// noBlocks takes None, or an empty list that is an item of other places too, for the
// blocks of a segment.
func (m *machine) noBlocks(segment *object, isList bool) error {
	switch {
	case segment.has(sgFirst):
		return m.fail("a segment has two lists of blocks")
	case isList:
		rows := uint64(m.build.rows())
		segment.put(sgFirst, rows)
		segment.put(sgEnd, rows)
		segment.put(sgBlocks, 1)
	}
	return nil
}

func (m *machine) describe(v value) string {
	if v.k == vObject {
		o := &m.objects[v.n]
		if o.role == anything && o.isList {
			return "a list"
		}
		if o.role == anything {
			return "a dict"
		}
		return o.role.String()
	}
	return v.k.String()
}
