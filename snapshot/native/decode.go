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

// Decode reads a snapshot of size bytes; name is what errors call it. Its stacks
// are interned into the given table, or into one of their own where that is nil;
// a table that was given may hold more stacks afterwards even on error.
//
// What it returns keeps to the model: indices are in range, columns are of equal
// length, and stack hashes are computed, not read. It takes at most 100 MiB + twice
// its size, or 5.5 times that, to unpack and to keep. Errors of the format are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, into *snapshot.Stacks) (*snapshot.Snapshot, error) {
	if into == nil {
		into = snapshot.NewStacks()
	}
	return NewReader(into).Decode(name, r, size)
}

// Reader reads the snapshots of a run one after the other into one table of stacks. It
// keeps the last file's list of stacks, packed: where a run holds memory from the same
// stacks at each mark, its files list them in the same bytes, which are then neither
// unpacked nor looked up again.
type Reader struct {
	// MaxMemory is what a snapshot may take, unpacked and as a model, in the place of
	// bound of Decode, where that is less.
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

func readMeta(c *cursor, s *snapshot.Snapshot) {
	s.Mark = snapshot.Mark{
		Step: c.varint(), Epoch: c.varint(), Phase: c.string(),
		BatchElements: c.varint(), SequenceLength: c.varint(), Time: c.time(0),
	}
	s.Rank = c.int()
	s.Producer = c.string()
}

func readDevices(c *cursor) []snapshot.Device {
	n := c.count("devices", 9, deviceMemory)
	if n == 0 {
		return nil
	}
	devices := make([]snapshot.Device, n)
	for i := range devices {
		devices[i] = snapshot.Device{
			Kind: snapshot.DeviceKind(c.string()), Index: c.int(), Name: c.string(),
			Limit: c.bytesValue(), Meters: readMeters(c, snapshot.Meters{}),
		}
	}
	return devices
}

func readMeters(c *cursor, base snapshot.Meters) snapshot.Meters {
	return snapshot.Meters{
		Requested: base.Requested + c.bytesValue(),
		Allocated: base.Allocated + c.bytesValue(),
		Active:    base.Active + c.bytesValue(),
		Reserved:  base.Reserved + c.bytesValue(),
		Driver:    base.Driver + c.bytesValue(),
	}
}

// readStacks interns the file's stacks and returns their ids in the table by
// their numbers in the file; number 0 is NoStack.
//
// The files of a run list the same frames and stacks in one order, most of which the
// table has from the file before. So the id after the last one is tried first, and
// to compare is several times cheaper than to look up.
func readStacks(c *cursor, table *snapshot.Stacks) []snapshot.StackID {
	texts := make([]string, c.count("strings", 1, textMemory))
	for i := range texts {
		texts[i] = c.string()
	}
	frames := make([]snapshot.FrameID, c.count("frames", 3, frameMemory))
	next := snapshot.FrameID(0)
	for i := range frames {
		f := snapshot.Frame{}
		f.Function = at(texts, c.index("string", len(texts)))
		f.File = at(texts, c.index("string", len(texts)))
		f.Line = c.line()
		if c.err != nil {
			return nil
		}
		if int(next) >= table.NumFrames() || table.FrameAt(next) != f {
			next = table.Frame(f)
		}
		frames[i] = next
		next++
	}
	n := c.count("stacks", 2, stackMemory)
	stacks := make([]snapshot.StackID, 1, n+1)
	var ids []snapshot.FrameID
	following := snapshot.StackID(1)
	for range n {
		depth := c.count("frames of a stack", 1, 4)
		if depth == 0 {
			c.fail("a stack without frames")
		}
		ids = ids[:0]
		for range depth {
			ids = append(ids, at(frames, c.index("frame", len(frames))))
		}
		if c.err != nil {
			return nil
		}
		if int(following) >= table.Len() || !slices.Equal(table.FrameIDs(following), ids) {
			following = table.Intern(ids)
		}
		stacks = append(stacks, following)
		following++
	}
	return stacks
}

// at is list[i]; after a fault i is 0, and the list may be empty.
func at[T any](list []T, i int) (v T) {
	if i < len(list) {
		return list[i]
	}
	return v
}

func (d *decoder) readSegments(c *cursor, devices int) []snapshot.Segment {
	n := c.count("segments", 9, segmentMemory)
	if n == 0 {
		return nil
	}
	segments := make([]snapshot.Segment, n)
	row := uint64(0)
	for i := range segments {
		seg := &segments[i]
		seg.Device = c.index("device", devices)
		seg.Address = c.uvarint()
		seg.Size = c.bytesValue()
		seg.Stream = c.uvarint()
		pool := c.byte()
		if pool > byte(snapshot.SmallPool) {
			c.fail("pool %d", pool)
		}
		seg.Pool = snapshot.Pool(pool)
		seg.Private = c.string()
		seg.Expandable = c.bool()
		seg.Stack = at(d.stacks, c.index("stack", len(d.stacks)))
		blocks := c.uvarint()
		// Rows are numbered by int32. Whether there are so many, the blocks tell.
		if blocks > maxRows-row {
			c.fail("%d blocks in a segment", blocks)
		}
		if c.err != nil {
			return nil
		}
		seg.FirstBlock, seg.NumBlocks = int(row), int(blocks)
		row += blocks
	}
	return segments
}

const maxRows = 1<<31 - 1

func (d *decoder) readBlocks(c *cursor, s *snapshot.Snapshot) {
	const leastBytes = 5 // a byte each of address, size, state, requested, stack
	n := c.count("blocks", leastBytes, blockMemory)
	inSegments := 0
	for i := range s.Segments {
		inSegments += s.Segments[i].NumBlocks
	}
	if inSegments != n {
		c.fail("%d blocks, where the segments have %d", n, inSegments)
	}
	if c.err != nil {
		return
	}
	b := snapshot.Blocks{
		Segment:   make([]int32, 0, n),
		Address:   make([]uint64, n),
		Size:      make([]snapshot.Bytes, n),
		Requested: make([]snapshot.Bytes, n),
		State:     make([]snapshot.State, n),
		Stack:     make([]snapshot.StackID, n),
	}
	for i := range s.Segments {
		for range s.Segments[i].NumBlocks {
			b.Segment = append(b.Segment, int32(i))
		}
	}
	// Addresses stand before the sizes that they are written against; the first
	// pass leaves the differences, the second adds up.
	for i := range b.Address {
		b.Address[i] = uint64(c.varint())
	}
	var end uint64
	for i := range b.Size {
		b.Size[i] = c.bytesValue()
		b.Address[i] += end
		end = b.Address[i] + uint64(b.Size[i])
	}
	for i := range b.State {
		state := c.byte()
		if state > byte(snapshot.Pending) {
			c.fail("state %d", state)
		}
		b.State[i] = snapshot.State(state)
	}
	for i := range b.Requested {
		b.Requested[i] = likelyRequest(b.State[i], b.Size[i]) - c.bytesValue()
	}
	for i := range b.Stack {
		b.Stack[i] = at(d.stacks, c.index("stack", len(d.stacks)))
	}
	s.Blocks = b
}

// enough says whether a column of so many rows can be in what is left, and may take so
// much memory a row; the end of the section tells whether it is.
func enough(c *cursor, rows, memory int) bool {
	if c.left() < rows {
		c.fail("%d bytes for %d blocks", c.left(), rows)
	}
	if c.err == nil {
		c.charge(rows * memory)
	}
	return c.err == nil
}

func readDeltas(c *cursor, rows int) []int64 {
	if !enough(c, rows, 8) {
		return nil
	}
	column := make([]int64, rows)
	var before int64
	for i := range column {
		before += c.varint()
		column[i] = before
	}
	return column
}

func readOwners(c *cursor, rows int) []snapshot.Owners {
	if !enough(c, rows, 1) {
		return nil
	}
	column := make([]snapshot.Owners, rows)
	for i := range column {
		column[i] = snapshot.Owners(c.byte())
	}
	return column
}

func readCategories(c *cursor, rows int) []snapshot.Category {
	if !enough(c, rows, 1) {
		return nil
	}
	column := make([]snapshot.Category, rows)
	for i := range column {
		if column[i] = snapshot.Category(c.byte()); int(column[i]) >= snapshot.Categories {
			c.fail("category %d of %d", column[i], snapshot.Categories)
			return nil
		}
	}
	return column
}

func (d *decoder) readHolders(c *cursor) []snapshot.Holder {
	n := c.count("holders", 4, holderMemory)
	if n == 0 {
		return nil
	}
	holders := make([]snapshot.Holder, n)
	for i := range holders {
		holders[i] = snapshot.Holder{
			Stack: at(d.stacks, c.index("stack", len(d.stacks))),
			Path:  c.string(), Kind: c.string(), Items: c.int(),
		}
	}
	return holders
}

func readNotes(c *cursor) []string {
	n := c.count("notes", 1, noteMemory)
	if n == 0 {
		return nil
	}
	notes := make([]string, n)
	for i := range notes {
		notes[i] = c.string()
	}
	return notes
}
