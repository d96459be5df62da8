package trend

import "math"

// Fading is the chance that events spread evenly over the places between two moments lie, on average, as early as
// these: Laplace's centroid test, the best one if their rate falls by the same share each time (Cox and Lewis 1966).
// Each place has at most one event. It is 1 for no events.
func Fading(at []float64, from, to float64, places int) float64 {
	n := float64(len(at))
	if n == 0 || to <= from {
		return 1
	}
	all := max(n, float64(places))
	width := (to - from) / all // of a place; its event is observed at its end
	early := (from+to+width)/2 - mean(at)
	variance := width * width * (all + 1) * (all - n) / (12 * n)
	if variance == 0 {
		return 0.5
	}
	return math.Erfc(early/math.Sqrt(2*variance)) / 2
}

// Silence is the chance that none of the events, spread at random over the places with at most one in each, lies in
// the last idle places. It is symmetric in events and idle; one of the two may be billions.
func Silence(events, places, idle int) float64 {
	p := 1.0
	for i := range min(events, idle) {
		p *= 1 - float64(max(events, idle))/float64(max(places-i, 1))
	}
	return max(p, 0)
}

// Filling reports whether the events are the first uses of finitely many kinds that are requested at random: the
// chance of an event falls in proportion to the events so far. That must be more likely than a constant chance, by a
// ratio that a constant chance shows in a share early of all cases, and the chance must have fallen below share of
// its start.
func Filling(at []float64, from, to float64, places int, early, share float64) bool {
	if len(at) < 2 || to <= from {
		return false
	}
	c := newCounts(at, from, to, places)
	best, full := c.filling()
	// The ratio is chi-squared with one degree of freedom in half of all cases, and zero in the others, since
	// infinitely many kinds are at the border of the parameters (Self and Liang 1987). So the chance is half of the
	// normal's two-sided tail.
	z := 0.0
	if ratio := best - c.even(); ratio > 0 {
		z = math.Sqrt(2 * ratio)
	}
	return math.Erfc(z/math.Sqrt2)/2 <= early && 1-full < share
}

// FellOnce reports whether the rate of the events fell in one step, to a rate that continues, and not gradually. By
// Akaike's criterion, one step down fits better than a line of the log odds, and better than kinds that run out. At
// least behind events came after the step, and these do not fade themselves, with a chance below early. The moment of
// a step counts as three parameters (Ninomiya 2015), so a step has five and a line two.
func FellOnce(at []float64, from, to float64, places, behind int, early float64) bool {
	if len(at) == 0 || to <= from {
		return false
	}
	c := newCounts(at, from, to, places)
	step, split := c.step()
	filling, _ := c.filling()
	if step-max(c.line(), filling) <= 3 {
		return false
	}
	moment := from + (to-from)*float64(split)/float64(len(c.events))
	first := len(at)
	for first > 0 && at[first-1] > moment {
		first--
	}
	rest := int(float64(places) * (to - moment) / (to - from))
	return len(at)-first >= behind && Fading(at[first:], moment, to, rest) >= early
}

// counts are the numbers of events in stretches of equal length.
type counts struct {
	events []float64
	places float64 // places of each stretch
}

func newCounts(at []float64, from, to float64, places int) counts {
	const stretches = 60
	n := min(stretches, max(places, 1))
	c := counts{make([]float64, n), max(1, float64(places)/float64(n))}
	for _, x := range at {
		i := int(math.Ceil((x-from)/(to-from)*float64(n)-1e-9)) - 1 // 7/60·60 is more than 7
		c.events[max(0, min(i, n-1))]++
	}
	for _, k := range c.events {
		c.places = max(c.places, k)
	}
	return c
}

// likelihood is the log likelihood of k events in so many places, each with chance p.
func likelihood(k, places, p float64) float64 {
	l := 0.0
	if k > 0 {
		l += k * math.Log(p)
	}
	if k < places {
		l += (places - k) * math.Log1p(-p)
	}
	return l
}

// even is the greatest log likelihood of a constant chance.
func (c counts) even() float64 {
	sum := 0.0
	for _, k := range c.events {
		sum += k
	}
	n := float64(len(c.events)) * c.places
	return likelihood(sum, n, sum/n)
}

// filling is the greatest log likelihood of a chance that falls in proportion to the events so far, and the share of
// all kinds that had occurred by the end.
func (c counts) filling() (best, full float64) {
	sum := 0.0
	before := make([]float64, len(c.events))
	for i, k := range c.events {
		before[i] = sum + max(0, k-1)/2
		sum += k
	}
	best = math.Inf(-1)
	const finest = 40
	for i := range finest {
		share := 1 - float64(i)/finest // share of the kinds that occurred
		left := 0.0
		for _, n := range before {
			left += (1 - share*n/sum) * c.places
		}
		for j := range finest { // chances at the start, near those that give this number of events
			first := min(1, sum/left*(0.7+0.6*float64(j)/(finest-1)))
			l := 0.0
			for i, k := range c.events {
				l += likelihood(k, c.places, max(1e-9, first*(1-share*before[i]/sum)))
			}
			if l > best {
				best, full = l, share
			}
		}
	}
	return best, full
}

// step is the greatest log likelihood of a chance that is smaller from one stretch on, and that stretch.
func (c counts) step() (best float64, split int) {
	total := 0.0
	for _, k := range c.events {
		total += k
	}
	best = math.Inf(-1)
	sum, n := 0.0, len(c.events)
	for i := 1; i < n; i++ {
		sum += c.events[i-1]
		a, b := float64(i)*c.places, float64(n-i)*c.places
		if sum/a < (total-sum)/b {
			continue
		}
		if l := likelihood(sum, a, sum/a) + likelihood(total-sum, b, (total-sum)/b); l > best {
			best, split = l, i
		}
	}
	return best, split
}

// line is the greatest log likelihood of a chance whose log odds are linear, by Newton's method.
func (c counts) line() float64 {
	n := float64(len(c.events))
	chance := func(a, b float64, i int) float64 {
		x := (float64(i)+0.5)/n - 0.5
		return 1 / (1 + math.Exp(-max(-30, min(30, a+b*x))))
	}
	of := func(a, b float64) float64 {
		l := 0.0
		for i, k := range c.events {
			l += likelihood(k, c.places, chance(a, b, i))
		}
		return l
	}
	a, b := 0.0, 0.0
	best := of(a, b)
	for range 50 {
		var ga, gb, aa, ab, bb float64
		for i, k := range c.events {
			x, p := (float64(i)+0.5)/n-0.5, chance(a, b, i)
			g, w := k-c.places*p, c.places*p*(1-p)
			ga, gb = ga+g, gb+g*x
			aa, ab, bb = aa+w, ab+w*x, bb+w*x*x
		}
		det := aa*bb - ab*ab
		if det < 1e-12 {
			break
		}
		da, db := (bb*ga-ab*gb)/det, (aa*gb-ab*ga)/det
		scale := 1.0
		for scale > 1e-6 && of(a+scale*da, b+scale*db) < best {
			scale /= 2
		}
		next := of(a+scale*da, b+scale*db)
		if next <= best+1e-9 {
			break
		}
		a, b, best = a+scale*da, b+scale*db, next
	}
	return best
}
