package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// part is one stage of a device's waterfall.
type part struct {
	name  string // in text
	key   string // in JSON
	bytes snapshot.Bytes
}

// requestUnit is the unit to which PyTorch's allocator, and the engine's, round requests up. A block that is larger than that was too
// small to split.
const requestUnit = 512

// shape is how a device's memory is used.
type shape struct {
	segments  []*snapshot.Segment // in the snapshot's order
	parts     []part
	fragments fragments
}

// shapesOf returns the shapes of a snapshot's devices, in their order. It goes over the segments once, however many devices there are.
func shapesOf(s *snapshot.Snapshot) []shape {
	out := make([]shape, len(s.Devices))
	python := slices.ContainsFunc(s.Devices, func(d snapshot.Device) bool { return d.Kind == snapshot.PythonHeap })
	for i := range s.Segments {
		own := &out[s.Segments[i].Device].segments
		*own = append(*own, &s.Segments[i])
	}
	for i := range out {
		d := &out[i]
		d.fragments = fragmentsOf(s, d.segments)
		d.parts = waterfall(s.Devices[i], unsplitOf(s, d.segments), d.fragments, python)
	}
	return out
}

// waterfall divides the driver's figure of a device, or the reserved bytes if that is unknown, into parts that sum to it. A part is
// negative if the meters contradict one another. In a process that runs Python, the rest includes the memory of Python's own allocator:
// only larger objects are in the heap.
func waterfall(d snapshot.Device, unsplit snapshot.Bytes, f fragments, python bool) []part {
	m := d.Meters
	cached := m.Reserved - m.Active
	whole := cached // in segments without live blocks
	if f.freeBlocks > 0 {
		whole = min(max(f.empty, 0), max(cached, 0))
	}
	cache := "cached, in empty segments"
	if d.Kind == snapshot.Process {
		cache = "free in the heap"
	}
	parts := []part{
		{"live, as requested", "live_bytes", m.Requested},
		{"rounded up", "rounding_bytes", m.Allocated - m.Requested - unsplit},
		{"rest of blocks not split", "unsplit_bytes", unsplit},
		{"freed, a stream still uses it", "pending_bytes", m.Active - m.Allocated},
		{"free between live blocks", "fragmented_bytes", cached - whole},
		{cache, "cached_bytes", whole},
	}
	if m.Driver != snapshot.Unknown {
		other := "other: libraries, context"
		rest := m.Driver - m.Reserved
		switch {
		case d.Communicators == 1:
			other = "other: libraries, context, 1 communicator"
		case d.Communicators > 1:
			other = fmt.Sprintf("other: libraries, context, %d communicators", d.Communicators)
		}
		if logged := min(d.NCCL, rest); logged > 0 {
			parts, rest = append(parts, part{"buffers of NCCL, by its log", "nccl_bytes", logged}), rest-logged
		}
		if inRAM(d) {
			other = "rest of the process: code, libraries"
		}
		if python && d.Kind == snapshot.Process {
			other = "rest of the process: small Python objects, code, libraries"
		}
		parts = append(parts, part{other, "other_bytes", rest})
	}
	return parts
}

// shownParts are the parts that are shown. The machine's own memory has no streams and no blocks to split, so its empty parts are left
// out.
func shownParts(d snapshot.Device, parts []part) []part {
	if !inRAM(d) {
		return parts
	}
	return slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return p.bytes == 0 })
}

// unsplitOf is how much larger live blocks of segments are than their rounded requests.
func unsplitOf(s *snapshot.Snapshot, segments []*snapshot.Segment) snapshot.Bytes {
	var sum snapshot.Bytes
	for _, seg := range segments {
		for b := seg.FirstBlock; b < seg.FirstBlock+seg.NumBlocks; b++ {
			if asked := s.Blocks.Requested[b]; (s.Blocks.Count == nil || s.Blocks.Count[b] == 1) && s.Blocks.State[b] == snapshot.Live && asked > 0 {
				sum += max(0, s.Blocks.Size[b]-(asked+requestUnit-1)/requestUnit*requestUnit)
			}
		}
	}
	return sum
}

// pinShare: live memory pins a segment if it is less than this share of it.
const pinShare = 0.05

// fragments describes the fragmentation of a device's segments.
type fragments struct {
	freeBlocks  int
	free        snapshot.Bytes
	largestFree snapshot.Bytes
	// emptySegments hold no live or pending block: emptying the cache releases them.
	emptySegments int
	empty         snapshot.Bytes
	// pinnedSegments could be released if they had not some blocks, of less than pinShare.
	pinnedSegments int
	pinned         snapshot.Bytes
	pins           []pin // most segments first
}

// pin is a stack whose blocks pin segments.
type pin struct {
	stack    snapshot.StackID
	segments int
	bytes    snapshot.Bytes // of these segments; a segment counts for each stack in it
}

func fragmentsOf(s *snapshot.Snapshot, segments []*snapshot.Segment) fragments {
	var out fragments
	pins := make(map[snapshot.StackID]*pin)
	for _, seg := range segments {
		var held snapshot.Bytes
		stacks := make(map[snapshot.StackID]struct{})
		for b := seg.FirstBlock; b < seg.FirstBlock+seg.NumBlocks; b++ {
			size := s.Blocks.Size[b]
			if s.Blocks.State[b] != snapshot.Free {
				held += size
				stacks[s.Blocks.Stack[b]] = struct{}{}
				continue
			}
			out.freeBlocks++
			out.free += size
			out.largestFree = max(out.largestFree, size)
		}
		switch {
		case held == 0:
			out.emptySegments++
			out.empty += seg.Size
		case float64(held) < pinShare*float64(seg.Size):
			out.pinnedSegments++
			out.pinned += seg.Size
			for stack := range stacks {
				if pins[stack] == nil {
					pins[stack] = &pin{stack: stack}
				}
				pins[stack].segments++
				pins[stack].bytes += seg.Size
			}
		}
	}
	for _, p := range pins {
		out.pins = append(out.pins, *p)
	}
	slices.SortFunc(out.pins, func(a, b pin) int {
		return cmp.Or(cmp.Compare(b.segments, a.segments), cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.stack, b.stack))
	})
	return out
}

// ages are the live blocks by the quarter of the run in which they were born.
type ages struct {
	unit     string // "step", "time", or "event"
	from, to int64  // the whole period, in steps, Unix microseconds or events
	quarters [4]diff.Tally
	unseen   [4]diff.Tally // part of quarters that is spread over steps that were not recorded
	unknown  diff.Tally    // blocks whose birth is unknown
}

// guessed reports whether some births are in steps that were not recorded.
func (a *ages) guessed() bool { return a.unseen != [4]diff.Tally{} }

// start is the first step (or instant) of quarter i.
func (a *ages) start(i int) int64 { return a.from + ((a.to-a.from)*int64(i)+3)/4 }

// agesOf sums live blocks by quarter. It reports false if no live block has a birth, or the run has no length. Births that were not
// observed are spread as in diff.Unseen.
func agesOf(s *snapshot.Snapshot, unseen []diff.Unseen) (ages, bool) {
	if a, ok := agesBy(s, "step", s.Blocks.BirthStep, snapshot.NoStep, 0, s.Mark.Step); ok {
		for i := range a.unseen {
			for j := range unseen {
				a.unseen[i] = plus(a.unseen[i], unseen[j].Within(a.start(i), a.start(i+1)))
			}
			a.quarters[i] = plus(a.quarters[i], a.unseen[i])
		}
		return a, true
	}
	if s.Blocks.BirthEvent != nil {
		return agesBy(s, "event", s.Blocks.BirthEvent, 0, 0, s.History.Events)
	}
	from, to := s.History.First, s.History.Last
	if to.IsZero() {
		to = s.Mark.Time
	}
	return agesBy(s, "time", s.Blocks.BirthTime, 0, micros(from), micros(to))
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func agesBy(s *snapshot.Snapshot, unit string, births []int64, unknown, from, to int64) (ages, bool) {
	a := ages{unit: unit, from: from, to: to}
	if births == nil || to-from < int64(len(a.quarters)) || unit == "time" && from == 0 {
		return a, false
	}
	known := false
	for i, state := range s.Blocks.State {
		if state != snapshot.Live {
			continue
		}
		one := diff.Tally{Blocks: s.Blocks.CountOf(i), Bytes: s.Blocks.Size[i], Requested: s.Blocks.Requested[i]}
		if births[i] == unknown {
			a.unknown = plus(a.unknown, one)
			continue
		}
		known = true
		at := (births[i] - from) * 4 / (to - from)
		q := &a.quarters[min(max(at, 0), 3)]
		*q = plus(*q, diff.SeenOf(&s.Blocks, i))
	}
	return a, known
}
