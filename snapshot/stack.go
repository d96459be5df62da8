package snapshot

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Frame is one symbolised call. Line is -1 if the producer had none.
type Frame struct {
	Function string
	File     string
	Line     int
}

// WithoutArguments is the name of a C++ function without brackets: parameters and template arguments.
func WithoutArguments(name string) string {
	var out strings.Builder
	depth := 0
	for i := range len(name) {
		switch c := name[i]; {
		case strings.HasPrefix(name[i:], "operator") && depth == 0:
			return out.String() + name[i:] // its name has brackets of its own
		case c == '<' || c == '(':
			depth++
		case (c == '>' || c == ')') && depth > 0:
			depth--
		case depth == 0:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// Hash identifies a stack by its symbolised frames, never by addresses, so that
// it is equal in every process and on every rank that runs the same code.
type Hash uint64

// StackID identifies a stack in one Stacks table. NoStack is for a block whose allocation was not recorded, for example because it is
// older than the recording.
type StackID uint32

// FrameID names a frame within one Stacks table.
type FrameID uint32

// NoStack is the empty stack; every table holds it.
const NoStack StackID = 0

// Stacks interns strings, frames and stacks. The zero value is not ready; use
// NewStacks. A table may be shared between snapshots; it is not safe for
// concurrent interning.
type Stacks struct {
	strings      []string
	stringIDs    map[string]uint32
	stringHashes []uint64
	frames       []frame
	frameIDs     map[frame]FrameID
	frameHashes  []uint64
	stacks       [][]FrameID // innermost frame first
	room         []FrameID   // what the next stacks are copied into
	hashes       []Hash
	// byHash finds a stack again; stacks of equal hash are taken as equal: with
	// 64 bits and a million stacks, a collision has odds of 3 in 10^8.
	byHash map[Hash]StackID
	text   []byte // the bytes that are hashed
}

type frame struct {
	function, file uint32
	line           int32
}

// NewStacks returns a table that holds NoStack only.
func NewStacks() *Stacks {
	return &Stacks{
		stringIDs: make(map[string]uint32),
		frameIDs:  make(map[frame]FrameID),
		stacks:    [][]FrameID{nil},
		hashes:    []Hash{0},
		byHash:    map[Hash]StackID{0: NoStack},
	}
}

// Frame interns one frame. A line outside 0 … 2^31-1 becomes -1: PyTorch writes
// 2^64-1 for "unknown".
func (s *Stacks) Frame(f Frame) FrameID {
	line := int32(-1)
	if f.Line >= 0 && f.Line <= 1<<31-1 {
		line = int32(f.Line)
	}
	key := frame{s.str(f.Function), s.str(f.File), line}
	id, ok := s.frameIDs[key]
	if !ok {
		id = FrameID(len(s.frames))
		s.frames = append(s.frames, key)
		s.frameIDs[key] = id
		s.text = binary.LittleEndian.AppendUint64(s.text[:0], s.stringHashes[key.function])
		s.text = binary.LittleEndian.AppendUint64(s.text, s.stringHashes[key.file])
		s.text = binary.LittleEndian.AppendUint32(s.text, uint32(line))
		s.frameHashes = append(s.frameHashes, xxhash.Sum64(s.text))
	}
	return id
}

func (s *Stacks) str(v string) uint32 {
	id, ok := s.stringIDs[v]
	if !ok {
		id = uint32(len(s.strings))
		s.strings = append(s.strings, v)
		s.stringIDs[v] = id
		s.stringHashes = append(s.stringHashes, xxhash.Sum64String(v))
	}
	return id
}

// Intern returns the id of the stack with these frames, innermost first; no
// frames give NoStack. The slice is copied if it is new.
func (s *Stacks) Intern(frames []FrameID) StackID {
	if len(frames) == 0 {
		return NoStack
	}
	h := s.hash(frames)
	if id, ok := s.byHash[h]; ok {
		return id
	}
	id := StackID(len(s.stacks))
	s.stacks = append(s.stacks, s.keep(frames))
	s.hashes = append(s.hashes, h)
	s.byHash[h] = id
	return id
}

// keep copies a stack. Memory is allocated in pieces, each twice as large as the one before up to a bound. Growing one piece would copy
// everything repeatedly.
func (s *Stacks) keep(frames []FrameID) []FrameID {
	const least, most = 256, 16 << 10
	if len(frames) > cap(s.room)-len(s.room) {
		s.room = make([]FrameID, 0, max(len(frames), min(max(2*cap(s.room), least), most)))
	}
	at := len(s.room)
	s.room = append(s.room, frames...)
	return s.room[at:len(s.room):len(s.room)]
}

// InternFrames is Frame and Intern in one.
func (s *Stacks) InternFrames(frames []Frame) StackID {
	ids := make([]FrameID, len(frames))
	for i, f := range frames {
		ids[i] = s.Frame(f)
	}
	return s.Intern(ids)
}

// hash is xxHash64 over the hashes of the frames, and a frame's over those of its function
// and its file, and its line (64, 64 and 32 bits, little endian): what a stack takes does
// not depend on how long its names are.
func (s *Stacks) hash(frames []FrameID) Hash {
	s.text = s.text[:0]
	for _, id := range frames {
		s.text = binary.LittleEndian.AppendUint64(s.text, s.frameHashes[id])
	}
	return max(Hash(xxhash.Sum64(s.text)), 1) // 0 is NoStack
}

// Len counts the stacks, NoStack included; ids run from 0 to Len-1.
func (s *Stacks) Len() int { return len(s.stacks) }

// Hash returns the stack's hash; 0 for NoStack.
func (s *Stacks) Hash(id StackID) Hash { return s.hashes[id] }

// Find returns the stack with this hash.
func (s *Stacks) Find(h Hash) (StackID, bool) {
	id, ok := s.byHash[h]
	return id, ok
}

// FrameIDs returns the stack's frames, innermost first. The slice belongs to
// the table.
func (s *Stacks) FrameIDs(id StackID) []FrameID { return s.stacks[id] }

// FrameAt returns one interned frame.
func (s *Stacks) FrameAt(id FrameID) Frame {
	f := s.frames[id]
	return Frame{Function: s.strings[f.function], File: s.strings[f.file], Line: int(f.line)}
}

// Frames returns the stack's frames, innermost first, in a slice of its own.
func (s *Stacks) Frames(id StackID) []Frame {
	ids := s.FrameIDs(id)
	out := make([]Frame, len(ids))
	for i, f := range ids {
		out[i] = s.FrameAt(f)
	}
	return out
}

// RenameFiles replaces the files that FrameAt and Frames return, in every frame. Hashes stay those of the interned names, and nothing
// may be interned any more.
func (s *Stacks) RenameFiles(name func(Frame) string) {
	for i := range s.frames {
		f := s.FrameAt(FrameID(i))
		if file := name(f); file != f.File {
			s.frames[i].file = s.str(file)
		}
	}
}

// NumFrames counts the interned frames; ids run from 0 to NumFrames-1.
func (s *Stacks) NumFrames() int { return len(s.frames) }
