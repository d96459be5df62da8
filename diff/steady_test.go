package diff

import (
	"math"
	"testing"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

func TestSteady(t *testing.T) {
	const points = 40
	var meters []snapshot.Meters
	for i := range points {
		live := snapshot.Bytes(1000 + 30*(i%2*2-1)) // ±3 %
		if i < points/4 {
			live = snapshot.Bytes(i) // warm-up
		}
		meters = append(meters, snapshot.Meters{Allocated: live, Reserved: 2000})
	}
	device := snapshot.Device{Kind: snapshot.CUDA}
	result := func(of []snapshot.Meters) *Result {
		return &Result{Series: &series.Series{Devices: []snapshot.Device{device, {Kind: snapshot.CPU}}, Meters: [][]snapshot.Meters{of, make([]snapshot.Meters, len(of))}}}
	}
	bands := result(meters).Steady()
	if len(bands) != 1 {
		t.Fatalf("%d bands, want one, for the GPU", len(bands))
	}
	b := bands[0]
	if b.Points != 30 || b.Live != (Band{970, 1030}) || math.Abs(b.Live.Spread()-0.03) > 1e-9 || b.Reserved.Spread() != 0 {
		t.Errorf("%+v", b)
	}
	if few := result(meters[:10]).Steady(); len(few) != 0 {
		t.Errorf("%+v of 10 points", few)
	}
}
