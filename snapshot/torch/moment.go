package torch

import (
	"math"

	"github.com/memdiag/memdiag/snapshot"
)

// moment follows the events of one device and stores what was live at a moment. Each event that may be the requested one makes it begin
// again, so its memory depends on the live blocks, not on the length of the record.
//
// Sizes are those of the events, as PyTorch's own viewer (_memory_viz.py) sums them. A block lives until its free_completed, when its
// streams have passed.
type moment struct {
	kind     snapshot.AtKind
	skips    bool  // whether the record has no events for requested frees
	until    int64 // of AtTime and AtStep: the last time that counts, in Unix microseconds
	started  bool  // there was such a moment; the record's beginning is one, but for an OOM
	passed   bool  // whether the requested moment is over
	event    int64
	time     int64
	grown    int64 // bytes live now, minus those live where the record begins
	best     int64 // … at the moment
	live     table[lease]
	gone     []lease   // lived at the moment, and were freed after it
	segments []mapping // what was done to segments after the moment, in order
	asked    pending   // the newest event, if it is a request for a free
}

// beforeRecord is the position before the first event, for a free whose request is not in the record.
const beforeRecord = -1

// pending is a free that was requested but is not complete.
type pending struct {
	address, size uint64
	event         int64
}

// lease is an allocated block.
type lease struct {
	address   uint64
	size      uint64 // as requested
	stack     uint32
	event     int64 // of its allocation; 0 before the record
	time      int64 // likewise
	requested int64 // the event that asked for its free, while a stream still used it; 0 for none
}

// mapping is a change of a device's segments.
type mapping struct {
	address, size uint64
	stream        uint64
	stack         uint32
	action        keyword
}

// maxAddress is above all that a GPU or a processor has.
const maxAddress = 1 << 62

// The memory of a lease and a mapping in bytes, including the garbage of growing.
const (
	leaseCost   = 2 * 56
	mappingCost = 480 // with the segments that are made of them
)

func newMoment(kind snapshot.AtKind, until int64) *moment {
	switch kind {
	case snapshot.AtStep:
		kind = snapshot.AtTime
	case snapshot.AtStart: // which no event is at or before
		kind, until = snapshot.AtTime, math.MinInt64
	}
	return &moment{kind: kind, until: until, live: newTable[lease](), started: kind != snapshot.AtOOM}
}

// bytes is what it takes.
func (m *moment) bytes() int64 {
	return leaseCost*int64(len(m.live.keys)+cap(m.gone)) + mappingCost*int64(cap(m.segments))
}

// now makes the event the moment.
func (m *moment) now(event, time int64) {
	m.started, m.event, m.time, m.best = true, event, time, m.grown
	m.gone, m.segments = m.gone[:0], m.segments[:0]
}

// add follows one event, the record's number event.
func (m *moment) add(event, time int64, o *object) {
	if m.kind == snapshot.AtTime && !m.passed {
		if m.passed = time > m.until; !m.passed {
			m.now(event, time)
		}
	}
	if !o.has(enAction) {
		return
	}
	address, size := o.values[enAddr], o.values[enSize]
	if !o.has(enAddr) || address > maxAddress || size > maxBytes {
		address, size = noAddress, 0
	}
	action := keyword(o.values[enAction])
	if action == kwFreeCompleted && address == m.asked.address { // nearly always
		m.free(address, size)
		return
	}
	m.settle()
	switch action {
	case kwOOM:
		if m.kind == snapshot.AtOOM {
			m.now(event, time)
		}
	case kwSegmentAlloc, kwSegmentFree, kwSegmentMap, kwSegmentUnmap:
		if m.follows() && address != noAddress {
			m.segments = append(m.segments, mapping{address, size, o.values[enStream], uint32(o.values[enStack]), action})
		}
	case kwAlloc:
		if address == noAddress || m.grown > maxTotal {
			return
		}
		if i := m.live.find(address); m.live.keys[i] != 0 { // its free was not recorded
			l := m.live.values[i]
			m.live.remove(i)
			m.end(l)
		}
		m.grown += int64(size)
		*m.live.put(address) = lease{address: address, size: size, stack: uint32(o.values[enStack]), event: event, time: time}
		if m.kind == snapshot.AtPeak && m.grown > m.best {
			m.now(event, time)
		}
	case kwFreeRequested:
		m.asked = pending{address, size, event}
	case kwFreeCompleted:
		m.free(address, size)
	}
}

// settle notes that a free was asked for and did not follow at once.
func (m *moment) settle() {
	if m.asked.event != 0 && m.asked.address != noAddress {
		l := m.live.put(m.asked.address)
		l.address, l.size, l.requested = m.asked.address, max(l.size, m.asked.size), m.asked.event
	}
	m.asked = pending{}
}

// free ends a lease; one that the record did not see begin is as old as it.
func (m *moment) free(address, size uint64) {
	if address == noAddress {
		return
	}
	l := lease{address: address, size: size}
	if i := m.live.find(address); m.live.keys[i] != 0 {
		l = m.live.values[i]
		m.live.remove(i)
	}
	switch {
	case m.asked.event != 0:
		l.requested, m.asked = m.asked.event, pending{}
	case l.event == 0 && l.requested == 0 && !m.skips:
		l.requested = beforeRecord
	}
	m.end(l)
}

// end takes a lease that is over with this event.
func (m *moment) end(l lease) {
	m.grown -= int64(l.size)
	if m.follows() && l.event <= m.event {
		m.gone = append(m.gone, l)
	}
}

// follows reports whether an event may come after the moment, and must be undone.
func (m *moment) follows() bool { return m.started && (m.kind != snapshot.AtTime || m.passed) }

// stateAt is what a block was doing at the moment, that is handed out.
func (m *moment) stateAt(l lease) snapshot.State {
	if l.requested != 0 && l.requested <= m.event {
		return snapshot.Pending
	}
	return snapshot.Live
}
