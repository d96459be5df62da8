package torch

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// eventCost is the memory of an event in bytes, including the garbage of growing.
const eventCost = 2 * 16

// kinds are those of the actions that a record keeps.
var kinds = map[keyword]snapshot.EventKind{
	kwAlloc: snapshot.EventAlloc, kwFreeRequested: snapshot.EventFreeRequested, kwFreeCompleted: snapshot.EventFreeCompleted,
	kwSegmentAlloc: snapshot.EventSegmentAlloc, kwSegmentFree: snapshot.EventSegmentFree,
	kwSegmentMap: snapshot.EventSegmentMap, kwSegmentUnmap: snapshot.EventSegmentUnmap, kwOOM: snapshot.EventOOM,
}

// deviceEvents is a record in the making.
type deviceEvents struct {
	snapshot.Record
	given uint32 // the stack for which segments were given back since the last allocation; 0 for none
}

// retried notes whether the next event takes memory, or fails to, by the call that has just emptied the cache: PyTorch records both with
// its stack. A call of empty_cache has another.
func (r *deviceEvents) retried(kind snapshot.EventKind, stack uint32) {
	switch kind {
	case snapshot.EventSegmentFree, snapshot.EventSegmentUnmap:
		r.given = stack
	case snapshot.EventSegmentAlloc, snapshot.EventSegmentMap, snapshot.EventOOM:
		if stack != 0 && stack == r.given {
			r.Retries = append(r.Retries, len(r.Events))
		}
		r.given = 0
	case snapshot.EventAlloc:
		r.given = 0
	}
}

// keepEvent appends an event to its device's record. One that cannot be believed is kept as one of no kind, so that places
// in the record stay.
func (b *builder) keepEvent(device int, o *object) {
	r := b.events[device]
	if r == nil {
		r = &deviceEvents{Record: snapshot.Record{Device: device}}
		b.events[device] = r
	}
	kind := snapshot.EventOther
	if o.has(enAction) {
		kind = kinds[keyword(o.values[enAction])]
	}
	address, size := o.values[enAddr], o.values[enSize]
	switch {
	case kind == snapshot.EventOOM:
		address, size = min(o.values[enFree], maxBytes), min(size, uint64(snapshot.MaxEventBytes))
	case !o.has(enAddr) || address > maxAddress || size > uint64(snapshot.MaxEventBytes):
		kind, address, size = snapshot.EventOther, 0, 0
	}
	stream := slices.Index(r.Streams, o.values[enStream])
	if stream < 0 {
		if len(r.Streams) < snapshot.MaxEventStreams {
			r.Streams = append(r.Streams, o.values[enStream])
		}
		stream = len(r.Streams) - 1
	}
	r.retried(kind, uint32(o.values[enStack]))
	r.Events = append(r.Events, snapshot.NewEvent(kind, address, snapshot.Bytes(size), stream))
}
