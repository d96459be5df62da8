package diff

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
)

// Options say how a run is judged. Start with DefaultOptions; the zero value is not usable.
type Options struct {
	Rule Rule
	// Horizon is the step up to which growth is extrapolated, or the last step of a longer run. Span is the same for
	// a run by the clock. What takes less than MinShare of its device by then is no leak. If the device's limit is
	// unknown, no growth is too small.
	Horizon  int64
	Span     time.Duration
	MinShare float64
	// MinRate, if not zero, replaces that: growth of fewer bytes per unit is no leak.
	MinRate Growth
	// DeviceMemory is the memory of each GPU whose limit no snapshot records; 0 if unknown.
	DeviceMemory snapshot.Bytes
	// Bounds are in addition to those of the run's own Info.
	Bounds []snapshot.Bound
	// Against is a run that is known to be good: what grows as fast there is no leak.
	Against *snapshot.Run
	// Without names the Parts of the judge to leave out, to measure what they gain.
	Without Without
}

// DefaultOptions judge by trend. Growth is no leak if it fills less than a thousandth of its device in a million
// steps, which is more than nearly all trainings have, or in 30 days. For 80 GiB that is 86 bytes a step, or 33 a
// second.
func DefaultOptions() Options {
	return Options{Rule: ByTrend, Horizon: 1_000_000, Span: 30 * 24 * time.Hour, MinShare: 0.001}
}

// limitDevices sets the limit of GPUs for which no snapshot records one.
func (o *Options) limitDevices(run *snapshot.Run) {
	if o.DeviceMemory == 0 {
		return
	}
	for _, s := range run.Snapshots {
		for i := range s.Devices {
			if d := &s.Devices[i]; d.Limit == snapshot.Unknown && (d.Kind == snapshot.CUDA || d.Kind == snapshot.Vulkan) {
				d.Limit = o.DeviceMemory
			}
		}
	}
}

// weigh sets a leak to bounded if it takes next to nothing by the horizon, even at the upper end of its rate's
// interval.
func (r *Result) weigh(grown []cluster) {
	for i := range grown {
		r.weighOne(&grown[i])
	}
}

func (r *Result) weighOne(c *cluster) {
	o, j := &r.options, &c.j
	if j.Verdict != Leak || j.Rate.Unit == Place || j.Shape != Steady {
		return
	}
	rate := j.Rate.Bytes.High
	if o.MinRate.Bytes > 0 {
		if j.Rate.Unit == o.MinRate.Unit && rate < float64(o.MinRate.Bytes) {
			j.Call(Bounded, Strong, "its %s a %s are below the requested minimum rate, %s", snapshot.FormatBytes(j.Rate.Bytes.Value), j.Rate.Unit, o.MinRate)
		}
		return
	}
	horizon := max(float64(o.Horizon), float64(r.Last.Mark.Step))
	if j.Rate.Unit == Second {
		horizon = max(o.Span.Seconds(), r.Series.Axis.Length())
	}
	limit := r.limit(c.rows[0])
	if limit <= 0 || rate*horizon >= o.MinShare*float64(limit) {
		return
	}
	j.Call(Bounded, Strong, "at its rate it takes %s within %s, less than %.2g %% of the device", snapshot.FormatBytes(j.Rate.Bytes.Value*horizon), j.Rate.Unit.Text(horizon), 100*o.MinShare)
}

// limit is the limit of the row's device in the last snapshot. What a process has left depends on whatever else the
// machine runs, and decides nothing.
func (r *Result) limit(row *Row) snapshot.Bytes {
	for _, d := range r.Last.Devices {
		if d.Kind != snapshot.Process && d.Kind == row.Device.Kind && d.Index == row.Device.Index {
			return d.Limit
		}
	}
	return snapshot.Unknown
}

// holdToBounds judges by declared bounds: growth below its bound is undecided, and growth above it is a leak,
// whatever another bound says.
func (r *Result) holdToBounds(grown []cluster) {
	over := make(map[*cluster]bool)
	for _, b := range append(r.options.Bounds[:len(r.options.Bounds):len(r.options.Bounds)], r.run.Info.Bounds...) {
		var held Tally
		matched := false
		for i := range r.Rows {
			if r.within(&b, &r.Rows[i]) {
				held = held.Plus(r.Rows[i].After)
				matched = true
			}
		}
		if !matched {
			r.Idle = append(r.Idle, b)
			r.Notes = append(r.Notes, fmt.Sprintf("a bound is declared for %s, but nothing is allocated in it or held by it", b.Where))
		}
		said := fmt.Sprintf("%s is declared to stay within %s", b.Where, boundText(b))
		for i := range grown {
			c := &grown[i]
			if !r.within(&b, c.rows[0]) {
				continue
			}
			held := held
			for _, row := range c.rows { // the rows of one finding count as one
				if !r.within(&b, row) {
					held = held.Plus(row.After)
				}
			}
			holds := fmt.Sprintf("it holds %s in %d blocks", held.Bytes, held.Blocks)
			if held.Blocks == 1 {
				holds = fmt.Sprintf("it holds one block of %s", held.Bytes)
			}
			switch {
			case b.Blocks > 0 && held.Blocks > b.Blocks, b.Bytes > 0 && cmp.Or(held.Requested, held.Bytes) > b.Bytes:
				over[c], c.bound = true, nil
				if before := c.j.Reasons; c.j.Verdict == Bounded {
					c.j.Reasons, c.settled = nil, true
					c.j.Call(Leak, Strong, "%s; %s, which is more, but it stopped growing (%s)", said, holds, strings.Join(before, "; "))
					continue
				}
				c.j.Call(Leak, Strong, "%s; %s, which is more", said, holds)
			case !over[c] && (c.j.Verdict == Leak || c.j.Verdict == Inconclusive):
				c.j.Reasons = nil
				if held.Blocks > 0 {
					c.toBound = float64(max(b.Blocks-held.Blocks, 0))
					if b.Blocks == 0 {
						c.toBound = float64(b.Bytes-held.Requested) / float64(held.Requested) * float64(held.Blocks)
					}
				}
				c.bound = &b
				c.j.Call(Inconclusive, Weak, "%s and has not reached it: %s", said, holds)
			}
		}
	}
}

func boundText(b snapshot.Bound) string {
	switch {
	case b.Blocks > 0 && b.Bytes > 0:
		return fmt.Sprintf("%d blocks and %s", b.Blocks, b.Bytes)
	case b.Blocks > 0:
		return fmt.Sprintf("%d blocks", b.Blocks)
	}
	return b.Bytes.String()
}

// receiver removes Go's marks from a method: "data.(*Replay).Add" becomes "data.Replay.Add".
var receiver = strings.NewReplacer("(*", "", ")", "")

// within reports whether a bound names the row.
func (r *Result) within(b *snapshot.Bound, row *Row) bool {
	for i := range r.Last.Holders {
		h := &r.Last.Holders[i]
		rest, ok := strings.CutPrefix(h.Path, b.Where)
		if ok && row.HangsOn(h) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	file, place := "", receiver.Replace(b.Where)
	if at := strings.LastIndexByte(b.Where, ':'); at >= 0 {
		file, place = b.Where[:at], receiver.Replace(b.Where[at+1:])
	}
	for _, f := range row.Frames {
		if file != "" && f.File != file && !strings.HasSuffix(f.File, "/"+file) {
			continue
		}
		name := receiver.Replace(f.Function)
		if name == place || strings.HasSuffix(name, "."+place) || file != "" && fmt.Sprint(f.Line) == place {
			return true
		}
	}
	return false
}
