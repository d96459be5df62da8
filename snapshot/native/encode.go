package native

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// Encode writes the snapshot. Times are truncated to microseconds. Only stacks in use are written, in the order of their ids.
//
// It returns an error for a snapshot that violates the model: columns of unequal length, an index out of range, or segments that do not
// cover the blocks in order. (An empty segment may have any FirstBlock.)
func Encode(w io.Writer, s *snapshot.Snapshot) error {
	if err := check(s); err != nil {
		return fmt.Errorf("snapshot of step %d: %w", s.Mark.Step, err)
	}
	packer, err := newPacker()
	if err != nil {
		return err
	}
	e := &encoder{w: w, packer: packer}
	e.write(fileHeader(snapshotMagic))
	e.encode(s)
	if e.err != nil {
		return e.err
	}
	return packer.Close()
}

// newPacker makes a compressor for one file: sharing one between files would save a millisecond, but retain its memory. Sections have a
// checksum, so it need not add its own.
func newPacker() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
}

// encoder writes sections; the first error sticks.
type encoder struct {
	w        io.Writer
	packer   *zstd.Encoder
	packed   []byte // reused
	content  []byte // reused
	sections uint64
	asIs     bool // sections are not packed
	err      error
}

func (e *encoder) write(b []byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

// section writes one section with the content that fill appends.
func (e *encoder) section(k kind, fill func(b []byte) []byte) {
	e.content = fill(e.content[:0])
	stored, how := e.content, plain
	e.packed = e.packed[:0]
	if !e.asIs {
		e.packed = e.packer.EncodeAll(e.content, e.packed)
	}
	if n := len(e.packed); 0 < n && n < len(e.content) && uint64(len(e.content)) <= unpackLimit(uint64(n)) {
		stored, how = e.packed, zstd1
	}
	head := make([]byte, 0, sectionHeaderSize)
	head = append(head, k[:]...)
	head = binary.LittleEndian.AppendUint32(head, uint32(how))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(stored)))
	head = binary.LittleEndian.AppendUint64(head, uint64(len(e.content)))
	var sum xxhash.Digest
	sum.Reset()
	_, _ = sum.Write(head)
	_, _ = sum.Write(stored)
	e.write(head)
	e.write(stored)
	e.write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
	e.sections++
}

func (e *encoder) encode(s *snapshot.Snapshot) {
	used := usedStacks(s)
	e.section(kindMeta, func(b []byte) []byte { return appendMeta(b, s) })
	if s.Mark.StepCounted {
		e.section(kindCounted, func(b []byte) []byte { return b })
	}
	e.section(kindDevices, func(b []byte) []byte { return appendDevices(b, s.Devices) })
	e.section(kindStacks, func(b []byte) []byte { return appendStacks(b, s.Stacks, used.order) })
	e.section(kindSegments, func(b []byte) []byte { return appendSegments(b, s.Segments, used) })
	e.asIs = s.Blocks.Len() > maxPackedBlocks
	e.section(kindBlocks, func(b []byte) []byte { return appendBlocks(b, &s.Blocks, used) })
	if s.Blocks.BirthStep != nil {
		e.section(kindBirthStep, func(b []byte) []byte { return appendDeltas(b, s.Blocks.BirthStep) })
	}
	if s.Blocks.BirthTime != nil {
		e.section(kindBirthTime, func(b []byte) []byte { return appendDeltas(b, s.Blocks.BirthTime) })
	}
	if s.Blocks.BirthEvent != nil {
		e.section(kindBirthEvent, func(b []byte) []byte { return appendDeltas(b, s.Blocks.BirthEvent) })
	}
	if s.Blocks.Owners != nil {
		e.section(kindOwners, func(b []byte) []byte {
			for _, o := range s.Blocks.Owners {
				b = append(b, byte(o))
			}
			return b
		})
	}
	if s.Blocks.Category != nil {
		e.section(kindCategory, func(b []byte) []byte {
			for _, c := range s.Blocks.Category {
				b = append(b, byte(c))
			}
			return b
		})
	}
	if s.Blocks.Count != nil {
		e.section(kindCounts, func(b []byte) []byte { return appendDeltas(b, s.Blocks.Count) })
	}
	e.asIs = false
	e.section(kindHolders, func(b []byte) []byte { return appendHolders(b, s.Holders, used) })
	e.section(kindHistory, func(b []byte) []byte { return appendHistory(b, &s.History) })
	if s.History.Process != "" {
		e.section(kindProcess, func(b []byte) []byte { return appendString(b, s.History.Process) })
	}
	if s.SamplePeriod != 0 {
		e.section(kindSampled, func(b []byte) []byte { return binary.AppendVarint(b, int64(s.SamplePeriod)) })
	}
	e.section(kindNotes, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(len(s.Notes)))
		for _, n := range s.Notes {
			b = appendString(b, n)
		}
		return b
	})
	e.section(kindEnd, func(b []byte) []byte { return binary.AppendUvarint(b, e.sections) })
}

func appendMeta(b []byte, s *snapshot.Snapshot) []byte {
	b = binary.AppendVarint(b, s.Mark.Step)
	b = binary.AppendVarint(b, s.Mark.Epoch)
	b = appendString(b, s.Mark.Phase)
	b = binary.AppendVarint(b, s.Mark.BatchElements)
	b = binary.AppendVarint(b, s.Mark.SequenceLength)
	b = appendTime(b, s.Mark.Time, 0)
	b = binary.AppendVarint(b, int64(s.Rank))
	return appendString(b, s.Producer)
}

// appendDevices serves the series log too.
func appendDevices(b []byte, devices []snapshot.Device) []byte {
	b = binary.AppendUvarint(b, uint64(len(devices)))
	for _, d := range devices {
		b = appendString(b, string(d.Kind))
		b = binary.AppendVarint(b, int64(d.Index))
		b = appendString(b, d.Name)
		b = binary.AppendVarint(b, int64(d.Limit))
		b = appendMeters(b, d.Meters, snapshot.Meters{})
	}
	return b
}

// appendMeters writes the differences to base.
func appendMeters(b []byte, m, base snapshot.Meters) []byte {
	b = binary.AppendVarint(b, int64(m.Requested-base.Requested))
	b = binary.AppendVarint(b, int64(m.Allocated-base.Allocated))
	b = binary.AppendVarint(b, int64(m.Active-base.Active))
	b = binary.AppendVarint(b, int64(m.Reserved-base.Reserved))
	return binary.AppendVarint(b, int64(m.Driver-base.Driver))
}

// appendStacks writes the strings, the frames and the stacks in use, each
// numbered by its place. Frames and strings come in the order of first use.
func appendStacks(b []byte, table *snapshot.Stacks, order []snapshot.StackID) []byte {
	var texts []string
	textIDs := make(map[string]uint64)
	text := func(s string) uint64 {
		id, ok := textIDs[s]
		if !ok {
			id = uint64(len(texts))
			textIDs[s] = id
			texts = append(texts, s)
		}
		return id
	}
	frameIDs := make(map[snapshot.FrameID]uint64)
	var frames, stacks []byte
	for _, id := range order {
		ids := table.FrameIDs(id)
		stacks = binary.AppendUvarint(stacks, uint64(len(ids)))
		for _, f := range ids {
			n, ok := frameIDs[f]
			if !ok {
				n = uint64(len(frameIDs))
				frameIDs[f] = n
				frame := table.FrameAt(f)
				frames = binary.AppendUvarint(frames, text(frame.Function))
				frames = binary.AppendUvarint(frames, text(frame.File))
				frames = binary.AppendUvarint(frames, uint64(frame.Line+1))
			}
			stacks = binary.AppendUvarint(stacks, n)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, t := range texts {
		b = appendString(b, t)
	}
	b = binary.AppendUvarint(b, uint64(len(frameIDs)))
	b = append(b, frames...)
	b = binary.AppendUvarint(b, uint64(len(order)))
	return append(b, stacks...)
}

func appendSegments(b []byte, segments []snapshot.Segment, used *stackUse) []byte {
	b = binary.AppendUvarint(b, uint64(len(segments)))
	for i := range segments {
		seg := &segments[i]
		b = binary.AppendUvarint(b, uint64(seg.Device))
		b = binary.AppendUvarint(b, seg.Address)
		b = binary.AppendVarint(b, int64(seg.Size))
		b = binary.AppendUvarint(b, seg.Stream)
		b = append(b, byte(seg.Pool))
		b = appendString(b, seg.Private)
		b = appendBool(b, seg.Expandable)
		b = binary.AppendUvarint(b, uint64(used.number[seg.Stack]))
		b = binary.AppendUvarint(b, uint64(seg.NumBlocks))
	}
	return b
}

// appendBlocks writes column after column. A block's address is written as the
// difference to the end of the block before it, which is 0 inside a segment;
// its requested size as what the allocator added, which is small.
func appendBlocks(b []byte, blocks *snapshot.Blocks, used *stackUse) []byte {
	b = binary.AppendUvarint(b, uint64(blocks.Len()))
	var end uint64
	for i, a := range blocks.Address {
		b = binary.AppendVarint(b, int64(a-end))
		end = a + uint64(blocks.Size[i])
	}
	for _, n := range blocks.Size {
		b = binary.AppendVarint(b, int64(n))
	}
	for _, s := range blocks.State {
		b = append(b, byte(s))
	}
	for i, n := range blocks.Requested {
		b = binary.AppendVarint(b, int64(likelyRequest(blocks.State[i], blocks.Size[i])-n))
	}
	for _, id := range blocks.Stack {
		b = binary.AppendUvarint(b, uint64(used.number[id]))
	}
	return b
}

// likelyRequest is what a block's requested size is written against.
func likelyRequest(state snapshot.State, size snapshot.Bytes) snapshot.Bytes {
	if state == snapshot.Free {
		return 0
	}
	return size
}

func appendDeltas(b []byte, column []int64) []byte {
	var before int64
	for _, v := range column {
		b = binary.AppendVarint(b, v-before)
		before = v
	}
	return b
}

func appendHolders(b []byte, holders []snapshot.Holder, used *stackUse) []byte {
	b = binary.AppendUvarint(b, uint64(len(holders)))
	for _, h := range holders {
		b = binary.AppendUvarint(b, uint64(used.number[h.Stack]))
		b = appendString(b, h.Path)
		b = appendString(b, h.Kind)
		b = binary.AppendVarint(b, int64(h.Items))
	}
	return b
}

func appendHistory(b []byte, h *snapshot.History) []byte {
	b = binary.AppendVarint(b, h.Events)
	b = appendTime(b, h.First, 0)
	b = appendTime(b, h.Last, 0)
	return binary.AppendVarint(b, h.LostFrees)
}

// stackUse numbers the stacks that a file holds: NoStack is 0 and is not
// written, order[i] is number i+1.
type stackUse struct {
	order  []snapshot.StackID
	number []uint32 // by StackID
}

func usedStacks(s *snapshot.Snapshot) *stackUse {
	u := &stackUse{number: make([]uint32, stackLen(s))}
	for i := range s.Segments {
		u.number[s.Segments[i].Stack] = 1
	}
	for _, id := range s.Blocks.Stack {
		u.number[id] = 1
	}
	for i := range s.Holders {
		u.number[s.Holders[i].Stack] = 1
	}
	u.number[snapshot.NoStack] = 0
	for id, in := range u.number {
		if in == 1 {
			u.order = append(u.order, snapshot.StackID(id))
			u.number[id] = uint32(len(u.order))
		}
	}
	return u
}

func stackLen(s *snapshot.Snapshot) int {
	if s.Stacks == nil {
		return 1
	}
	return s.Stacks.Len()
}
