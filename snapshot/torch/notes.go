package torch

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
)

func snapshotPoolName(id [2]uint64) string {
	return strconv.FormatUint(id[0], 10) + "," + strconv.FormatUint(id[1], 10)
}

// notes says what is missing and what does not add up, in a fixed order.
func (b *builder) notes(s *snapshot.Snapshot) []string {
	var out []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	var live, bare int
	var bytes snapshot.Bytes
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		live++
		if s.Blocks.Stack[i] == snapshot.NoStack {
			bare++
			bytes += s.Blocks.Size[i]
		}
	}
	say(bare, "%d of %d live blocks (%s) have no stack: they are older than the recording, or it was without stacks", bare, live, bytes)
	r := &b.record
	if r.events == 0 {
		out = append(out, "the file has no record of allocations: when blocks were allocated is unknown")
	}
	say(int(r.lostFrees), "%d frees have no allocation in the record: their blocks are older than the recording, or its oldest events were overwritten", r.lostFrees)
	for _, device := range slices.Sorted(maps.Keys(r.ooms)) {
		o := r.ooms[device]
		out = append(out, fmt.Sprintf("device %d ran out of memory %d times, last when %s was asked for and %s was free",
			device, o.count, snapshot.Bytes(o.requested), snapshot.Bytes(o.free)))
	}
	k := &b.broken
	n := len(b.segments)
	say(k.total, "in %d of %d segments the blocks do not add up to the segment's size", k.total, n)
	say(k.allocated, "in %d of %d segments the live blocks do not add up to allocated_size", k.allocated, n)
	say(k.active, "in %d of %d segments the active blocks do not add up to active_size", k.active, n)
	say(k.requested, "in %d of %d segments the requests do not add up to requested_size", k.requested, n)
	say(k.gaps, "in %d of %d segments the blocks are not contiguous", k.gaps, n)
	say(k.sizes, "%d blocks have another size than the record says", k.sizes)
	if missing := r.left() - k.replayed; missing > 0 {
		out = append(out, fmt.Sprintf("%d blocks that the record leaves live are not among the segments", missing))
	}
	say(b.states, "%d blocks are in a state that is not known", b.states)
	say(b.odd, "%d values have an unexpected type and were passed over", b.odd)
	for _, name := range slices.Sorted(maps.Keys(b.classes)) {
		out = append(out, fmt.Sprintf("%d objects of %s were passed over", b.classes[name], name))
	}
	return out
}
