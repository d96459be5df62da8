package native

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

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

// readStacks interns the file's stacks and returns their ids in the table, indexed by their numbers in the file; number 0 is NoStack.
//
// The files of a run list the same frames and stacks in the same order, and the table has most of them from the previous file. So the
// id after the last one is tried first: comparing is several times cheaper than looking up.
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
		// Rows are numbered by int32. Whether the blocks exist is checked when they are read.
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
	// Addresses come before the sizes that their differences refer to: the first pass reads differences, the second adds them up.
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

// enough checks that a column of rows values can be in the rest of the section, and may take the given memory per row; whether it is
// complete shows at the end of the section.
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
