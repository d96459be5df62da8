package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
)

// window is how much of a file is in memory at once. It stays in a core's
// second-level cache, and the longest string that is kept fits four times.
const window = 256 << 10

// longest is the length in bytes from which a string is skipped: no name of a function or file is that long.
const longest = 64 << 10

// input is a window that slides over a stream.
type input struct {
	name string
	r    io.Reader
	size int64 // length of the whole stream; -1 if compression hides it
	buf  []byte
	pos  int           // of the next byte, in buf
	base int64         // offset of buf[0] in the stream
	mem  []byte        // window bytes, or the whole of a smaller stream
	all  *[window]byte // what mem is of
	err  error         // what ended the stream, io.EOF if it just ended
	// steps of some 10 ns that were done for it; and how many its size as it is compressed allows
	// for, or the bytes that a caller lets it unpack to.
	steps, packed, lifted int64
}

func newInput(name string, r io.Reader, size int64) *input {
	all := windows.Get().(*[window]byte)
	mem := all[:min(uint64(size), window)] // an unknown size is a large one
	return &input{name: name, r: r, size: size, all: all, mem: mem, buf: mem[:0]}
}

// offset is the next byte's.
func (in *input) offset() int64 { return in.base + int64(in.pos) }

// have reports whether n ≤ window bytes lie ahead, reading on if need be.
func (in *input) have(n int) bool {
	return len(in.buf)-in.pos >= n || in.fill(n)
}

// ready is have, but content with less at the end of the stream.
func (in *input) ready(n int) bool {
	if len(in.buf)-in.pos < n && in.err == nil {
		in.fill(n)
	}
	return in.pos < len(in.buf)
}

func (in *input) fill(n int) bool {
	kept := copy(in.mem, in.buf[in.pos:])
	in.base += int64(in.pos)
	in.pos = 0
	for idle := 0; kept < len(in.mem) && in.err == nil; {
		var got int
		got, in.err = in.r.Read(in.mem[kept:])
		kept += got
		const perStep = 16 // bytes that are unpacked and looked through
		in.steps += int64(got / perStep)
		if in.steps > bounded.MostSteps(in.base+int64(kept), in.packed, in.lifted) && in.err == nil {
			in.err = errTooManySteps
		}
		if got > 0 {
			idle = 0
		} else if idle++; idle > 100 && in.err == nil {
			in.err = io.ErrNoProgress
		}
	}
	in.buf = in.mem[:kept]
	return kept >= n
}

// take returns the next n ≤ window bytes; they are valid until the next call.
func (in *input) take(n int) ([]byte, error) {
	if !in.have(n) {
		return nil, in.cut()
	}
	b := in.buf[in.pos : in.pos+n]
	in.pos += n
	return b, nil
}

// text returns the next n bytes, or nil and true for a string too long to keep.
func (in *input) text(n uint64) (b []byte, long bool, err error) {
	if n > longest {
		return nil, true, in.skip(n)
	}
	b, err = in.take(int(n))
	return b, false, err
}

// skip passes over n bytes.
func (in *input) skip(n uint64) error {
	if in.size >= 0 && n > uint64(in.size-in.offset()) {
		return in.lacks("a length", n)
	}
	for {
		ahead := uint64(len(in.buf) - in.pos)
		if n <= ahead {
			in.pos += int(n)
			return nil
		}
		n -= ahead
		in.pos = len(in.buf)
		if !in.fill(1) {
			return in.cut()
		}
	}
}

// line returns the bytes up to the next newline, which is passed.
func (in *input) line() ([]byte, error) {
	i := bytes.IndexByte(in.buf[in.pos:], '\n')
	if i < 0 {
		in.fill(len(in.mem))
		i = bytes.IndexByte(in.buf[in.pos:], '\n')
		if i < 0 && in.err == nil {
			return nil, in.fail("a line is longer than %d bytes", window)
		}
		if i < 0 {
			return nil, in.cut()
		}
	}
	b := in.buf[in.pos : in.pos+i]
	in.pos += i + 1
	return b, nil
}

// Messages for a file that ends too soon.
const (
	cutReason = "the file ends in the middle of the snapshot"
	cutHint   = "the writer was stopped, or the copy is incomplete"
)

const liftHint = "if you trust the file, raise the limit with --max-unpacked SIZE"

// cut is the error of a stream that ends too soon.
func (in *input) cut() error {
	err := in.fail(cutReason)
	err.Offset = in.base + int64(len(in.buf))
	if in.err != nil && !errors.Is(in.err, io.EOF) && !errors.Is(in.err, io.ErrUnexpectedEOF) {
		err.Reason, err.Err = in.err.Error(), in.err
		if errors.Is(in.err, errTooLarge) || errors.Is(in.err, errTooManySteps) {
			err.Hint = liftHint
		}
		return err
	}
	err.Hint = cutHint
	return err
}

var errTooManySteps = errors.New("it asks for more steps than a file of its size may")

// lacks is the error of a file that ends before what it says that follows.
func (in *input) lacks(what string, bytes uint64) error {
	err := in.fail("%s of %d bytes, but %d are left", what, bytes, in.size-in.offset())
	err.Hint = cutHint
	return err
}

// fail makes an error that points at the next byte.
func (in *input) fail(format string, args ...any) *snapshot.FormatError {
	return &snapshot.FormatError{File: in.name, Offset: in.offset(), Reason: fmt.Sprintf(format, args...)}
}
