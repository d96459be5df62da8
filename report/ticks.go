package report

import (
	"math"
	"strconv"

	"github.com/memdiag/memdiag/snapshot"
	"gonum.org/v1/plot"
)

// byteTicks marks an axis of bytes at round figures of one IEC unit, about five
// to eight of them.
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
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		label := "0"
		if i != 0 {
			label = strconv.FormatFloat(roundTo(i*step/unit), 'f', -1, 64) + " " + name
		}
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

// roundTo takes off what binary fractions leave behind the ninth digit.
func roundTo(v float64) float64 { return math.Round(v*1e9) / 1e9 }

// stepTicks marks whole numbers, with thousands apart.
type stepTicks struct{}

// Ticks implements plot.Ticker.
func (stepTicks) Ticks(low, high float64) []plot.Tick {
	step := max(math.Round(roundStep((high-low)/8)), 1)
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high*(1+1e-9); i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: grouped(int64(i * step))})
	}
	return ticks
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
