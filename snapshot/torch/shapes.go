package torch

import (
	"encoding/binary"
	"slices"
)

// Dicts of one kind are written with the same instructions: their keys are the same references, and only values differ. A shape is
// these instructions, with holes for the values. A dict that fits a shape is not read key by key: the bytes between its values are
// compared, eight at a time. Memo slots never change, so equal instructions mean equal keys. Shapes with the same beginning share it,
// as branches of a tree.

const (
	// mostPieces are learned of a file; those of PyTorch have 20 to 40, as ints of each width
	// and each kind of value make a shape.
	mostPieces = 64
	// mostBranches may follow one piece; PyTorch's have at most 10. Each of them is
	// compared with a dict that fits none, however short it is.
	mostBranches = 16
	// pieceSize is the most bytes of a piece, pieceReach how much of the window it
	// and a value after it may take.
	pieceSize  = 48
	pieceReach = pieceSize + reach
	// pieceRoom is a power of two that is not smaller, so a smaller index needs no check.
	pieceRoom = 64
)

// piece is a run of instructions that are always as long, and the value after it.
type piece struct {
	words, masks [pieceSize / 8]uint64 // the bytes, and which of their bits count
	size         int
	ints         []takeInt
	gets         []takeGet
	puts         []slot // that are stored
	numbers      []takeNumber
	hole         opcode // of a value of any length that follows, 0 for none
	history      bool   // … which is a block's history
	field        field  // … where it goes
	ends         bool   // a dict may end after the hole, by SETITEMS and with nothing stored
	set          uint32 // the values that are present, of a dict that ends here
	next         branches
}

// branches are the indices of the pieces that may come next. The one that came last time is first.
type branches []uint8

// What a piece is read for, besides what it stores: at is the position of its argument.
type (
	takeInt struct {
		at, place  uint8
		mask, sign uint64 // of its bits among the eight bytes there
	}
	takeGet struct {
		at, place uint8
		wide      bool // four bytes
		tag       slot // tag of the value that it must have; 0 if any
	}
	// takeNumber is the number that the file gives to the stored value.
	takeNumber struct {
		at    uint8
		wide  bool
		ahead int // how many of puts come before
	}
)

// shapes are those that were learned, by role.
type shapes struct {
	first  [numRoles]branches
	pieces []piece
	full   bool
	// learned has room for the next pieces that are learned.
	learned []piece
}

// quickShape is quickDict for the shapes that are known.
func (m *machine) quickShape(b []byte, p int, r role, o *object) int {
	if p+pieceReach > len(b) || opcode(b[p+1]) == opEmptyDict { // it is empty, as no shape is
		return -1
	}
	q := &m.quick
	o.role, o.set = r, 0
	clear(o.values[:quickFields])
	next := q.shapes.first[r]
	for p+pieceReach <= len(b) {
		w := (*[pieceReach]byte)(b[p : p+pieceReach])
		c := q.shapes.find(next, w)
		if c == nil {
			return -1
		}
		for i := range c.ints {
			t := &c.ints[i]
			at := int(t.at & (pieceRoom - 1))
			o.values[t.place&(fieldRoom-1)] = (binary.LittleEndian.Uint64(w[at:at+8])&t.mask ^ t.sign) - t.sign
		}
		for i := range c.gets {
			t := &c.gets[i]
			s := m.memo.get(argument(w, t.at, t.wide))
			switch tag := s >> payloadBits; {
			case t.tag == 0 && kindOf[tag] != vObject:
			case t.tag != 0 && t.tag == tag:
				o.values[t.place&(fieldRoom-1)] = uint64(s & maxPayload)
			default:
				return -1
			}
		}
		for i := range c.numbers {
			t := &c.numbers[i]
			if argument(w, t.at, t.wide) != m.nextSlot()+uint64(t.ahead) {
				return -1
			}
		}
		if len(c.puts) > 0 {
			q.puts = append(q.puts, c.puts...)
		}
		p += c.size
		if c.hole != 0 {
			var v value
			switch {
			case c.history:
				p = m.quickHistory(b, p, o)
			case c.hole == opEmptyList:
				v, p = m.quickList(b, p+1)
			default:
				v, p = m.quickUsual(b, p)
			}
			if p < 0 || !c.history && !o.fits(c.field, v) {
				return -1
			}
		}
		next = c.next
		switch {
		case c.ends && p < len(b) && opcode(b[p]) == opSetItems:
			o.set |= c.set
			return p + 1
		case next != nil:
		case c.ends:
			return -1
		default:
			o.set |= c.set
			return p
		}
	}
	return -1
}

// find returns the piece that w begins with, nil if it is none of them.
func (s *shapes) find(next branches, w *[pieceReach]byte) *piece {
	for i, at := range next {
		c := &s.pieces[at]
		differ := c.differ(w, 0) | c.differ(w, 1) | c.differ(w, 2)
		if c.size > pieceSize/2 {
			differ |= c.differ(w, 3) | c.differ(w, 4) | c.differ(w, 5)
		}
		if differ == 0 {
			if i > 0 {
				next[0], next[i] = at, next[0]
			}
			return c
		}
	}
	return nil
}

// differ compares a word of the piece and returns the bits that should be equal and are not.
func (c *piece) differ(w *[pieceReach]byte, i int) uint64 {
	return (binary.LittleEndian.Uint64(w[8*i:]) ^ c.words[i]) & c.masks[i]
}

// argument is the argument of an instruction on the memo.
func argument(w *[pieceReach]byte, place uint8, wide bool) uint64 {
	at := int(place & (pieceRoom - 1))
	if wide {
		return uint64(binary.LittleEndian.Uint32(w[at : at+4]))
	}
	return uint64(w[at])
}

// fits puts a value into its field, and reports whether it is of the field's kind.
func (o *object) fits(f field, v value) bool {
	if f.want == wantNothing {
		return v.k != vObject
	}
	o.values[f.at] = v.n
	return v.k == wantedKind[f.want]
}

// learn makes a shape of the dict b[p:end], which quickDict has just read.
func (m *machine) learn(b []byte, p, end int, r role) {
	q := &m.quick
	known := &q.shapes
	if known.full || len(q.ends) == 0 {
		return
	}
	l := shapeLearner{m: m, b: b, p: p, pieces: known.learned[:0]}
	defer func() { known.learned = l.pieces }()
	l.literal(1)
	l.stores(goneSlot)
	l.literal(1)
	for _, valueEnd := range q.ends {
		id := l.key()
		var f field
		if id < numKeywords {
			f = fieldOf[r][id]
		}
		if l.value(valueEnd, f); l.p != valueEnd {
			return
		}
	}
	behindHole := l.pieces[len(l.pieces)-1].hole != 0 && l.p+1 == end
	if behindHole {
		l.p++
	} else {
		l.literal(1)
		l.stores(goneSlot)
	}
	known.full = len(known.pieces)+len(l.pieces) > mostPieces
	if l.p != end || known.full {
		return
	}
	next := &known.first[r]
	for i := range l.pieces {
		c := &l.pieces[i]
		at := slices.IndexFunc(*next, func(at uint8) bool { return known.pieces[at].equal(c) })
		if at < 0 {
			if known.full = len(*next) == mostBranches; known.full {
				return
			}
			at = len(*next)
			*next = append(*next, uint8(len(known.pieces)))
			known.pieces = append(known.pieces, *c)
		}
		c = &known.pieces[(*next)[at]]
		if i == len(l.pieces)-1 {
			c.set, c.ends = l.set, behindHole
		}
		next = &c.next
	}
}

func (c *piece) equal(other *piece) bool {
	return c.words == other.words && c.masks == other.masks && c.size == other.size && slices.Equal(c.ints, other.ints) &&
		slices.Equal(c.gets, other.gets) && slices.Equal(c.puts, other.puts) && slices.Equal(c.numbers, other.numbers) && c.hole == other.hole && c.history == other.history && c.field == other.field
}

// shapeLearner walks a dict that is well formed.
type shapeLearner struct {
	m      *machine
	b      []byte
	p      int
	set    uint32
	pieces []piece
}

// room returns the piece that takes the next n bytes.
func (l *shapeLearner) room(n int) *piece {
	last := len(l.pieces) - 1
	if last < 0 || l.pieces[last].hole != 0 || l.pieces[last].size+n > pieceSize {
		l.pieces = append(l.pieces, piece{})
		last++
	}
	return &l.pieces[last]
}

// literal adds the next n bytes, which all dicts of the shape have.
func (l *shapeLearner) literal(n int) {
	for range n {
		l.add(l.room(1), 0xff)
	}
}

func (l *shapeLearner) add(c *piece, mask uint64) {
	word, shift := c.size/8, 8*(c.size%8)
	c.words[word] |= uint64(l.b[l.p]) & mask << shift
	c.masks[word] |= mask << shift
	c.size++
	l.p++
}

// argument adds an instruction of n bytes and its argument of width bytes, which may
// differ.
func (l *shapeLearner) argument(n, width int) (c *piece, at uint8) {
	c = l.room(n + width)
	for range n {
		l.add(c, 0xff)
	}
	at = uint8(c.size)
	for range width {
		l.add(c, 0)
	}
	return c, at
}

// stores adds the instruction that stores s, if one is next.
func (l *shapeLearner) stores(s slot) {
	width := 0
	switch opcode(l.b[l.p]) {
	case opMemoize:
	case opMemoPut1:
		width = 1
	case opMemoPut4:
		width = 4
	default:
		return
	}
	c, at := l.argument(1, width)
	if width > 0 {
		c.numbers = append(c.numbers, takeNumber{at, width > 1, len(c.puts)})
	}
	c.puts = append(c.puts, s)
}

// key adds a key and returns what it is.
func (l *shapeLearner) key() keyword {
	if opcode(l.b[l.p]) == opString1 {
		return keyword(l.text() & maxPayload)
	}
	s, end := l.m.quickGet(l.b, l.p)
	l.literal(end - l.p)
	return keyword(s & maxPayload)
}

// text adds a string that all dicts of the shape spell out.
func (l *shapeLearner) text() slot {
	n := 2 + int(l.b[l.p+1])
	s := slotOf(value{vString, uint64(l.m.symbols.intern(l.b[l.p+2 : l.p+n]))})
	l.literal(n)
	l.stores(s)
	return s
}

// value adds the value that ends at end.
func (l *shapeLearner) value(end int, f field) {
	op := opcode(l.b[l.p])
	switch {
	case op == opInt1 || op == opInt2 || op == opInt4 || op == opLong1:
		if _, intEnd := quickInt(l.b, l.p); intEnd == end {
			l.int(op, end, f)
		} else {
			l.hole(end, f) // a pair
		}
	case op == opMemoGet1 || op == opMemoGet4:
		c, at := l.argument(1, end-l.p-1)
		c.gets = append(c.gets, takeGet{at, f.at, op == opMemoGet4, wantedTag(f.want)})
	case f.want == wantNothing && op == opString1:
		l.text()
	default:
		l.hole(end, f)
	}
	if f.want != wantNothing && f.want != wantList {
		l.set |= 1 << f.at
	}
}

// wantedTag is the tag of a wanted value; 0 for none.
func wantedTag(w want) slot {
	if w == wantNothing {
		return 0
	}
	return slot(tagOf[wantedKind[w]])
}

// hole adds a value of any length; only its opcode is compared, so that no dict fits
// two shapes.
func (l *shapeLearner) hole(end int, f field) {
	c := l.room(1)
	l.add(c, 0xff)
	c.size--
	c.hole, c.history, c.field = opcode(l.b[l.p-1]), f.want == wantList, f
	l.p = end
}

// int adds an int, which is taken.
func (l *shapeLearner) int(op opcode, end int, f field) {
	before := 1 // the argument
	if op == opLong1 {
		before = 2
	}
	width := end - l.p - before
	c, at := l.argument(before, width)
	if f.want == wantNothing {
		return
	}
	t := takeInt{at: at, place: f.at, mask: ^uint64(0) >> (64 - 8*width)}
	if op == opInt4 || op == opLong1 {
		t.sign = 1 << (8*width - 1)
	}
	c.ints = append(c.ints, t)
}
