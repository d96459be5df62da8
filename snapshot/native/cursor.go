package native

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// cursor reads the content of one section or record. The first fault is kept, and later reads return zeros, so only loops need to check
// it.
type cursor struct {
	file   string
	where  string // "section \"BLKS\"", "a record"
	offset int64  // of the section's or record's content in the file
	data   []byte
	pos    int
	err    error
	room   *int64 // bytes of memory that the file may still ask for; nil without a bound
}

func (c *cursor) fail(format string, args ...any) {
	if c.err == nil {
		c.err = &snapshot.FormatError{
			File: c.file, Offset: c.offset,
			Reason: fmt.Sprintf("%s, byte %d of its content: %s", c.where, c.pos, fmt.Sprintf(format, args...)),
		}
	}
}

func (c *cursor) left() int { return len(c.data) - c.pos }

func (c *cursor) byte() byte {
	if c.err != nil {
		return 0
	}
	if c.pos == len(c.data) {
		c.fail("ends inside a value")
		return 0
	}
	c.pos++
	return c.data[c.pos-1]
}

func (c *cursor) uvarint() uint64 {
	if c.err != nil {
		return 0
	}
	// One byte is by far the most frequent.
	if c.pos < len(c.data) && c.data[c.pos] < 0x80 {
		c.pos++
		return uint64(c.data[c.pos-1])
	}
	v, n := binary.Uvarint(c.data[c.pos:])
	switch {
	case n == 0:
		c.fail("ends inside a value")
		return 0
	case n < 0:
		c.fail("a number of more than 64 bits")
		return 0
	}
	c.pos += n
	return v
}

func (c *cursor) varint() int64 {
	u := c.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (c *cursor) bytesValue() snapshot.Bytes { return snapshot.Bytes(c.varint()) }

// charge counts memory that the file makes a reader keep.
func (c *cursor) charge(bytes int) {
	if c.room == nil {
		return
	}
	if *c.room -= int64(bytes); *c.room < 0 && c.err == nil {
		c.err = &snapshot.FormatError{
			File: c.file, Offset: c.offset, Reason: c.where + " takes more memory than a file of its size may ask for",
			Hint: "if you trust the file, raise the limit with --max-unpacked SIZE",
		}
	}
}

// count reads how many elements follow. each is the least number of bytes that one takes in the file, so the rest of the file bounds
// what a caller allocates; memory is the bytes that one takes in memory.
func (c *cursor) count(what string, each, memory int) int {
	n := c.uvarint()
	if c.err == nil && n > uint64(c.left()/each) {
		c.fail("%d %s, but only %d bytes are left", n, what, c.left())
	}
	if c.err == nil {
		c.charge(int(n) * memory)
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// index reads a number below limit.
func (c *cursor) index(what string, limit int) int {
	n := c.uvarint()
	if c.err == nil && n >= uint64(limit) {
		c.fail("%s %d of %d", what, n, limit)
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

func (c *cursor) string() string {
	n := c.count("bytes of text", 1, 1)
	s := string(c.data[c.pos : c.pos+n])
	c.pos += n
	return s
}

func (c *cursor) bool() bool {
	b := c.byte()
	if b > 1 {
		c.fail("%d is neither true nor false", b)
	}
	return b == 1
}

func (c *cursor) time(base int64) time.Time {
	if !c.bool() {
		return time.Time{}
	}
	return time.UnixMicro(c.varint() + base).UTC()
}

// int reads a signed number that fits an int on this machine.
func (c *cursor) int() int {
	v := c.varint()
	if int64(int(v)) != v {
		c.fail("%d does not fit this machine's word", v)
		return 0
	}
	return int(v)
}

// line reads a line number, which is written plus one.
func (c *cursor) line() int {
	n := c.uvarint()
	if n > 1<<31 {
		c.fail("line %d", n)
		return -1
	}
	return int(n) - 1
}

// end reports the first fault, or bytes that nothing asked for.
func (c *cursor) end() error {
	if c.err == nil && c.left() > 0 {
		c.fail("%d bytes too many", c.left())
	}
	return c.err
}
