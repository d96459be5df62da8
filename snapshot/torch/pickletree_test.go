package torch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

type markType struct{}

// treeReader is CPython's unpickler in small, the slow, clear twin of the pickle machine.
type treeReader struct {
	b     []byte
	stack []any
	memo  map[uint64]any
	lost  bool // a container went where nobody looks for it
}

func pickleTree(b []byte) (any, error) {
	root, _, err := pickleTreeLost(b)
	return root, err
}

// pickleTreeLost also reports whether the pickle makes containers to throw them away.
func pickleTreeLost(b []byte) (root any, lost bool, err error) {
	t := treeReader{b: b, memo: map[uint64]any{}}
	var op opcode
	defer func() {
		if r := recover(); r != nil {
			if r != errTree { //nolint:errorlint // it is the very value
				panic(r)
			}
			err = fmt.Errorf("%w: instruction %q before byte %d", errTree, byte(op), len(b)-len(t.b))
		}
	}()
	for {
		op = opcode(t.take(1)[0])
		if op == opStop {
			if len(t.stack) != 1 {
				return nil, t.lost, errTree
			}
			return t.pop(), t.lost, nil
		}
		t.step(op)
	}
}

func (t *treeReader) take(n uint64) []byte {
	if n > uint64(len(t.b)) {
		panic(errTree)
	}
	b := t.b[:n]
	t.b = t.b[n:]
	return b
}

// number reads an unsigned number of a width, little endian.
func (t *treeReader) number(width uint64) uint64 {
	var raw [8]byte
	copy(raw[:], t.take(width))
	return binary.LittleEndian.Uint64(raw[:])
}

func (t *treeReader) line() string {
	line, rest, ok := bytes.Cut(t.b, []byte("\n"))
	if !ok {
		panic(errTree)
	}
	t.b = rest
	return string(line)
}

func (t *treeReader) push(v any) { t.stack = append(t.stack, v) }

func (t *treeReader) pop() any {
	if len(t.stack) == 0 {
		panic(errTree)
	}
	v := t.stack[len(t.stack)-1]
	if v == any(markType{}) {
		panic(errTree)
	}
	t.stack = t.stack[:len(t.stack)-1]
	return v
}

func (t *treeReader) top() any {
	v := t.pop()
	t.push(v)
	return v
}

func (t *treeReader) popN(n int) []any {
	items := make([]any, n)
	for i := n - 1; i >= 0; i-- {
		items[i] = t.pop()
	}
	return items
}

func (t *treeReader) popMark() []any {
	for i := len(t.stack) - 1; i >= 0; i-- {
		if t.stack[i] == any(markType{}) {
			items := append([]any(nil), t.stack[i+1:]...)
			t.stack = t.stack[:i]
			return items
		}
	}
	panic(errTree)
}

func signed(b []byte) *big.Int {
	be := make([]byte, len(b))
	for i, c := range b {
		be[len(b)-1-i] = c
	}
	n := new(big.Int).SetBytes(be)
	if len(b) > 0 && b[len(b)-1]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}

func (t *treeReader) step(op opcode) {
	switch op {
	case opMark:
		t.push(markType{})
	case opPop:
		if n := len(t.stack); n > 0 && t.stack[n-1] == any(markType{}) {
			t.stack = t.stack[:n-1]
		} else {
			t.lose(t.pop())
		}
	case opPopMark:
		t.lose(t.popMark()...)
	case opDup:
		t.push(t.top())
	case opNone:
		t.push(nil)
	case opTrue, opFalse:
		t.push(op == opTrue)
	case opInt1:
		t.integer(new(big.Int).SetUint64(t.number(1)))
	case opInt2:
		t.integer(new(big.Int).SetUint64(t.number(2)))
	case opInt4:
		t.integer(signed(t.take(4)))
	case opLong1:
		t.integer(signed(t.take(t.number(1))))
	case opLong4:
		t.integer(signed(t.take(t.number(4))))
	case opInt, opLong:
		t.decimal(op)
	case opFloat:
		t.line()
		t.push(opaque{})
	case opBinFloat:
		t.take(8)
		t.push(opaque{})
	case opString1, opOldString1:
		t.text(t.number(1))
	case opString4, opOldString4:
		t.text(t.number(4))
	case opString8:
		t.text(t.number(8))
	case opText, opOldString:
		t.push(string(unquote(op, []byte(t.line()))))
	case opBytes1:
		t.take(t.number(1))
		t.push(opaque{})
	case opBytes4:
		t.take(t.number(4))
		t.push(opaque{})
	case opBytes8, opByteArray8:
		t.take(t.number(8))
		t.push(opaque{})
	case opProto:
		t.take(1)
	case opFrame:
		t.take(8)
	default:
		t.containers(op)
	}
}

func (t *treeReader) text(n uint64) {
	b := t.take(n)
	if n > longest {
		t.push(opaque{})
		return
	}
	t.push(string(b))
}

func (t *treeReader) decimal(op opcode) {
	s := t.line()
	if op == opInt && (s == "00" || s == "01") {
		t.push(s == "01")
		return
	}
	n, ok := new(big.Int).SetString(strings.TrimSuffix(s, "L"), 10)
	if !ok {
		panic(errTree)
	}
	t.integer(n)
}

// integer pushes an int, opaque where it takes more than 64 bits.
func (t *treeReader) integer(n *big.Int) {
	if !twinIsInt(n) {
		t.push(opaque{})
		return
	}
	t.push(n)
}

func (t *treeReader) containers(op opcode) {
	switch op {
	case opEmptyDict:
		t.push(&dict{})
	case opEmptyList:
		t.push(&list{})
	case opDict:
		items := t.popMark()
		t.push(&dict{})
		t.setItems(items)
	case opList:
		t.push(&list{items: t.popMark()})
	case opSetItem:
		t.setItems(t.popN(2))
	case opSetItems:
		t.setItems(t.popMark())
	case opAppend:
		t.extend(t.popN(1))
	case opAppends:
		t.extend(t.popMark())
	case opTuple0:
		t.push(opaque{})
	case opTuple1:
		t.pushTuple(t.popN(1))
	case opTuple2:
		t.pushTuple(t.popN(2))
	case opTuple3:
		t.pushTuple(t.popN(3))
	case opTuple:
		t.pushTuple(t.popMark())
	case opMemoize:
		t.put(uint64(len(t.memo)))
	case opMemoPut1:
		t.put(t.number(1))
	case opMemoPut4:
		t.put(t.number(4))
	case opMemoPut:
		t.put(t.entry())
	case opMemoGet1:
		t.get(t.number(1))
	case opMemoGet4:
		t.get(t.number(4))
	case opMemoGet:
		t.get(t.entry())
	default:
		t.classes(op)
	}
}

func (t *treeReader) lose(items ...any) {
	for _, v := range items {
		switch v.(type) {
		case *list, *dict:
			t.lost = true
		}
	}
}

// pushTuple keeps pairs of ints, the only tuples that mean something.
func (t *treeReader) pushTuple(items []any) {
	if len(items) == 2 && twinIsInt(items[0]) && twinIsInt(items[1]) {
		t.push(&tuple{items})
		return
	}
	t.lose(items...)
	t.push(opaque{})
}

func (t *treeReader) put(i uint64) { t.memo[i] = t.top() }

func (t *treeReader) get(i uint64) {
	v, ok := t.memo[i]
	if !ok {
		panic(errTree)
	}
	t.push(v)
}

func (t *treeReader) entry() uint64 {
	i, err := strconv.ParseUint(t.line(), 10, 32)
	if err != nil {
		panic(errTree)
	}
	return i
}

func (t *treeReader) setItems(items []any) {
	if len(items)%2 != 0 {
		panic(errTree)
	}
	d, ok := t.top().(*dict)
	for i := 0; ok && i < len(items); i += 2 {
		if key, named := items[i].(string); named {
			t.lose(d.get(key))
		}
		d.set(items[i], items[i+1])
	}
	if _, foreign := t.top().(opaque); !ok && !foreign {
		panic(errTree)
	}
}

func (t *treeReader) extend(items []any) {
	switch l := t.top().(type) {
	case *list:
		l.items = append(l.items, items...)
	case opaque:
	default:
		panic(errTree)
	}
}

func (t *treeReader) classes(op opcode) {
	switch op {
	case opEmptySet, opNextBuffer:
		t.push(opaque{})
	case opReadonlyBuff:
	case opAddItems:
		t.lose(t.popMark()...)
		t.top()
	case opFrozenSet:
		t.lose(t.popMark()...)
		t.push(opaque{})
	case opGlobal:
		module := t.line()
		t.push(global(module + "." + t.line()))
	case opStackGlobal:
		names := t.popN(2)
		module, ok1 := names[0].(string)
		name, ok2 := names[1].(string)
		if !ok1 || !ok2 {
			panic(errTree)
		}
		t.push(global(module + "." + name))
	case opExt1, opExt2, opExt4:
		t.take(map[opcode]uint64{opExt1: 1, opExt2: 2, opExt4: 4}[op])
		t.push(opaque{})
	case opPersID:
		t.line()
		t.push(opaque{})
	case opBinPersID:
		t.pop()
		t.push(opaque{})
	case opReduce, opNewObj:
		items := t.popN(2)
		t.lose(items...)
		t.call(items[0])
	case opNewObjEx:
		t.call(t.popN(3)[0])
	case opObj:
		items := t.popMark()
		if len(items) == 0 {
			panic(errTree)
		}
		t.lose(items...)
		t.call(items[0])
	case opInst:
		t.lose(t.popMark()...)
		module := t.line()
		t.call(global(module + "." + t.line()))
	case opBuild:
		t.pop()
		if d, ok := t.top().(*dict); t.top() != any(opaque{}) && !(ok && d.class) {
			panic(errTree) // what is not of a class has no attributes
		}
	default:
		panic(errTree)
	}
}

func (t *treeReader) call(f any) {
	g, _ := f.(global)
	switch {
	case dangerous(string(g)):
		panic(errTree)
	case g == "collections.OrderedDict" || g == "collections.defaultdict":
		t.push(&dict{class: true})
	default:
		t.push(opaque{})
	}
}
