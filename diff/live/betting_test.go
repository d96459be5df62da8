package live

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBetsOnWhatHasNoTrendAreSeldomWon follows what one suspicion of each of many series wins. All were suspected by what they did
// before, which is at its highest: so they rise until then.
func TestBetsOnWhatHasNoTrendAreSeldomWon(t *testing.T) {
	const series, looks, threshold = 4000, 300, 4. / 3 / Alpha
	for _, c := range []struct {
		name string
		next func(rng *rand.Rand, level float64) float64
	}{
		{"a random walk", func(rng *rand.Rand, x float64) float64 { return x + rng.NormFloat64() }},
		{"a walk of blocks that often stays", func(rng *rand.Rand, x float64) float64 { return x + float64(rng.IntN(2)*(rng.IntN(3)-1)) }},
		{"a walk with large jumps", func(rng *rand.Rand, x float64) float64 { return x + math.Tan(math.Pi*(rng.Float64()-0.5)) }},
		{"noise around a level", func(rng *rand.Rand, _ float64) float64 { return rng.NormFloat64() }},
		{"noise that is now and then", func(rng *rand.Rand, _ float64) float64 { return float64(max(0, rng.IntN(20)-16)) }},
		{"what goes back to a level", func(rng *rand.Rand, x float64) float64 { return 0.9*x + rng.NormFloat64() }},
		{"a list that is cleared each epoch", func(rng *rand.Rand, x float64) float64 {
			if x >= 4 {
				return 0
			}
			return x + 1
		}},
	} {
		rng, alarms := rand.New(rand.NewPCG(7, 11)), 0
		for range series {
			test, x := betting{money: 1}, 3.
			top, richest := x, 1.
			for range looks {
				b := bet{top: top, last: x}
				x = c.next(rng, x)
				test.settle(&b, x)
				top, richest = max(top, x), max(richest, test.money)
			}
			if richest >= threshold {
				alarms++
			}
		}
		// Of 4,000 at most 30 are to be; 48 is three standard deviations more.
		if most := Alpha * 0.75 * series; float64(alarms) > most+3*math.Sqrt(most) {
			t.Errorf("%s: %d alarms of %d series; %.0f may be", c.name, alarms, series, most)
		} else {
			t.Logf("%s: %d alarms of %d", c.name, alarms, series)
		}
	}
}

// TestALeakWinsSoon: with each look it holds more; where nothing changes, nothing is paid.
func TestALeakWinsSoon(t *testing.T) {
	test := betting{money: 1}
	for i := range 8 {
		test.settle(&bet{top: float64(i), last: float64(i)}, float64(i))
		test.settle(&bet{top: float64(i), last: float64(i)}, float64(i+1))
	}
	if test.paid != 8 || test.wins != 8 || test.money < 4./3/Alpha {
		t.Errorf("%+v", test)
	}
}
