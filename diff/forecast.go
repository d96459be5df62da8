package diff

import (
	"math"

	"github.com/memdiag/memdiag/snapshot"
)

// Forecast is the step at which a device's limit is reached if the finding goes
// on growing at its rate and all else stays, with an interval from the rate's.
type Forecast struct {
	Step, Low, High int64
	Limit           snapshot.Bytes
}

// forecast is nil where the device has no known limit, steps are not known, or
// the rate's interval does not exclude zero.
func forecast(row *Row, rate Rate, last *snapshot.Snapshot) *Forecast {
	for _, d := range last.Devices {
		if d.Kind != row.Device.Kind || d.Index != row.Device.Index || d.Limit <= 0 {
			continue
		}
		room := float64(d.Limit - d.Meters.Allocated)
		if rate.Unit != "step" || rate.Bytes.Low <= 0 || room <= 0 {
			return nil
		}
		at := func(slope float64) int64 { return last.Mark.Step + int64(math.Floor(room/slope)) }
		return &Forecast{Step: at(rate.Bytes.Value), Low: at(rate.Bytes.High), High: at(rate.Bytes.Low), Limit: d.Limit}
	}
	return nil
}
