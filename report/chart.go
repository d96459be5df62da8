package report

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/diff/trend"
	"github.com/memdiag/memdiag/snapshot"
)

// chart is the content of a growth plot, before layout.
type chart struct {
	title, subtitle string
	axis            string  // the unit of x
	size            float64 // size of one drawn unit of x, in units of the series
	x               []float64
	bands           []band // stacked, lowest first: the rest, then what grows
	// A line that is unknown throughout, or so far above the allocated bytes that it would flatten them, is nil or 0. The subtitle then
	// gives its value.
	reserved, driver []float64 // at each x; negative where unknown
	outermost        string    // the name of driver
	limit            float64
	top              float64 // of the y axis

	warm    float64 // x at which warm-up ends; the first x if nothing is shaded
	epochs  []moment
	aside   []moment   // marks of other phases, shown at the foot
	runsOut *runsOut   // nil if unknown
	from    [2]float64 // reserved and allocated bytes at the last x, where the forecast begins
	end     float64    // end of the x axis, if the forecast is near enough to be drawn; else 0
}

// runsOut is the x at which memory runs out, with its interval.
type runsOut struct {
	x, low, high float64
	text         string
	limit        snapshot.Bytes
}

// moment is a named position on the axis.
type moment struct {
	x    float64
	name string
}

// band is one layer of the stack.
type band struct {
	name   string
	from   string   // a call that distinguishes it from another band of the same name; or ""
	notes  []string // its slope or size
	colour color.NRGBA
	strong bool         // a leak
	y      []float64    // its own bytes at each x
	slope  *trend.Slope // of y, per unit of x; nil if none is drawn
}

// The palette is Okabe and Ito's, which colour-blind readers can tell apart.
var (
	leakColours = [...]color.NRGBA{rgb(0xd55e00), rgb(0xe69f00), rgb(0xcc79a7), rgb(0x009e73)}
	moreColour  = rgb(0x6a51a3) // for leaks without a colour of their own
	restColour  = rgb(0xd6e2ec)
	restLine    = rgb(0x5f7f99)
	inkColour   = rgb(0x1b1f24)
	quietColour = rgb(0x57606a)
	gridColour  = color.NRGBA{A: 24} // seen on white and on a fill
	axisColour  = rgb(0xafb8c1)
	reserveLine = rgb(0x0072b2)
	driverLine  = rgb(0x8a8f98)
	limitLine   = rgb(0x9b1c1c)
)

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// flatShare: a device is flat if its memory, after the first fifth of the run, varies by less than this share of its height.
const flatShare = 0.1

// maxPoints is more than the pixels of a picture of the usual width.
const maxPoints = 1500

func newChart(r *diff.Result, o PlotOptions, marks int) (*chart, error) {
	s := r.Series
	if s == nil || len(s.Marks) == 0 || len(s.Devices) == 0 {
		return nil, errors.New("nothing to plot: no snapshot of the run has a device")
	}
	device, err := chosenDevice(r, o.Device)
	if err != nil {
		return nil, err
	}
	unit, size, all := drawn(s.Axis)
	if inBatches(r) {
		unit = diff.Batch
	}
	if n := len(s.Meters[device]); n != len(s.Marks) {
		return nil, fmt.Errorf("nothing to plot: memory of %s is known at %d of %d points only", deviceName(s.Devices[device]), n, len(s.Marks))
	}
	x, meters := s.Metered(device)
	keep := thinned(meters, marks)
	c := &chart{title: Printable(o.Title), axis: string(unit), size: size}
	if c.title == "" {
		c.title = Headline(r)
	}
	allocated := make([]float64, len(keep))
	reserved, driver := slices.Clone(allocated), slices.Clone(allocated)
	for i, at := range keep {
		m := meters[at]
		c.x = append(c.x, x[at]/size)
		allocated[i], reserved[i] = float64(m.Allocated), float64(m.Reserved)
	}
	same := slices.Equal(reserved, allocated)
	among := axisPoints(all, c.x)
	for i, at := range among {
		driver[i] = at.of(func(mark int) snapshot.Bytes { return s.Meters[device][mark].Driver })
	}
	c.stack(r, o.Stack, device, among, allocated)
	d := s.Devices[device]
	base := c.takeBase(d, allocated)
	var above []string
	c.outermost = outermost(d)
	if base > 0 {
		above = append(above, snapshot.FormatBytes(base)+" that it holds all along")
		if at := driver[len(driver)-1]; at > 0 {
			above = append(above, c.outermost+" "+snapshot.FormatBytes(at))
		}
		reserved, driver = []float64{0}, []float64{0}
	}
	c.top = slices.Max(allocated)
	if slices.ContainsFunc(r.Reserves, func(e diff.Reserve) bool { return deviceName(e.Device) == deviceName(d) }) {
		c.top = max(c.top, slices.Max(reserved)) // growth must be visible, however little is live
	}
	if !liveOnlyAt(r.Last, d) {
		c.reserved = c.fitting(reserved, "reserved", &above)
	}
	c.driver = c.fitting(driver, c.outermost, &above)
	if limit := c.fitting([]float64{float64(d.Limit)}, "limit", &above); limit != nil {
		c.limit = limit[0]
	}
	c.top = max(c.top*1.06, 1)
	warm := allocated[len(allocated)/5:]
	if most := slices.Max(warm); most-slices.Min(warm) < flatShare*most {
		c.top = max(c.top, 1.6*slices.Max(allocated)) // otherwise the picture is one filled area
	}
	c.from = [2]float64{reserved[len(reserved)-1], allocated[len(allocated)-1]}
	c.context(r, o.Stack, device, all)
	if same {
		c.reserved = nil // it would cover the line of live memory
	}
	c.subtitle = c.describe(r, d, above)
	return c, nil
}

// thinShare: growth below this share of the height is too thin to see. thinProcess is the same for a process, most of which is the
// interpreter and libraries.
const thinShare, thinProcess = 0.02, 0.25

// takeBase subtracts from the bands, and from their sum, the memory that the device holds throughout, if growth above it would be too
// thin to see. It returns how much it subtracted.
func (c *chart) takeBase(d snapshot.Device, allocated []float64) float64 {
	rest, share := &c.bands[0], thinShare
	if d.Kind == snapshot.Process {
		share = thinProcess
	}
	tail := len(allocated) / 5
	if all := moves(allocated[tail:]); len(c.bands) < 2 || all == 0 || all > share*slices.Max(allocated) {
		return 0
	}
	base := slices.Min(rest.y[tail:])
	for i := range allocated {
		taken := min(base, rest.y[i])
		rest.y[i] -= taken
		allocated[i] -= taken
	}
	rest.name, rest.notes = "all else beyond "+snapshot.FormatBytes(base), []string{snapshot.FormatBytes(rest.y[len(rest.y)-1])}
	return base
}

// axisPoint is the position of a point among the marks of a run: at a mark, or part of the way to the next.
type axisPoint struct {
	mark  int
	part  float64
	after bool // beyond the last mark
}

// axisPoints finds the positions of points among marks; both ascend. A point outside the marks is at the nearest mark.
func axisPoints(marks, points []float64) []axisPoint {
	out := make([]axisPoint, len(points))
	for i, x := range points {
		at, found := slices.BinarySearch(marks, x)
		switch {
		case found || at == 0:
			out[i] = axisPoint{mark: at}
		case at == len(marks):
			out[i] = axisPoint{mark: at - 1, after: true}
		default:
			out[i] = axisPoint{mark: at - 1, part: (x - marks[at-1]) / (marks[at] - marks[at-1])}
		}
	}
	return out
}

// of interpolates a value of the marks linearly at the point. It is negative if either neighbour is unknown.
func (p axisPoint) of(value func(mark int) snapshot.Bytes) float64 {
	a := float64(value(p.mark))
	if p.part == 0 {
		return a
	}
	b := float64(value(p.mark + 1))
	if a < 0 || b < 0 {
		return float64(snapshot.Unknown)
	}
	return a + p.part*(b-a)
}

// fitting returns y and raises the top of the axis for it. If y rises above twice the current top, fitting returns nil and adds the
// name and value to above.
func (c *chart) fitting(y []float64, name string, above *[]string) []float64 {
	highest := slices.Max(y)
	switch {
	case highest <= 0:
		return nil
	case highest > 2*c.top:
		*above = append(*above, name+" "+snapshot.FormatBytes(y[len(y)-1]))
		return nil
	}
	c.top = max(c.top, highest)
	return y
}

// liveOnlyAt is liveOnly for a device of the series, in the last snapshot.
func liveOnlyAt(last *snapshot.Snapshot, d snapshot.Device) bool {
	return slices.ContainsFunc(last.Devices, func(e snapshot.Device) bool { return deviceName(e) == deviceName(d) && liveOnly(last, e) })
}

// DeviceError says that the run does not have the device to draw.
type DeviceError struct {
	Name  string
	Known []string // the devices that it has
}

func (e *DeviceError) Error() string {
	return fmt.Sprintf("--device: the run has no device %q; it has %s", e.Name, strings.Join(e.Known, ", "))
}

// chosenDevice returns an index into the series' devices: the named device, else the one that mattering returns, else the first.
func chosenDevice(r *diff.Result, name string) (int, error) {
	want := name
	if want == "" {
		want = mattering(r)
	}
	var known []string
	for i, d := range r.Series.Devices {
		if deviceName(d) == want {
			return i, nil
		}
		known = append(known, deviceName(d))
	}
	if name != "" {
		return 0, &DeviceError{name, known}
	}
	return 0, nil
}

// mattering names the device that the report's first sentence is about: the device of the first leak, else the process if it grows,
// else the device of the first possible leak, else one whose reserved memory grew, else the device of the first finding. It is "" if
// nothing grew.
func mattering(r *diff.Result) string {
	first := func(v diff.Verdict) string {
		found := withVerdict(r, v)
		if len(found) == 0 {
			return ""
		}
		if process, _ := r.Series.Unrecorded(); (ofProcess(found[0]) || moreBehind(found[0])) && process >= 0 {
			return deviceName(r.Series.Devices[process]) // nodes and items take memory in the process
		}
		return deviceName(found[0].Rows[0].Device)
	}
	process, reserved := "", ""
	if e := r.ProcessGrowth(); e != nil {
		process = deviceName(e.Device)
	}
	if len(r.Reserves) > 0 {
		reserved = deviceName(r.Reserves[0].Device)
	}
	return cmp.Or(first(diff.Leak), process, first(diff.Inconclusive), reserved, first(diff.Bounded))
}

// thinned chooses at most limit marks: from each stretch the mark with the most allocated memory, so that no peak is lost.
func thinned(meters []snapshot.Meters, limit int) []int {
	var keep []int
	n := len(meters)
	buckets := min(n, limit)
	for b := range buckets {
		from, to := b*n/buckets, (b+1)*n/buckets
		at := from
		for i := from; i < to; i++ {
			if meters[i].Allocated > meters[at].Allocated {
				at = i
			}
		}
		keep = append(keep, at)
	}
	return keep
}

func (c *chart) describe(r *diff.Result, d snapshot.Device, above []string) string {
	name := deviceName(d)
	if d.Name != "" {
		name += " " + brief(d.Name)
	}
	if of := ofChild(r); of != nil {
		name += " " + strings.TrimSpace(inChild(of))
	}
	parts := []string{"memory of " + name, fmt.Sprintf("%s %s to %s", diff.Unit(c.axis).Plural(), wholeNumber(c.x[0]), wholeNumber(c.x[len(c.x)-1]))}
	if rank := rankOf(r); rank != "" {
		parts = append(parts, rank)
	}
	if producer := r.Last.Producer; producer != "" {
		parts = append(parts, "by "+brief(producer))
	}
	if len(above) > 0 {
		parts = append(parts, "off the chart: "+strings.Join(above, ", "))
	}
	for i := range r.Findings {
		if at := r.Findings[i].RunsOut; at != nil && deviceName(r.Findings[i].Rows[0].Device) == deviceName(d) {
			text := "runs out of " + at.Limit.String() + " at " + atText(at, r.Findings[i].Rate.Unit)
			if at.Beyond {
				text = "runs out of " + at.Limit.String() + ": " + atText(at, r.Findings[i].Rate.Unit)
			}
			parts = append(parts, text)
			break
		}
	}
	return strings.Join(parts, " · ")
}
