package native

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// Decode reads a snapshot of size bytes; name is used in errors. Its stacks are interned into the given table, or into a new one if
// that is nil. A given table may hold more stacks afterwards even on error.
//
// The result follows the model: indices are in range, columns have equal length, and stack hashes are computed, not read. Decode uses
// at most 100 MiB + twice the size, or 5.5 times the size, to unpack and to keep. Format errors are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, into *snapshot.Stacks) (*snapshot.Snapshot, error) {
	if into == nil {
		into = snapshot.NewStacks()
	}
	return NewReader(into).Decode(name, r, size)
}

// Reader reads the snapshots of a run one after the other into one table of stacks. It keeps the packed list of stacks from the last
// file. If a run holds memory from the same stacks at each mark, its files have the same bytes there, which are then neither unpacked
// nor looked up again.
type Reader struct {
	// MaxMemory is how much memory a snapshot may take, unpacked and as a model, if it is less than the bound of Decode.
	MaxMemory int64

	stacks *snapshot.Stacks
	last   stackList
}

// NewReader returns a reader that interns into the given table, which others may
// intern into as well.
func NewReader(into *snapshot.Stacks) *Reader { return &Reader{stacks: into} }

// Decode is the function of that name.
func (r *Reader) Decode(name string, file io.ReaderAt, size int64) (*snapshot.Snapshot, error) {
	minor, err := readFileHeader(name, file, size, snapshotMagic, "snapshot")
	if err != nil {
		return nil, err
	}
	d := &decoder{name: name, r: file, size: size, offset: fileHeaderSize, room: max(r.MaxMemory, maxMemory(size)), last: &r.last}
	defer d.close()
	s := &snapshot.Snapshot{Stacks: r.stacks}
	var unknown []kind
	for {
		k, c, err := d.section()
		if err != nil {
			return nil, err
		}
		if k == kindEnd {
			if err := d.finish(c); err != nil {
				return nil, err
			}
			break
		}
		if !d.read(k, c, s) {
			unknown = append(unknown, k)
			continue
		}
		if err := c.end(); err != nil {
			return nil, err
		}
	}
	s.HoldRequests()
	if n := len(unknown); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d sections of format version %d.%d, the first of them %v, are not known to this memdiag and were passed over", n, majorVersion, minor, unknown[0]))
	}
	return s, nil
}

type decoder struct {
	name     string
	r        io.ReaderAt
	size     int64
	offset   int64 // of the next section
	room     int64 // bytes of memory that it may still ask for
	sections uint64
	next     int // place in known after the last known section
	unpacker *zstd.Decoder
	stacks   []snapshot.StackID // by number in the file
	last     *stackList
}

// stackList is a section that lists stacks, all of it, as it is stored, and what was
// read from it without a fault. The zero value equals no section.
type stackList struct {
	head   [sectionHeaderSize]byte
	stored []byte
	ids    []snapshot.StackID
}

// is compares every byte: that headers or checksums agree, a hostile file arranges.
func (l *stackList) is(head [sectionHeaderSize]byte, stored []byte) bool {
	return l.ids != nil && l.head == head && bytes.Equal(l.stored, stored)
}

func (d *decoder) fault(offset int64, format string, args ...any) error {
	return &snapshot.FormatError{File: d.name, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}

func (d *decoder) close() {
	if d.unpacker != nil {
		d.unpacker.Close()
	}
}

// section reads the next section and checks and unpacks it. An unknown one
// comes without its content.
func (d *decoder) section() (kind, *cursor, error) {
	start := d.offset
	left := d.size - start
	if left < sectionHeaderSize+checksumSize {
		return kind{}, nil, d.fault(start, "the file is cut short: %d bytes where a section begins", left)
	}
	var head [sectionHeaderSize]byte
	if err := readAt(d.name, d.r, head[:], start); err != nil {
		return kind{}, nil, err
	}
	k := kind(head[:4])
	how := codec(binary.LittleEndian.Uint32(head[4:]))
	stored := binary.LittleEndian.Uint64(head[8:])
	raw := binary.LittleEndian.Uint64(head[16:])
	if stored > uint64(left-sectionHeaderSize-checksumSize) {
		return k, nil, d.fault(start, "section %v says %d bytes and %d are left: the file is cut short or damaged", k, stored, left-sectionHeaderSize-checksumSize)
	}
	body := make([]byte, stored+checksumSize)
	if err := readAt(d.name, d.r, body, start+sectionHeaderSize); err != nil {
		return k, nil, err
	}
	content, sum := body[:stored], binary.LittleEndian.Uint64(body[stored:])
	var digest xxhash.Digest
	digest.Reset()
	_, _ = digest.Write(head[:])
	_, _ = digest.Write(content)
	if digest.Sum64() != sum {
		return k, nil, d.fault(start, "section %v does not match its checksum: the file is damaged", k)
	}
	d.offset += int64(len(head) + len(body))
	if d.sections++; d.sections > maxSections {
		return k, nil, d.fault(start, "more than %d sections, and a snapshot has %d", maxSections, len(known)+1)
	}
	c := &cursor{file: d.name, where: "section " + k.String(), offset: start + sectionHeaderSize, room: &d.room}
	isKnown, err := d.place(k, start)
	if err != nil || !isKnown {
		return k, c, err
	}
	if k == kindStacks {
		if d.last.is(head, content) {
			d.stacks = d.last.ids
			return k, c, nil // with nothing left to read
		}
		*d.last = stackList{head: head, stored: content} // its ids come when they are read
	}
	c.data, err = d.unpack(c, k, how, content, raw, start)
	return k, c, err
}

// place holds that known sections come once, in their order, none that a file
// must have left out; the end counts as the last of them.
func (d *decoder) place(k kind, start int64) (isKnown bool, err error) {
	at := len(known)
	if k != kindEnd {
		at = slices.IndexFunc(known, func(s section) bool { return s.kind == k })
	}
	if at < 0 {
		return false, nil
	}
	if at < d.next {
		return true, d.fault(start, "section %v comes twice or out of order", k)
	}
	for _, skipped := range known[d.next:at] {
		if skipped.required {
			return true, d.fault(start, "section %v is missing before %v", skipped.kind, k)
		}
	}
	d.next = at + 1
	return true, nil
}

func (d *decoder) unpack(c *cursor, k kind, how codec, stored []byte, raw uint64, start int64) ([]byte, error) {
	switch how {
	case plain:
		if raw != uint64(len(stored)) {
			return nil, d.fault(start, "section %v is not packed, yet %d bytes are said to be %d", k, len(stored), raw)
		}
		return stored, nil
	case zstd1:
	default:
		return nil, d.fault(start, "section %v has the unknown codec %d", k, how)
	}
	if raw > unpackLimit(uint64(len(stored))) {
		return nil, d.fault(start, "section %v asks for %d bytes from %d; the limit is %d", k, raw, len(stored), unpackLimit(uint64(len(stored))))
	}
	if c.charge(int(raw)); c.err != nil {
		return nil, c.err
	}
	if d.unpacker == nil {
		unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderMaxMemory(1<<40), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, err
		}
		d.unpacker = unpacker
	}
	// The capacity is the limit: a stream that holds more is an error.
	out, err := d.unpacker.DecodeAll(stored, make([]byte, 0, raw))
	if err != nil {
		return nil, &snapshot.FormatError{File: d.name, Offset: start, Reason: fmt.Sprintf("section %v does not unpack: %v", k, err), Err: err}
	}
	if uint64(len(out)) != raw {
		return nil, d.fault(start, "section %v unpacks to %d bytes, not %d", k, len(out), raw)
	}
	return out, nil
}

// finish checks that nothing was lost before the last section, nor follows it.
func (d *decoder) finish(c *cursor) error {
	if n := c.uvarint(); c.err == nil && n != d.sections-1 {
		c.fail("%d sections are said to come before it, and %d do", n, d.sections-1)
	}
	if err := c.end(); err != nil {
		return err
	}
	if d.offset != d.size {
		return d.fault(d.offset, "%d bytes after the end", d.size-d.offset)
	}
	return nil
}

// read reads a section's content into the snapshot, and says whether the
// section is known.
func (d *decoder) read(k kind, c *cursor, s *snapshot.Snapshot) bool {
	rows := s.Blocks.Len()
	switch k {
	case kindMeta:
		readMeta(c, s)
	case kindCounted:
		s.Mark.StepCounted = true
	case kindDevices:
		s.Devices = readDevices(c)
	case kindStacks:
		if d.stacks == nil { // not known from the file before
			d.stacks = readStacks(c, s.Stacks)
			if c.end() == nil {
				d.last.ids = d.stacks
			}
		}
	case kindSegments:
		s.Segments = d.readSegments(c, len(s.Devices))
	case kindBlocks:
		d.readBlocks(c, s)
	case kindBirthStep:
		s.Blocks.BirthStep = readDeltas(c, rows)
	case kindBirthTime:
		s.Blocks.BirthTime = readDeltas(c, rows)
	case kindBirthEvent:
		s.Blocks.BirthEvent = readDeltas(c, rows)
	case kindOwners:
		s.Blocks.Owners = readOwners(c, rows)
	case kindCategory:
		s.Blocks.Category = readCategories(c, rows)
	case kindCounts:
		s.Blocks.Count = readDeltas(c, rows)
	case kindHolders:
		s.Holders = d.readHolders(c)
	case kindHistory:
		s.History = snapshot.History{Events: c.varint(), First: c.time(0), Last: c.time(0), LostFrees: c.varint()}
	case kindProcess:
		s.History.Process = c.string()
	case kindSampled:
		s.SamplePeriod = snapshot.Bytes(c.varint())
	case kindNotes:
		s.Notes = readNotes(c)
	default:
		return false
	}
	return true
}
