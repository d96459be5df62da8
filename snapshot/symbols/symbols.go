// Package symbols names places of native binaries by function, file and line, for profiles that have addresses alone.
package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"

	"github.com/ianlancetaylor/demangle"

	"github.com/memdiag/memdiag/snapshot"
)

// Table has the symbols of some binaries. A nil Table has none.
type Table struct {
	binaries map[string]*binary // by base name
	named    map[place]snapshot.Frame
}

type place struct {
	file   string
	offset uint64
}

type binary struct {
	loads     []elf.ProgHeader
	functions []elf.Symbol // by address
	lines     *dwarf.Data  // nil without debug information
}

// Add reads the symbols of an ELF file.
func (t *Table) Add(name string) (err error) {
	defer func() {
		if recover() != nil { // the standard library trusts such files
			err = errors.New("its symbols are damaged")
		}
	}()
	file, err := elf.Open(name)
	if bad := (*elf.FormatError)(nil); errors.As(err, &bad) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("not an ELF binary")
	} else if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	b := &binary{}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			b.loads = append(b.loads, p.ProgHeader)
		}
	}
	for _, read := range []func() ([]elf.Symbol, error){file.Symbols, file.DynamicSymbols} {
		list, err := read()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return err
		}
		b.functions = append(b.functions, list...)
	}
	b.functions = slices.DeleteFunc(b.functions, func(s elf.Symbol) bool { return elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Value == 0 })
	slices.SortStableFunc(b.functions, func(x, y elf.Symbol) int { return cmp.Compare(x.Value, y.Value) })
	if lines, err := file.DWARF(); err == nil {
		b.lines = lines
	}
	if len(b.functions) == 0 && b.lines == nil {
		return errors.New("it has no symbols; name a build that was not stripped")
	}
	if t.binaries == nil {
		t.binaries, t.named = make(map[string]*binary), make(map[place]snapshot.Frame)
	}
	t.binaries[filepath.Base(name)] = b
	return nil
}

// Frame names the code at an offset into a binary's file, which is found by its base name; ok is false where no table has it.
func (t *Table) Frame(file string, offset uint64) (f snapshot.Frame, ok bool) {
	if t == nil {
		return f, false
	}
	b := t.binaries[path.Base(file)]
	if b == nil {
		return f, false
	}
	at := place{file, offset}
	f, ok = t.named[at]
	if !ok {
		f, ok = b.frame(file, offset)
		if ok {
			t.named[at] = f
		}
	}
	return f, ok
}

func (b *binary) frame(file string, offset uint64) (f snapshot.Frame, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	i := slices.IndexFunc(b.loads, func(p elf.ProgHeader) bool { return p.Off <= offset && offset < p.Off+p.Filesz })
	if i < 0 {
		return f, false
	}
	address := offset - b.loads[i].Off + b.loads[i].Vaddr
	f = snapshot.Frame{Function: b.function(address), File: file, Line: -1}
	if name, line := b.line(address); name != "" {
		f.File, f.Line = name, line
	}
	if f.Function == "" && f.Line < 0 {
		return f, false
	}
	f.Function = cmp.Or(f.Function, fmt.Sprintf("%s+%#x", path.Base(file), offset))
	return f, true
}

// function is the name of the one that an address lies in; "" for none.
func (b *binary) function(address uint64) string {
	i, exact := slices.BinarySearchFunc(b.functions, address, func(s elf.Symbol, a uint64) int { return cmp.Compare(s.Value, a) })
	if !exact {
		i--
	}
	if i < 0 || b.functions[i].Size > 0 && address >= b.functions[i].Value+b.functions[i].Size {
		return ""
	}
	return demangle.Filter(b.functions[i].Name, demangle.NoParams)
}

// line is the place in the source of an address; "" where there is no debug information of it.
func (b *binary) line(address uint64) (file string, line int) {
	if b.lines == nil {
		return "", -1
	}
	unit, err := b.lines.Reader().SeekPC(address)
	if err != nil {
		return "", -1
	}
	lines, err := b.lines.LineReader(unit)
	if err != nil || lines == nil {
		return "", -1
	}
	var entry dwarf.LineEntry
	if err := lines.SeekPC(address, &entry); err != nil || entry.File == nil {
		return "", -1
	}
	return entry.File.Name, entry.Line
}
