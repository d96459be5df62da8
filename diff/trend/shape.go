package trend

import (
	"math"
	"slices"
)

// Hinge fits y by a line that is flat up to one of the points and then rises (or falls). It returns the index of the
// point with the least sum of squares, and the slope after it. Fewer than three points give 0 and 0.
func Hinge(x, y []float64) (at int, slope float64) {
	if len(x) < 3 {
		return 0, 0
	}
	best := math.Inf(1)
	for i := range len(x) - 1 {
		// Least squares of y on max(0, x - x[i]).
		var meanU, meanY, uy, uu float64
		n := float64(len(x))
		for k := range x {
			meanU += max(0, x[k]-x[i]) / n
			meanY += y[k] / n
		}
		for k := range x {
			u := max(0, x[k]-x[i]) - meanU
			uy += u * (y[k] - meanY)
			uu += u * u
		}
		if uu == 0 {
			continue
		}
		b := uy / uu
		rest := 0.0
		for k := range x {
			e := y[k] - meanY - b*(max(0, x[k]-x[i])-meanU)
			rest += e * e
		}
		if rest < best*(1-1e-12) { // the earliest of equals
			best, at, slope = rest, i, b
		}
	}
	return at, slope
}

// Accelerates reports whether the increments of y rise throughout, and are at least half as large again in the second
// half as in the first: growth that feeds itself, such as t². Growth that only begins late, or stops, does not count.
// It needs at least eight points.
func Accelerates(x, y []float64) bool {
	n := len(x)
	if n < 8 {
		return false
	}
	rates := make([]float64, n-1)
	for i := range rates {
		rates[i] = (y[i+1] - y[i]) / (x[i+1] - x[i])
	}
	half := len(rates) / 2
	early, late := mean(rates[:half]), mean(rates[len(rates)-half:])
	if early <= 0 || late < 1.5*early {
		return false
	}
	for _, part := range [][]float64{rates[:half], rates[len(rates)-half:]} {
		if mean(part[len(part)/2:]) <= mean(part[:len(part)/2]) {
			return false // one step up between two steady rates, not an acceleration
		}
	}
	t := MannKendall(rates)
	return t.Z > 0 && t.P < 0.01
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// Doubles reports whether y, in full, never falls, and each of its last four rises multiplies y by about the same
// factor, after a wait that has grown by that factor. A buffer does so if it is enlarged by a factor whenever linear
// growth has filled it. At the end the next rise must not be overdue. It is false for fewer than four rises.
func Doubles(x, y []float64) bool {
	type stair struct{ x, factor float64 }
	var stairs []stair
	for i := 1; i < len(y); i++ {
		switch {
		case y[i] < y[i-1]:
			return false
		case y[i] > y[i-1] && y[i-1] > 0:
			stairs = append(stairs, stair{x[i], y[i] / y[i-1]})
		}
	}
	const least = 4
	if len(stairs) < least {
		return false
	}
	stairs = stairs[len(stairs)-least:]
	low, high := math.Inf(1), 0.0
	for _, s := range stairs {
		low, high = min(low, s.factor), max(high, s.factor)
	}
	if low < 1.25 || high > 1.35*low {
		return false
	}
	for i := 2; i < least; i++ {
		wait, before := stairs[i].x-stairs[i-1].x, stairs[i-1].x-stairs[i-2].x
		if wait < 0.6*low*before || wait > 1.7*high*before {
			return false
		}
	}
	last := stairs[least-1].x - stairs[least-2].x
	return x[len(x)-1]-stairs[least-1].x <= 1.25*high*last
}

// Drift is the one-sided chance that a walk without drift rises as much as y. It is Student's t of the increments.
// Their variance is increased if neighbours are correlated. Noise about a level, a bounded walk, and a few large
// steps have a large chance, unlike values that rise by about the same each time. It is 1 for fewer than four points
// and for y that does not rise.
func Drift(y []float64) float64 {
	x := make([]float64, len(y))
	for i := range x {
		x[i] = float64(i)
	}
	return DriftAlong(x, y)
}

// DriftAlong is Drift at an ascending x whose points may be uneven: the variance of a walk's increment is
// proportional to the length of its interval.
func DriftAlong(x, y []float64) float64 {
	n := len(y) - 1
	if n < 3 || y[n] <= y[0] {
		return 1
	}
	rate := (y[n] - y[0]) / (x[n] - x[0])
	rest := make([]float64, n)
	variance := 0.0
	for i := range rest {
		length := x[i+1] - x[i]
		rest[i] = (y[i+1] - y[i] - rate*length) / math.Sqrt(length)
		variance += rest[i] * rest[i] / float64(n-1)
	}
	if variance == 0 {
		return 0
	}
	if r := autocorrelation(rest)[1]; r > 0 {
		variance *= (1 + r) / (1 - r)
	}
	t := rate * math.Sqrt((x[n]-x[0])/variance)
	return StudentTail(t, float64(n-1))
}

// Climbs reports whether y never falls, and rises at least as often as rises says, with no stretch without a rise
// longer than the share gap of x.
func Climbs(x, y []float64, rises int, gap float64) bool {
	var at []float64
	for i := 1; i < len(y); i++ {
		switch {
		case y[i] < y[i-1]:
			return false
		case y[i] > y[i-1]:
			at = append(at, x[i])
		}
	}
	return len(at) >= rises && LargestGap(at, x[0], x[len(x)-1]) <= gap
}

// PoissonTail is the chance of at most k events if that many are expected.
func PoissonTail(expected float64, k int) float64 {
	if expected <= 0 {
		return 1
	}
	sum := 0.0
	for i := 0; i <= k; i++ {
		factorial, _ := math.Lgamma(float64(i + 1)) // exp(-expected) alone is 0 from 746 on
		sum += math.Exp(float64(i)*math.Log(expected) - expected - factorial)
	}
	return min(sum, 1)
}

// Stopped reports whether y, in full, rose and then stayed constant for too long for growth that goes on. idle is
// that stretch. It must be more than twice the longest earlier stretch without a rise. And chance must leave such a
// stretch in fewer than one case in a thousand, either of as many rises spread at random over x or, if idle is a
// twentieth of x or more, of points that rise as often as the earlier ones.
func Stopped(x, y []float64) (idle float64, stopped bool) {
	n := len(y)
	rises, last, longest := 0, 0, 0.0
	for i := 1; i < n; i++ {
		if y[i] > y[i-1] {
			longest = max(longest, x[i]-x[last])
			rises, last = rises+1, i
		}
	}
	if rises == 0 || slices.Min(y[last:]) < y[last] {
		return 0, false
	}
	const chance = 0.001
	idle = x[n-1] - x[last]
	length := x[n-1] - x[0]
	left := math.Pow((x[last]-x[0])/length, float64(rises))
	if 20*idle >= length {
		left = min(left, math.Pow(1-float64(rises)/float64(last+1), float64(n-1-last)))
	}
	return idle, idle > 2*longest && left < chance
}

// Tapers reports whether y, in full, rose in each of many intervals, and then, in an end of at most the given part of x, did not fall, but
// rose by less than a share of the slowest of them per unit. What is missing there is at least twice the smallest of these rises, so that it
// is more than one.
func Tapers(x, y []float64, many int, part, share float64) bool {
	if !slices.IsSorted(y) {
		return false
	}
	n, slowest, smallest := len(x)-1, math.Inf(1), math.Inf(1)
	for i := 1; i < n && y[i] > y[i-1]; i++ {
		rise := y[i] - y[i-1]
		slowest, smallest = min(slowest, rise/(x[i]-x[i-1])), min(smallest, rise)
		end := x[n] - x[i]
		if got, want := y[n]-y[i], slowest*end; i >= many && end <= part*(x[n]-x[0]) && got < share*want && want-got >= 2*smallest {
			return true
		}
	}
	return false
}
