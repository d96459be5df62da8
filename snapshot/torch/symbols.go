package torch

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// symbols interns the strings, frames and frame lists of one file, exactly as
// written; noise is dropped when a stack goes into the snapshot.
type symbols struct {
	strings   []string
	stringIDs map[string]uint32
	frames    []rawFrame
	frameIDs  map[rawFrame]uint32
	lists     [][]uint32    // list 0 is empty
	room      []uint32      // what the next lists are copied into
	byHash    table[uint32] // the newest list whose frames hash so
	older     []uint32      // by list: the one before it of the same hash, 0 for none
	factors   [2]uint64
	spent     int64 // bytes that all this takes at most, with what growing leaves behind
}

// What an entry takes at its worst, in bytes, as measured on files of nothing else.
const (
	symbolCost = 100 // a string without its bytes, a frame, a list without its frames
	pairCost   = 120
	refCost    = 16 // a frame in a list
)

// listRoom is how many frames of lists are made room for at once.
const listRoom = 8 << 10

type rawFrame struct {
	name, file uint32
	line       int64
}

func newSymbols() symbols {
	s := symbols{
		stringIDs: make(map[string]uint32, 4*numKeywords),
		frameIDs:  make(map[rawFrame]uint32, 4*numKeywords),
		lists:     [][]uint32{nil},
		byHash:    newTable[uint32](),
		older:     []uint32{0},
		factors:   [2]uint64{random(), random() | 1},
	}
	for i := range keywords {
		s.intern([]byte(keywords[i]))
	}
	return s
}

// random is 64 bits that nobody who writes files can know.
func random() uint64 { return maphash.Bytes(maphash.MakeSeed(), nil) }

func (s *symbols) intern(b []byte) uint32 {
	id, ok := s.stringIDs[string(b)]
	if !ok {
		id = uint32(len(s.strings))
		v := string(b)
		s.spent += symbolCost + int64(len(b))
		s.strings = append(s.strings, v)
		s.stringIDs[v] = id
	}
	return id
}

func (s *symbols) frame(f rawFrame) uint32 {
	id, ok := s.frameIDs[f]
	if !ok {
		id = uint32(len(s.frames))
		s.spent += symbolCost
		s.frames = append(s.frames, f)
		s.frameIDs[f] = id
	}
	return id
}

// list interns a list of frames; the slice is copied if it is new.
func (s *symbols) list(frames []uint32) uint32 {
	if len(frames) == 0 {
		return 0
	}
	// A folded multiplication a frame, with random factors, so that no file can
	// be made to collide.
	h := s.factors[0]
	for _, f := range frames {
		high, low := bits.Mul64(h^uint64(f), s.factors[1])
		h = high ^ low
	}
	newest := s.byHash.put(h >> 1) // a table cannot hold 2^64-1
	for id := *newest; id != 0; id = s.older[id] {
		if slices.Equal(s.lists[id], frames) {
			return id
		}
	}
	id := uint32(len(s.lists))
	s.spent += symbolCost + refCost*int64(len(frames))
	if len(frames) > cap(s.room)-len(s.room) {
		s.room = make([]uint32, 0, max(len(frames), listRoom))
	}
	at := len(s.room)
	s.room = append(s.room, frames...)
	s.lists = append(s.lists, s.room[at:len(s.room):len(s.room)])
	s.older = append(s.older, *newest)
	*newest = id
	return id
}

// full reports whether ids have outgrown a slot of the memo.
func (s *symbols) full() bool {
	return len(s.strings) > maxPayload || len(s.frames) > maxPayload || len(s.lists) > maxPayload
}
