package torch

import "math/bits"

// tenancy is one block handed out and not yet free again.
type tenancy struct {
	address uint64
	time    int64  // Unix microseconds; 0 where unknown
	packed  uint64 // twice the size, plus one; 0 in an empty slot of the table
}

func (t tenancy) taken() bool { return t.packed != 0 }

// size is as requested; one beyond 2^63 is not kept exactly.
func (t tenancy) size() uint64 { return t.packed >> 1 }

// tenancies is a hash table of one device's tenancies by address, with linear
// probing. Two of three events look here: Go's map took 40% of the time of a
// large file, this takes a quarter of that. Addresses are spread by a random
// odd factor, so that no file can be made to collide.
type tenancies struct {
	slots  []tenancy // a power of two, at most three quarters taken
	count  int
	factor uint64
	shift  int
}

const fewestSlots = 64

func newTenancies() *tenancies {
	t := &tenancies{factor: random() | 1}
	t.resize(fewestSlots)
	return t
}

func (t *tenancies) resize(n int) {
	old := t.slots
	t.slots = make([]tenancy, n)
	t.shift = 64 - bits.TrailingZeros(uint(n))
	t.count = 0
	for _, s := range old {
		if s.taken() {
			t.open(s.address, s.time, s.size())
		}
	}
}

// home is where an address is looked for first.
func (t *tenancies) home(address uint64) int { return int(address * t.factor >> t.shift) }

// find returns the slot of an address, or the free one where it would go.
func (t *tenancies) find(address uint64) int {
	i := t.home(address)
	for t.slots[i].taken() && t.slots[i].address != address {
		i = (i + 1) & (len(t.slots) - 1)
	}
	return i
}

// open begins a tenancy; one that is open at the address is forgotten.
func (t *tenancies) open(address uint64, time int64, size uint64) {
	s := &t.slots[t.find(address)]
	if !s.taken() {
		t.count++
	}
	*s = tenancy{address, time, size<<1 | 1}
	if t.count*4 > len(t.slots)*3 {
		t.resize(2 * len(t.slots))
	}
}

// close ends a tenancy and reports whether there was one.
func (t *tenancies) close(address uint64) bool {
	i := t.find(address)
	if !t.slots[i].taken() {
		return false
	}
	t.count--
	// What follows may have wanted this slot, and must not be lost behind a gap.
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].taken(); j = (j + 1) & mask {
		if (j-t.home(t.slots[j].address))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = tenancy{}
	return true
}

// at returns the tenancy that is open at an address.
func (t *tenancies) at(address uint64) (tenancy, bool) {
	s := t.slots[t.find(address)]
	return s, s.taken()
}
