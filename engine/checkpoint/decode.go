package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/engine"
	"github.com/memdiag/memdiag/snapshot"
)

// Read reads a checkpoint file, which must be a regular one; see Decode. Of a file
// that is broken, the error names the checkpoint before it.
func Read(path string) (*File, error) {
	// Before it is opened: to open a pipe waits for its other end.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s: is a folder; Latest names the newest checkpoint in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: is no regular file (%v); copy the checkpoint to one", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	file, err := Decode(path, f, info.Size())
	if fault, broken := errors.AsType[*snapshot.FormatError](err); broken && fault.Hint == "" {
		if older := before(path); older != "" {
			fault.Hint = "the checkpoint before it is " + older
		}
	}
	return file, err
}

// before returns the path of the checkpoint with fewer steps beside the one at
// path, "" where there is none.
func before(path string) string {
	dir := filepath.Dir(path)
	steps, _ := stepsIn(dir) // no hint where the folder cannot be read
	w := Writer{dir: dir}
	at := slices.IndexFunc(steps, func(step int64) bool { return w.Path(step) == filepath.Clean(path) })
	if at < 1 {
		return ""
	}
	return w.Path(steps[at-1])
}

// Decode reads a checkpoint of so many bytes; name is what errors call it. It
// holds as much memory as that, and a small header beside, and takes it once the
// header has said that there is to be as much. A file that is not whole, or not
// what it should be, is a *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64) (*File, error) {
	d := &decoder{name: name, r: r, end: int(size) - checksumSize}
	if size < headSize+checksumSize {
		return nil, d.fault(size, "ends inside the header")
	}
	if d.fill(headSize); d.err != nil {
		return nil, d.err
	}
	if string(d.data[:len(magic)]) != magic {
		fault := d.fault(0, "not a checkpoint of memdiag's engine, or of a version that this one does not know")
		fault.Hint = "checkpoints of this version begin with MDCKPT1"
		return nil, fault
	}
	f := d.header()
	if d.check(f); d.err != nil {
		return nil, d.err
	}
	for i := range f.tensors {
		s := &f.tensors[i]
		s.data = d.bytes(s.shape.Elements() * engine.ElementSize)
	}
	return f, nil
}

// decoder reads a file's contents. The first fault sticks: later reads give
// zeros.
type decoder struct {
	name string
	r    io.ReaderAt
	end  int    // of the contents, where the checksum begins
	data []byte // of the file, from its beginning, as far as it was needed
	pos  int
	err  error
}

// fill brings so many bytes of the file to memory, at least. It goes in steps that
// double, so that memory follows what was read, not what a file says.
func (d *decoder) fill(n int) {
	if d.err != nil || n <= len(d.data) {
		return
	}
	const step = 4 << 10
	d.grow(min(max(n, 2*len(d.data), step), d.end+checksumSize))
}

// grow makes data n bytes long.
func (d *decoder) grow(n int) {
	have := len(d.data)
	d.data = append(make([]byte, 0, n), d.data...)[:n]
	if got, err := d.r.ReadAt(d.data[have:], int64(have)); have+got < n {
		fault := d.fault(int64(have+got), "could not be read further")
		fault.Err = err
		d.err = fault
	}
}

// check reads the whole file, if it is as long as its header says, and compares
// the checksum.
func (d *decoder) check(f *File) {
	need := 0
	for i := range f.tensors {
		// Stopping early, the sum stays far from wrapping.
		if need += f.tensors[i].shape.Elements() * engine.ElementSize; need > d.left() {
			d.fail("%d bytes are needed, and %d are left", need, d.left())
			return
		}
	}
	if need < d.left() {
		d.pos += need
		d.fail("%d bytes too many", d.left())
	}
	if d.err != nil {
		return
	}
	d.grow(d.end + checksumSize)
	if d.err == nil && binary.LittleEndian.Uint64(d.data[d.end:]) != xxhash.Sum64(d.data[:d.end]) {
		d.err = d.fault(int64(d.end), "the checksum belongs to other contents: the file is cut short or was changed")
	}
}

func (d *decoder) fault(offset int64, format string, args ...any) *snapshot.FormatError {
	return &snapshot.FormatError{File: d.name, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = d.fault(int64(d.pos), format, args...)
	}
}

func (d *decoder) left() int { return d.end - d.pos }

// bytes takes the next n bytes, without copying them.
func (d *decoder) bytes(n int) []byte {
	if d.err == nil && n > d.left() {
		d.fail("%d bytes are needed, and %d are left", n, d.left())
	}
	if d.fill(d.pos + n); d.err != nil {
		return nil
	}
	d.pos += n
	return d.data[d.pos-n : d.pos : d.pos]
}

// number reads an unsigned number of so many bytes.
func (d *decoder) number(size int) (v uint64) {
	for i, b := range d.bytes(size) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// count reads how many of something follow, if each takes at least so many
// bytes: what is left bounds what is allocated.
func (d *decoder) count(what string, each int, v uint64) int {
	if d.err == nil && v > uint64(d.left()/each) {
		d.fail("%d %s, and only %d bytes are left", v, what, d.left())
	}
	if d.err != nil {
		return 0
	}
	return int(v)
}

func (d *decoder) string() string {
	at := d.pos
	s := d.bytes(int(d.number(2)))
	if d.err == nil && (len(s) == 0 || !utf8.Valid(s)) {
		d.pos = at
		d.fail("a name that is empty or not UTF-8")
	}
	return string(s)
}

// header reads all but the elements.
func (d *decoder) header() *File {
	f := &File{name: d.name, Counters: make(map[string]uint64), index: make(map[string]int)}
	d.pos = len(magic)
	f.Step, f.Epoch = int64(d.number(8)), int64(d.number(8))
	if f.Step < 0 || f.Epoch < 0 {
		d.fail("step %d of epoch %d: neither is below 0", f.Step, f.Epoch)
	}
	counters, tensors := d.number(4), d.number(4)
	for range d.count("counters", 2+1+8, counters) {
		name := d.string()
		if _, twice := f.Counters[name]; twice {
			d.fail("a second counter %q", name)
		}
		if f.Counters[name] = d.number(8); d.err != nil {
			return f
		}
	}
	for range d.count("tensors", 2+1+2, tensors) {
		s := d.tensor()
		if _, twice := f.index[s.name]; twice {
			d.fail("a second tensor %q", s.name)
		}
		if d.err != nil {
			return f
		}
		f.index[s.name] = len(f.tensors)
		f.tensors = append(f.tensors, s)
	}
	return f
}

// tensor reads what the header says of one.
func (d *decoder) tensor() (s stored) {
	s.name = d.string()
	kind, rank := d.number(1), d.number(1)
	if kind > uint64(engine.Int32) {
		d.fail("tensor %q has the unknown type %d", s.name, kind)
	}
	if rank > engine.MaxRank {
		d.fail("tensor %q has %d axes; at most %d are supported", s.name, rank, engine.MaxRank)
	}
	if d.err != nil {
		return s
	}
	s.dtype, s.shape.Rank = engine.DType(kind), int(rank)
	empty := false
	for axis := range s.shape.Rank {
		extent := d.number(4)
		if extent > math.MaxInt32 {
			d.fail("axis %d of tensor %q has the extent %d", axis, s.name, extent)
		}
		empty = empty || extent == 0
		s.shape.Dims[axis] = int(extent)
	}
	room := uint64(d.end) / engine.ElementSize
	if empty {
		room = engine.MaxElements // of views that stretch it again
	}
	for _, extent := range s.shape.Dims[:s.shape.Rank] {
		if d.err != nil {
			break
		}
		if room /= max(1, uint64(extent)); room == 0 {
			d.fail("tensor %q of %v has more elements than the file has room for", s.name, s.shape)
		}
	}
	return s
}
