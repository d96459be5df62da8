package agent

import (
	"bytes"
	"io"
	"slices"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// After PyTorch's snapshot of its GPUs, a file may continue with the agent's snapshot of the rest of the process. It then ends in a
// footer of FooterLen bytes: a word and the length of that text.
const (
	FooterLen = 32
	footer    = "\nmemdiag agent "
)

// Behind is the agent's part of such a file; nil for none.
func Behind(r io.ReaderAt, size int64) *io.SectionReader {
	var end [FooterLen]byte
	if size < FooterLen {
		return nil
	}
	if _, err := r.ReadAt(end[:], size-FooterLen); err != nil && err != io.EOF || !bytes.HasPrefix(end[:], []byte(footer)) {
		return nil
	}
	n, err := strconv.ParseInt(string(end[len(footer):FooterLen-1]), 10, 64)
	if err != nil || n <= 0 || n > size-FooterLen {
		return nil
	}
	return io.NewSectionReader(r, size-FooterLen-n, n)
}

// AddTo adds to PyTorch's own snapshot of its GPUs what the agent knew at that moment: the rest of the process, as of the
// same text in a file of its own, and who holds the GPUs' blocks. Errors are those of Decode.
func AddTo(s *snapshot.Snapshot, name string, text *io.SectionReader, maxUnpacked int64) error {
	more, beside, err := decode(name, text, text.Size(), totals.Options{Stacks: s.Stacks, MaxUnpacked: maxUnpacked})
	if err != nil {
		return err
	}
	s.Mark.BatchElements, s.Mark.SequenceLength = more.Mark.BatchElements, more.Mark.SequenceLength
	s.Mark.Time, s.Mark.Phase, s.Mark.Epoch, s.Role, s.PID, s.At, s.Anew, s.Native = more.Mark.Time, more.Mark.Phase, more.Mark.Epoch, more.Role, more.PID, more.At, more.Anew, more.Native
	s.Notes, s.Holders, s.Events = append(s.Notes, more.Notes...), more.Holders, more.Events
	wanted := make(map[uint64][]*holder)
	for i := range beside.held {
		wanted[beside.held[i].Address] = append(wanted[beside.held[i].Address], &beside.held[i])
	}
	rows := s.Blocks.Len()
	categories := make([]snapshot.Category, rows)
	for row, address := range s.Blocks.Address {
		if s.Blocks.State[row] == snapshot.Live {
			if s.Moment == nil { // else another block may have been there
				categories[row] = beside.categories[address]
			}
			for _, h := range wanted[address] {
				s.Holders = append(s.Holders, h.of(s.Blocks.Stack[row]))
			}
			delete(wanted, address) // of several blocks at one address, which no allocator makes, the first
		}
	}
	for i := range s.Devices {
		if s.Devices[i].Kind == snapshot.CPU {
			s.Devices[i].Index = 1 // pinned memory; 0 is the CPU memory of tensors
		}
	}
	devices, segments := len(s.Devices), len(s.Segments)
	s.Devices = append(s.Devices, more.Devices...)
	for _, g := range more.Segments {
		g.Device, g.FirstBlock = g.Device+devices, g.FirstBlock+rows
		s.Segments = append(s.Segments, g)
	}
	b, c := &s.Blocks, &more.Blocks
	all := rows + c.Len()
	for _, segment := range c.Segment {
		b.Segment = append(b.Segment, segment+int32(segments))
	}
	b.Address, b.Size, b.Requested = append(b.Address, c.Address...), append(b.Size, c.Size...), append(b.Requested, c.Requested...)
	b.State, b.Stack = append(b.State, c.State...), append(b.Stack, c.Stack...)
	if len(beside.categories) > 0 || c.Category != nil {
		b.Category = slices.Concat(categories, c.Category, make([]snapshot.Category, c.Len()-len(c.Category)))
	}
	b.BirthStep = join(b.BirthStep, c.BirthStep, rows, all, snapshot.NoStep)
	b.BirthTime = join(b.BirthTime, nil, rows, all, 0)
	b.BirthEvent = nil // it orders the events of one device only
	b.Count = join(b.Count, c.Count, rows, all, 1)
	return nil
}

// join appends one column to another, given the rows of the first and of both; a nil column is filled with unknown.
func join(first, second []int64, rows, all int, unknown int64) []int64 {
	if first == nil && second == nil {
		return nil
	}
	if first == nil {
		first = slices.Repeat([]int64{unknown}, rows)
	}
	if second == nil {
		second = slices.Repeat([]int64{unknown}, all-rows)
	}
	return append(first, second...)
}
