package torch

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// decodePickle runs the pickle that m's input begins with, up to its STOP.
func decodePickle(m *machine) error {
	in := m.in
	for {
		before := in.pos
		m.pushScalars()
		const usual, perScalar = 4, 2 // steps of an instruction, and bytes that a step pushes
		in.steps += usual + int64(in.pos-before)/perScalar
		if in.have(1) {
			switch opcode(in.buf[in.pos]) {
			case opEmptyDict:
				if err := m.quickItems(); err != nil {
					return err
				}
			case opEmptyList:
				if err := m.quickFrames(); err != nil {
					return err
				}
			}
		}
		if !in.have(1) {
			return in.cut()
		}
		op := opcode(in.buf[in.pos])
		m.at = in.offset()
		in.pos++
		if op == opStop {
			return m.root()
		}
		if err := m.step(op); err != nil {
			return err
		}
		if err := m.bounded(); err != nil {
			return err
		}
	}
}

// pushScalars runs the next instructions as long as they push an int, a constant or a memo value: two thirds of the instructions that
// the short cuts leave. Anything that needs more, or fails, is left to step.
func (m *machine) pushScalars() {
	b, p := m.in.buf, m.in.pos
	for p+reach <= len(b) && len(m.stack) < maxStack {
		var v value
		switch op := opcode(b[p]); op {
		case opMemoGet1, opMemoGet4:
			var s slot
			s, p = m.quickGet(b, p)
			v = value{kindOf[s>>payloadBits], uint64(s & maxPayload)}
		case opInt1, opInt2, opInt4, opLong1:
			v, p = quickInt(b, p)
		case opNone:
			p++
		case opTrue, opFalse:
			v = value{vBool, uint64(opFalse - op)}
			p++
		default:
			return
		}
		if v.k == vObject || p < 0 {
			return
		}
		m.stack = append(m.stack, v)
		m.in.pos = p
	}
}

// step runs one instruction; its arguments lie ahead in the input.
func (m *machine) step(op opcode) error {
	switch op {
	case opMemoGet1, opMemoGet4, opMemoGet:
		i, err := m.index(op)
		if err != nil {
			return err
		}
		return m.load(i)
	case opMemoPut1, opMemoPut4, opMemoPut:
		i, err := m.index(op)
		if err != nil {
			return err
		}
		return m.store(i)
	case opMemoize:
		return m.store(uint64(m.memo.count))
	case opMark:
		return m.mark()
	case opEmptyDict:
		return m.openContainer(false)
	case opEmptyList:
		return m.openContainer(true)
	case opSetItems, opSetItem, opAppends, opAppend, opDict, opList:
		return m.fill(op)
	case opInt1, opInt2, opInt4, opLong1, opLong4, opInt, opLong:
		return m.integer(op)
	case opString1, opString4, opString8, opOldString1, opOldString4, opOldString, opText:
		return m.text(op)
	case opNone:
		return m.push(value{k: vNone})
	case opTrue:
		return m.push(value{vBool, 1})
	case opFalse:
		return m.push(value{vBool, 0})
	case opTuple0, opTuple1, opTuple2, opTuple3, opTuple:
		return m.tuple(op)
	case opProto:
		b, err := m.in.take(1)
		if err == nil && b[0] > 5 {
			return m.fail("pickle protocol %d is not known", b[0])
		}
		return err
	case opFrame:
		b, err := m.in.take(8)
		if err != nil {
			return err
		}
		if n := binary.LittleEndian.Uint64(b); m.in.size >= 0 && n > uint64(m.in.size-m.in.offset()) {
			return m.in.lacks("a frame", n)
		}
		return nil
	}
	return m.rare(op)
}

// index reads the argument of an instruction on the memo.
func (m *machine) index(op opcode) (uint64, error) {
	switch op {
	case opMemoGet1, opMemoPut1:
		b, err := m.in.take(1)
		if err != nil {
			return 0, err
		}
		return uint64(b[0]), nil
	case opMemoGet4, opMemoPut4:
		b, err := m.in.take(4)
		if err != nil {
			return 0, err
		}
		return uint64(binary.LittleEndian.Uint32(b)), nil
	}
	line, err := m.in.line()
	if err != nil {
		return 0, err
	}
	i, err := strconv.ParseUint(string(line), 10, 32)
	if err != nil {
		return 0, m.fail("%.20q is not a memo entry", line)
	}
	return i, nil
}

// fill moves values from the stack into a container.
func (m *machine) fill(op opcode) error {
	switch op {
	case opAppend:
		v, err := m.pop()
		if err != nil {
			return err
		}
		if len(m.stack) <= m.floor() {
			return m.missing("an item is added to nothing")
		}
		return m.appendItem(m.stack[len(m.stack)-1], v)
	case opSetItem:
		if len(m.stack)-3 < m.floor() {
			return m.missing("a key is set in nothing")
		}
		n := len(m.stack)
		dict, key, v := m.stack[n-3], m.stack[n-2], m.stack[n-1]
		m.stack = m.stack[:n-2]
		return m.setItem(dict, key, v)
	}
	if c := m.marked(); c >= 0 && (op == opAppends && m.objects[c].isList || op == opSetItems && !m.objects[c].isList) {
		m.objects[c].early = false
	}
	at, err := m.unmark()
	if err != nil {
		return err
	}
	items := m.stack[at:]
	if op == opDict || op == opList {
		m.stack = m.stack[:at]
		return m.fresh(op == opList, items)
	}
	if at == 0 || at-1 < m.floor() {
		return m.missing("items are added to nothing")
	}
	m.stack = m.stack[:at]
	return m.fillWith(m.stack[at-1], op == opAppends, items)
}

// fresh pushes a container that is made together with its items (protocol 0
// makes them empty). The items stay readable above the stack's end.
func (m *machine) fresh(isList bool, items []value) error {
	kept := append([]value(nil), items...)
	if err := m.openContainer(isList); err != nil {
		return err
	}
	return m.fillWith(m.stack[len(m.stack)-1], isList, kept)
}

func (m *machine) fillWith(container value, isList bool, items []value) error {
	if err := m.checkTarget(container, isList); err != nil {
		return err
	}
	if isList {
		const perItem = 2
		m.in.steps += perItem * int64(len(items))
		for _, v := range items {
			if err := m.appendItem(container, v); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items)%2 != 0 {
		return m.fail("a dict is given a key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		if err := m.setItem(container, items[i], items[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) tuple(op opcode) error {
	at := len(m.stack)
	switch op {
	case opTuple:
		var err error
		if at, err = m.unmark(); err != nil {
			return err
		}
	case opTuple1:
		at--
	case opTuple2:
		at -= 2
	case opTuple3:
		at -= 3
	}
	if at < m.floor() {
		return m.missing("a tuple of values that are not there")
	}
	items := m.stack[at:]
	out := value{k: vOpaque}
	if len(items) == 2 && items[0].k == vInt && items[1].k == vInt {
		out = m.pair(items[0].n, items[1].n)
	}
	m.stack = m.stack[:at]
	for _, v := range items {
		if err := m.discard(v); err != nil {
			return err
		}
	}
	return m.push(out)
}

func (m *machine) integer(op opcode) error {
	var width uint64
	switch op {
	case opInt, opLong:
		return m.decimal(op)
	case opInt1:
		width = 1
	case opInt2:
		width = 2
	case opInt4:
		width = 4
	case opLong1:
		b, err := m.in.take(1)
		if err != nil {
			return err
		}
		width = uint64(b[0])
	case opLong4:
		b, err := m.in.take(4)
		if err != nil {
			return err
		}
		if width = uint64(binary.LittleEndian.Uint32(b)); width > math.MaxInt32 {
			return m.fail("an int of negative length")
		}
	}
	if width > 9 {
		if err := m.in.skip(width); err != nil {
			return err
		}
		return m.push(value{k: vOpaque})
	}
	b, err := m.in.take(int(width))
	if err != nil {
		return err
	}
	var raw [9]byte
	copy(raw[:], b)
	n := binary.LittleEndian.Uint64(raw[:])
	signed := op == opInt4 || op == opLong1 || op == opLong4
	switch {
	case width == 9 && raw[8] != 0 && !(raw[8] == 0xff && int64(n) < 0):
		return m.push(value{k: vOpaque})
	case signed && width > 0 && width < 8 && b[width-1]&0x80 != 0:
		n |= ^uint64(0) << (8 * width)
	}
	return m.push(value{vInt, n})
}

// decimal reads the ints of protocol 0; "00" and "01" are its bools.
func (m *machine) decimal(op opcode) error {
	line, err := m.in.line()
	if err != nil {
		return err
	}
	if op == opInt && (string(line) == "00" || string(line) == "01") {
		return m.push(value{vBool, uint64(line[1] - '0')})
	}
	v, ok := parseInt(bytes.TrimSuffix(line, []byte("L")))
	if !ok {
		return m.fail("%.20q is not an int", line)
	}
	return m.push(v)
}

// parseInt reads a decimal int; one beyond 64 bits is opaque.
func parseInt(b []byte) (v value, ok bool) {
	digits := bytes.TrimPrefix(b, []byte("-"))
	negative := len(digits) < len(b)
	n, beyond := uint64(0), false
	for _, c := range digits {
		if c < '0' || c > '9' {
			return value{}, false
		}
		high, low := bits.Mul64(n, 10)
		sum, carry := bits.Add64(low, uint64(c-'0'), 0)
		n, beyond = sum, beyond || high|carry != 0
	}
	switch {
	case len(digits) == 0:
		return value{}, false
	case beyond || negative && n > 1<<63:
		return value{k: vOpaque}, true
	case negative:
		n = -n
	}
	return value{vInt, n}, true
}

func (m *machine) text(op opcode) error {
	var n uint64
	switch op {
	case opString1, opOldString1:
		b, err := m.in.take(1)
		if err != nil {
			return err
		}
		n = uint64(b[0])
	case opString4, opOldString4:
		b, err := m.in.take(4)
		if err != nil {
			return err
		}
		n = uint64(binary.LittleEndian.Uint32(b))
	case opString8:
		b, err := m.in.take(8)
		if err != nil {
			return err
		}
		n = binary.LittleEndian.Uint64(b)
	default:
		line, err := m.in.line()
		if err != nil {
			return err
		}
		const perStep = 2
		m.in.steps += int64(len(line) / perStep)
		return m.pushText(unquote(op, line))
	}
	b, long, err := m.in.text(n)
	if err != nil {
		return err
	}
	if long {
		return m.push(value{k: vOpaque})
	}
	return m.pushText(b)
}

func (m *machine) pushText(b []byte) error {
	if len(b) > longest {
		return m.push(value{k: vOpaque})
	}
	return m.push(value{vString, uint64(m.symbols.intern(b))})
}

// unquote undoes the escapes of protocol 0: raw-unicode-escape for text, and the quotes of Python 2's strings, whose escapes stay as
// they are.
func unquote(op opcode, line []byte) []byte {
	if op == opOldString {
		if n := len(line); n >= 2 && (line[0] == '\'' || line[0] == '"') && line[n-1] == line[0] {
			return line[1 : n-1]
		}
		return line
	}
	if bytes.IndexByte(line, '\\') < 0 && isASCII(line) {
		return line
	}
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		c := line[i]
		digits := 0
		if c == '\\' && i+1 < len(line) {
			switch line[i+1] {
			case 'u':
				digits = 4
			case 'U':
				digits = 8
			}
		}
		if digits > 0 && i+2+digits <= len(line) {
			if r, ok := hexadecimal(line[i+2 : i+2+digits]); ok {
				out = utf8.AppendRune(out, r)
				i += 1 + digits
				continue
			}
		}
		if c < 0x80 {
			out = append(out, c)
		} else {
			out = utf8.AppendRune(out, rune(c)) // Latin-1
		}
	}
	return out
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
