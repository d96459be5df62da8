package torch

import "math/bits"

// tenancy is one block handed out and not yet free again.
type tenancy struct {
	time int64  // Unix microseconds; 0 where unknown
	size uint64 // as requested
}

// tenancies is a hash table of one device's tenancies by address, with linear
// probing. Two of three events look here: Go's map took 40% of the time of a
// large file, this takes a quarter of that. Addresses are spread by a random
// odd factor, so that no file can be made to collide.
type tenancies struct {
	keys   []uint64  // addresses plus one, 0 where free; a power of two of them
	values []tenancy // one a key
	count  int
	factor uint64
	shift  int
}

// noAddress is one that no block can have, and the table cannot hold.
const noAddress = 1<<64 - 1

const fewestKeys = 64

func newTenancies() *tenancies {
	t := &tenancies{factor: random() | 1}
	t.resize(fewestKeys)
	return t
}

func (t *tenancies) resize(n int) {
	keys, values := t.keys, t.values
	t.keys, t.values = make([]uint64, n), make([]tenancy, n)
	t.shift = 64 - bits.TrailingZeros(uint(n))
	for i, key := range keys {
		if key != 0 {
			at := t.find(key)
			t.keys[at], t.values[at] = key, values[i]
		}
	}
}

// home is where a key is looked for first. The blocks of 16 KiB share one, at
// most 32 as allocators align them, so that neighbours, which come and go
// together, lie together: on a trace with a million tenancies open, that took a
// third off the time of all reading.
func (t *tenancies) home(key uint64) int {
	const region, aligned = 14, 9
	address := key - 1
	return int((address>>region ^ address<<(64-aligned)) * t.factor >> t.shift)
}

// find returns the place of a key, or the free one where it would go.
func (t *tenancies) find(key uint64) int {
	i := t.home(key)
	for t.keys[i] != 0 && t.keys[i] != key {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// open begins a tenancy; one that is open at the address is forgotten.
func (t *tenancies) open(address uint64, v tenancy) {
	i := t.find(address + 1)
	t.values[i] = v
	if t.keys[i] != 0 {
		return
	}
	t.keys[i] = address + 1
	if t.count++; t.count*4 > len(t.keys)*3 { // at most three quarters are taken
		t.resize(2 * len(t.keys))
	}
}

// close ends a tenancy and reports whether there was one.
func (t *tenancies) close(address uint64) bool {
	i := t.find(address + 1)
	if t.keys[i] == 0 {
		return false
	}
	t.count--
	// What follows may have wanted this place, and must not be lost behind a gap.
	mask := len(t.keys) - 1
	for j := (i + 1) & mask; t.keys[j] != 0; j = (j + 1) & mask {
		if (j-t.home(t.keys[j]))&mask >= (j-i)&mask {
			t.keys[i], t.values[i] = t.keys[j], t.values[j]
			i = j
		}
	}
	t.keys[i] = 0
	return true
}

// at returns the tenancy that is open at an address.
func (t *tenancies) at(address uint64) (tenancy, bool) {
	i := t.find(address + 1)
	return t.values[i], t.keys[i] != 0 && address != noAddress
}
