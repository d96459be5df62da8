package torch

import (
	"encoding/binary"
	"slices"
)

// Dicts of one kind are written by the same instructions: their keys are the same
// references, and only values differ. A shape is these instructions, with holes in
// place of values. A dict that fits one is not read key by key: what stands between
// its values is compared, eight bytes at a time. Slots of the memo never change, so
// that equal instructions mean equal keys. Shapes that begin alike share their
// beginning, as branches of a tree.

const (
	// mostPieces are learned of a file; those of PyTorch have 20 to 40, as ints of each width
	// and each kind of value make a shape.
	mostPieces = 64
	// pieceSize is the most bytes of a piece, pieceReach how much of the window it
	// and a value behind it may take.
	pieceSize  = 48
	pieceReach = pieceSize + reach
)

// piece is a run of instructions that are always as long, and the value behind it.
type piece struct {
	words, masks [pieceSize / 8]uint64 // the bytes, and which of their bits count
	size         int
	ints         []takeInt
	gets         []takeGet
	puts         []slot // that are stored
	numbers      []takeNumber
	hole         bool   // a value of any length follows, of which the opcode is compared too
	history      bool   // … which is that of a block's history
	field        field  // … where it goes
	set          uint32 // the values that are present, of a dict that ends here
	next         branches
}

// branches are the pieces that may come next. The one that did last time is first.
type branches []*piece

// What a piece is read for, beside what it stores: at is where the argument stands in it.
type (
	takeInt struct {
		at, place  uint8
		mask, sign uint64 // of its bits among the eight bytes there
	}
	takeGet struct {
		at    uint8
		wide  bool // four bytes
		field field
	}
	// takeNumber is the number that the file gives to what is stored.
	takeNumber struct {
		at    uint8
		wide  bool
		ahead int // how many of puts come before
	}
)

// shapes are those that were learned, by role.
type shapes struct {
	first  [numRoles]branches
	pieces int
}

// quickShape is quickDict for the shapes that are known.
func (m *machine) quickShape(b []byte, p int, r role, o *object) int {
	q := &m.quick
	o.role, o.set = r, 0
	clear(o.values[:quickFields])
	next := q.shapes.first[r]
	for p+pieceReach <= len(b) {
		w := (*[pieceReach]byte)(b[p:])
		c := next.find(w)
		if c == nil {
			return -1
		}
		for i := range c.ints {
			t := &c.ints[i]
			o.values[t.place] = (binary.LittleEndian.Uint64(w[t.at:])&t.mask ^ t.sign) - t.sign
		}
		for i := range c.gets {
			t := &c.gets[i]
			s := m.memo.get(argument(w, t.at, t.wide))
			if !o.fits(t.field, value{kindOf[s>>payloadBits], uint64(s & maxPayload)}) {
				return -1
			}
		}
		for i := range c.numbers {
			t := &c.numbers[i]
			if argument(w, t.at, t.wide) != m.nextSlot()+uint64(t.ahead) {
				return -1
			}
		}
		q.puts = append(q.puts, c.puts...)
		p += c.size
		if c.hole {
			if c.history {
				p = m.quickHistory(b, p, o)
			} else {
				var v value
				if v, p = m.quickUsual(b, p); !o.fits(c.field, v) {
					return -1
				}
			}
			if p < 0 {
				return -1
			}
		}
		if next = c.next; next == nil {
			o.set |= c.set
			return p
		}
	}
	return -1
}

// find returns the piece that w begins with, nil if it is none of them.
func (pieces branches) find(w *[pieceReach]byte) *piece {
	for i, c := range pieces {
		differ := c.differ(w, 0) | c.differ(w, 1) | c.differ(w, 2)
		if c.size > pieceSize/2 {
			differ |= c.differ(w, 3) | c.differ(w, 4) | c.differ(w, 5)
		}
		if differ == 0 {
			pieces[0], pieces[i] = c, pieces[0]
			return c
		}
	}
	return nil
}

// differ compares a word of the piece and returns the bits that should be equal and are not.
func (c *piece) differ(w *[pieceReach]byte, i int) uint64 {
	return (binary.LittleEndian.Uint64(w[8*i:]) ^ c.words[i]) & c.masks[i]
}

// argument is that of an instruction on the memo.
func argument(w *[pieceReach]byte, at uint8, wide bool) uint64 {
	if wide {
		return uint64(binary.LittleEndian.Uint32(w[at:]))
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

// learn makes a shape of the dict b[p:end], which quickDict has just read into o.
func (m *machine) learn(b []byte, p, end int, r role) {
	q := &m.quick
	l := shapeLearner{m: m, b: b, p: p, pieces: make([]*piece, 0, 8)}
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
	l.literal(1)
	l.stores(goneSlot)
	if l.p != end || q.shapes.pieces+len(l.pieces) > mostPieces {
		return
	}
	l.pieces[len(l.pieces)-1].set = l.set
	next := &q.shapes.first[r]
	for _, c := range l.pieces {
		at := slices.IndexFunc(*next, c.equal)
		if at < 0 {
			at = len(*next)
			*next = append(*next, c)
			q.shapes.pieces++
		}
		next = &(*next)[at].next
	}
}

func (c *piece) equal(other *piece) bool {
	return c.words == other.words && c.masks == other.masks && c.size == other.size && slices.Equal(c.ints, other.ints) &&
		slices.Equal(c.gets, other.gets) && slices.Equal(c.puts, other.puts) && slices.Equal(c.numbers, other.numbers) && c.hole == other.hole && c.history == other.history && c.field == other.field && c.set == other.set
}

// shapeLearner walks a dict that is well formed.
type shapeLearner struct {
	m      *machine
	b      []byte
	p      int
	set    uint32
	pieces []*piece
}

// room returns the piece that takes the next n bytes.
func (l *shapeLearner) room(n int) *piece {
	last := len(l.pieces) - 1
	if last < 0 || l.pieces[last].hole || l.pieces[last].size+n > pieceSize {
		l.pieces = append(l.pieces, &piece{})
		last++
	}
	return l.pieces[last]
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
	width := end - l.p - 1 // of an argument
	switch op := opcode(l.b[l.p]); op {
	case opInt1, opInt2:
		l.int(1, width, false, f)
	case opInt4:
		l.int(1, width, true, f)
	case opLong1:
		l.int(2, width-1, true, f)
	case opMemoGet1, opMemoGet4:
		c, at := l.argument(1, width)
		c.gets = append(c.gets, takeGet{at, op == opMemoGet4, f})
	default:
		if f.want == wantNothing && op == opString1 {
			l.text()
			break
		}
		c := l.room(1)
		l.add(c, 0xff) // its opcode, so that no dict fits two shapes
		c.size--
		c.hole, c.history, c.field = true, f.want == wantList, f
		l.p = end
	}
	if f.want != wantNothing && f.want != wantList {
		l.set |= 1 << f.at
	}
}

// int adds an instruction of n bytes and the int of width bytes behind it, which is taken.
func (l *shapeLearner) int(n, width int, signed bool, f field) {
	c, at := l.argument(n, width)
	if f.want == wantNothing {
		return
	}
	t := takeInt{at: at, place: f.at, mask: ^uint64(0) >> (64 - 8*width)}
	if signed {
		t.sign = 1 << (8*width - 1)
	}
	c.ints = append(c.ints, t)
}
