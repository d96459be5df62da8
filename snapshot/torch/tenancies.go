package torch

import (
	"math/bits"

	"github.com/memdiag/memdiag/snapshot"
)

// tenancy is the time of one block from its allocation to its free.
type tenancy struct {
	time int64  // Unix microseconds; if the event has none, minus its number among all events
	size uint64 // as requested
	step int64  // the newest step that memdiag stamped on an event up to it; NoStep for none
}

// tenancies are those of one device. Millions may be open at the same time, but only those of blocks that are active at the end matter.
// If these are known, as in files whose segments come first, any other takes one bit.
type tenancies struct {
	words  table[addresses]
	births table[tenancy] // by address, as of the last one that opened there
	only   bool           // of addresses that matter alone
	any    bool           // event was seen
	count  int
	step   int64 // the newest that was stamped on an event
}

// addresses are 64 that lie 512 bytes apart, a bit each.
type addresses struct{ open, matter uint64 }

func newTenancies() *tenancies {
	return &tenancies{words: newTable[addresses](), births: newTable[tenancy](), step: snapshot.NoStep}
}

// bytes is the memory of the tables, including the garbage of growing.
func (t *tenancies) bytes() int64 {
	const word, birth = 8 + 16, 8 + 24
	return 3 * (word*int64(len(t.words.keys)) + birth*int64(len(t.births.keys)))
}

// noAddress is one that no block can have, and the tables cannot hold.
const noAddress = 1<<64 - 1

// word is the key of an address among words, and its bit. Allocators align to 512
// bytes; addresses that are not aligned share words with their like.
func word(address uint64) (key, bit uint64) {
	const aligned, in = 9, 6
	return address>>(aligned+in)<<aligned | address&(1<<aligned-1), 1 << (address >> aligned & (1<<in - 1))
}

// matters marks an address whose birth is needed.
func (t *tenancies) matters(address uint64) {
	key, bit := word(address)
	t.words.put(key).matter |= bit
}

// open begins a tenancy; one that is open at the address is forgotten.
func (t *tenancies) open(address uint64, v tenancy) {
	key, bit := word(address)
	w := t.words.put(key)
	if w.open&bit == 0 {
		w.open |= bit
		t.count++
	}
	if !t.only || w.matter&bit != 0 {
		*t.births.put(address) = v
	}
}

// close ends a tenancy and reports whether there was one.
func (t *tenancies) close(address uint64) bool {
	key, bit := word(address)
	i := t.words.find(key)
	w := &t.words.values[i]
	if w.open&bit == 0 { // a place that is free has no bits
		return false
	}
	t.count--
	if w.open &^= bit; *w == (addresses{}) {
		t.words.remove(i)
	}
	if !t.only {
		t.births.remove(t.births.find(address))
	}
	return true
}

// at returns the open tenancy at an address, if the address matters.
func (t *tenancies) at(address uint64) (tenancy, bool) {
	if address == noAddress {
		return tenancy{}, false
	}
	key, bit := word(address)
	if t.words.values[t.words.find(key)].open&bit == 0 {
		return tenancy{}, false
	}
	return t.births.values[t.births.find(address)], true
}

// table is a hash table with linear probing. Two of three events look here: Go's
// map took 40% of the time of a large file, this takes a quarter of that. Keys are
// spread by a random odd factor, so that no file can be made to collide.
type table[V any] struct {
	keys   []uint64 // plus one, 0 if free; the length is a power of two
	values []V      // one a key
	count  int
	factor uint64
	shift  int
}

const (
	fewestKeys = 64
	// fewKeys are so few that room is cheaper than looking further.
	fewKeys = 1 << 14
)

// most is how many keys there may be before the table grows.
func (t *table[V]) most() int {
	if n := len(t.keys); n > fewKeys {
		return n / 4 * 3
	}
	return len(t.keys) / 2
}

func newTable[V any]() table[V] {
	t := table[V]{factor: random() | 1}
	t.resize(fewestKeys)
	return t
}

func (t *table[V]) resize(n int) {
	keys, values := t.keys, t.values
	t.keys, t.values = make([]uint64, n), make([]V, n)
	t.shift = 64 - bits.TrailingZeros(uint(n))
	for i, key := range keys {
		if key != 0 {
			at := t.find(key - 1)
			t.keys[at], t.values[at] = key, values[i]
		}
	}
}

// home is where the search for a key begins. 32 neighbours share one, as allocators align addresses: they come and go together, and so
// are stored together. On a trace with a million open tenancies, this took a third off the total reading time.
func (t *table[V]) home(key uint64) int {
	const region, aligned = 14, 9
	return int((key>>region ^ key<<(64-aligned)) * t.factor >> t.shift)
}

// find returns the index of a key, or the free one where it would be stored.
func (t *table[V]) find(key uint64) int {
	i := t.home(key)
	for t.keys[i] != 0 && t.keys[i] != key+1 {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// put returns the value of a key, which is added if it is new.
func (t *table[V]) put(key uint64) *V {
	i := t.find(key)
	if t.keys[i] == 0 {
		if t.count >= t.most() {
			t.resize(2 * len(t.keys))
			i = t.find(key)
		}
		t.keys[i] = key + 1
		t.count++
	}
	return &t.values[i]
}

// remove empties a place that is taken.
func (t *table[V]) remove(i int) {
	t.count--
	// What follows may have wanted this place, and must not be lost after a gap.
	mask := len(t.keys) - 1
	for j := (i + 1) & mask; t.keys[j] != 0; j = (j + 1) & mask {
		if (j-t.home(t.keys[j]-1))&mask >= (j-i)&mask {
			t.keys[i], t.values[i] = t.keys[j], t.values[j]
			i = j
		}
	}
	var none V
	t.keys[i], t.values[i] = 0, none
}
