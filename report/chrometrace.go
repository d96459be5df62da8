package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// traceBlocks is how many blocks a trace lists one by one; Perfetto draws a row for each live block.
const traceBlocks = 5000

// traceEvent is an event of Chrome's trace event format, which Perfetto and chrome://tracing open.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	ID       int            `json:"id,omitempty"`
	Time     float64        `json:"ts"` // microseconds
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// ChromeTrace writes a timeline as Chrome's trace events: counters of live and reserved memory, the blocks with the most bytes ×
// events, steps, and requests that failed. If the record has no times, an event counts as a microsecond.
func ChromeTrace(w io.Writer, s *snapshot.Snapshot, line *snapshot.Timeline) error {
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	var failed error
	separator := "{\"traceEvents\":[\n"
	write := func(e traceEvent) {
		if failed == nil {
			_, failed = out.WriteString(separator)
		}
		if failed == nil {
			failed = encoder.Encode(e)
		}
		separator = ","
	}
	clock := clockOf(line)
	device := deviceName(s.Devices[line.Device])
	write(traceEvent{Name: "process_name", Phase: "M", Args: map[string]any{"name": "memory of " + device}})
	for i, b := range line.Bins {
		write(traceEvent{Name: "memory", Phase: "C", Time: clock.at(int64(i)*line.BinEvents + 1), Args: map[string]any{"live": int64(b.Live), "reserved but not live": int64(max(b.Reserved-b.Live, 0))}})
	}
	for i, l := range largestLives(line) {
		frames := s.Stacks.Frames(l.Stack)
		name := "<no stack recorded>"
		if len(frames) > 0 {
			name = unglued(whereOf(frames, "").text())
		}
		e := traceEvent{Name: name, Phase: "b", Category: "block", ID: i + 1, Time: clock.at(l.Born), TID: 1, Args: map[string]any{"bytes": int64(l.Size), "stack": stackText(frames)}}
		write(e)
		died := l.Died
		if died == 0 {
			died = line.Events
		}
		write(traceEvent{Name: name, Phase: "e", Category: "block", ID: i + 1, Time: clock.at(died), TID: 1})
	}
	last := 0.0
	for i, end := range line.Steps {
		write(traceEvent{Name: "step " + grouped(int64(i+1)), Phase: "B", Time: last, TID: 2})
		last = clock.at(end)
		write(traceEvent{Name: "step " + grouped(int64(i+1)), Phase: "E", Time: last, TID: 2})
	}
	for _, r := range line.Refused {
		write(traceEvent{Name: "out of memory: " + r.Bytes.String(), Phase: "i", Scope: "g", Time: clock.at(r.Event)})
	}
	if failed == nil {
		_, failed = out.WriteString("],\"displayTimeUnit\":\"ms\"}\n")
	}
	return cmp.Or(failed, out.Flush())
}

// largestLives lists the lives with the most bytes × events, in the order of their births.
func largestLives(line *snapshot.Timeline) []snapshot.Life {
	area := func(l snapshot.Life) float64 {
		died := l.Died
		if died == 0 {
			died = line.Events + 1
		}
		return float64(l.Size) * float64(died-l.Born)
	}
	lives := slices.Clone(line.Lives)
	slices.SortStableFunc(lives, func(x, y snapshot.Life) int { return cmp.Compare(area(y), area(x)) })
	lives = lives[:min(traceBlocks, len(lives))]
	slices.SortStableFunc(lives, func(x, y snapshot.Life) int { return cmp.Compare(x.Born, y.Born) })
	return lives
}

// stackText is a stack in one line, the innermost call first.
func stackText(frames []snapshot.Frame) string {
	var calls []string
	for _, i := range drawnCalls(frames) {
		calls = append(calls, shortLabel(frames[i]))
	}
	slices.Reverse(calls)
	return strings.Join(calls, " ← ")
}

// eventClock gives the times of events, in microseconds since the first that has a time.
type eventClock struct {
	starts []float64 // of each bin; never decreasing, though a file's times may
	width  int64
	timed  bool
}

func clockOf(line *snapshot.Timeline) eventClock {
	c := eventClock{starts: make([]float64, len(line.Bins)), width: line.BinEvents}
	var first time.Time
	last := 0.0
	for i, b := range line.Bins {
		if first.IsZero() {
			first = b.Time
		}
		if !b.Time.IsZero() {
			last = max(last, float64(b.Time.Sub(first).Microseconds()))
		}
		c.starts[i] = last
	}
	c.timed = last > 0
	return c
}

// at is the time of an event. Only the first event of each bin has a known time; events are assumed to be spread evenly in a bin.
func (c eventClock) at(event int64) float64 {
	if !c.timed || event < 1 {
		return float64(event)
	}
	i := min((event-1)/c.width, int64(len(c.starts)-1))
	if i+1 == int64(len(c.starts)) {
		return c.starts[i]
	}
	share := float64(event-1-i*c.width) / float64(c.width)
	return c.starts[i] + share*(c.starts[i+1]-c.starts[i])
}
