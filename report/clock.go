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

// readable is a rate as people read it: by the clock it is for the time in which a block
// comes, or a KiB of what is replaced.
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

// drawn is an axis as pictures show it: by the clock in the largest time of which it has
// two, of size seconds; else size is 1.
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
