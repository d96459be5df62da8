package series

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Unit is the unit of an axis.
type Unit string

// The units. Programs without steps, such as servers, are recorded by the clock.
const (
	Step   Unit = "step"
	Second Unit = "second"
	Place  Unit = "snapshot" // only the order is known
	Batch  Unit = "batch"    // a step of a loader's worker; only rates have it, axes count steps
)

// Axis gives the marks' positions: completed steps if each mark has a later step than the one before; else seconds
// since the first mark, if each has a later time; else places in the order.
type Axis struct {
	Unit Unit
	X    []float64 // ascending, one for each mark
}

// axisOf returns the axis of marks that were taken at instants, in microseconds as LastInstant returns them.
func axisOf(marks []snapshot.Mark, instants []int64) Axis {
	steps, timed := true, true
	for i, m := range marks {
		steps = steps && m.Step != snapshot.NoStep && (i == 0 || m.Step > marks[i-1].Step)
		timed = timed && instants[i] != 0 && (i == 0 || instants[i] > instants[i-1])
	}
	a := Axis{Place, make([]float64, len(marks))}
	for i, m := range marks {
		switch {
		case steps:
			a.Unit, a.X[i] = Step, float64(m.Step)
		case timed:
			a.Unit, a.X[i] = Second, float64(instants[i]-instants[0])/1e6
		default:
			a.X[i] = float64(i)
		}
	}
	return a
}

// PairAxis is the axis of two snapshots.
func PairAxis(first, last *snapshot.Snapshot) Axis {
	return axisOf([]snapshot.Mark{first.Mark, last.Mark}, []int64{LastInstant(first), LastInstant(last)})
}

// Length is the distance from the first mark to the last.
func (a Axis) Length() float64 {
	if len(a.X) == 0 {
		return 0
	}
	return a.X[len(a.X)-1] - a.X[0]
}

// Growth is bytes per unit.
type Growth struct {
	Bytes snapshot.Bytes
	Unit  Unit
}

func (g Growth) String() string { return g.Bytes.String() + "/" + string(g.Unit) }

// ParseGrowth reads "4KiB/step", "4KiB/second" or "4KiB/snapshot".
func ParseGrowth(text string) (Growth, error) {
	size, unit, ok := strings.Cut(text, "/")
	g := Growth{Unit: Unit(strings.TrimSpace(unit))}
	if !ok || g.Unit != Step && g.Unit != Second && g.Unit != Place {
		return Growth{}, fmt.Errorf("%q is no growth; write 4KiB/step", text)
	}
	var err error
	if g.Bytes, err = snapshot.ParseBytes(size); err == nil && g.Bytes < 0 {
		err = errors.New("a bound is not negative")
	}
	return g, err
}

// least is the smallest distance at which two events can be told apart.
func (u Unit) least() float64 {
	if u == Second {
		return 0
	}
	return 1
}

// Text is "12 steps", or "40 minutes".
func (u Unit) Text(v float64) string {
	one, many := string(u), u.Plural()
	if u == Second {
		for _, larger := range []struct {
			size float64
			name string
		}{{86400, "day"}, {3600, "hour"}, {60, "minute"}} {
			if v >= 2*larger.size {
				v, one, many = v/larger.size, larger.name, larger.name+"s"
				break
			}
		}
		if v > 0 && v < 0.95 {
			v, one, many = 1000*v, "millisecond", "milliseconds"
		}
	}
	if v = math.Round(v); v == 1 {
		many = one
	}
	return snapshot.Grouped(int64(min(v, math.MaxInt64/2))) + " " + many
}

// Plural is "steps", or "batches".
func (u Unit) Plural() string {
	if u == Batch {
		return "batches"
	}
	return string(u) + "s"
}

// JudgedBy names what a run without steps is judged by.
func (u Unit) JudgedBy() string {
	if u == Second {
		return "the clock"
	}
	return "their order"
}

// Moment is "step 12", or "40 minutes after the first snapshot".
func (u Unit) Moment(x float64) string {
	if u == Second {
		return u.Text(x) + " after the first snapshot"
	}
	return string(u) + " " + snapshot.Grouped(int64(math.Round(x)))
}

// Duration converts seconds, up to the longest time.Duration.
func Duration(seconds float64) time.Duration {
	if v := seconds * float64(time.Second); v < math.MaxInt64 {
		return time.Duration(v)
	}
	return math.MaxInt64
}

// Fine is the number of parts of the unit that are distinguished: a run by the clock may last for a second only.
func (a *Axis) Fine() float64 {
	if a.Unit == Second {
		return 1000
	}
	return 1
}
