package diff

import (
	"math"
	"time"

	"github.com/memdiag/memdiag/diff/series"
	"github.com/memdiag/memdiag/snapshot"
)

// Forecast is when a device, or the process, reaches its limit if the finding goes on growing at its rate and all
// else stays, with an interval. Memory runs out when reserved memory reaches the limit. Memory reserved beyond live
// blocks is what steps need temporarily. High counts all of it as free. Low counts only whole segments, and leaves
// room for one more of the largest blocks, since the last free memory is fragmented.
type Forecast struct {
	Step, Low, High int64 // NoStep for a run by the clock
	Limit           snapshot.Bytes
	// OfProcess: the limit is not the device's, but all memory that the process may take: what it has, and what the
	// machine and its control groups had left.
	OfProcess bool
	// After is the time from the last snapshot until then, at the run's pace so far, with its interval; 0 if the
	// run's marks have no times.
	After, AfterLow, AfterHigh time.Duration
	// Beyond: it is farther away than Farthest times the length of the run, which is Far. Then no other figure is set
	// but Limit: a short run says nothing about such a late time.
	Beyond bool
	Far    float64 // with Beyond: steps or seconds after the last snapshot
	// Open: only High is farther away than that, and is cut to it.
	Open bool
}

// vague is the largest ratio of a rate's upper to its lower end for a forecast: an interval from tomorrow to ten
// years is useless.
const vague = 10

// forecast returns nil if the row's memory has no known limit, neither steps nor times are known, or the rate's
// interval includes zero or is vague.
func (r *Result) forecast(row *Row, rate Rate) *Forecast {
	room, ok := r.headroom(row)
	if !ok || rate.Unit == Place || rate.Bytes.Low <= 0 || rate.Bytes.High > vague*rate.Bytes.Low {
		return nil
	}
	if float64(room.limit)/rate.Bytes.Low > math.MaxInt64/2 {
		return nil // no step has so large a number
	}
	ahead := func(room snapshot.Bytes, slope float64) float64 { return float64(max(room, 0)) / slope }
	at, low, high := ahead(room.reservable, rate.Bytes.Value), ahead(room.whole, rate.Bytes.High), ahead(room.free, rate.Bytes.Low)
	f := &Forecast{Step: snapshot.NoStep, Low: snapshot.NoStep, High: snapshot.NoStep, Limit: room.limit, OfProcess: room.ofProcess}
	far := Farthest * r.Series.Axis.Length()
	if f.Beyond = at > far; f.Beyond {
		f.Far = far
		return f
	}
	f.Open, high = high > far, min(high, far)
	if rate.Unit == Second {
		f.After, f.AfterLow, f.AfterHigh = series.Duration(at), series.Duration(low), series.Duration(high)
		return f
	}
	last, step := r.Last.Mark.Step, r.stepTime()
	behind := func(steps float64) int64 { return last + int64(math.Floor(steps)) }
	f.Step, f.High = behind(at), behind(high)
	f.Low = max(behind(low)-1, last) // the step that runs out of memory has begun and does not end
	after := func(at int64) time.Duration {
		if step > 0 && at-last > int64(math.MaxInt64/step) {
			return math.MaxInt64
		}
		return time.Duration(at-last) * step
	}
	f.After, f.AfterLow, f.AfterHigh = after(f.Step), after(f.Low), after(f.High)
	return f
}

// headroom is how much more a device may take, in the last snapshot.
type headroom struct {
	limit      snapshot.Bytes
	ofProcess  bool
	reservable snapshot.Bytes
	whole      snapshot.Bytes // the part of reservable that is in whole segments
	free       snapshot.Bytes // reservable, plus reserved memory that is not live
}

// headroom returns the headroom of the row's device, or of the process if the device is part of its memory. ok is
// false without a known limit, and for several ranks on one machine, each of which would take the memory that the
// others count on.
func (r *Result) headroom(row *Row) (room headroom, ok bool) {
	last := r.Last
	for i, d := range last.Devices {
		m := d.Meters
		switch {
		case d.Limit <= 0:
		case d.Kind == snapshot.Process && (row.Device.Kind == snapshot.Process || row.Device.Kind.InProcess()):
			left := d.Limit - m.Driver
			return headroom{d.Limit, true, left, left, left + m.Reserved - m.Active}, m.Driver > 0 && len(r.run.Ranks) < 2
		case d.Kind == row.Device.Kind && d.Index == row.Device.Index:
			left := d.Limit - m.Reserved
			whole := left - left%smallestSegment(last, i) - largestBlock(last, i)
			return headroom{d.Limit, false, left, whole, d.Limit - m.Allocated}, d.Limit >= m.Allocated
		}
	}
	return headroom{}, false
}

// smallestSegment is the size of a device's smallest segment that cannot expand; 1 if there is none.
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
