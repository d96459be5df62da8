package diff

import (
	"fmt"

	"github.com/memdiag/memdiag/diff/cause"
	"github.com/memdiag/memdiag/snapshot"
)

// Reserve is a device whose reserved memory went on growing while its live memory
// did not: no leak, but memory that others cannot have.
type Reserve struct {
	Device   snapshot.Device
	Growth   snapshot.Bytes // of reserved memory, after warm-up
	Live     snapshot.Bytes // growth of live memory meanwhile
	Free     snapshot.Bytes // reserved and not in use, in the last snapshot
	Largest  snapshot.Bytes // of the free blocks
	Trim     snapshot.Bytes // in segments without a block in use: what an emptied cache gives back
	Cause    *cause.Cause   // cache growth, or fragmentation
	CauseWhy string
}

// reserves looks at every device. Reserved memory counts as growing where it rose
// twice or more after warm-up, since every program takes segments when it begins,
// and as grown by itself where live memory explains less than half of it.
func (r *Result) reserves() []Reserve {
	var out []Reserve
	for d, meters := range r.Series.Meters {
		if len(meters) != len(r.Series.Marks) || len(meters) < 4 {
			continue
		}
		tail := meters[warmUp(len(meters)):]
		rises, last := 0, tail[len(tail)-1]
		for i := 1; i < len(tail); i++ {
			if tail[i].Reserved > tail[i-1].Reserved {
				rises++
			}
		}
		e := Reserve{Device: r.Series.Devices[d], Growth: last.Reserved - tail[0].Reserved, Live: last.Active - tail[0].Active}
		half := tail[len(tail)/2]
		if rises < 2 || e.Growth <= 0 || last.Reserved <= half.Reserved || e.Live > e.Growth/2 {
			continue
		}
		e.look(r.Last)
		meter := cause.CacheGrowth
		if e.Trim < e.Free/2 {
			meter = cause.Fragmentation
		}
		if fit := cause.Matches(&cause.Evidence{Meter: meter}); len(fit) > 0 {
			e.Cause, e.CauseWhy = fit[0].Cause, fit[0].Why
		}
		out = append(out, e)
	}
	return out
}

// look measures what is reserved and not in use.
func (e *Reserve) look(s *snapshot.Snapshot) {
	for i := range s.Segments {
		seg := &s.Segments[i]
		if d := s.Devices[seg.Device]; d.Kind != e.Device.Kind || d.Index != e.Device.Index || seg.NumBlocks == 0 {
			continue
		}
		var free snapshot.Bytes
		for at := seg.FirstBlock; at < seg.FirstBlock+seg.NumBlocks; at++ {
			if s.Blocks.State[at] == snapshot.Free {
				free += s.Blocks.Size[at]
				e.Largest = max(e.Largest, s.Blocks.Size[at])
			}
		}
		e.Free += free
		if free == seg.Size {
			e.Trim += free
		}
	}
}

// String says it in one sentence.
func (e *Reserve) String() string {
	name := "cache growth"
	if e.Cause != nil {
		name = e.Cause.Name
	}
	return fmt.Sprintf("reserved memory of %s grew by %s after warm-up while live memory changed by %s. That is no leak: %s. Now %s are free, the largest block is %s, and an emptied cache would give back %s",
		deviceName(e.Device.Kind, e.Device.Index), e.Growth, e.Live, name, e.Free, e.Largest, e.Trim)
}
