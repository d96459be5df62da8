// Package pprofio reads heap profiles in pprof's profile.proto: Go's, JAX's device memory profiles, memdiag's own, and those of any
// other program that give bytes by stack.
package pprofio

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// Decode reads one profile of size bytes, gzipped or not, as totals by stack: addresses and births of blocks are unknown. Live memory
// is the sample type in bytes whose name begins with "inuse"; without one, the profile's default type, or else its only one in bytes.
// The name is used in errors only; they are *snapshot.FormatError, with offsets in the unpacked profile.
//
// The profile is read twice, so that only its tables are in memory.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	var first *bounded.Input
	read := func(each func(in *bounded.Input, number, wire int) error) (*bounded.Input, error) {
		in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		const steps = 8 // a byte of a compressed file: real ones ask for 4
		in.Pace(steps)
		if first != nil {
			in.After(first)
		}
		return in, topLevel(in, each)
	}
	var t tables
	in, err := read(t.read)
	if err != nil {
		return nil, err
	}
	if t.named > 0 && t.named >= uint64(t.strings.Len()) { // texts are what writers write last
		return nil, in.Cut()
	}
	first = in
	meaning, err := t.meaning(first)
	if err != nil {
		return nil, err
	}
	s := samples{tables: &t, meaning: meaning, said: t.remarks(), frames: make(map[uint64][]snapshot.FrameID)}
	if _, err := read(func(in *bounded.Input, number, wire int) error {
		if s.out == nil {
			s.out = totals.New(in, opts)
		}
		return s.read(in, number, wire)
	}); err != nil {
		return nil, err
	}
	out := s.out.Snapshot(cmp.Or(s.said.producer, meaning.producer), s.notes()...)
	if t.timeNanos != 0 {
		out.Mark.Time = time.Unix(0, t.timeNanos)
	}
	s.said.set(out)
	if s.text(s.periodUnit) == "bytes" {
		totals.Sampled(out, s.period)
	}
	return out, nil
}

// GoHeap is the producer of Go's heap profiles.
const GoHeap = "Go heap profile"

// meaning says which values of a sample are live memory.
type meaning struct {
	producer     string
	count, bytes int // indices into a sample's values; count is -1 if there is none
	values       int // of each sample
}

func (t *tables) meaning(in *bounded.Input) (meaning, error) {
	var types, units []string
	for _, v := range t.sampleTypes {
		types, units = append(types, t.text(v[0])), append(units, t.text(v[1]))
	}
	m := meaning{values: len(types), bytes: -1, count: -1}
	var candidates []int
	for i, unit := range units {
		if unit != "bytes" || strings.HasPrefix(types[i], "alloc_") {
			continue // all allocations ever made say nothing about live memory
		}
		candidates = append(candidates, i)
		if strings.HasPrefix(types[i], "inuse") || m.bytes < 0 && types[i] == t.text(t.defaultType) {
			m.bytes = i
		}
	}
	switch {
	case m.bytes < 0 && len(candidates) == 1:
		m.bytes = candidates[0]
	case m.bytes < 0:
		err := in.Fail("a pprof profile of %s: none tells the bytes that are live", describe(types, units))
		err.Offset = 0
		err.Hint = "take a heap profile: inuse_space of Go, save_device_memory_profile of JAX"
		return m, err
	}
	if strings.HasPrefix(types[m.bytes], "growth") {
		err := in.Fail("a profile of growth, not of what is live")
		err.Offset = 0
		err.Hint = "give memdiag the snapshots that it was made from"
		return m, err
	}
	if t.durationNanos > 0 && strings.HasPrefix(types[m.bytes], "inuse") && t.isOfGo() {
		err := in.Fail("the growth within %s of a Go program's heap (heap?seconds=), not what is live", time.Duration(t.durationNanos))
		err.Offset = 0
		err.Hint = "take /debug/pprof/heap without seconds= several times, and compare them with memdiag diff"
		return m, err
	}
	prefix, _, _ := strings.Cut(types[m.bytes], "_")
	for i, unit := range units {
		if unit == "count" && (m.count < 0 || strings.HasPrefix(types[i], prefix+"_")) && !strings.HasPrefix(types[i], "alloc_") {
			m.count = i
		}
	}
	switch {
	case slices.Equal(types, []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}) && t.isOfGo():
		m.producer = GoHeap
	case slices.Equal(types, []string{"allocations", "space"}):
		m.producer = "JAX device memory profile"
	default:
		m.producer = "pprof (" + types[m.bytes] + ")"
	}
	return m, nil
}

// isOfGo reports whether a profile is Go's. Others, such as gperftools', get the same types from pprof.
func (t *tables) isOfGo() bool {
	for _, f := range t.functions {
		if strings.HasSuffix(t.text(f.file), ".go") {
			return true
		}
	}
	return false
}

func describe(types, units []string) string {
	if len(types) == 0 {
		return "nothing"
	}
	var out []string
	for i := range types {
		out = append(out, fmt.Sprintf("%.40q in %.40q", types[i], units[i]))
		if len(out) == 8 {
			break
		}
	}
	return strings.Join(out, ", ")
}

// samples turns samples into totals.
type samples struct {
	*tables
	meaning
	said   remarks
	out    *totals.Builder
	frames map[uint64][]snapshot.FrameID // of a location, innermost first
	// Of the sample that is read.
	places, figures []uint64 // locations and values
	stack           []snapshot.FrameID
	bare            bool // a location had neither function nor mapping
}

func (s *samples) read(in *bounded.Input, number, wire int) error {
	if number != fieldSample {
		return skip(in, wire)
	}
	b, err := message(in, wire)
	if err != nil {
		return err
	}
	var device, kind string
	s.places, s.figures, s.stack = s.places[:0], s.figures[:0], s.stack[:0]
	f := fields{in: in, b: b}
	for f.next() {
		switch f.number {
		case 1:
			s.places, err = f.integers(s.places)
		case 2:
			s.figures, err = f.integers(s.figures)
		case 3:
			key, value, labelErr := s.label(in, f.data)
			switch key {
			case "device":
				device = value
			case "kind":
				kind = value
			}
			err = labelErr
		}
		if err != nil {
			return err
		}
	}
	if f.err != nil {
		return f.err
	}
	if len(s.figures) != s.values {
		return in.Fail("a sample of %d values in a profile of %d", len(s.figures), s.values)
	}
	for _, id := range s.places {
		if err := s.push(in, id); err != nil {
			return err
		}
	}
	return s.add(device, kind)
}

func (s *samples) add(device, kind string) error {
	bytes, count := int64(s.figures[s.bytes]), int64(1)
	if s.count >= 0 {
		count = int64(s.figures[s.count])
	}
	if bytes == 0 && (count == 0 || s.count < 0) {
		return nil
	}
	d, err := s.device(device, kind)
	if err != nil {
		return err
	}
	stack, err := s.out.Stack(s.stack)
	if err != nil {
		return err
	}
	if s.count < 0 {
		count = 0 // unknown
	}
	return s.out.Add(d, stack, count, bytes)
}

// device parses labels such as "cuda:0" or "TFRT_CPU_0". JAX gives no device for the programs that it compiled, which take memory, too.
func (s *samples) device(label, kind string) (int, error) {
	const maxName, maxIndex = 64, 1 << 20
	if at := strings.LastIndexAny(label, ":_"); at > 0 && at <= maxName {
		if index, err := strconv.ParseUint(label[at+1:], 10, 32); err == nil && index <= maxIndex {
			return s.out.Device(snapshot.DeviceKind(label[:at]), int(index), s.said.devices[label])
		}
	}
	switch {
	case label != "":
		return s.out.Device(snapshot.DeviceKind(label[:min(len(label), maxName)]), 0, "")
	case kind == "executable":
		return s.out.Device(snapshot.Executable, 0, "compiled programs")
	}
	return s.out.Device(snapshot.CPU, 0, "host heap")
}

func (s *samples) label(in *bounded.Input, b []byte) (key, value string, err error) {
	f := fields{in: in, b: b}
	for f.next() {
		switch f.number {
		case 1:
			key = s.text(f.value)
		case 2:
			value = s.text(f.value)
		}
	}
	return key, value, f.err
}

// push adds a location's frames to the stack.
func (s *samples) push(in *bounded.Input, id uint64) error {
	frames, ok := s.frames[id]
	if !ok {
		var err error
		if frames, err = s.resolve(in, id); err != nil {
			return err
		}
		s.frames[id] = frames
		const entry = 96 // of the map, with its key
		if err := in.Charge(entry + 4*len(frames)); err != nil {
			return err
		}
	}
	if err := in.Work(1); err != nil {
		return err
	}
	// One frame more than is kept, so that Stack knows that frames were left off.
	s.stack = append(s.stack, frames[:min(len(frames), totals.MaxDepth+1-len(s.stack))]...)
	return nil
}

func (s *samples) resolve(in *bounded.Input, id uint64) ([]snapshot.FrameID, error) {
	l, ok := s.locations[id]
	if !ok {
		return nil, in.Fail("a sample names location %d, which is not there", id)
	}
	if len(l.lines) == 0 {
		frame, err := s.out.Frame(s.unnamed(l))
		return []snapshot.FrameID{frame}, err
	}
	frames := make([]snapshot.FrameID, len(l.lines))
	for i, line := range l.lines {
		f := s.functions[line.function]
		name := s.text(f.name)
		if name == "" {
			name = s.text(f.systemName)
		}
		at := snapshot.Frame{Function: name, File: s.text(f.file), Line: lineNumber(line.line)}
		if binary := s.text(s.mappings[l.mapping].file); at.File == "" && name != "" && strings.Contains(binary, "/") {
			at.File = binary
		}
		if at.Line >= 0 && name == at.File+":"+strconv.Itoa(at.Line) {
			at.Function = "" // so memdiag names a frame without a known function
		}
		frame, err := s.out.Frame(at)
		if err != nil {
			return nil, err
		}
		frames[i] = frame
	}
	return frames, nil
}

// lineNumber is -1 for no line: pprof writes 0.
func lineNumber(n int64) int {
	if n <= 0 {
		return -1
	}
	return int(n)
}

// unnamed is the frame of an address without symbol: its place in the binary,
// which is the same in every process that runs it.
func (s *samples) unnamed(l location) snapshot.Frame {
	m, ok := s.mappings[l.mapping]
	if !ok || s.text(m.file) == "" {
		s.bare = true
		return snapshot.Frame{Function: "<no symbol>", Line: -1}
	}
	file := s.text(m.file)
	base := file[strings.LastIndexByte(file, '/')+1:]
	return snapshot.Frame{Function: fmt.Sprintf("%s+%#x", base, l.address-m.start+m.offset), File: file, Line: -1}
}

func (s *samples) notes() []string {
	if s.said.producer != "" {
		return s.said.notes
	}
	var out []string
	if s.count < 0 {
		out = append(out, "the profile counts no blocks")
	}
	if s.bare {
		out = append(out, "some frames have neither symbol nor file: they cannot be told apart")
	}
	return out
}
