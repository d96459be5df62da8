package pprofio

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/memdiag/memdiag/snapshot/bounded"
)

// Fields of the message Profile that are read; profile.proto of github.com/google/pprof
// describes them.
const (
	fieldSampleType    = 1
	fieldSample        = 2
	fieldMapping       = 3
	fieldLocation      = 4
	fieldFunction      = 5
	fieldString        = 6
	fieldTimeNanos     = 9
	fieldDurationNanos = 10
	fieldPeriodType    = 11
	fieldPeriod        = 12
	fieldComment       = 13
	fieldDefaultType   = 14
	lastField          = 15
)

// Wire types of protocol buffers.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// maxMessage bounds one message in bytes: a stack of a million frames, a name of
// a million characters.
const maxMessage = 1 << 22

// Detect reports whether a file that unpacks to something that begins with head
// may be a pprof profile. The format has no signature: head must be whole fields
// of a profile, a sample type among them.
func Detect(head []byte) bool {
	typed := false
	for len(head) > 0 {
		number, wire, rest, ok := tag(head)
		if !ok || number < 1 || number > lastField {
			return typed && len(head) < binary.MaxVarintLen64 && !ok
		}
		head = rest
		v, n := binary.Uvarint(head)
		if n <= 0 {
			return typed && len(head) < binary.MaxVarintLen64
		}
		head = head[n:]
		isMessage := number <= fieldString || number == fieldPeriodType
		// Comments are a list of integers, packed or not.
		if number != fieldComment && isMessage != (wire == wireBytes) || wire != wireBytes && wire != wireVarint {
			return false
		}
		if wire != wireBytes {
			continue
		}
		if v > uint64(len(head)) {
			return typed // the head is cut here
		}
		if number == fieldSampleType {
			if !isValueType(head[:v]) {
				return false
			}
			typed = true
		}
		head = head[v:]
	}
	return typed
}

func isValueType(b []byte) bool {
	for len(b) > 0 {
		number, wire, rest, ok := tag(b)
		if !ok || number < 1 || number > 2 || wire != wireVarint {
			return false
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return false
		}
		b = rest[n:]
	}
	return true
}

func tag(b []byte) (number, wire int, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || v>>3 > 1<<29 {
		return 0, 0, b, false
	}
	return int(v >> 3), int(v & 7), b[n:], true
}

// topLevel calls each for every field of the profile, which must consume it.
func topLevel(in *bounded.Input, each func(in *bounded.Input, number, wire int) error) error {
	for {
		in.Mark()
		v, err := in.Uvarint()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		const steps = 4 // for a field
		if err := in.Work(steps); err != nil {
			return err
		}
		if v>>3 == 0 || v>>3 >= 1<<29 {
			return in.Fail("%#x is no field of a pprof profile", v)
		}
		if err := each(in, int(v>>3), int(v&7)); err != nil {
			return err
		}
	}
}

// skip passes over a field.
func skip(in *bounded.Input, wire int) error {
	switch wire {
	case wireVarint:
		_, err := integer(in, wire)
		return err
	case wireFixed8:
		return in.Skip(8)
	case wireFixed4:
		return in.Skip(4)
	case wireBytes:
		n, err := in.Uvarint()
		if err != nil {
			return whole(in, err)
		}
		return in.Skip(n)
	}
	return in.Fail("a field of wire type %d", wire)
}

func integer(in *bounded.Input, wire int) (uint64, error) {
	if wire != wireVarint {
		return 0, in.Fail("a field of wire type %d where an integer should be", wire)
	}
	v, err := in.Uvarint()
	return v, whole(in, err)
}

// message returns a field's bytes, valid until the next read.
func message(in *bounded.Input, wire int) ([]byte, error) {
	if wire != wireBytes {
		return nil, in.Fail("a field of wire type %d where a message should be", wire)
	}
	n, err := in.Uvarint()
	if err != nil {
		return nil, whole(in, err)
	}
	if n > maxMessage {
		return nil, in.Fail("a message of %d bytes; the limit is %d", n, maxMessage)
	}
	return in.Take(int(n))
}

// whole makes the end of the file, inside a field, an error of the format.
func whole(in *bounded.Input, err error) error {
	if errors.Is(err, io.EOF) {
		return in.Cut()
	}
	return err
}

// fields walks the fields of a message that is in memory.
type fields struct {
	in     *bounded.Input
	b      []byte
	number int
	wire   int
	value  uint64 // of an integer
	data   []byte // of bytes
	err    error
}

func (f *fields) next() bool {
	if len(f.b) == 0 || f.err != nil {
		return false
	}
	var ok bool
	f.number, f.wire, f.b, ok = tag(f.b)
	f.value, f.data = 0, nil
	if !ok {
		return f.fail()
	}
	switch f.wire {
	case wireVarint, wireBytes:
		v, n := binary.Uvarint(f.b)
		if n <= 0 {
			return f.fail()
		}
		f.b = f.b[n:]
		if f.wire == wireVarint {
			f.value = v
			return true
		}
		if v > uint64(len(f.b)) {
			return f.fail()
		}
		f.data, f.b = f.b[:v], f.b[v:]
	case wireFixed8, wireFixed4:
		n := 8
		if f.wire == wireFixed4 {
			n = 4
		}
		if n > len(f.b) {
			return f.fail()
		}
		f.b = f.b[n:]
	default:
		return f.fail()
	}
	return true
}

func (f *fields) fail() bool {
	f.err = f.in.Fail("a message of the profile is damaged")
	return false
}

// integers appends the integers of a repeated field, packed or not.
func (f *fields) integers(into []uint64) ([]uint64, error) {
	if f.wire == wireVarint {
		return append(into, f.value), nil
	}
	for b := f.data; len(b) > 0; {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			f.fail()
			return into, f.err
		}
		into, b = append(into, v), b[n:]
	}
	return into, nil
}
