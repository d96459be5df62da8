package diff

import (
	"math"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Forecast is when a device's limit is reached if the finding goes
// on growing at its rate and all else stays, with an interval. Memory runs out
// when reserved memory meets the limit: what is reserved above the live blocks is
// what steps need for a while and give back. High counts all of that as free. Low
// counts whole segments alone, and leaves room for one more of the largest blocks:
// what is free last lies in pieces.
type Forecast struct {
	Step, Low, High int64 // NoStep where the run is told by the clock
	Limit           snapshot.Bytes
	// After is how long after the last snapshot that is, at the run's pace until
	// now, with its interval; 0 where the run's marks have no times.
	After, AfterLow, AfterHigh time.Duration
}

// vague is how many times the least of a rate its most may be for a forecast: the ends
// of one between tomorrow and ten years tell nothing.
const vague = 10

// forecast is nil where the device has no known limit, neither steps nor times are known,
// or the rate's interval does not exclude zero or is vague.
func forecast(row *Row, rate Rate, last *snapshot.Snapshot, step time.Duration) *Forecast {
	for device, d := range last.Devices {
		if d.Kind != row.Device.Kind || d.Index != row.Device.Index || d.Limit <= 0 {
			continue
		}
		if rate.Unit == Place || rate.Bytes.Low <= 0 || rate.Bytes.High > vague*rate.Bytes.Low || d.Limit < d.Meters.Allocated {
			return nil
		}
		if float64(d.Limit)/rate.Bytes.Low > math.MaxInt64/2 {
			return nil // no step has so large a number
		}
		ahead := func(room snapshot.Bytes, slope float64) float64 { return float64(max(room, 0)) / slope }
		room := d.Limit - d.Meters.Reserved
		whole := room - room%smallestSegment(last, device) - largestBlock(last, device)
		at, low, high := ahead(room, rate.Bytes.Value), ahead(whole, rate.Bytes.High), ahead(d.Limit-d.Meters.Allocated, rate.Bytes.Low)
		if rate.Unit == Second {
			return &Forecast{snapshot.NoStep, snapshot.NoStep, snapshot.NoStep, d.Limit, duration(at), duration(low), duration(high)}
		}
		behind := func(steps float64) int64 { return last.Mark.Step + int64(math.Floor(steps)) }
		f := &Forecast{Step: behind(at), High: behind(high), Limit: d.Limit}
		f.Low = max(behind(low)-1, last.Mark.Step) // the step that finds no memory has begun and does not end
		after := func(at int64) time.Duration {
			if step > 0 && at-last.Mark.Step > int64(math.MaxInt64/step) {
				return math.MaxInt64
			}
			return time.Duration(at-last.Mark.Step) * step
		}
		f.After, f.AfterLow, f.AfterHigh = after(f.Step), after(f.Low), after(f.High)
		return f
	}
	return nil
}

// smallestSegment is the size of a device's smallest segment that cannot grow; 1
// where there is none.
func smallestSegment(s *snapshot.Snapshot, device int) snapshot.Bytes {
	size := snapshot.Bytes(math.MaxInt64)
	for _, segment := range s.Segments {
		if segment.Device == device && !segment.Expandable && segment.Size > 0 {
			size = min(size, segment.Size)
		}
	}
	if size == math.MaxInt64 {
		return 1
	}
	return size
}

// largestBlock is the size of a device's largest live block.
func largestBlock(s *snapshot.Snapshot, device int) snapshot.Bytes {
	var size snapshot.Bytes
	for i, state := range s.Blocks.State {
		if state == snapshot.Live && s.Blocks.CountOf(i) == 1 && s.Segments[s.Blocks.Segment[i]].Device == device {
			size = max(size, s.Blocks.Size[i])
		}
	}
	return size
}
