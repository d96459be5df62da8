package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The expected chances were counted out by a Python program over all ways to place as
// many events.
func TestFadingIsNearTheExactChance(t *testing.T) {
	for _, c := range []struct {
		places int
		at     []float64
		want   float64
	}{
		{40, []float64{1, 2, 3, 5, 6, 9, 11, 14, 19, 30}, 0.0003},
		{60, []float64{2, 3, 5, 9, 20, 33, 41, 58}, 0.0568},
		{30, []float64{4, 9, 15, 22, 27}, 0.4893},
		{20, []float64{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 1},
	} {
		if got := Fading(c.at, 0, float64(c.places), c.places); math.Abs(got-c.want) > 0.003 {
			t.Errorf("%v of %d: %v, want %v", c.at, c.places, got, c.want)
		}
	}
	if got := Fading([]float64{1, 2, 3}, 0, 3, 3); got != 0.5 {
		t.Errorf("an event in each place: %v, want 0.5", got)
	}
	if got := Fading(nil, 0, 3, 3); got != 1 {
		t.Errorf("no event: %v, want 1", got)
	}
}

// The expected values are those of Python's comb(places-idle, events)/comb(places, events).
func TestSilenceIsTheHypergeometricChance(t *testing.T) {
	for _, c := range []struct {
		events, places, idle int
		want                 float64
	}{{20, 120, 18, 0.02821684249697544}, {7, 40, 10, 0.10919588318969124}, {3, 10, 8, 0}, {5, 5, 0, 1}, {40, 60, 2, 0.10734463276836158}} {
		if got := Silence(c.events, c.places, c.idle); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%d events in %d places, none in the last %d: %v, want %v", c.events, c.places, c.idle, got, c.want)
		}
	}
}

func TestARateThatFellOnceIsToldFromOneThatFades(t *testing.T) {
	var burst, fades, ended []float64
	for x := 1.0; x <= 120; x++ {
		if x <= 15 || math.Mod(x, 5) == 0 {
			burst = append(burst, x)
		}
		if x <= 15 {
			ended = append(ended, x)
		}
	}
	for x := 1.0; x < 120; x = max(x+1, x*1.12) {
		fades = append(fades, math.Floor(x))
	}
	for _, c := range []struct {
		name string
		at   []float64
		want bool
	}{{"one a step, then one in five", burst, true}, {"ever more rarely", fades, false}, {"one a step, then none", ended, false}, {"none", nil, false}} {
		if got := FellOnce(c.at, 0, 120, 120, 8, 0.02); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// The likelihood is held against a search of NumPy's over shares and chances a thousandth
// apart; how often the kinds are distinguished from chance, against seeds.
func TestFillingTellsKindsThatRunOut(t *testing.T) {
	at := []float64{1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 13, 16, 17, 20, 22, 25, 27, 33, 34, 41, 50, 58}
	c := newCounts(at, 0, 60, 60)
	if best, full := c.filling(); math.Abs(best-c.even()-10.958) > 0.02 || math.Abs(full-0.945) > 0.05 {
		t.Errorf("a ratio of %.3f where %.2f of the kinds are full", best-c.even(), full)
	}
	told := func(kinds int, p float64) int {
		n := 0
		for seed := range uint64(200) {
			rng := rand.New(rand.NewPCG(seed, 4))
			seen := make(map[int]bool)
			var at []float64
			for step := 1.0; step <= 60; step++ {
				key := rng.IntN(max(kinds, 1))
				if kinds == 0 && rng.Float64() < p || kinds > 0 && !seen[key] {
					at = append(at, step)
				}
				seen[key] = true
			}
			if Filling(at, 0, 60, 60, 0.005, 0.75) {
				n++
			}
		}
		return n
	}
	for p, most := range map[float64]int{0.2: 6, 0.5: 4, 0.9: 4} { // of few events the ratio is not yet as its limit
		if n := told(0, p); n > most {
			t.Errorf("of 200 throws of odds of %.1f %d seem to fill; want %d at most", p, n, most)
		}
	}
	for _, kinds := range []int{30, 60} {
		if n := told(kinds, 0); n < 150 {
			t.Errorf("of 200 caches over %d keys %d seem to fill; want 150", kinds, n)
		}
	}
}
