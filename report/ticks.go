package report

import (
	"math"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
	"gonum.org/v1/plot"
)

// byteTicks marks an axis of bytes at about five to eight round values of one IEC unit.
type byteTicks struct{}

// Ticks implements plot.Ticker.
func (byteTicks) Ticks(low, high float64) []plot.Tick {
	unit, name := 1.0, "B"
	for _, u := range []struct {
		size snapshot.Bytes
		name string
	}{{snapshot.KiB, "KiB"}, {snapshot.MiB, "MiB"}, {snapshot.GiB, "GiB"}, {snapshot.TiB, "TiB"}} {
		if high >= float64(u.size) {
			unit, name = float64(u.size), u.name
		}
	}
	step := roundStep((high-low)/6/unit) * unit
	if unit == 1 {
		step = max(step, 1)
	}
	var ticks []plot.Tick
	for _, v := range multiples(step, low, high) {
		label := "0"
		if v != 0 {
			label = strconv.FormatFloat(roundTo(v/unit), 'f', -1, 64) + " " + name
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: label})
	}
	return ticks
}

// maxTicks is more than an axis of six to eight steps ever has.
const maxTicks = 20

// multiples lists the multiples of step from low to high, ascending, at most maxTicks. If low is so large that a step is lost in
// rounding, some are left out.
func multiples(step, low, high float64) []float64 {
	var out []float64
	first := math.Ceil(low / step)
	for i := range maxTicks {
		v := (first + float64(i)) * step
		if v > high+1e-9*math.Abs(high) {
			break
		}
		if n := len(out); v >= low && (n == 0 || v > out[n-1]) {
			out = append(out, v)
		}
	}
	return out
}

// roundTo removes the rounding errors of binary fractions after the ninth digit.
func roundTo(v float64) float64 { return math.Round(v*1e9) / 1e9 }

// stepTicks marks whole numbers, with a separator for thousands.
type stepTicks struct{}

// Ticks implements plot.Ticker.
func (stepTicks) Ticks(low, high float64) []plot.Tick {
	step := max(math.Round(roundStep((high-low)/8)), 1)
	var ticks []plot.Tick
	for _, v := range multiples(step, low, high) {
		ticks = append(ticks, plot.Tick{Value: v, Label: wholeNumber(v)})
	}
	return ticks
}

// wholeNumber groups thousands. The last step may round to a float of 2^63, which does not fit into an int64.
func wholeNumber(v float64) string {
	if v >= math.MaxInt64 {
		return grouped(math.MaxInt64)
	}
	return grouped(int64(math.Round(v)))
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten not below v.
func roundStep(v float64) float64 {
	if v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}
