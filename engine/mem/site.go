package mem

import (
	"runtime"
	"slices"
	"sync"

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

// shards of the table of sites; a power of two.
const shards = 16

// siteTable interns stacks by a hash of their return addresses.
type siteTable struct {
	shards [shards]shard

	mu    sync.RWMutex
	sites []*site // by id-1
}

type shard struct {
	mu    sync.RWMutex
	sites map[uint64]*site
}

type site struct {
	id     SiteID
	parent SiteID
	pcs    []uintptr
	next   *site // another site of equal hash

	once   sync.Once
	frames []snapshot.Frame // its own, without the parent's; see symbolise
}

// capture interns the stack of the caller. It is the only place where stacks
// are taken.
func (t *siteTable) capture(parent SiteID) SiteID {
	var pcs [maxDepth]uintptr
	n := runtime.Callers(2, pcs[:])
	return t.intern(pcs[:n], parent)
}

func (t *siteTable) intern(pcs []uintptr, parent SiteID) SiteID {
	h := hashPCs(pcs, parent)
	s := &t.shards[h%shards]
	s.mu.RLock()
	found := s.find(h, pcs, parent)
	s.mu.RUnlock()
	if found != nil {
		return found.id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.find(h, pcs, parent); found != nil {
		return found.id
	}
	made := &site{parent: parent, pcs: slices.Clone(pcs), next: s.sites[h]}
	t.mu.Lock()
	t.sites = append(t.sites, made)
	made.id = SiteID(len(t.sites))
	t.mu.Unlock()
	if s.sites == nil {
		s.sites = make(map[uint64]*site)
	}
	s.sites[h] = made
	return made.id
}

func (s *shard) find(h uint64, pcs []uintptr, parent SiteID) *site {
	for at := s.sites[h]; at != nil; at = at.next {
		if at.parent == parent && slices.Equal(at.pcs, pcs) {
			return at
		}
	}
	return nil
}

// hashPCs mixes with the 64-bit multiplier of FNV and folds the high bits down,
// since shards are chosen by the low ones.
func hashPCs(pcs []uintptr, parent SiteID) uint64 {
	h := uint64(parent)
	for _, pc := range pcs {
		h = (h ^ uint64(pc)) * 0x9E3779B97F4A7C15
		h ^= h >> 29
	}
	return h
}

func (t *siteTable) get(id SiteID) *site {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.sites[id-1]
}

// backwardOf is the frame between a block's own stack and its forward site's.
var backwardOf = snapshot.Frame{Function: "backward of", Line: -1}

// stack returns a site's symbolised frames, innermost first, with those of its
// parent behind them; nil for NoSite. The first call for a site symbolises it,
// which takes microseconds.
func (t *siteTable) stack(id SiteID) []snapshot.Frame {
	var frames []snapshot.Frame
	for id != NoSite {
		s := t.get(id)
		s.once.Do(func() { s.frames = symbolise(s.pcs) })
		if frames != nil {
			frames = append(frames, backwardOf)
		}
		frames = append(frames, s.frames...)
		id = s.parent
	}
	return frames
}
