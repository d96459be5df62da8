package trend

import (
	"math"
	"testing"
)

// The expected values are those of numpy.linalg.lstsq (NumPy 2) on the columns 1
// and max(0, x - x[i]), for the i with the least sum of squares.
func TestHingeAgreesWithLeastSquares(t *testing.T) {
	for _, c := range []struct {
		name  string
		x, y  []float64
		at    int
		slope float64
	}{
		{
			"flat and then rising, at uneven steps",
			[]float64{0, 1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 14, 15, 17, 18, 20},
			[]float64{3, 4, 3, 3, 4, 3, 4, 5, 9, 12, 14, 21, 22, 30, 31, 40},
			7, 3.1990673273098227,
		},
		{"noise", []float64{0, 1, 2, 3, 4, 5, 6, 7}, []float64{5, 4, 9, 3, 7, 7, 2, 8}, 6, 2.714285714285714},
		{"two points", []float64{0, 1}, []float64{0, 1}, 0, 0},
		{"a constant", []float64{0, 1, 2, 3}, []float64{2, 2, 2, 2}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if at, slope := Hinge(c.x, c.y); at != c.at || math.Abs(slope-c.slope) > 1e-9 {
				t.Errorf("got %d, %v; want %d, %v", at, slope, c.at, c.slope)
			}
		})
	}
}

// drawn is f at 0 … n-1.
func drawn(n int, f func(t float64) float64) (x, y []float64) {
	for i := range n {
		x, y = append(x, float64(i)), append(y, f(float64(i)))
	}
	return x, y
}

func TestAcceleratesTellsGrowthThatFeedsItself(t *testing.T) {
	for _, c := range []struct {
		name string
		f    func(t float64) float64
		want bool
	}{
		{"t squared does", func(t float64) float64 { return t * t }, true},
		{"larger and larger jumps every third point are too coarse to tell", func(t float64) float64 { n := math.Floor(t/3) + 1; return n * (n + 1) / 2 }, false},
		{"an exponential does", func(t float64) float64 { return math.Exp(t / 5) }, true},
		{"a line does not", func(t float64) float64 { return 3 * t }, false},
		{"a line of whole blocks does not", func(t float64) float64 { return math.Floor(t * 0.7) }, false},
		{"what begins late does not", func(t float64) float64 { return max(0, t-10) }, false},
		{"two rates do not", func(t float64) float64 { return t + 4*max(0, t-10) }, false},
		{"what saturates does not", math.Sqrt, false},
		{"what falls ever faster does not", func(t float64) float64 { return -t * t }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Accelerates(drawn(20, c.f)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if Accelerates(drawn(7, func(t float64) float64 { return t * t })) {
		t.Error("seven points are too few")
	}
}

func TestDoublesTellsABufferThatIsEnlarged(t *testing.T) {
	stairs := func(factor, until float64) func(float64) float64 {
		return func(t float64) float64 {
			size := 1.0
			for size < min(t, until) {
				size = math.Ceil(size * factor)
			}
			return size
		}
	}
	for _, c := range []struct {
		name string
		n    int
		f    func(t float64) float64
		want bool
	}{
		{"doubled as it fills", 100, stairs(2, 1e9), true},
		{"enlarged by half as it fills", 100, stairs(1.5, 1e9), true},
		{"rounded by an allocator", 100, func(t float64) float64 { return 512 * math.Ceil(stairs(2, 1e9)(t)*300/512) }, true},
		{"full, and the next stair overdue", 100, stairs(2, 32), false},
		{"three stairs are too few", 7, stairs(2, 1e9), false},
		{"a line is none", 100, func(t float64) float64 { return 1 + t }, false},
		{"stairs of equal height are none", 100, func(t float64) float64 { return 1 + math.Floor(t/10) }, false},
		{"doublings at equal waits are another growth", 60, func(t float64) float64 { return math.Exp2(math.Floor(t / 10)) }, false},
		{"what is given back is none", 100, func(t float64) float64 { return 200 - stairs(2, 1e9)(t) }, false},
		{"nothing is none", 10, func(float64) float64 { return 0 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Doubles(drawn(c.n, c.f)); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestStoppedTellsGrowthThatReachedItsEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		f    func(t float64) float64
		want bool
	}{
		{"a ramp to a cap in the last fifth", 50, func(t float64) float64 { return min(t, 40) }, true},
		{"every third step, to a cap", 90, func(t float64) float64 { return min(math.Floor(t/3), 20) }, true},
		{"a ramp all along goes on", 50, func(t float64) float64 { return t }, false},
		{"the last two steps are too few", 50, func(t float64) float64 { return min(t, 47) }, false},
		{"every tenth step goes on", 49, func(t float64) float64 { return math.Floor(t / 10) }, false},
		{"a few rises may leave as much by chance", 40, func(t float64) float64 { return min(math.Floor(t/5), 5) }, false},
		{"growth that pauses behind each epoch goes on", 80, func(t float64) float64 { return 20*math.Floor(t/40) + min(math.Mod(t, 40), 20) }, false},
		{"what falls again did not stay", 50, func(t float64) float64 { return min(t, 40) - max(0, t-45) }, false},
		{"nothing did not rise", 50, func(float64) float64 { return 0 }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := drawn(c.n, c.f)
			if idle, got := Stopped(x, y); got != c.want {
				t.Errorf("got %v, idle for %g; want %v", got, idle, c.want)
			}
		})
	}
	if _, got := Stopped([]float64{3}, []float64{1}); got {
		t.Error("one point stopped")
	}
}

func TestTapersTellsABufferThatIsFull(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		f    func(t float64) float64
		want bool
	}{
		{"a ramp to a cap in the last sixth", 60, func(t float64) float64 { return min(t, 50) }, true},
		{"slower at the end", 60, func(t float64) float64 { return min(t, 50) + max(0, t-50)/2 }, true},
		{"uneven, to a cap", 60, func(t float64) float64 { return min(t+math.Mod(t, 3)/4, 50) }, true},
		{"a ramp all along goes on", 60, func(t float64) float64 { return t }, false},
		{"the last step alone", 60, func(t float64) float64 { return min(t, 58) }, false},
		{"a lower rate for long is another rate", 60, func(t float64) float64 { return min(t, 30) + max(0, t-30)/4 }, false},
		{"an earlier pause", 60, func(t float64) float64 { return min(t, 50) - max(0, min(t-20, 1)) }, false},
		{"a fall at the end", 60, func(t float64) float64 { return t - 24*max(0, t-58) }, false},
		{"a few intervals", 7, func(t float64) float64 { return min(t, 5) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := drawn(c.n, c.f)
			if got := Tapers(x, y, 6, 0.25, 0.75); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The expected values are those of scipy.stats.poisson.cdf(k, expected), SciPy 1.17.1.
func TestPoissonTailAgreesWithSciPy(t *testing.T) {
	for _, c := range []struct {
		expected float64
		k        int
		want     float64
	}{
		{3.5, 2, 0.32084719886213414}, {10, 4, 0.029252688076961124}, {0.1, 0, 0.9048374180359595}, {25, 12, 0.0031441216080975755},
		{3000, 3000, 0.5048555639889202}, {0, 0, 1},
	} {
		if got := PoissonTail(c.expected, c.k); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d where %g are expected: %v, want %v", c.k, c.expected, got, c.want)
		}
	}
}
