package trend

import "math"

// Fading is the chance that events thrown evenly over so many places between two moments
// lie as early on the average as these do: the centroid test after Laplace, the best there
// is where their rate falls by the same share each time (Cox and Lewis 1966). Each place
// has one event at most. It is 1 for no events.
func Fading(at []float64, from, to float64, places int) float64 {
	n := float64(len(at))
	if n == 0 || to <= from {
		return 1
	}
	all := max(n, float64(places))
	width := (to - from) / all // of a place, of which an event is seen at the end
	early := (from+to+width)/2 - mean(at)
	variance := width * width * (all + 1) * (all - n) / (12 * n)
	if variance == 0 {
		return 0.5
	}
	return math.Erfc(early/math.Sqrt(2*variance)) / 2
}

// Silence is the chance that none of so many events, thrown over so many places, of which
// each has one at most, lies in the last idle ones. It is the same with events and idle
// exchanged, of which there may be billions of one.
func Silence(events, places, idle int) float64 {
	p := 1.0
	for i := range min(events, idle) {
		p *= 1 - float64(max(events, idle))/float64(max(places-i, 1))
	}
	return max(p, 0)
}

// Filling says whether such events are the first ones of finitely many kinds, asked for at
// random: a place has one with a chance that falls in proportion to how many there were.
// That must be likelier than an even chance, by a ratio that even chances show in one case
// of so many, and have fallen to less than the given share. full is the share of the kinds
// that there were.
func Filling(at []float64, from, to float64, places int, early, share float64) bool {
	if len(at) < 2 || to <= from {
		return false
	}
	c := newCounts(at, from, to, places)
	best, full := c.filling()
	// The ratio is that of chi-squared with one degree of freedom in half of all cases, and
	// nothing in the others, since a number of kinds without end is at the border (Self and
	// Liang 1987): of twice the normal's tail, half.
	z := 0.0
	if ratio := best - c.even(); ratio > 0 {
		z = math.Sqrt(2 * ratio)
	}
	return math.Erfc(z/math.Sqrt2)/2 <= early && 1-full < share
}

// FellOnce says whether the rate of such events fell in one step, to one that goes on,
// rather than little by little: by Akaike's criterion one step down fits better than a line
// of the log odds, or than kinds of which ever fewer are new, at least so many events came after the step, and these do not fade
// themselves. early is the chance below which they do. The moment of a step counts as three
// parameters (Ninomiya 2015), so that a step has five and a line two.
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

// counts are how many of the places of each of equal stretches of time have an event.
type counts struct {
	events []float64
	places float64 // of each stretch
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

// likelihood is the logarithm of that of k events in so many places, each with chance p.
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

// even is the greatest log likelihood of one chance for all.
func (c counts) even() float64 {
	sum := 0.0
	for _, k := range c.events {
		sum += k
	}
	n := float64(len(c.events)) * c.places
	return likelihood(sum, n, sum/n)
}

// filling is the greatest log likelihood of chances that fall in proportion to the events
// before, and which share of the kinds these are in the end.
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
		share := 1 - float64(i)/finest // of the kinds
		left := 0.0
		for _, n := range before {
			left += (1 - share*n/sum) * c.places
		}
		for j := range finest { // chances of the first, about those by which as many come
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

// step is the greatest log likelihood of one chance up to a stretch and a smaller one
// from it on, and that stretch.
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

// line is the greatest log likelihood of chances whose log odds are a line, by Newton's
// method.
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
