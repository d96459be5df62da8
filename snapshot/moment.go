package snapshot

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// At names a moment in the record of a snapshot. The zero value is the end, when the snapshot was taken.
type At struct {
	Kind AtKind
	Step int64         // of AtStep: its end
	Time time.Duration // of AtTime: since the first event of the record
}

// AtKind is the kind of a moment.
type AtKind uint8

// Kinds of moments.
const (
	AtEnd  AtKind = iota
	AtPeak        // most bytes were live
	AtOOM         // the last request that was refused
	AtStep
	AtTime
	AtStart // before the first event
)

// ParseAt reads "peak", "oom", "start", "end", "step:40" or "time:1.5s".
func ParseAt(text string) (At, error) {
	key, value, has := strings.Cut(text, ":")
	switch {
	case text == "end":
		return At{}, nil
	case text == "start":
		return At{Kind: AtStart}, nil
	case text == "peak":
		return At{Kind: AtPeak}, nil
	case text == "oom":
		return At{Kind: AtOOM}, nil
	case key == "step" && has:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 0 {
			return At{Kind: AtStep, Step: n}, nil
		}
		return At{}, fmt.Errorf("step:%s: a step is a number, as in step:40", value)
	case key == "time" && has:
		if d, err := time.ParseDuration(value); err == nil && d >= 0 {
			return At{Kind: AtTime, Time: d}, nil
		}
		return At{}, fmt.Errorf("time:%s: a time is counted from the first event, as in time:1.5s", value)
	}
	return At{}, fmt.Errorf("want peak, oom, start, end, step:N or time:DURATION")
}

// String is what ParseAt reads.
func (a At) String() string {
	switch a.Kind {
	case AtStart:
		return "start"
	case AtPeak:
		return "peak"
	case AtOOM:
		return "oom"
	case AtStep:
		return fmt.Sprintf("step:%d", a.Step)
	case AtTime:
		return "time:" + a.Time.String()
	}
	return "end"
}

// Moment is the moment in the record that a snapshot shows.
type Moment struct {
	At      At
	Device  int       // index in Devices of the device whose events define the moment
	Event   int64     // the place of the last event that counts among those of the record, from 1 on; 0 before the first
	Of      int64     // events of the record
	Time    time.Time // time of that event; zero if events have no times
	Refused *Refused  // at AtOOM
}

// Refused is a request for memory that failed.
type Refused struct {
	Device int // among Devices
	Bytes  Bytes
	Free   Bytes // that the driver had left, of this and all other processes
	Stack  StackID
	Times  int64 // requests that failed in the record
}
