package pprofio

import (
	"encoding/binary"

	"github.com/memdiag/memdiag/snapshot/bounded"
)

// tables are what samples refer to. Texts are indices into strings, which may come after what uses them.
type tables struct {
	sampleTypes   [][2]uint64 // type and unit
	strings       bounded.List[string]
	functions     map[uint64]function
	locations     map[uint64]location
	mappings      map[uint64]mapping
	defaultType   uint64
	period        int64
	periodUnit    uint64
	timeNanos     int64
	durationNanos int64    // nonzero if it is no snapshot: a profile of processor time, or a difference
	comments      []uint64 // the first few
	named         uint64   // the last of the texts that functions and mappings name
}

type function struct{ name, systemName, file uint64 }

type location struct {
	mapping, address uint64
	lines            []line // innermost first: those before the last are inlined
}

type line struct {
	function uint64
	line     int64
}

type mapping struct{ start, offset, file uint64 }

// text is the string with an index; "" if there is none.
func (t *tables) text(i uint64) string {
	if i < uint64(t.strings.Len()) {
		return *t.strings.At(int(i))
	}
	return ""
}

// read takes one field of the profile into the tables.
func (t *tables) read(in *bounded.Input, number, wire int) error {
	switch number {
	case fieldTimeNanos, fieldDurationNanos, fieldPeriod, fieldDefaultType:
		v, err := integer(in, wire)
		switch number {
		case fieldTimeNanos:
			t.timeNanos = int64(v)
		case fieldDurationNanos:
			t.durationNanos = int64(v)
		case fieldPeriod:
			t.period = int64(v)
		default:
			t.defaultType = v
		}
		return err
	case fieldComment:
		return t.comment(in, wire)
	case fieldSampleType, fieldMapping, fieldLocation, fieldFunction, fieldString, fieldPeriodType:
	default:
		return skip(in, wire)
	}
	b, err := message(in, wire)
	if err != nil {
		return err
	}
	const entry = 128 // of a map, with its key
	switch number {
	case fieldString:
		t.strings.Append(string(b))
		return in.Charge(32 + len(b))
	case fieldFunction:
		return t.function(in, b, entry)
	case fieldLocation:
		return t.location(in, b, entry)
	case fieldMapping:
		return t.mapping(in, b, entry)
	}
	return t.valueType(in, b, number)
}

// comment reads an index of a string, or a packed list of them.
func (t *tables) comment(in *bounded.Input, wire int) error {
	const most = 64
	if wire == wireVarint {
		v, err := integer(in, wire)
		if len(t.comments) < most {
			t.comments = append(t.comments, v)
		}
		return err
	}
	b, err := message(in, wire)
	for len(b) > 0 && len(t.comments) < most {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return in.Fail("a list of comments that is cut")
		}
		t.comments, b = append(t.comments, v), b[n:]
	}
	return err
}

func (t *tables) valueType(in *bounded.Input, b []byte, number int) error {
	var v [2]uint64
	f := fields{in: in, b: b}
	for f.next() {
		if f.number == 1 || f.number == 2 {
			v[f.number-1] = f.value
		}
	}
	if number == fieldPeriodType {
		t.periodUnit = v[1]
		return f.err
	}
	const maxTypes = 256
	if len(t.sampleTypes) == maxTypes {
		return in.Fail("more than %d sample types", maxTypes)
	}
	t.sampleTypes = append(t.sampleTypes, v)
	return f.err
}

func (t *tables) function(in *bounded.Input, b []byte, cost int) error {
	var id uint64
	var v function
	f := fields{in: in, b: b}
	for f.next() {
		switch f.number {
		case 1:
			id = f.value
		case 2:
			v.name = f.value
		case 3:
			v.systemName = f.value
		case 4:
			v.file = f.value
		}
	}
	if t.functions == nil {
		t.functions = make(map[uint64]function)
	}
	t.functions[id] = v
	t.named = max(t.named, v.name, v.systemName, v.file)
	if f.err != nil {
		return f.err
	}
	return in.Charge(cost)
}

func (t *tables) location(in *bounded.Input, b []byte, cost int) error {
	var id uint64
	var v location
	f := fields{in: in, b: b}
	for f.next() {
		switch f.number {
		case 1:
			id = f.value
		case 2:
			v.mapping = f.value
		case 3:
			v.address = f.value
		case 4:
			l := line{}
			inner := fields{in: in, b: f.data}
			for inner.next() {
				switch inner.number {
				case 1:
					l.function = inner.value
				case 2:
					l.line = int64(inner.value)
				}
			}
			if inner.err != nil {
				return inner.err
			}
			v.lines = append(v.lines, l)
		}
	}
	if t.locations == nil {
		t.locations = make(map[uint64]location)
	}
	t.locations[id] = v
	if f.err != nil {
		return f.err
	}
	return in.Charge(cost + 32*len(v.lines))
}

func (t *tables) mapping(in *bounded.Input, b []byte, cost int) error {
	var id uint64
	var v mapping
	f := fields{in: in, b: b}
	for f.next() {
		switch f.number {
		case 1:
			id = f.value
		case 2:
			v.start = f.value
		case 4:
			v.offset = f.value
		case 5:
			v.file = f.value
		}
	}
	if t.mappings == nil {
		t.mappings = make(map[uint64]mapping)
	}
	t.mappings[id] = v
	t.named = max(t.named, v.file)
	if f.err != nil {
		return f.err
	}
	return in.Charge(cost)
}
