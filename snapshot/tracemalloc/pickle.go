package tracemalloc

import (
	"bytes"
	"encoding/binary"
)

// opcode is a pickle instruction (PEP 307, PEP 3154).
type opcode byte

// The instructions that a dump of protocol 2 to 5 holds.
const (
	opMark        opcode = '('
	opStop        opcode = '.'
	opEmptyTuple  opcode = ')'
	opEmptyList   opcode = ']'
	opEmptyDict   opcode = '}'
	opInt1        opcode = 'K'
	opInt2        opcode = 'M'
	opInt4        opcode = 'J'
	opLong1       opcode = 0x8a
	opNone        opcode = 'N'
	opTrue        opcode = 0x88
	opFalse       opcode = 0x89
	opText1       opcode = 0x8c
	opText4       opcode = 'X'
	opText8       opcode = 0x8d
	opTuple       opcode = 't'
	opTuple1      opcode = 0x85
	opTuple2      opcode = 0x86
	opTuple3      opcode = 0x87
	opAppend      opcode = 'a'
	opAppends     opcode = 'e'
	opSetItem     opcode = 's'
	opSetItems    opcode = 'u'
	opGet1        opcode = 'h'
	opGet4        opcode = 'j'
	opPut1        opcode = 'q'
	opPut4        opcode = 'r'
	opMemoize     opcode = 0x94
	opGlobal      opcode = 'c'
	opStackGlobal opcode = 0x93
	opNewObj      opcode = 0x81
	opBuild       opcode = 'b'
	opProto       opcode = 0x80
	opFrame       opcode = 0x95
)

// step runs one instruction.
func (m *machine) step() error {
	m.in.Mark()
	b, err := m.in.Take(1)
	if err != nil {
		return err
	}
	if err := m.in.Work(1); err != nil {
		return err
	}
	switch op := opcode(b[0]); op {
	case opStop:
		m.stopped = true
		return nil
	case opProto:
		_, err := m.in.Take(1)
		return err
	case opFrame:
		_, err := m.in.Take(8)
		return err
	case opMark:
		if len(m.marks) >= maxMarks {
			return m.in.Fail("marks nest deeper than %d", maxMarks)
		}
		m.marks = append(m.marks, len(m.stack))
		return nil
	case opNone, opTrue, opFalse:
		return m.push(value{})
	case opEmptyTuple:
		return m.push(value{kind: kEmpty})
	case opEmptyList:
		return m.push(value{kind: kList})
	case opEmptyDict:
		return m.push(value{kind: kDict})
	case opInt1, opInt2, opInt4, opLong1:
		return m.integer(op)
	case opText1, opText4, opText8:
		return m.text(op)
	case opTuple, opTuple1, opTuple2, opTuple3:
		return m.makeTuple(op)
	case opAppend, opAppends, opSetItem, opSetItems:
		return m.fill(op)
	case opGet1, opGet4, opPut1, opPut4, opMemoize:
		return m.remember(op)
	case opGlobal, opStackGlobal, opNewObj, opBuild:
		return m.object(op)
	default:
		return m.in.Fail("0x%02x is no instruction of a dump of tracemalloc", byte(op))
	}
}

// widthOf is how many bytes an instruction's argument has; 0 for none, or if the argument itself gives its length.
func widthOf(op opcode) int {
	switch op {
	case opInt1, opText1, opGet1, opPut1:
		return 1
	case opInt2:
		return 2
	case opInt4, opText4, opGet4, opPut4:
		return 4
	case opText8:
		return 8
	}
	return 0
}

// number reads an unsigned integer, lowest byte first.
func (m *machine) number(width int) (uint64, error) {
	b, err := m.in.Take(width)
	if err != nil {
		return 0, err
	}
	var raw [8]byte
	copy(raw[:], b)
	return binary.LittleEndian.Uint64(raw[:]), nil
}

func (m *machine) integer(op opcode) error {
	width := widthOf(op)
	if op == opLong1 {
		n, err := m.number(1)
		if err != nil {
			return err
		}
		if n > 8 {
			return m.in.Fail("an integer of %d bytes", n)
		}
		width = int(n)
	}
	v, err := m.number(width)
	if err != nil {
		return err
	}
	n := int64(v)
	if shift := 64 - 8*width; width > 0 && (op == opInt4 || op == opLong1) {
		n = n << shift >> shift // two's complement
	}
	return m.push(value{kInt, n})
}

func (m *machine) text(op opcode) error {
	n, err := m.number(widthOf(op))
	if err != nil {
		return err
	}
	if n > maxText {
		return m.in.Fail("a text of %d bytes; the limit is %d", n, maxText)
	}
	b, err := m.in.Take(int(n))
	if err != nil {
		return err
	}
	m.strings.Append(string(b))
	if err := m.in.Charge(24 + len(b)); err != nil {
		return err
	}
	return m.push(value{kText, int64(m.strings.Len() - 1)})
}

// textOf is the text of a value of that kind.
func (m *machine) textOf(v value) string { return *m.strings.At(int(v.n)) }

func (m *machine) makeTuple(op opcode) error {
	var items []value
	var err error
	if op == opTuple {
		items, err = m.popMark()
	} else {
		items, err = m.pop(int(op-opTuple1) + 1)
	}
	if err != nil {
		return err
	}
	v, err := m.tuple(items)
	if err != nil {
		return err
	}
	return m.push(v)
}

// fill adds to the list or dict that lies below the items.
func (m *machine) fill(op opcode) error {
	var items []value
	var err error
	switch op {
	case opAppend:
		items, err = m.pop(1)
	case opSetItem:
		items, err = m.pop(2)
	default:
		items, err = m.popMark()
	}
	if err != nil {
		return err
	}
	target, err := m.pop(1)
	if err != nil {
		return err
	}
	to := target[0]
	if op == opAppend || op == opAppends {
		err = m.add(to, items)
	} else {
		err = m.set(to, items)
	}
	if err != nil {
		return err
	}
	return m.push(to)
}

func (m *machine) remember(op opcode) error {
	at, err := m.number(widthOf(op))
	if err != nil {
		return err
	}
	if op == opGet1 || op == opGet4 {
		if at >= uint64(m.memo.Len()) {
			return m.in.Fail("memo entry %d is used before it is stored", at)
		}
		return m.push(*m.memo.At(int(at)))
	}
	items, err := m.pop(1)
	if err != nil {
		return err
	}
	v := items[0]
	switch {
	case op == opMemoize || at == uint64(m.memo.Len()):
		m.memo.Append(v)
	case at < uint64(m.memo.Len()):
		*m.memo.At(int(at)) = v
	default:
		return m.in.Fail("memo entry %d is stored out of turn", at)
	}
	if err := m.in.Charge(16); err != nil {
		return err
	}
	return m.push(v)
}

// object runs the instructions that name a class, make an instance of it, and set
// its attributes; here it has none.
func (m *machine) object(op opcode) error {
	switch op {
	case opGlobal:
		module, err := m.line()
		if err != nil {
			return err
		}
		name, err := m.line()
		if err != nil {
			return err
		}
		v, err := m.class(module, name)
		if err != nil {
			return err
		}
		return m.push(v)
	case opStackGlobal:
		names, err := m.pop(2)
		if err != nil {
			return err
		}
		if names[0].kind != kText || names[1].kind != kText {
			return m.in.Fail("a class is named by what is no text")
		}
		v, err := m.class(m.textOf(names[0]), m.textOf(names[1]))
		if err != nil {
			return err
		}
		return m.push(v)
	case opNewObj:
		items, err := m.pop(2)
		if err != nil {
			return err
		}
		if items[0].kind != kClass {
			return m.in.Fail("an instance of what is no class")
		}
		return m.push(value{kind: kObject})
	}
	items, err := m.pop(2)
	if err != nil {
		return err
	}
	if items[0].kind != kObject {
		return m.in.Fail("attributes are set in what has none")
	}
	return m.push(items[0])
}

// line reads up to a line feed.
func (m *machine) line() (string, error) {
	const longest = 256
	var out bytes.Buffer
	for out.Len() < longest {
		b, err := m.in.Take(1)
		if err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return out.String(), nil
		}
		out.WriteByte(b[0])
	}
	return "", m.in.Fail("the name of a class is longer than %d bytes", longest)
}
