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
	say(bare, "%d of %s (%s) %s no stack: older than the recording, or it was without stacks",
		bare, number(live, "live block"), bytes, either(bare, "has", "have"))
	r := &b.record
	if r.events == 0 {
		out = append(out, "the file has no record of allocations: when blocks were allocated is unknown")
	}
	lost := int(r.lostFrees)
	say(lost, "%s no allocation in the record: older blocks than the recording, or its oldest events were overwritten", counts(lost, "free", "has", "have"))
	for _, device := range slices.Sorted(maps.Keys(r.ooms)) {
		o := r.ooms[device]
		say(int(o.count), "device %d ran out of memory %s, last when %s was asked for and %s was free",
			device, number(int(o.count), "time"), snapshot.Bytes(o.requested), snapshot.Bytes(o.free))
	}
	k := &b.broken
	n := number(len(b.segments), "segment")
	say(k.total, "in %d of %s the blocks do not add up to the segment's size", k.total, n)
	say(k.allocated, "in %d of %s the live blocks do not add up to allocated_size", k.allocated, n)
	say(k.active, "in %d of %s the active blocks do not add up to active_size", k.active, n)
	say(k.requested, "in %d of %s the requests do not add up to requested_size", k.requested, n)
	say(k.gaps, "in %d of %s the blocks are not contiguous", k.gaps, n)
	say(k.overlaps, "in %d of %s blocks overlap: bytes are counted more than once", k.overlaps, n)
	say(k.shared, "%d of %s %s addresses with another: bytes are counted more than once", k.shared, n, either(k.shared, "shares", "share"))
	say(k.sizes, "%s another size than the record says", counts(k.sizes, "block", "has", "have"))
	missing := r.left() - k.replayed
	say(missing, "%s not among the segments, but live by the record", counts(missing, "block", "is", "are"))
	say(b.states, "%s in a state that is not known", counts(b.states, "block", "is", "are"))
	say(b.odd, "%s passed over for an unexpected type", counts(b.odd, "value", "was", "were"))
	for _, name := range slices.Sorted(maps.Keys(b.classes)) {
		n := b.classes[name]
		say(n, "%s of %s %s passed over", number(n, "object"), name, either(n, "was", "were"))
	}
	return out
}

// number is "1 block", "2 blocks".
func number(n int, noun string) string { return fmt.Sprintf("%d %s", n, noun+either(n, "", "s")) }

// counts is "1 block has", "2 blocks have".
func counts(n int, noun, one, many string) string {
	return number(n, noun) + " " + either(n, one, many)
}

// either chooses the word that goes with a number.
func either(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
