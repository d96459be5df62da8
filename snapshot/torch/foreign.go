package torch

import (
	"encoding/binary"
	"slices"
	"strings"
)

// rare runs the instructions that a plain snapshot does not hold: other types,
// and those by which a pickle has Python import and call things. Here nothing
// is imported or called; what would have been made is opaque.
func (m *machine) rare(op opcode) error {
	switch op {
	case opPop:
		if len(m.stack) == m.floor() && len(m.marks) > 0 {
			_, err := m.unmark()
			return err
		}
		v, err := m.pop()
		if err != nil {
			return err
		}
		return m.discard(v)
	case opPopMark:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		return m.discardFrom(at)
	case opDup:
		if len(m.stack) <= m.floor() {
			return m.missing("an instruction finds no value to work on")
		}
		v := m.stack[len(m.stack)-1]
		if v.k == vObject {
			v = value{k: vGone}
		}
		return m.push(v)
	case opFloat:
		if _, err := m.in.line(); err != nil {
			return err
		}
		return m.push(value{k: vOpaque})
	case opBinFloat:
		return m.opaque(8)
	case opBytes1, opBytes4, opBytes8, opByteArray8:
		return m.bytes(op)
	case opEmptySet, opNextBuffer:
		return m.push(value{k: vOpaque})
	case opReadonlyBuff:
		return nil
	case opAddItems:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		if at == 0 || at-1 < m.floor() {
			return m.missing("items are added to nothing")
		}
		return m.discardFrom(at)
	case opFrozenSet:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		return m.replaceFrom(at)
	}
	return m.foreign(op)
}

// foreign runs the instructions that name, make or change objects of classes.
func (m *machine) foreign(op opcode) error {
	switch op {
	case opGlobal:
		name, err := m.globalName()
		if err != nil {
			return err
		}
		return m.push(name)
	case opStackGlobal:
		n := len(m.stack)
		if n-2 < m.floor() || m.stack[n-1].k != vString || m.stack[n-2].k != vString {
			return m.fail("a global is named by something that is no string")
		}
		v := m.global(m.symbols.strings[m.stack[n-2].n], m.symbols.strings[m.stack[n-1].n])
		m.stack = append(m.stack[:n-2], v)
		return nil
	case opExt1:
		return m.opaque(1)
	case opExt2:
		return m.opaque(2)
	case opExt4:
		return m.opaque(4)
	case opPersID:
		if _, err := m.in.line(); err != nil {
			return err
		}
		return m.push(value{k: vOpaque})
	case opBinPersID:
		return m.replaceFrom(len(m.stack) - 1)
	case opReduce, opNewObj:
		return m.callAt(len(m.stack) - 2)
	case opNewObjEx:
		return m.callAt(len(m.stack) - 3)
	case opObj:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		return m.callAt(at)
	case opInst:
		at, err := m.unmark()
		if err != nil {
			return err
		}
		name, err := m.globalName()
		if err != nil {
			return err
		}
		return m.call(name, at)
	case opBuild:
		return m.buildAttributes()
	}
	return m.fail("0x%02x is not a pickle instruction", byte(op))
}

// callAt is the result of calling stack[at] with the values above it.
func (m *machine) callAt(at int) error {
	if at < m.floor() || at >= len(m.stack) {
		return m.missing("an instruction finds no value to work on")
	}
	return m.call(m.stack[at], at)
}

// call puts the result of calling f in the place of stack[at:].
func (m *machine) call(f value, at int) error {
	if f.k == vGlobal {
		name := m.symbols.strings[f.n]
		if dangerous(name) {
			err := m.fail("asks to call %s; memdiag does not run pickles", name)
			err.Hint = "this file attacks programs that load it with Python; find out where it comes from"
			return err
		}
		if name == "collections.OrderedDict" || name == "collections.defaultdict" {
			if err := m.discardFrom(at); err != nil {
				return err
			}
			err := m.openContainer(false)
			if err == nil {
				m.objects[m.stack[len(m.stack)-1].n].class = true // not at: a sibling may be in its list now
			}
			return err
		}
		m.build.foreign(name)
	}
	return m.replaceFrom(at)
}

// buildAttributes drops what would become attributes of the object below. Python's
// own dicts and lists have none.
func (m *machine) buildAttributes() error {
	n := len(m.stack)
	if n-2 < m.floor() {
		return m.missing("an instruction finds no value to work on")
	}
	if v := m.stack[n-2]; v.k != vOpaque && !(v.k == vObject && m.objects[v.n].class) {
		return m.fail("attributes are given to %s", m.describe(v))
	}
	return m.discardFrom(n - 1)
}

// replaceFrom puts one opaque value in the place of stack[at:].
func (m *machine) replaceFrom(at int) error {
	if err := m.discardFrom(at); err != nil {
		return err
	}
	return m.push(value{k: vOpaque})
}

func (m *machine) discardFrom(at int) error {
	if at < m.floor() {
		return m.missing("an instruction finds no value to work on")
	}
	items := m.stack[at:]
	m.stack = m.stack[:at]
	for _, v := range items {
		if err := m.discard(v); err != nil {
			return err
		}
	}
	return nil
}

// opaque pushes a value of n bytes that is skipped.
func (m *machine) opaque(n uint64) error {
	if err := m.in.skip(n); err != nil {
		return err
	}
	return m.push(value{k: vOpaque})
}

func (m *machine) bytes(op opcode) error {
	width := 8
	switch op {
	case opBytes1:
		width = 1
	case opBytes4:
		width = 4
	}
	b, err := m.in.take(width)
	if err != nil {
		return err
	}
	var raw [8]byte
	copy(raw[:], b)
	return m.opaque(binary.LittleEndian.Uint64(raw[:]))
}

// globalName reads the two lines of GLOBAL and INST.
func (m *machine) globalName() (value, error) {
	line, err := m.in.line()
	if err != nil {
		return value{}, err
	}
	module := string(line)
	if line, err = m.in.line(); err != nil {
		return value{}, err
	}
	return m.global(module, string(line)), nil
}

func (m *machine) global(module, name string) value {
	return value{vGlobal, uint64(m.symbols.intern([]byte(module + "." + name)))}
}

// dangerous reports whether a callable in a snapshot can only be an attack. It only changes the message: other callables are not run
// either.
func dangerous(name string) bool {
	module, function, _ := strings.Cut(name, ".")
	switch module {
	case "os", "posix", "nt", "subprocess", "sys", "shutil", "runpy", "socket", "pty", "ctypes", "importlib",
		"pickle", "_pickle", "marshal", "types", "webbrowser", "commands", "operator", "functools", "asyncio",
		"multiprocessing", "threading", "code", "timeit", "cProfile", "pdb", "bdb", "pydoc", "urllib", "http":
		return true
	case "builtins", "__builtin__":
		// Callables that only build data are harmless; the others reach for code.
		return !slices.Contains([]string{
			"set", "frozenset", "complex", "bytearray", "bytes", "list", "tuple", "dict", "slice", "range", "int",
			"float", "str", "bool", "object", "Ellipsis", "NotImplemented", "long", "unicode", "xrange",
		}, function)
	}
	return false
}
