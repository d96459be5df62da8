package report

import (
	"math"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// times are units of time with their length in seconds.
var times = [...]struct {
	name    diff.Unit
	seconds float64
}{{"second", 1}, {"minute", 60}, {"hour", 3600}}

// readable is a rate in a unit that people read easily. A rate per second becomes one per the shortest time in which a block is added,
// or a KiB if blocks are only replaced.
func readable(r diff.Rate) diff.Rate {
	if r.Unit != diff.Second {
		return r
	}
	var out diff.Rate
	for _, t := range times {
		out = diff.Rate{Unit: t.name, Blocks: multiplied(r.Blocks, t.seconds), Bytes: multiplied(r.Bytes, t.seconds)}
		if math.Abs(out.Blocks.Value) >= 1 || out.Blocks.Value == 0 && (math.Abs(out.Bytes.Value) >= float64(snapshot.KiB) || out.Bytes.Value == 0) {
			break
		}
	}
	return out
}

// each is a unit with its article: "a step", "an hour".
func each(u diff.Unit) string {
	if u == "hour" {
		return "an hour"
	}
	return "a " + string(u)
}

// drawn is an axis in the unit that pictures use. A time axis is in the largest unit of which it covers at least two; size is that unit
// in seconds. Otherwise size is 1.
func drawn(a diff.Axis) (unit diff.Unit, size float64, x []float64) {
	unit, size = a.Unit, 1
	for _, t := range times {
		if a.Unit == diff.Second && a.Length() >= 2*t.seconds {
			unit, size = t.name, t.seconds
		}
	}
	x = make([]float64, len(a.X))
	for i, v := range a.X {
		x[i] = v / size
	}
	return unit, size, x
}

func multiplied(s trend.Slope, n float64) trend.Slope {
	return trend.Slope{Value: n * s.Value, Low: n * s.Low, High: n * s.High, N: s.N}
}
