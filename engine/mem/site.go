package mem

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/memdiag/memdiag/snapshot"
)

// SiteID names, within one device, a place in the program that allocates: the
// return addresses of a stack, and the site whose backward it runs, if any.
// Several sites may come to the same symbolised stack.
type SiteID uint32

// NoSite is the site of blocks whose stack was not recorded.
const NoSite SiteID = 0

// maxDepth bounds a recorded stack, in machine frames, counted from the
// allocation outwards.
const maxDepth = 64

// siteTable interns stacks by a hash of their return addresses. Every allocation
// looks its stack up, and next to none is new: so looking up takes no lock, and
// making a site copies what it must.
type siteTable struct {
	// slots is an open-addressed table of a power of two, at most half full. Its
	// slots are only ever filled; a larger one replaces it.
	slots atomic.Pointer[[]atomic.Pointer[site]]

	mu    sync.RWMutex // to make a site, and to read the list
	sites []*site      // by id-1

	module     string // mainModule's answer, which takes as long as a stack
	moduleOnce sync.Once
}

type site struct {
	id     SiteID
	parent SiteID
	hash   uint64
	pcs    []uintptr

	once   sync.Once
	frames []snapshot.Frame // its own, without the parent's; see symbolise
}

// firstSlots is the size of a new table; a power of two.
const firstSlots = 256

// capture interns the stack of the caller. It is the only place where stacks
// are taken.
func (t *siteTable) capture(parent SiteID) SiteID {
	var pcs [maxDepth]uintptr
	n := callers(pcs[:])
	return t.intern(pcs[:n], parent)
}

func (t *siteTable) intern(pcs []uintptr, parent SiteID) SiteID {
	h := hashPCs(pcs, parent)
	if slots := t.slots.Load(); slots != nil {
		if found, _ := find(*slots, h, pcs, parent); found != nil {
			return found.id
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	slots := t.room()
	found, at := find(slots, h, pcs, parent)
	if found == nil { // not made by another goroutine meanwhile
		found = &site{id: SiteID(len(t.sites) + 1), parent: parent, hash: h, pcs: slices.Clone(pcs)}
		t.sites = append(t.sites, found)
		slots[at].Store(found)
	}
	return found.id
}

// room returns slots with room for one more site; the lock is held.
func (t *siteTable) room() []atomic.Pointer[site] {
	size := firstSlots
	if old := t.slots.Load(); old != nil {
		if 2*len(t.sites) < len(*old) {
			return *old
		}
		size = 2 * len(*old)
	}
	slots := make([]atomic.Pointer[site], size)
	for _, s := range t.sites {
		_, at := find(slots, s.hash, s.pcs, s.parent)
		slots[at].Store(s)
	}
	t.slots.Store(&slots)
	return slots
}

// find returns the site, or the slot that it would go to.
func find(slots []atomic.Pointer[site], h uint64, pcs []uintptr, parent SiteID) (*site, int) {
	mask := len(slots) - 1
	for at := int(h) & mask; ; at = (at + 1) & mask {
		s := slots[at].Load()
		if s == nil || s.hash == h && s.parent == parent && slices.Equal(s.pcs, pcs) {
			return s, at
		}
	}
}

// hashPCs multiplies apart from the chain of rotations, so that the processor
// runs it at two cycles an address; the last line folds the high bits down,
// since slots are chosen by the low ones.
func hashPCs(pcs []uintptr, parent SiteID) uint64 {
	const odd = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
	h := uint64(parent)
	for _, pc := range pcs {
		h = bits.RotateLeft64(h, 7) ^ uint64(pc)*odd
	}
	h *= odd
	return h ^ h>>32
}

func (t *siteTable) get(id SiteID) *site {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sites[id-1]
}

// backwardOf is the frame between a block's own stack and its forward site's.
var backwardOf = snapshot.Frame{Function: "backward of", Line: -1}

// stack returns a site's symbolised frames, innermost first, with those of its
// parent after them; nil for NoSite. The first call for a site symbolises it,
// which takes microseconds.
func (t *siteTable) stack(id SiteID) []snapshot.Frame {
	t.moduleOnce.Do(func() { t.module = mainModule() })
	var frames []snapshot.Frame
	for id != NoSite {
		s := t.get(id)
		s.once.Do(func() { s.frames = symbolise(s.pcs, t.module) })
		if frames != nil {
			frames = append(frames, backwardOf)
		}
		frames = append(frames, s.frames...)
		id = s.parent
	}
	return frames
}
