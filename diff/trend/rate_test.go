package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTheIntervalOfARateHoldsTheRate has growth by events of many kinds, and counts how often it does,
// of series as they are recorded, and as they are thinned.
func TestTheIntervalOfARateHoldsTheRate(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	type growth func(step int) float64
	bernoulli := func(p, size float64) growth {
		return func(int) float64 {
			if r.Float64() < p {
				return size
			}
			return 0
		}
	}
	for _, c := range []struct {
		name  string
		rate  float64
		grow  growth
		noise float64
		least float64 // of the intervals that hold it
	}{
		{"each other step, by chance", 0.5, bernoulli(0.5, 1), 0, 0.92},
		{"one step of ten, by chance", 0.1, bernoulli(0.1, 1), 0, 0.9},
		{"one step of thirty, by chance", 1.0 / 30, bernoulli(1.0/30, 1), 0, 0.9},
		{"a block of any size each step", 50, func(int) float64 { return float64(r.IntN(101)) }, 0, 0.95},
		{"one step of eight is recorded, for eight", 1, bernoulli(1.0/8, 8), 0, 0.9},
		{"each seventh step", 1.0 / 7, func(step int) float64 { return map[bool]float64{true: 1}[step%7 == 0] }, 0, 0.99},
		{"each step", 1, func(int) float64 { return 1 }, 0, 1},
		{"each step, under noise", 1, func(int) float64 { return 1 }, 50, 0.93},
	} {
		for _, every := range []int{1, 25, 60} {
			for _, steps := range []int{300, 1200} {
				const runs = 400
				held, width := 0, 0.0
				for range runs {
					var x, y []float64
					grown := 0.0
					for step := 0; step <= steps; step++ {
						if step > 0 {
							grown += c.grow(step)
						}
						if step%every == 0 {
							x, y = append(x, float64(step)), append(y, grown+c.noise*r.Float64())
						}
					}
					s := Rate(Floors(x, y, 20))
					if s.Low > s.Value || s.Value > s.High {
						t.Fatalf("%s: the interval %+v does not hold its own value", c.name, s)
					}
					if s.Low <= c.rate*(1+1e-12) && c.rate*(1-1e-12) <= s.High {
						held++
					}
					width += (s.High - s.Low) / c.rate / runs
				}
				if share := float64(held) / runs; share < c.least || c.noise == 0 && c.least == 1 && width > 1e-9 {
					t.Errorf("%s, a mark each %d of %d steps: %.3f of the intervals hold the rate, their width is %.2f of it", c.name, every, steps, share, width)
				}
			}
		}
	}
}

func TestStudentQuantile(t *testing.T) {
	for nu, want := range map[float64]float64{2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 18: 2.101, 1000: 1.962} {
		if got := studentQuantile(nu); math.Abs(got-want) > 0.035*want {
			t.Errorf("of %v degrees of freedom: %v, want %v", nu, got, want)
		}
	}
}

// A factor of e^3000 is beyond all numbers; JSON has none for it.
func TestARateOverUnevenStepsIsANumber(t *testing.T) {
	x := []float64{0, 1, 2, 3, 1 << 20, 1 << 40, 1 << 50, 1 << 53}
	y := []float64{1, 21, 41, 61, 81, 101, 121, 141}
	if s := Rate(x, y); math.IsInf(s.High, 0) || math.IsNaN(s.High) || s.High < s.Value || s.Low > s.Value {
		t.Errorf("%+v", s)
	}
}

// TestTheEndOfAWideIntervalIsOfTheGrowthsSize: of objects that come and go by hundreds beside slow growth the rate was "0.39 to 317,878
// blocks a second".
func TestTheEndOfAWideIntervalIsOfTheGrowthsSize(t *testing.T) {
	x, y, steepest := []float64{0}, []float64{0}, 0.0
	for i := 1; i <= 20; i++ {
		x, y = append(x, float64(i)), append(y, float64(i)/10+float64(i%3/2*400))
		steepest = max(steepest, y[i]-y[i-1])
	}
	if s := Rate(x, y); s.High > steepest || s.High <= s.Value {
		t.Errorf("%+v, and no interval is steeper than %v", s, steepest)
	}
}
