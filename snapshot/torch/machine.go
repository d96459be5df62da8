package torch

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// Limits of the machine. Picklers write a thousand items at a time, and what
// libtorch writes in one piece is reduced as it comes: real files stay below
// 10,000 pending values and 2,000 open containers.
const (
	maxStack  = 1 << 20
	maxMarks  = 1 << 16
	maxOpen   = 1 << 14
	maxListed = 1 << 22 // frames in open lists
	maxBoxed  = 1 << 16 // memoised values of a kind that no pickler memoises
)

// kind is the type of a value as far as the reader cares.
type kind uint8

const (
	vNone   kind = iota
	vOpaque      // something that is not looked at: a float, bytes, a foreign object
	vPassed      // a dict or list that is not looked at, and was reduced
	vGone        // a reference to a container that is still open, or was reduced already
	vBool
	vInt // 64 bits, signed or not
	vString
	vFrame
	vStack  // a list of frames
	vPair   // a tuple of two ints
	vGlobal // the name of something to import, which is never done
	vKept   // a dict of a list's that was reduced already, and may be an item again
	vObject // a dict or list that is still open
)

var kindNames = [...]string{
	"None", "an opaque value", "a container passed already", "a reference to something passed already", "a bool", "an int", "a string",
	"a frame", "a list", "a tuple", "a global", "a dict passed already", "a container",
}

func (k kind) String() string { return kindNames[k] }

// value is one item on the machine's stack; n is the int, or the id of the
// string, frame, list or pair, or the index of the object.
type value struct {
	k kind
	n uint64
}

// object is an open dict or list.
type object struct {
	role   role
	isList bool
	class  bool   // a dict of a class that may have attributes too
	early  bool   // what came above its mark is in it already, and not on the stack
	mixed  bool   // a list of anything that holds something else than frames
	gone   bool   // … that holds a reference to something passed already
	set    uint32 // the values that are present, by place
	items  int
	slot   int64  // in the memo; -1 for none
	pos    int    // on the stack
	serial uint64 // never used twice; 1 is the root
	parent uint64 // serial of the container that its role assumes; 0 for none
	other  uint64 // an equally good alternative
	values [fieldRoom]uint64
	frames []uint32 // of a list
}

func (o *object) put(at uint8, v uint64) {
	o.values[at] = v
	o.set |= 1 << at
}

func (o *object) has(at uint8) bool { return o.set&(1<<at) != 0 }

// machine is pickle's stack machine with every container reduced as soon as it
// is complete. JSON drives the same machine.
type machine struct {
	in      *input
	at      int64 // offset of the instruction that runs
	stack   []value
	marks   []int // positions in stack
	objects []object
	idle    []uint32 // objects that are not open
	listed  int      // frames in those that are
	serial  uint64
	memo    memo
	boxed   []value // values that fit no slot
	pairs   [][2]uint64
	pairIDs map[[2]uint64]uint64
	symbols symbols
	spent   int64 // by tables, as bounded saw it last
	quick   quickReader
	build   builder
	// Dicts that are items of two places. Nothing that PyTorch writes has any, and
	// keeping all that may be costs as much as CPython: only a file in which one
	// was met is read again with keep set.
	keep   bool
	kept   []keptDict
	shared bool // one was met, and not kept
}

// keptDict is a reduced dict of a role that quickDict reads too.
type keptDict struct {
	role   role
	set    uint32
	values [quickFields]uint64
}

func newMachine(in *input) *machine {
	m := &machine{in: in, pairIDs: make(map[[2]uint64]uint64), symbols: newSymbols()}
	m.build.init(m)
	return m
}

// fail makes an error that points at the instruction that runs.
func (m *machine) fail(format string, args ...any) *snapshot.FormatError {
	err := m.in.fail(format, args...)
	err.Offset = m.at
	return err
}

// floor is the lowest position that belongs to the innermost mark.
func (m *machine) floor() int {
	if n := len(m.marks); n > 0 {
		return m.marks[n-1]
	}
	return 0
}

func (m *machine) push(v value) error {
	if len(m.stack) >= maxStack {
		return m.fail("more than %d values are pending", maxStack)
	}
	m.stack = append(m.stack, v)
	return nil
}

func (m *machine) pop() (value, error) {
	n := len(m.stack) - 1
	if n < m.floor() {
		return value{}, m.missing("an instruction finds no value to work on")
	}
	v := m.stack[n]
	m.stack = m.stack[:n]
	return v, nil
}

func (m *machine) mark() error {
	if len(m.marks) >= maxMarks {
		return m.fail("marks nest deeper than %d", maxMarks)
	}
	m.marks = append(m.marks, len(m.stack))
	return nil
}

// unmark removes the innermost mark and returns its position.
func (m *machine) unmark() (int, error) {
	n := len(m.marks) - 1
	switch {
	case n < 0:
		return 0, m.fail("an instruction finds no mark")
	case m.early():
		return 0, m.missing("items do not go into their list")
	}
	at := m.marks[n]
	m.marks = m.marks[:n]
	return at, nil
}

// openContainer pushes a new dict or list, with the role that its place gives.
func (m *machine) openContainer(isList bool) error {
	if !isList {
		if err := m.closeSibling(); err != nil {
			return err
		}
	}
	r, parent, err := m.place(isList)
	if err != nil {
		return err
	}
	var i uint32
	switch n := len(m.idle); {
	case n > 0:
		i, m.idle = m.idle[n-1], m.idle[:n-1]
	case len(m.objects) >= maxOpen:
		return m.fail("more than %d containers are open", maxOpen)
	default:
		i = uint32(len(m.objects))
		m.objects = append(m.objects, object{})
	}
	m.serial++
	o := &m.objects[i]
	*o = object{role: r, isList: isList, slot: -1, pos: len(m.stack), serial: m.serial, frames: o.frames[:0]}
	if parent >= 0 {
		p := &m.objects[parent]
		o.parent, o.other = p.serial, m.wrapperBelow(r)
		if r == trace {
			o.values[0] = uint64(m.itemsOf(parent))
		}
		if r == blocks {
			p.put(sgFirst, uint64(m.build.rows()))
		}
	}
	return m.push(value{vObject, uint64(i)})
}

// closeSibling finishes a complete dict because the next one begins: it is added to its list immediately, so that a list that is
// written as one batch does not pile up. If the list has no meaning, the dict stays in place, reduced, since it may be part of a tuple.
func (m *machine) closeSibling() error {
	n := len(m.stack) - 1
	if n < m.floor() || m.stack[n].k != vObject || m.objects[m.stack[n].n].isList {
		return nil
	}
	dict := m.stack[n]
	if m.objects[dict.n].role == anything {
		m.stack[n] = m.finish(dict)
		return nil
	}
	if list := m.marked(); list >= 0 && m.objects[list].isList && m.floor() == n {
		m.stack = m.stack[:n]
		m.objects[list].early = true
		return m.appendItem(value{vObject, uint64(list)}, dict)
	}
	return nil
}

// marked is the index of the container below the innermost mark, or -1.
func (m *machine) marked() int {
	if f := m.floor(); f > 0 && len(m.marks) > 0 && m.stack[f-1].k == vObject {
		return int(m.stack[f-1].n)
	}
	return -1
}

// early reports whether items above the innermost mark are in their list already,
// and not on the stack any more.
func (m *machine) early() bool {
	list := m.marked()
	return list >= 0 && m.objects[list].early
}

// missing is fail for an instruction that finds too little on the stack.
func (m *machine) missing(what string) *snapshot.FormatError {
	if m.early() {
		what += "; a dict that it may want is in its list already"
	}
	return m.fail("%s", what)
}

// itemsOf counts a list's items, those included that wait above its mark.
func (m *machine) itemsOf(list int) int {
	n := m.objects[list].items
	if m.marked() == list {
		n += len(m.stack) - m.floor()
	}
	return n
}

// place finds the role of a container that is about to be pushed, and the
// index of the container it seems to be in, or -1. The guess is checked when
// the container is put into its parent: a pickle says only then whether two
// neighbours are siblings, or the second one is inside the first.
func (m *machine) place(isList bool) (role, int, error) {
	n, floor := len(m.stack), m.floor()
	if n == 0 {
		if isList {
			return segments, -1, m.build.begin(segments)
		}
		return top, -1, nil
	}
	parent, r := m.marked(), anything
	if parent >= 0 {
		r = m.roleAbove(parent, floor, isList)
	}
	// Otherwise it is the only item, or one of several appended one by one, of the container on top of the stack.
	last := m.stack[n-1]
	switch {
	case r != anything || n == floor:
	case last.k == vObject && m.objects[last.n].isList:
		parent = int(last.n)
		r = itemRole(m.objects[parent].role, isList)
	case n-2 >= floor && last.k == vString && m.stack[n-2].k == vObject && !m.objects[m.stack[n-2].n].isList:
		parent = int(m.stack[n-2].n)
		r = valueRole(m.objects[parent].role, keyword(last.n), isList)
	}
	if r == anything {
		return anything, -1, nil
	}
	if r == blocks && m.objects[parent].has(sgFirst) {
		return r, -1, m.fail("a segment has two lists of blocks")
	}
	return r, parent, m.build.begin(r)
}

// wrapperBelow is the serial of an empty dict to which the key on top of the
// stack may belong, so that {"x": {}, "segments": …} and {"x": {"segments": …}}
// both read: they begin alike.
func (m *machine) wrapperBelow(r role) uint64 {
	n := len(m.stack)
	if n-2 < m.floor() || m.stack[n-1].k != vString || m.stack[n-2].k != vObject {
		return 0
	}
	d := &m.objects[m.stack[n-2].n]
	if d.role != wrapper || d.items > 0 || valueRole(wrapper, keyword(m.stack[n-1].n), true) != r {
		return 0
	}
	return d.serial
}

// roleAbove is the role of a container as an item of the one below the
// innermost mark.
func (m *machine) roleAbove(parent, floor int, isList bool) role {
	p, n := &m.objects[parent], len(m.stack)
	switch {
	case p.isList && (n == floor || m.stack[n-1].k == vKept || m.stack[n-1].k == vObject && m.objects[m.stack[n-1].n].parent == p.serial):
		return itemRole(p.role, isList)
	case !p.isList && (n-floor)%2 == 1 && m.stack[n-1].k == vString:
		return valueRole(p.role, keyword(m.stack[n-1].n), isList)
	}
	return anything
}

func (m *machine) fullError() error {
	return m.fail("more than %d distinct strings, frames or stacks", maxPayload)
}

// bounded returns an error if the tables have outgrown the memo's slots, or the memory that the file may use.
func (m *machine) bounded() error {
	spent := m.symbols.spent + m.build.record.spent
	if spent == m.spent {
		return nil
	}
	m.spent = spent
	switch {
	case spent > m.build.mostTables:
		err := m.fail("its names, stacks and events take more memory than a file of its size may ask for")
		err.Hint = liftHint
		return err
	case m.symbols.full() || len(m.pairs) > maxPayload:
		return m.fullError()
	}
	return nil
}

// behind examines what follows the snapshot. For compressed files it also checks the checksum, which is at their end.
func (m *machine) behind() error {
	in := m.in
	switch {
	case in.have(1):
		m.build.after = in.offset()
		m.build.another = in.buf[in.pos] == byte(opProto)
	case !errors.Is(in.err, io.EOF):
		return in.cut()
	}
	return nil
}

// root closes the last value on the stack.
func (m *machine) root() error {
	if len(m.marks) > 0 || len(m.stack) != 1 {
		return m.fail("it ends with %d values in place of one", len(m.stack))
	}
	v := m.stack[0]
	if v.k == vObject && (m.build.begun[segments] || m.build.begun[traces]) {
		return nil
	}
	err := m.fail("there is no snapshot in this file: its top level is %s", m.describe(v))
	if v.k == vObject && m.objects[v.n].role == top {
		err.Reason = fmt.Sprintf("there is no snapshot in this file: neither %q nor %q among its keys", keywords[kwSegments], keywords[kwTraces])
	}
	err.Hint = m.writerHint()
	return err
}

// writerHint says what writes a snapshot, to who gives a file that is none.
func (m *machine) writerHint() string {
	const writer = "torch.cuda.memory._dump_snapshot"
	for _, name := range m.symbols.strings {
		if strings.HasPrefix(name, "torch._utils._rebuild_") || strings.HasPrefix(name, "torch.nn.modules.") || strings.HasPrefix(name, "__torch__.") {
			return "these are tensors or a model, as torch.save writes them; " + writer + `("snapshot_50.pickle") in the program that holds them writes a snapshot`
		}
	}
	return "memdiag reads what " + writer + "() writes"
}
