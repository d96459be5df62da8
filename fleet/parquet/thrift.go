package parquet

import (
	"encoding/binary"
	"errors"
)

// Parquet's headers are structs of Thrift's compact protocol: fields by number, integers as zigzag
// varints.

// Types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// encoder appends a struct's fields, in ascending order of their numbers.
type encoder struct {
	out  []byte
	last []int16 // number of the last field of each open struct
}

func (e *encoder) open()  { e.last = append(e.last, 0) }
func (e *encoder) close() { e.out, e.last = append(e.out, 0), e.last[:len(e.last)-1] }

func (e *encoder) field(id int16, kind byte) {
	at := len(e.last) - 1
	e.out = append(e.out, byte(id-e.last[at])<<4|kind)
	e.last[at] = id
}

func (e *encoder) varint(v int64) {
	e.out = binary.AppendUvarint(e.out, uint64(v)<<1^uint64(v>>63))
}

func (e *encoder) i32(id int16, v int64) { e.field(id, thriftI32); e.varint(v) }
func (e *encoder) i64(id int16, v int64) { e.field(id, thriftI64); e.varint(v) }

func (e *encoder) text(id int16, v string) { e.field(id, thriftBinary); e.bare(v) }

func (e *encoder) bare(v string) {
	e.out = append(binary.AppendUvarint(e.out, uint64(len(v))), v...)
}

// list begins a list of n elements, which the caller appends.
func (e *encoder) list(id int16, kind byte, n int) {
	e.field(id, thriftList)
	if n < 15 {
		e.out = append(e.out, byte(n)<<4|kind)
		return
	}
	e.out = binary.AppendUvarint(append(e.out, 0xf0|kind), uint64(n))
}

// decoder reads structs, within bounds: nothing is believed that the rest of the bytes cannot hold.
type decoder struct {
	in  []byte
	at  int
	err error
}

var errThrift = errors.New("a header that cannot be decoded")

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errThrift
	}
	d.at = len(d.in)
}

func (d *decoder) byte() byte {
	if d.at >= len(d.in) {
		d.fail()
		return 0
	}
	d.at++
	return d.in[d.at-1]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.in[d.at:])
	if n <= 0 {
		d.fail()
		return 0
	}
	d.at += n
	return v
}

func (d *decoder) int() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *decoder) text() string {
	n := d.uvarint()
	if n > uint64(len(d.in)-d.at) {
		d.fail()
		return ""
	}
	d.at += int(n)
	return string(d.in[d.at-int(n) : d.at])
}

// list reads a list's head. Each element takes a byte at least.
func (d *decoder) list() (kind byte, n int) {
	head := d.byte()
	size := uint64(head >> 4)
	if size == 15 {
		size = d.uvarint()
	}
	if size > uint64(len(d.in)-d.at) {
		d.fail()
		return 0, 0
	}
	return head & 15, int(size)
}

// each calls read for each field of a struct; read skips what it does not know.
func (d *decoder) each(read func(id int16, kind byte)) {
	last := int16(0)
	for d.err == nil {
		head := d.byte()
		if head == 0 {
			return
		}
		if head>>4 == 0 {
			last = int16(d.int())
		} else {
			last += int16(head >> 4)
		}
		read(last, head&15)
	}
}

// deepest is how deep skipped values may be nested.
const deepest = 16

func (d *decoder) skip(kind byte) { d.skipAt(kind, 0) }

func (d *decoder) skipAt(kind byte, depth int) {
	if depth > deepest {
		d.fail()
	}
	switch kind {
	case thriftTrue, thriftFalse:
	case 3:
		d.byte()
	case 4, thriftI32, thriftI64:
		d.uvarint()
	case thriftDouble:
		if len(d.in)-d.at < 8 {
			d.fail()
			return
		}
		d.at += 8
	case thriftBinary:
		d.text()
	case thriftList, thriftSet:
		of, n := d.list()
		for range n {
			if of == thriftTrue || of == thriftFalse {
				d.byte()
			} else {
				d.skipAt(of, depth+1)
			}
			if d.err != nil {
				return
			}
		}
	case thriftStruct:
		d.each(func(_ int16, kind byte) { d.skipAt(kind, depth+1) })
	default: // maps, which no header of Parquet has
		d.fail()
	}
}
