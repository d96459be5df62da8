package torch

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// symbols interns the strings, frames and frame lists of one file, exactly as written; noise is removed when a stack is added to the
// snapshot.
type symbols struct {
	strings   []string
	stringIDs map[string]uint32
	recent    [recents]uint32 // strings, by the place that recentPlace gives
	frames    []rawFrame      // frame 0 is none
	frameIDs  index
	lists     [][]uint32 // list 0 is empty
	listIDs   index
	room      []uint32 // what the next lists are copied into
	factors   [2]uint64
	spent     int64 // the most memory of all this, in bytes, including the garbage of growing
}

// index finds what was numbered, from 1 on, by its hash.
type index struct {
	newest table[uint32] // of a hash; 0 for none
	older  []uint32      // by number: the one before it of the same hash, 0 for none
}

func newIndex() index { return index{newTable[uint32](), []uint32{0}} }

// add numbers a new entry; newest is the table's place for its hash.
func (x *index) add(newest *uint32) uint32 {
	id := uint32(len(x.older))
	x.older = append(x.older, *newest)
	*newest = id
	return id
}

// What an entry takes at its worst, in bytes, as measured on files of nothing else.
const (
	symbolCost = 100 // a string without its bytes, a frame, a list without its frames
	pairCost   = 120
	refCost    = 16 // a frame in a list
)

// recents is how many strings are looked for before the map is asked: of a trace of
// PyTorch 2.11 every event spells out "N/A".
const recents = 256

// firstFrames is how many frames room is made for at first.
const firstFrames = 256

// listRoom is how many frames of lists are made room for at once.
const listRoom = 8 << 10

type rawFrame struct {
	name, file uint32
	line       int64
}

func newSymbols() symbols {
	s := symbols{
		stringIDs: make(map[string]uint32, 4*numKeywords),
		frames:    make([]rawFrame, 1, firstFrames),
		frameIDs:  newIndex(),
		lists:     [][]uint32{nil},
		listIDs:   newIndex(),
		factors:   [2]uint64{random(), random() | 1},
	}
	for i := range keywords {
		s.intern([]byte(keywords[i]))
	}
	return s
}

// random is 64 bits that no author of a file can know.
func random() uint64 { return maphash.Bytes(maphash.MakeSeed(), nil) }

func (s *symbols) intern(b []byte) uint32 {
	at := &s.recent[recentPlace(b)]
	if int(*at) < len(s.strings) && s.strings[*at] == string(b) {
		return *at
	}
	id, ok := s.stringIDs[string(b)]
	if !ok {
		id = uint32(len(s.strings))
		v := string(b)
		s.spent += symbolCost + int64(len(b))
		s.strings = append(s.strings, v)
		s.stringIDs[v] = id
	}
	*at = id
	return id
}

// recentPlace chooses a place among the recent strings.
func recentPlace(b []byte) uint8 {
	if len(b) == 0 {
		return 0
	}
	return uint8(len(b))*31 + b[0] + b[len(b)-1]*7
}

// mix adds to a hash: a folded multiplication by a random factor, so that no file can
// be made to collide.
func (s *symbols) mix(h, v uint64) uint64 {
	high, low := bits.Mul64(h^v, s.factors[1])
	return high ^ low
}

func (s *symbols) frame(f rawFrame) uint32 {
	h := s.mix(s.mix(s.factors[0], uint64(f.name)<<32|uint64(f.file)), uint64(f.line))
	newest := s.frameIDs.newest.put(h >> 1) // a table cannot hold 2^64-1
	for id := *newest; id != 0; id = s.frameIDs.older[id] {
		if s.frames[id] == f {
			return id
		}
	}
	s.spent += symbolCost
	s.frames = append(s.frames, f)
	return s.frameIDs.add(newest)
}

// list interns a list of frames; the slice is copied if it is new.
func (s *symbols) list(frames []uint32) uint32 {
	if len(frames) == 0 {
		return 0
	}
	h := s.factors[0]
	for _, f := range frames {
		h = s.mix(h, uint64(f))
	}
	newest := s.listIDs.newest.put(h >> 1)
	for id := *newest; id != 0; id = s.listIDs.older[id] {
		if slices.Equal(s.lists[id], frames) {
			return id
		}
	}
	s.spent += symbolCost + refCost*int64(len(frames))
	if len(frames) > cap(s.room)-len(s.room) {
		s.room = make([]uint32, 0, max(len(frames), listRoom))
	}
	at := len(s.room)
	s.room = append(s.room, frames...)
	s.lists = append(s.lists, s.room[at:len(s.room):len(s.room)])
	return s.listIDs.add(newest)
}

// full reports whether ids have outgrown a slot of the memo.
func (s *symbols) full() bool {
	return len(s.strings) > maxPayload || len(s.frames) > maxPayload || len(s.lists) > maxPayload
}
