// Package totals builds a snapshot from totals by stack, as heap profilers give them.
package totals

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/symbols"
)

// MaxDepth bounds a stack in frames; outer frames are left off, with a note. Python's own limit is 1000, so only runaway recursion is
// deeper.
const MaxDepth = 1 << 14

// Options are the choices of the readers of totals; the zero value is the usual
// one.
type Options struct {
	// Stacks is the table to intern into; nil makes a new one.
	Stacks *snapshot.Stacks
	// MaxUnpacked lifts what compressed input may unpack to, in bytes, and the
	// memory that tables may take; 0 leaves the bounds of package bounded.
	MaxUnpacked int64
	// Symbols names code at an offset into a binary's file, for profiles that have addresses alone; nil for none.
	Symbols *symbols.Table
}

// Builder collects totals by device and stack. Its memory is charged to the input that it reads from, so that a small file cannot fill
// memory.
type Builder struct {
	in      *bounded.Input
	stacks  *snapshot.Stacks
	devices []snapshot.Device
	rows    []row
	index   map[key]int
	blocks  int64 // of all rows
	cut     int   // stacks that were too deep
}

type key struct {
	device int
	stack  snapshot.StackID
}

type row struct {
	key
	count, bytes int64
}

// New makes a builder for data read from in.
func New(in *bounded.Input, opts Options) *Builder {
	stacks := opts.Stacks
	if stacks == nil {
		stacks = snapshot.NewStacks()
	}
	return &Builder{in: in, stacks: stacks, index: make(map[key]int)}
}

// Device returns the number of a device, by its kind and index; its name is the
// first that was given.
func (b *Builder) Device(kind snapshot.DeviceKind, index int, name string) (int, error) {
	for i, d := range b.devices {
		if d.Kind == kind && d.Index == index {
			return i, nil
		}
	}
	const maxDevices = 4096
	if len(b.devices) >= maxDevices {
		return 0, b.in.Fail("more than %d devices", maxDevices)
	}
	b.devices = append(b.devices, snapshot.Device{
		Kind: kind, Index: index, Name: name, Limit: snapshot.Unknown, Meters: snapshot.Meters{Driver: snapshot.Unknown},
	})
	return len(b.devices) - 1, nil
}

// Frame interns a frame.
func (b *Builder) Frame(f snapshot.Frame) (snapshot.FrameID, error) {
	n := b.stacks.NumFrames()
	id := b.stacks.Frame(f)
	if b.stacks.NumFrames() == n {
		return id, nil
	}
	const entries = 160 // of the frame and its strings, in slices and maps
	return id, b.in.Charge(entries + len(f.Function) + len(f.File))
}

// Stack interns a stack, innermost frame first; none gives NoStack.
func (b *Builder) Stack(frames []snapshot.FrameID) (snapshot.StackID, error) {
	if len(frames) > MaxDepth {
		frames = frames[:MaxDepth]
		b.cut++
	}
	if err := b.in.Work(len(frames)); err != nil {
		return 0, err
	}
	n := b.stacks.Len()
	id := b.stacks.Intern(frames)
	if b.stacks.Len() == n {
		return id, nil
	}
	const entries = 64 // of the stack, in slices and the map
	return id, b.in.Charge(entries + 4*len(frames))
}

// Depth counts the frames of a stack.
func (b *Builder) Depth(id snapshot.StackID) int { return len(b.stacks.FrameIDs(id)) }

// Add adds live blocks, which may be 0, and their bytes to what a stack holds on a
// device. Negative figures are an error: such a profile is a difference.
func (b *Builder) Add(device int, stack snapshot.StackID, count, bytes int64) error {
	if count < 0 || bytes < 0 {
		err := b.in.Fail("a stack holds %d bytes in %d blocks: this is a difference of profiles, not a profile", bytes, count)
		err.Hint = "give memdiag the two profiles that it was made from: memdiag diff OLD NEW"
		return err
	}
	if count == 0 && bytes == 0 {
		return nil
	}
	at, ok := b.index[key{device, stack}]
	if !ok {
		const entries = 160 // of the row, in its columns and the map
		if err := b.in.Charge(entries); err != nil {
			return err
		}
		at = len(b.rows)
		b.rows = append(b.rows, row{key: key{device, stack}})
		b.index[key{device, stack}] = at
	}
	r := &b.rows[at]
	// All totals together stay in range, so that no sum of some can leave it.
	m := &b.devices[device].Meters
	if count > math.MaxInt64/2-b.blocks || bytes > math.MaxInt64/2-int64(m.Allocated) {
		return b.in.Fail("the totals add up to more than 2^62")
	}
	b.blocks += count
	r.count += count
	r.bytes += bytes
	m.Allocated += snapshot.Bytes(bytes)
	return nil
}

// Ended returns the note on what was live at a program's end; end begins the note. If that is only a small part of the peak, there is
// another note: such a program frees its memory at its end.
func (b *Builder) Ended(end string, peak snapshot.Bytes) []string {
	notes := []string{fmt.Sprintf("what was live when %s; the peak was %s", end, peak)}
	live := snapshot.Bytes(0)
	for i := range b.devices {
		live += b.devices[i].Meters.Allocated
	}
	if live < peak/10 {
		notes = append(notes, "more than nine tenths of the peak were freed before the end: what the program held until then, valgrind --tool=massif --detailed-freq=1 --fullpath-after= PROGRAM tells")
	}
	return notes
}

// Snapshot returns the snapshot, ordered by device and then by first addition. Allocators' own figures are unknown, so requested,
// allocated, active and reserved are all the sum of the totals. If some stacks have a count, those without count as one block.
func (b *Builder) Snapshot(producer string, notes ...string) *snapshot.Snapshot {
	s := &snapshot.Snapshot{
		Mark: snapshot.Mark{Step: snapshot.NoStep, Epoch: snapshot.NoStep}, Rank: snapshot.NoRank,
		Producer: producer, Stacks: b.stacks, Devices: b.devices, Notes: notes,
	}
	for d := range b.devices {
		m := &b.devices[d].Meters
		m.Requested, m.Active, m.Reserved = m.Allocated, m.Allocated, m.Allocated
	}
	slices.SortStableFunc(b.rows, func(x, y row) int { return cmp.Compare(x.device, y.device) })
	blocks := &s.Blocks
	for i, r := range b.rows {
		if i == 0 || r.device != b.rows[i-1].device {
			s.Segments = append(s.Segments, snapshot.Segment{Device: r.device, Size: b.devices[r.device].Meters.Allocated, FirstBlock: i})
		}
		s.Segments[len(s.Segments)-1].NumBlocks++
		blocks.Segment = append(blocks.Segment, int32(len(s.Segments)-1))
		blocks.Address = append(blocks.Address, 0)
		blocks.Size = append(blocks.Size, snapshot.Bytes(r.bytes))
		blocks.Requested = append(blocks.Requested, snapshot.Bytes(r.bytes))
		blocks.State = append(blocks.State, snapshot.Live)
		blocks.Stack = append(blocks.Stack, r.stack)
		blocks.Count = append(blocks.Count, r.count)
	}
	if !blocks.Uncounted() {
		for i, n := range blocks.Count {
			blocks.Count[i] = max(n, 1)
		}
	}
	if b.cut > 0 {
		stacks := "stacks are"
		if b.cut == 1 {
			stacks = "stack is"
		}
		s.Notes = append(s.Notes, fmt.Sprintf("%d %s deeper than %d frames; the outermost were left off", b.cut, stacks, MaxDepth))
	}
	return s
}

// Sampled says of a snapshot that its profiler recorded about one allocation in period bytes of
// them; one in a byte is all.
func Sampled(s *snapshot.Snapshot, period int64) {
	if period <= 1 {
		return
	}
	s.SamplePeriod = snapshot.Bytes(period)
	note := fmt.Sprintf("a sampled profile, of about one allocation in %s: counts and bytes are estimates", s.SamplePeriod)
	if !slices.Contains(s.Notes, note) {
		s.Notes = append(s.Notes, note)
	}
}
