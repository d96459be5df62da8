package series

import "testing"

// TestAGrainBesideARiseMakesNoSecondOne: a dictionary that was full after half a second gained 32 B two seconds later.
func TestAGrainBesideARiseMakesNoSecondOne(t *testing.T) {
	for _, c := range []struct {
		last float64
		want bool
	}{{652_176, false}, {690_000, true}} {
		points := Points{
			X:     []float64{0, 0.5, 1, 1.4, 2, 2.3, 2.7, 3.1, 3.5, 3.8, 4.2, 4.6, 5, 5.4, 5.8, 6.2, 6.6, 6.8, 7.2, 7.6},
			Bytes: []float64{0, 652_144, 652_144, 652_144, 652_144},
		}
		for len(points.Bytes) < len(points.X) {
			points.Bytes = append(points.Bytes, c.last)
		}
		r := RisesOf(&History{Unit: Second, Whole: points, All: points}, &Row{}, false)
		if len(r.At) != 2 || r.MayBeFew() != c.want {
			t.Errorf("%.0f at the end: %+v, few: %t", c.last, r, r.MayBeFew())
		}
	}
}
