package report

import (
	"fmt"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// moment says which moment of its record a snapshot shows.
func (p *page) moment(s *snapshot.Snapshot, shapes []shape) {
	what, of, lines := momentText(s, shapes)
	if what == "" {
		p.outOfMemory(s)
		return
	}
	p.prose("", "  ", p.paint.bold(what)+of)
	for _, line := range lines {
		p.prose("  ", "    ", line)
	}
	p.line("")
}

// outOfMemory writes the failed request of a record that is shown at its end.
func (p *page) outOfMemory(s *snapshot.Snapshot) {
	if text := OutOfMemory(s); text != "" {
		p.prose("", "  ", p.paint.bold(text))
	}
}

// OutOfMemory says which request for memory in a snapshot's record failed last, and where; "" if none did, and for nil.
func OutOfMemory(s *snapshot.Snapshot) string {
	if s == nil || s.History.Refused == nil {
		return ""
	}
	r := s.History.Refused
	on := deviceName(s.Devices[r.Device])
	if s.Rank != snapshot.NoRank {
		on += fmt.Sprintf(" of rank %d", s.Rank)
	}
	text := fmt.Sprintf("out of memory on %s: %s was asked for %s, the driver had %s left", on, r.Bytes, askedAt(s, r.Stack), r.Free)
	if r.Times > 1 {
		text += fmt.Sprintf("; %s failed there", count(r.Times, "request"))
	}
	return text + " (memdiag show RUN --at oom)"
}

// momentTitle names the moment of its record that a snapshot shows; "" for the end.
func momentTitle(s *snapshot.Snapshot) string {
	m := s.Moment
	switch {
	case m == nil:
		return ""
	case m.Refused != nil:
		return "out of memory on " + deviceName(s.Devices[m.Device])
	}
	return momentName(m.At) + " of " + deviceName(s.Devices[m.Device])
}

// momentText says which moment of its record a snapshot shows: a first sentence in two parts, and more lines. For an out-of-memory
// error they say what was requested, what was free and what was missing. All are empty at the end of a record.
func momentText(s *snapshot.Snapshot, shapes []shape) (what, of string, lines []string) {
	m := s.Moment
	if m == nil {
		return "", "", nil
	}
	device := s.Devices[m.Device]
	what = momentTitle(s)
	if r := m.Refused; r != nil {
		of = fmt.Sprintf(": %s was asked for, the driver had %s left, %s was live", glue(r.Bytes.String()), glue(r.Free.String()), glue(device.Meters.Allocated.String()))
		lines = append(lines, "asked for "+askedAt(s, r.Stack), shortfall(r, shapes[m.Device].fragments, device.Meters.Active-device.Meters.Allocated))
		if r.Times > 1 {
			lines = append(lines, fmt.Sprintf("%s failed in the history; this is the last", count(r.Times, "request")))
		}
	}
	lines = append(lines, "shown: "+momentPlace(s))
	if others := len(s.Devices) - 1; others > 0 {
		switch m.At.Kind {
		case snapshot.AtPeak:
			lines = append(lines, "each GPU is shown at its own peak")
		case snapshot.AtOOM:
			lines = append(lines, "other devices are shown at their own last failure, or at the end of the history")
		}
	}
	return what, of, lines
}

// momentName is a moment in words.
func momentName(at snapshot.At) string {
	switch at.Kind {
	case snapshot.AtPeak:
		return "the peak"
	case snapshot.AtStart:
		return "the beginning of the history"
	case snapshot.AtStep:
		return "the end of step " + grouped(at.Step)
	}
	return duration(at.Time) + " after the first event"
}

// momentPlace is "event 1,200 of 5,000, 0.8 s after the first".
func momentPlace(s *snapshot.Snapshot) string {
	m := s.Moment
	text := fmt.Sprintf("event %s of %s", grouped(m.Event), grouped(m.Of))
	if !m.Time.IsZero() && !s.History.First.IsZero() {
		text += ", " + duration(max(m.Time.Sub(s.History.First), 0).Round(time.Millisecond)) + " after the first"
	}
	return text
}

func askedAt(s *snapshot.Snapshot, stack snapshot.StackID) string {
	if stack == snapshot.NoStack {
		return "by a call that is not in the history"
	}
	return "at " + whereOf(s.Stacks.Frames(stack), "").text()
}

// shortfall says by how much a request failed, and what memory could have been released for it: the cache, and freed memory that a
// stream still uses.
func shortfall(r *snapshot.Refused, f fragments, pending snapshot.Bytes) string {
	lacked := r.Bytes - r.Free
	if lacked <= 0 {
		return "the GPU had enough free memory. A limit on the process refused the request (for example set_per_process_memory_fraction)"
	}
	text := "it lacked " + glue(lacked.String())
	switch {
	case f.free == 0:
		text += "; no block was cached"
	case f.empty >= lacked:
		text += fmt.Sprintf("; %s lay in %s without a live block", glue(f.empty.String()), count(int64(f.emptySegments), "segment"))
	case f.free >= r.Bytes:
		text += fmt.Sprintf("; %s was free between live blocks, the largest piece %s: fragmentation (memdiag explain fragmentation)", glue(f.free.String()), glue(f.largestFree.String()))
	default:
		text += fmt.Sprintf("; %s was free in the cache, the largest piece %s", glue(f.free.String()), glue(f.largestFree.String()))
	}
	if pending > 0 {
		text += fmt.Sprintf("; %s had been freed, but a stream still used it", glue(pending.String()))
	}
	return text
}

// momentJSON is a moment in JSON.
type momentJSON struct {
	At      string       `json:"at"`
	Device  string       `json:"device"`
	Event   int64        `json:"event"`
	Events  int64        `json:"events"`
	Time    *time.Time   `json:"time,omitempty"`
	Refused *refusedJSON `json:"refused,omitempty"`
}

type refusedJSON struct {
	Device string      `json:"device"`
	Bytes  int64       `json:"requested_bytes"`
	Free   int64       `json:"driver_free_bytes"`
	Times  int64       `json:"times"`
	Where  string      `json:"where"`
	Frames []frameJSON `json:"frames"`
}

func momentOf(s *snapshot.Snapshot) *momentJSON {
	m := s.Moment
	if m == nil {
		return nil
	}
	return &momentJSON{At: m.At.String(), Device: deviceName(s.Devices[m.Device]), Event: m.Event, Events: m.Of, Time: knownTime(m.Time), Refused: refusedOf(s, m.Refused)}
}

func refusedOf(s *snapshot.Snapshot, r *snapshot.Refused) *refusedJSON {
	if r == nil {
		return nil
	}
	frames := s.Stacks.Frames(r.Stack)
	return &refusedJSON{Device: deviceName(s.Devices[r.Device]), Bytes: int64(r.Bytes), Free: int64(r.Free), Times: r.Times, Where: whereOf(frames, "").text(), Frames: framesOf(frames)}
}
