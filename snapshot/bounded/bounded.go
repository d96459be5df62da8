// Package bounded reads files that may be compressed, and may be hostile: what
// they unpack to, the length of their lines, and the memory and the work that
// they ask for have bounds.
package bounded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// HeadLen is how many bytes of a file's beginning Head needs: the first block of zstd
// has up to 128 KiB, and gives nothing until it is whole.
const HeadLen = 132 << 10

// headLen is how many bytes are needed to detect a format.
const headLen = 4096

// maxUnpacked is how many bytes a file of size bytes may unpack to, unless a caller allows more. A small hostile file then ends in a
// second, a large one takes no longer than an honest one, and none takes more than 200 MB above its size. Real files shrink up to
// 130-fold, but heaptrack's recording of one loop a thousandfold or more.
func maxUnpacked(size int64) int64 { return 512<<20 + 256*min(size, 1<<50) }
func maxTables(size int64) int64 {
	size = min(size, 1<<50)
	return min(40<<20+16*size, 100<<20+4*size)
}

// plainTables bounds the tables of an uncompressed file, as a multiple of its size. It is 16 for compressed files; uncompressed ones
// have names and stacks at full length.
const plainTables = 3

// maxWindow is the memory in bytes that a zstd stream may ask for; level 19 asks
// for 8 MiB.
const maxWindow = 64 << 20

// Input is one file, unpacked, read from its beginning.
type Input struct {
	name   string
	size   int64 // of the file
	r      io.Reader
	err    error  // that r ended with
	buf    []byte // what was read; from pos on it lies ahead
	pos    int
	base   int64 // of buf, unpacked
	start  int64 // of the last line or record
	tables int64 // bytes that may still be charged
	work   int64 // steps done, and bytes read, by earlier readings of the file too
	before int64
	pace   int64 // steps for each byte of a compressed file
	lifted int64 // bytes that a caller allows to unpack, or 0
	long   []byte
	torn   bool // it ends in the middle of a line
	close  func()
}

// Open begins to read a file of size bytes, and unpacks gzip and zstd. It may unpack to unpacked bytes, and its tables may take as much
// memory. With 0 it may unpack to 512 MiB + 256 times its size. Its tables may then take 40 MiB + 16 times its size, but no more than
// 100 MiB + 4 times its size; 40 MiB + 3 times its size if it is not compressed. The name is used in errors only; they are
// *snapshot.FormatError.
func Open(name string, r io.ReaderAt, size, unpacked int64) (*Input, error) {
	in := &Input{name: name, size: size, tables: maxTables(size), pace: usualPace, lifted: unpacked, close: func() {}, buf: make([]byte, 0, bufferSize(size))}
	whole := io.NewSectionReader(r, 0, size)
	head := make([]byte, min(size, 4))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, in.wrap(err)
	}
	limit := maxUnpacked(size)
	if unpacked > 0 {
		limit, in.tables = unpacked, max(unpacked, in.tables)
	}
	var inner io.Reader
	switch {
	case isGzip(head):
		z, err := gzip.NewReader(whole)
		if err != nil {
			return nil, in.wrap(err)
		}
		inner = z
	case isZstd(head):
		z, err := newZstd(whole)
		if err != nil {
			return nil, in.wrap(err)
		}
		inner, in.close = z, z.Close
	default:
		in.tables = min(in.tables, max(unpacked, 40<<20+plainTables*min(size, 1<<50)))
		in.r = whole
		in.passMark()
		return in, nil
	}
	in.r = &capped{inner, limit, limit}
	in.passMark()
	return in, nil
}

// byteOrderMark is what some editors put before a text in UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

func (in *Input) passMark() {
	if bytes.HasPrefix(in.peek(len(byteOrderMark)), []byte(byteOrderMark)) {
		in.pos += len(byteOrderMark)
	}
}

const bufferLen = 64 << 10

func bufferSize(size int64) int64 { return min(max(size, headLen), bufferLen) }

// offset is the offset of the next byte, unpacked.
func (in *Input) offset() int64 { return in.base + int64(in.pos) }

// ahead is what lies in the buffer.
func (in *Input) ahead() []byte { return in.buf[in.pos:] }

// isFull reports whether unread bytes fill the buffer.
func (in *Input) isFull() bool { return len(in.buf)-in.pos == cap(in.buf) }

// more reads more bytes after the unread ones; the buffer must have room. It returns false at the end, and err then has the reason.
func (in *Input) more() bool {
	if in.pos > 0 {
		in.base += int64(in.pos)
		in.buf = in.buf[:copy(in.buf, in.ahead())]
		in.pos = 0
	}
	const most = 100 // readings that give neither bytes nor an error
	for range most {
		if in.err != nil {
			return false
		}
		var n int
		n, in.err = in.r.Read(in.buf[len(in.buf):cap(in.buf)])
		in.buf = in.buf[:len(in.buf)+n]
		const perStep = 16 // bytes that are unpacked and looked through
		if err := in.Work(n / perStep); err != nil {
			in.err = err
			return false
		}
		if n > 0 {
			return true
		}
	}
	in.err = io.ErrNoProgress
	return false
}

// peek returns the unread bytes: at least n, if the file has as many and the buffer has room.
func (in *Input) peek(n int) []byte {
	for len(in.buf)-in.pos < n && !in.isFull() && in.more() {
	}
	return in.ahead()
}

// IsCompressed reports whether a file that begins with head is one that Open unpacks.
func IsCompressed(head []byte) bool { return isGzip(head) || isZstd(head) }

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte("\x1f\x8b")) }
func isZstd(head []byte) bool { return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) }

func newZstd(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// Head returns the first unpacked bytes of a file that begins with head, or head itself if it is not compressed.
func Head(head []byte) []byte {
	var inner io.Reader
	switch {
	case isGzip(head):
		z, err := gzip.NewReader(bytes.NewReader(head))
		if err != nil {
			return nil
		}
		inner = z
	case isZstd(head):
		z, err := newZstd(bytes.NewReader(head))
		if err != nil {
			return nil
		}
		defer z.Close()
		inner = z
	default:
		return bytes.TrimPrefix(head[:min(len(head), headLen)], []byte(byteOrderMark))
	}
	out := make([]byte, headLen)
	n, _ := io.ReadFull(inner, out) // the head is cut, so an error is usual
	return bytes.TrimPrefix(out[:n], []byte(byteOrderMark))
}

// capped ends a stream with an error when it grows beyond its limit.
type capped struct {
	r           io.Reader
	left, limit int64
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left > 0 {
		n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
		c.left -= int64(n)
		return n, err
	}
	// Only one more byte shows whether there is more than the limit.
	n, err := io.ReadFull(c.r, make([]byte, 1))
	if n == 0 {
		return 0, err
	}
	return 0, &tooLarge{c.limit}
}

type tooLarge struct{ limit int64 }

func (e *tooLarge) Error() string {
	return "it unpacks to more than " + snapshot.Bytes(e.limit).String()
}

// Close ends reading.
func (in *Input) Close() { in.close() }

// Mark makes the next byte the place that errors name.
func (in *Input) Mark() { in.start = in.offset() }

// Read makes the input an io.Reader, for decoders of their own; its errors are
// *snapshot.FormatError or io.EOF.
func (in *Input) Read(p []byte) (int, error) {
	ahead, err := in.Ahead()
	n := copy(p, ahead)
	in.pos += n
	return n, err
}

// Ahead returns what lies ahead, at least a byte, valid until the next call but of
// Skip, which passes over it. At the end of the file it is io.EOF.
func (in *Input) Ahead() ([]byte, error) {
	if in.pos < len(in.buf) {
		return in.buf[in.pos:], nil
	}
	return in.readAhead()
}

func (in *Input) readAhead() ([]byte, error) {
	if in.more() {
		return in.ahead(), nil
	}
	if errors.Is(in.err, io.EOF) {
		return nil, io.EOF
	}
	return nil, in.wrap(in.err)
}

// Uvarint reads an integer of at most 64 bits, seven a byte, lowest first. At the
// end of the file it is io.EOF.
func (in *Input) Uvarint() (uint64, error) {
	ahead := in.peek(binary.MaxVarintLen64 + 1) // of ten bytes alone binary.Uvarint wants more
	v, n := binary.Uvarint(ahead)
	switch {
	case n > 0:
		in.pos += n
		return v, nil
	case n < 0:
		return 0, in.Fail("an integer of more than 64 bits")
	case len(ahead) == 0 && errors.Is(in.err, io.EOF):
		return 0, io.EOF
	}
	return 0, in.end()
}

// Take returns the next n bytes, valid until the next call. It allocates as they
// come, so that a length that lies costs no memory.
func (in *Input) Take(n int) ([]byte, error) {
	if n <= cap(in.buf) {
		ahead := in.peek(n)
		if len(ahead) < n {
			in.pos = len(in.buf)
			return nil, in.end()
		}
		in.pos += n
		return ahead[:n], nil
	}
	in.long = in.long[:0]
	for len(in.long) < n {
		ahead := in.peek(1)
		if len(ahead) == 0 {
			return nil, in.end()
		}
		ahead = ahead[:min(len(ahead), n-len(in.long))]
		in.long = append(in.long, ahead...)
		in.pos += len(ahead)
	}
	return in.long, nil
}

// Skip passes over n bytes.
func (in *Input) Skip(n uint64) error {
	if n <= uint64(len(in.buf)-in.pos) {
		in.pos += int(n)
		return nil
	}
	return in.skipFar(n)
}

func (in *Input) skipFar(n uint64) error {
	for {
		here := uint64(len(in.buf) - in.pos)
		if n <= here {
			in.pos += int(n)
			return nil
		}
		n -= here
		in.pos = len(in.buf)
		if !in.more() {
			return in.end()
		}
	}
}

// Charge counts bytes of memory that the file makes a reader keep.
func (in *Input) Charge(bytes int) error {
	in.tables -= int64(bytes)
	if in.tables < 0 {
		err := in.Fail("its tables take more memory than a file of its size may ask for")
		err.Hint = liftHint
		return err
	}
	return nil
}

// Limits on steps of some 10 ns that a file may cause: a fixed number, plus a number per unpacked byte, but at most a number per byte
// of the file.
const (
	freeSteps    = 32 << 20
	stepsPerByte = 4
	usualPace    = 16 // memray's tables and pages ask for it
)

// Pace sets how many steps a compressed file of a format may ask for, for each of its
// bytes; 16 otherwise.
func (in *Input) Pace(steps int64) { in.pace = steps }

// After counts what an earlier reading of the same file did as done by this one.
func (in *Input) After(first *Input) {
	in.work += first.work
	in.before = first.before + first.offset()
}

// MostSteps is how many steps a file may cause after read unpacked bytes. Its compressed size allows packed steps, and a caller may
// allow more, for lifted bytes.
func MostSteps(read, packed, lifted int64) int64 {
	return freeSteps + min(stepsPerByte*read, max(packed, stepsPerByte*lifted))
}

// Work counts steps that a reader does for the file.
func (in *Input) Work(steps int) error {
	in.work += int64(steps)
	if in.work <= freeSteps {
		return nil
	}
	read := in.before + in.offset()
	if in.work > MostSteps(read, in.pace*in.size, in.lifted) {
		err := in.Fail("it asks for %d steps in %d bytes, more than a file of its size may", in.work, read)
		err.Hint = liftHint
		return err
	}
	return nil
}

const liftHint = "if you trust the file, raise the limit with --max-unpacked SIZE"

// Fail makes an error at the last line, or the place of the last Mark.
func (in *Input) Fail(format string, args ...any) *snapshot.FormatError {
	return &snapshot.FormatError{File: in.name, Offset: in.start, Reason: fmt.Sprintf(format, args...)}
}

// Cut is the error for a file that ends too soon.
func (in *Input) Cut() *snapshot.FormatError {
	return &snapshot.FormatError{
		File: in.name, Offset: in.offset(), Reason: "the file ends in the middle of the snapshot",
		Hint: "the writer was stopped, or the copy is incomplete",
	}
}

// end is the error for a file that ended in the middle of something.
func (in *Input) end() error {
	if errors.Is(in.err, io.EOF) {
		return in.Cut()
	}
	return in.wrap(in.err)
}

// wrap makes an error of the system or of unpacking an error of the file.
func (in *Input) wrap(err error) error {
	if asFormat(err) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return in.Cut()
	}
	e := &snapshot.FormatError{File: in.name, Offset: in.offset(), Reason: err.Error(), Err: err}
	if _, ok := errors.AsType[*tooLarge](err); ok {
		e.Hint = liftHint
	}
	return e
}

func asFormat(err error) bool {
	_, ok := errors.AsType[*snapshot.FormatError](err)
	return ok
}
