package diff

import (
	"slices"

	"github.com/memdiag/memdiag/snapshot"
)

// Band is the range of a meter of a device after warm-up.
type Band struct {
	Low, High snapshot.Bytes
}

// Spread is half the band's width, as a share of its middle.
func (b Band) Spread() float64 {
	if b.Low+b.High == 0 {
		return 0
	}
	return float64(b.High-b.Low) / float64(b.High+b.Low)
}

// Steadiness is how much the meters of a device vary after warm-up.
type Steadiness struct {
	Device         snapshot.Device
	Points         int
	Live, Reserved Band
	// Peak is the range of the highest peak so far, from after warm-up to the end, as snapshots record it; zero if
	// they do not. It is wide if a step went higher than all before.
	Peak Band
}

const (
	warmUp       = 4 // the first 1/warmUp of the points is warm-up
	fewestSteady = 8 // fewest points of a band
)

// Steady returns how steady each device's memory is after the first quarter of the run. Devices with too few points,
// or no memory, are left out.
func (r *Result) Steady() []Steadiness {
	var out []Steadiness
	for i, d := range r.Series.Devices {
		_, meters := r.Series.Metered(i)
		skip := (len(meters) + warmUp - 1) / warmUp
		if len(meters)-skip < fewestSteady {
			continue
		}
		meters = meters[skip:]
		of := func(value func(snapshot.Meters) snapshot.Bytes) Band {
			all := make([]snapshot.Bytes, len(meters))
			for i, m := range meters {
				all[i] = value(m)
			}
			return Band{slices.Min(all), slices.Max(all)}
		}
		s := Steadiness{Device: d, Points: len(meters)}
		s.Live = of(func(m snapshot.Meters) snapshot.Bytes { return m.Allocated })
		s.Reserved = of(func(m snapshot.Meters) snapshot.Bytes { return m.Reserved })
		s.Peak = r.highestAfterWarmUp(d)
		if s.Live.High > 0 {
			out = append(out, s)
		}
	}
	return out
}

// highestAfterWarmUp is a device's highest peak so far in the first snapshot after the first quarter of the run, and
// in the last one.
func (r *Result) highestAfterWarmUp(d snapshot.Device) Band {
	if r.run == nil {
		return Band{}
	}
	all := r.run.Snapshots
	if len(all) < warmUp {
		return Band{}
	}
	first, last := deviceIn(all[(len(all)+warmUp-1)/warmUp], d), deviceIn(all[len(all)-1], d)
	if first == nil || last == nil || first.Peak == 0 || last.Peak < first.Peak {
		return Band{}
	}
	return Band{first.Peak, last.Peak}
}

func deviceIn(s *snapshot.Snapshot, d snapshot.Device) *snapshot.Device {
	i := slices.IndexFunc(s.Devices, func(of snapshot.Device) bool { return of.Kind == d.Kind && of.Index == d.Index })
	if i < 0 {
		return nil
	}
	return &s.Devices[i]
}
