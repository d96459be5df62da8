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

// notes says what is missing and what is inconsistent, in a fixed order.
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
	say(bare, "%s of %s (%s) %s no stack: older than the recording, or it was without stacks",
		grouped(bare), number(live, "live block"), bytes, either(bare, "has", "have"))
	r := &b.record
	if r.events == 0 && !b.light {
		out = append(out, "the file has no record of allocations: when blocks were allocated is unknown")
	}
	lost := int(r.lostFrees)
	say(lost, "%s no allocation in the record: older blocks than the recording, or its oldest events were overwritten", counts(lost, "free", "has", "have"))
	for _, device := range slices.Sorted(maps.Keys(r.ooms)) {
		if told := r.lastRefused(); device != told { // History.Refused
			o := r.ooms[device]
			say(int(o.count), "device %d ran out of memory %s, last when %s was asked for and %s was free", device, number(int(o.count), "time"), snapshot.Bytes(o.requested), snapshot.Bytes(o.free))
		}
	}
	if b.whole {
		out = append(out, "the driver's figure is of the whole GPU: of all processes that use it")
	}
	switch {
	case b.another:
		out = append(out, fmt.Sprintf("another snapshot follows at byte %s of the file; this is the first", grouped(int(b.after))))
	case b.after > 0:
		out = append(out, fmt.Sprintf("the file does not end where the snapshot does, at byte %s; what follows was not read", grouped(int(b.after))))
	}
	k := &b.broken
	n := number(len(b.segments), "segment")
	say(k.total, "in %s of %s the blocks do not add up to the segment's size", grouped(k.total), n)
	say(k.allocated, "in %s of %s the live blocks do not add up to allocated_size", grouped(k.allocated), n)
	say(k.active, "in %s of %s the active blocks do not add up to active_size", grouped(k.active), n)
	say(k.requested, "in %s of %s the requests do not add up to requested_size", grouped(k.requested), n)
	say(k.requests, "%s more than %s: not believed, the size given is taken", counts(k.requests, "request", "is for", "are for"), either(k.requests, "its block has", "their blocks have"))
	say(k.gaps, "in %s of %s the blocks are not contiguous", grouped(k.gaps), n)
	say(k.overlaps, "in %s of %s blocks overlap: bytes are counted more than once", grouped(k.overlaps), n)
	say(k.shared, "%s of %s %s addresses with another: bytes are counted more than once", grouped(k.shared), n, either(k.shared, "shares", "share"))
	say(k.sizes, "%s another size than the record says", counts(k.sizes, "block", "has", "have"))
	missing := r.left() - k.replayed
	if s.Moment != nil {
		missing = b.moments.outside
	}
	say(missing, "%s not among the segments, but live by the record", counts(missing, "block", "is", "are"))
	say(b.states, "%s in a state that is not known", counts(b.states, "block", "is", "are"))
	say(b.odd, "%s passed over for an unexpected type", counts(b.odd, "value", "was", "were"))
	for _, name := range slices.Sorted(maps.Keys(b.classes)) {
		n := b.classes[name]
		say(n, "%s of %s %s passed over", number(n, "object"), name, either(n, "was", "were"))
	}
	return out
}

// number is "1 block", "2,000 blocks".
func number(n int, noun string) string { return grouped(n) + " " + noun + either(n, "", "s") }

func grouped(n int) string { return snapshot.Grouped(int64(n)) }

// counts is "1 block has", "2 blocks have".
func counts(n int, noun, one, many string) string {
	return number(n, noun) + " " + either(n, one, many)
}

// either chooses the singular or plural word for a number.
func either(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
