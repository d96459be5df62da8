// Package symbols names places of native binaries by function, file and line, for profiles that have addresses alone.
package symbols

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/ianlancetaylor/demangle"

	"github.com/memdiag/memdiag/snapshot"
)

// Table has the symbols of some binaries. A nil Table has none.
type Table struct {
	binaries map[string]*binary // by base name
	named    map[place][]snapshot.Frame
}

type place struct {
	file   string
	offset uint64
}

type binary struct {
	loads     []elf.ProgHeader
	functions []elf.Symbol // by address
	units     []span       // by address; none without debug information
	debug     *dwarf.Data
}

// Add reads the symbols of an ELF file. If name is a link, it is found by the target's name, too.
func (t *Table) Add(name string) (err error) {
	defer func() {
		if recover() != nil { // the standard library trusts such files
			err = errors.New("its symbols are damaged")
		}
	}()
	if info, err := os.Stat(name); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
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
	if b.debug, err = file.DWARF(); err == nil {
		b.units = spansOfUnits(b.debug)
	}
	if len(b.functions) == 0 && len(b.units) == 0 {
		return errors.New("it has no symbols; name a build that was not stripped")
	}
	if t.binaries == nil {
		t.binaries, t.named = make(map[string]*binary), make(map[place][]snapshot.Frame)
	}
	names := []string{filepath.Base(name)}
	if real, err := filepath.EvalSymlinks(name); err == nil && filepath.Base(real) != names[0] {
		names = append(names, filepath.Base(real))
	}
	for _, n := range names {
		if t.binaries[n] != nil {
			return fmt.Errorf("there is another binary named %s", n)
		}
		t.binaries[n] = b
	}
	return nil
}

// Frames returns the frames at an offset into a binary's file, which is found by its base name: innermost first, with a frame for each
// inlined function. It is nil if no table has the place.
func (t *Table) Frames(file string, offset uint64) []snapshot.Frame {
	if t == nil {
		return nil
	}
	b := t.binaries[path.Base(file)]
	if b == nil {
		return nil
	}
	at := place{file, offset}
	frames, known := t.named[at]
	if !known {
		frames = b.frames(file, offset)
		t.named[at] = frames
	}
	return frames
}

func (b *binary) frames(file string, offset uint64) (out []snapshot.Frame) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	i := slices.IndexFunc(b.loads, func(p elf.ProgHeader) bool { return p.Off <= offset && offset-p.Off < p.Filesz })
	if i < 0 {
		return nil
	}
	address := offset - b.loads[i].Off + b.loads[i].Vaddr
	function := b.function(address)
	u := b.unit(address)
	if u == nil {
		if function == "" {
			return nil
		}
		return []snapshot.Frame{{Function: function, File: file, Line: -1}}
	}
	name, line := u.line(address)
	scopes := u.scopesAt(address)
	for len(scopes) > 1 { // a function within another
		inner := scopes[len(scopes)-1]
		out = append(out, snapshot.Frame{Function: inner.name, File: cmp.Or(name, file), Line: line})
		name, line = u.fileOf(inner.callFile), int(inner.callLine)
		scopes = scopes[:len(scopes)-1]
	}
	if len(scopes) > 0 {
		function = cmp.Or(function, scopes[0].name)
	}
	if function == "" && name == "" {
		return out
	}
	return append(out, snapshot.Frame{Function: cmp.Or(function, fmt.Sprintf("%s+%#x", path.Base(file), offset)), File: cmp.Or(name, file), Line: line})
}

// function is the name of the one that an address lies in; "" for none.
func (b *binary) function(address uint64) string {
	i, exact := slices.BinarySearchFunc(b.functions, address, func(s elf.Symbol, a uint64) int { return cmp.Compare(s.Value, a) })
	if !exact {
		i--
	}
	if i < 0 || b.functions[i].Size > 0 && address-b.functions[i].Value >= b.functions[i].Size {
		return ""
	}
	return demangle.Filter(b.functions[i].Name, demangle.NoParams)
}

// unit is the unit with the code at an address; nil for none.
func (b *binary) unit(address uint64) *unit {
	i, exact := slices.BinarySearchFunc(b.units, address, func(s span, a uint64) int { return cmp.Compare(s.low, a) })
	if !exact {
		i--
	}
	if i < 0 || address >= b.units[i].high {
		return nil
	}
	b.units[i].of.read(b.debug)
	return b.units[i].of
}
