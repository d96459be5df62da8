package trend

import (
	"math"
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
