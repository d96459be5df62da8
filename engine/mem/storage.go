package mem

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/memdiag/memdiag/snapshot"
)

// Storage is a live block and the references on it, counted by owner class. The
// last reference to be released frees the block; a Storage that the collector
// takes does not. Owners are named one class at a time; a set of several is a
// fault of the program, and methods panic. Once the device is closed there is
// nothing left to count, so they do nothing. All methods are safe for concurrent
// use.
type Storage struct {
	device    *Device
	buffer    Buffer
	requested int64
	site      SiteID
	block     blockID // its row, while it is alive
	freed     atomic.Bool
	writes    atomic.Uint32
}

// Buffer is the block's piece of memory. It panics with a *ReleaseError once the
// block was freed, since the memory may be another's by now.
func (s *Storage) Buffer() Buffer {
	if !s.Alive() {
		panic(s.misuse("used", 0))
	}
	return s.buffer
}

// Requested is the bytes that were asked for; Buffer().Size is what was got.
func (s *Storage) Requested() int64 { return s.requested }

// Device is the device that the block is on.
func (s *Storage) Device() *Device { return s.device }

// Site is where the block was allocated; see Device.Stack.
func (s *Storage) Site() SiteID { return s.site }

// Wrote counts one change of contents in place. Whoever saved the block to read
// it later, as autodiff does, sees by Writes that it holds something else by now.
func (s *Storage) Wrote() { s.writes.Add(1) }

// Writes is how often Wrote was called.
func (s *Storage) Writes() uint32 { return s.writes.Load() }

// Alive says whether any reference is left on the block, and its device open.
func (s *Storage) Alive() bool { return !s.freed.Load() && !s.device.closed.Load() }

// Owners is the set of classes that hold a reference; 0 once it was freed.
func (s *Storage) Owners() snapshot.Owners {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	if !s.Alive() {
		return 0
	}
	return s.row().owners()
}

// Retain adds a reference of one owner class. It panics with a *ReleaseError if
// the block was freed already.
func (s *Storage) Retain(o snapshot.Owners) { s.change("retained", 0, o) }

// Release takes a reference of one owner class back; the last one of all classes
// frees the block. It panics with a *ReleaseError if the class holds none.
func (s *Storage) Release(o snapshot.Owners) { s.change("released", o, 0) }

// Move turns a reference of one owner class into one of another. It panics with
// a *ReleaseError if the first holds none.
func (s *Storage) Move(from, to snapshot.Owners) { s.change("moved", from, to) }

// change takes a reference from one class, if any is named, and gives one to
// another, if any is named.
func (s *Storage) change(what string, from, to snapshot.Owners) {
	d := s.device
	d.mu.Lock()
	if d.closed.Load() {
		d.mu.Unlock()
		return
	}
	var wrong error
	switch {
	case s.freed.Load():
		wrong = s.misuse(what, from)
	case from != 0:
		wrong = s.drop(what, from, to)
	default:
		wrong = s.give(to)
	}
	d.mu.Unlock()
	if _, known := errors.AsType[*ReleaseError](wrong); wrong != nil && !known {
		wrong = fmt.Errorf("%s: block of %s is %s for nobody: %w; it was allocated by %s", d, snapshot.Bytes(s.requested), what, wrong, Headline(d.Stack(s.site)))
	}
	if wrong != nil {
		panic(wrong)
	}
}

func (s *Storage) drop(what string, from, to snapshot.Owners) error {
	class, err := classIndex(from)
	if err != nil {
		return err
	}
	b := s.row()
	if b.refs[class] == 0 {
		return s.misuse(what, from)
	}
	if to != 0 {
		if err := s.give(to); err != nil {
			return err
		}
	}
	b.refs[class]--
	if b.owners() == 0 {
		if s.site != NoSite {
			s.device.live[s.site].subtract(b.size)
		}
		s.device.pool.put(s.block, s.device.inUse())
		s.freed.Store(true)
	}
	return nil
}

func (s *Storage) give(to snapshot.Owners) error {
	class, err := classIndex(to)
	if err != nil {
		return err
	}
	s.row().refs[class]++
	return nil
}

// row is the block's record; the device's lock is held, and the block is alive.
func (s *Storage) row() *block { return &s.device.pool.blocks[s.block] }

func (b *block) owners() snapshot.Owners {
	var o snapshot.Owners
	for i, n := range b.refs {
		if n > 0 {
			o |= 1 << i
		}
	}
	return o
}

// ReleaseError is a reference used that is not held, such as a second release.
// It is a fault of the program, so methods panic with it.
type ReleaseError struct {
	Device    string
	Action    string          // "released", "retained", "moved", "used"
	Owner     snapshot.Owners // whose reference it was to be; 0 where any would do
	Held      snapshot.Owners // who does hold one; 0 where the block is free
	Requested snapshot.Bytes
	Stack     []snapshot.Frame // where it was allocated, innermost frame first
}

func (s *Storage) misuse(action string, owner snapshot.Owners) *ReleaseError {
	e := &ReleaseError{
		Device:    s.device.String(),
		Action:    action,
		Owner:     owner,
		Requested: snapshot.Bytes(s.requested),
		Stack:     s.device.Stack(s.site),
	}
	if s.Alive() {
		e.Held = s.row().owners()
	}
	return e
}

func (e *ReleaseError) Error() string {
	state := "after its last reference was released"
	if e.Held != 0 {
		state = fmt.Sprintf("for %s, while only %s holds it", strings.Join(e.Owner.Names(), "+"), strings.Join(e.Held.Names(), "+"))
	}
	return fmt.Sprintf("%s: block of %s is %s %s; it was allocated by %s", e.Device, e.Requested, e.Action, state, Headline(e.Stack))
}
