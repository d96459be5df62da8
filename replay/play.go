package replay

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Player plays the record of one device.
type Player struct {
	record *snapshot.Record
	device int
	start  *snapshot.Snapshot // at the record's beginning
	end    *snapshot.Snapshot
	slots  []int32 // of each event, the number of the block that it is of; noSlot for none
	most   int     // blocks that are there at once, at most
	held   []held  // what is there at the beginning, by slot
	pools  []private
	// Limit is what the device may reserve: as given, or as failures in the record tell; 0 for no limit.
	Limit snapshot.Bytes
	// emptied are the places of the events at which the program emptied the cache.
	emptied map[int]bool
	failed  int64 // requests that failed in the record
	unfreed int64 // blocks whose address is given out again, and whose free is not in the record
	unknown int64 // frees of blocks that are not known, which change nothing
}

const noSlot = -1

// held is a block at the beginning.
type held struct {
	address, size uint64 // size is what the program asked for
	stream        int
	private       string
}

// private is a segment of a private pool.
type private struct {
	from, to uint64
	name     string
}

// Result is what the allocator did under some settings.
type Result struct {
	Settings Settings
	Recorded bool // they are the snapshot's own
	// Reserved is the most that was taken from the driver at once, and Live what was live then.
	Reserved, Live snapshot.Bytes
	// Stranded is the most memory that was neither live nor could be given back, as live blocks lay beside it.
	Stranded snapshot.Bytes
	// Needed is the smallest limit with which no request fails, if the cache is emptied whenever it is reached.
	Needed  snapshot.Bytes
	Calls   int64 // of the driver
	Retries int64 // how often the cache was emptied because memory ran out
	Failed  int64 // requests for which there was no memory
	// Unmet are the bounds of the settings that the record never met, a clause each.
	Unmet []string
}

// New prepares to play the record that has most events, of one device of a snapshot, which start shows at the beginning of its
// record and end as it was taken. A device is chosen by its index; -1 takes the one with most events.
func New(start, end *snapshot.Snapshot, device int) (*Player, error) {
	p := &Player{start: start, end: end, emptied: make(map[int]bool)}
	for _, r := range start.Records {
		if device >= 0 && start.Devices[r.Device].Index == device || device < 0 && (p.record == nil || len(r.Events) > len(p.record.Events)) {
			p.record, p.device = r, r.Device
		}
	}
	if p.record == nil {
		return nil, fmt.Errorf("the snapshot has no history of device %d", device)
	}
	if !slices.ContainsFunc(p.record.Events, func(e snapshot.Event) bool { return e.Kind() == snapshot.EventAlloc }) {
		return nil, fmt.Errorf("the record has no allocation")
	}
	for _, seg := range end.Segments {
		if seg.Device == p.device && seg.Private != "" {
			p.pools = append(p.pools, private{seg.Address, seg.Address + uint64(seg.Size), seg.Private})
		}
	}
	p.number()
	p.lookBack()
	return p, nil
}

// Device is the place of the device among the snapshot's.
func (p *Player) Device() int { return p.device }

// Events is the number of the record's events.
func (p *Player) Events() int { return len(p.record.Events) }

// Older is what was live before the record.
func (p *Player) Older() (n snapshot.Bytes) {
	for _, h := range p.held {
		n += snapshot.Bytes(h.size)
	}
	return n
}

// number gives each block a slot that is its own while it lives.
func (p *Player) number() {
	slots := make(map[uint64]int32)
	var unused []int32
	open := func(address uint64) int32 {
		if at, there := slots[address]; there {
			return at
		}
		at := int32(p.most)
		if n := len(unused); n > 0 {
			at, unused = unused[n-1], unused[:n-1]
		} else {
			p.most++
		}
		slots[address] = at
		return at
	}
	for i, seg := range p.start.Segments {
		if seg.Device != p.device {
			continue
		}
		for row := seg.FirstBlock; row < seg.FirstBlock+seg.NumBlocks; row++ {
			if b := &p.start.Blocks; b.State[row] != snapshot.Free {
				if _, twice := slots[b.Address[row]]; twice {
					continue
				}
				open(b.Address[row])
				seg := &p.start.Segments[i]
				p.held = append(p.held, held{b.Address[row], uint64(b.Requested[row]), p.stream(seg.Stream), seg.Private})
			}
		}
	}
	p.slots = make([]int32, len(p.record.Events))
	for i, e := range p.record.Events {
		p.slots[i] = noSlot
		switch at, there := slots[e.Address]; {
		case e.Kind() == snapshot.EventAlloc:
			if there {
				p.unfreed++
			}
			p.slots[i] = open(e.Address)
		case e.Kind() == snapshot.EventFreeCompleted && there:
			p.slots[i] = at
			delete(slots, e.Address)
			unused = append(unused, at)
		case e.Kind() == snapshot.EventFreeCompleted:
			p.unknown++
		}
	}
}

// stream is the place of a stream among those of the record.
func (p *Player) stream(stream uint64) int {
	at := slices.Index(p.record.Streams, stream)
	if at < 0 {
		p.record.Streams = append(p.record.Streams, stream)
		at = len(p.record.Streams) - 1
	}
	return at
}

// poolAt is the private pool that an address is of; "" for none.
func (p *Player) poolAt(address uint64) string {
	for _, pool := range p.pools {
		if pool.from <= address && address < pool.to {
			return pool.name
		}
	}
	return ""
}

// lookBack tells from what the record did to segments where the program emptied the cache, and which limit the allocator met: the most
// that was reserved, if it had to empty the cache itself, and what the driver had left when a request failed.
func (p *Player) lookBack() {
	reserved := p.start.Devices[p.device].Meters.Reserved
	most, left := reserved, snapshot.Bytes(0)
	given := -1 // the place of the event that began to give segments back, since the last allocation
	for i, e := range p.record.Events {
		switch e.Kind() {
		case snapshot.EventSegmentFree, snapshot.EventSegmentUnmap:
			if given < 0 {
				given = i
				p.emptied[i] = true
			}
			reserved -= e.Bytes()
		case snapshot.EventSegmentAlloc, snapshot.EventSegmentMap, snapshot.EventOOM:
			if _, retry := slices.BinarySearch(p.record.Retries, i); retry {
				delete(p.emptied, given)
			}
			if e.Kind() == snapshot.EventOOM {
				p.failed++
				left = max(left, reserved+snapshot.Bytes(e.Address))
				continue
			}
			reserved += e.Bytes()
			most = max(most, reserved)
		case snapshot.EventAlloc:
			given = -1
		}
	}
	if p.failed > 0 || len(p.record.Retries) > 0 {
		p.Limit = max(most, left)
	}
}

// Play plays the record under several settings, and returns the results in their order. What was live before the record is laid out anew
// under each.
func (p *Player) Play(all []Settings) []Result {
	out := make([]Result, len(all))
	for i, s := range all {
		out[i] = p.one(s)
	}
	return out
}

// Compare puts the settings that need least memory first: by Needed, then by what was reserved, then by calls of the driver.
func Compare(x, y Result) int {
	return cmp.Or(cmp.Compare(x.Failed, y.Failed), cmp.Compare(x.Reserved, y.Reserved), cmp.Compare(x.Needed, y.Needed), cmp.Compare(x.Calls, y.Calls))
}

// one plays the record under some settings.
func (p *Player) one(s Settings) Result {
	a := newAllocator(s, int64(p.Limit))
	rows := p.rows()
	for i, h := range p.held {
		rows[i] = a.take(int64(h.size), poolKey{stream: h.stream, private: h.private})
	}
	a.calls, a.retries = 0, 0
	out := Result{Settings: s}
	note := func() {
		if reserved := snapshot.Bytes(a.reserved); reserved > out.Reserved {
			out.Reserved, out.Live = reserved, snapshot.Bytes(a.active)
		}
		out.Stranded = max(out.Stranded, snapshot.Bytes(a.reserved-a.active-a.givable))
		out.Needed = max(out.Needed, snapshot.Bytes(a.reserved-a.givable))
	}
	note()
	p.each(a, rows, false, func(at row, _ snapshot.Event) {
		if at == none {
			out.Failed++
		}
		note()
	})
	out.Calls, out.Retries, out.Unmet = a.calls, a.retries, a.unmet(p.Limit)
	return out
}

// rows are of no block, one for each slot.
func (p *Player) rows() []row {
	rows := make([]row, p.most)
	for i := range rows {
		rows[i] = none
	}
	return rows
}

// each feeds the record to an allocator, with the recorded places of segments if placed, and calls done after each allocation.
func (p *Player) each(a *allocator, rows []row, placed bool, done func(row, snapshot.Event)) {
	for i, e := range p.record.Events {
		switch e.Kind() {
		case snapshot.EventAlloc:
			slot := p.slots[i]
			if old := rows[slot]; old != none { // nobody saw its free
				a.free(old)
			}
			rows[slot] = a.take(int64(e.Bytes()), poolKey{stream: e.Stream(), private: p.poolAt(e.Address)})
			done(rows[slot], e)
			a.fresh = a.fresh[:0]
		case snapshot.EventFreeCompleted:
			if slot := p.slots[i]; slot != noSlot && rows[slot] != none {
				a.free(rows[slot])
				rows[slot] = none
			}
		case snapshot.EventSegmentAlloc, snapshot.EventSegmentMap:
			if placed {
				a.fresh = append(a.fresh, e)
			}
		case snapshot.EventSegmentFree, snapshot.EventSegmentUnmap:
			if p.emptied[i] {
				a.empty()
			}
		}
	}
}
