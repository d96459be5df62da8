package mem

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
)

// topSites is how many sites an error names.
const topSites = 3

// OutOfMemoryError is a request that found no room within the device's limit, or
// at the driver, even after everything cached was given back.
type OutOfMemoryError struct {
	Device    string
	Requested snapshot.Bytes
	Segment   snapshot.Bytes // the least that would have been taken from the driver for it
	Limit     snapshot.Bytes // snapshot.Unknown where the device has none
	Meters    snapshot.Meters
	Top       []TopSite // the sites that hold most, largest first
	Driver    error     // what the driver said; nil where it was the limit
}

// ErrDeviceLost is in the chain of a driver's and a kernel's error if the device
// gave up: nothing can be computed on it any more, and what it held is gone.
var ErrDeviceLost = errors.New("the device was lost")

// DeviceLostError is a device that gave up while a program used it.
type DeviceLostError struct {
	Device string
	Meters snapshot.Meters // when it was noticed
	Top    []TopSite       // the sites that hold most, largest first
	Driver error           // what the driver said; ErrDeviceLost is in its chain
}

// LiveError is a device closed with blocks that nobody released.
type LiveError struct {
	Device string
	Blocks int
	Bytes  snapshot.Bytes // allocated
	Top    []TopSite      // the sites that hold most, largest first
}

// TopSite is a site and what it holds. Its stack is empty where stacks were not
// recorded.
type TopSite struct {
	SiteTotal
	Stack []snapshot.Frame
}

// Unwrap returns the driver's error.
func (e *OutOfMemoryError) Unwrap() error { return e.Driver }

func (e *OutOfMemoryError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: out of memory: %s were asked for", e.Device, e.Requested)
	if e.Segment > e.Requested {
		fmt.Fprintf(&b, ", in a segment of %s", e.Segment)
	}
	if e.Limit != snapshot.Unknown {
		fmt.Fprintf(&b, ", the limit is %s", e.Limit)
	}
	m := e.Meters
	fmt.Fprintf(&b, "; requested %s, allocated %s, active %s, reserved %s", m.Requested, m.Allocated, m.Active, m.Reserved)
	if e.Driver != nil {
		fmt.Fprintf(&b, ": %v", e.Driver)
	}
	writeTop(&b, e.Top)
	return b.String()
}

// Unwrap returns the driver's error.
func (e *DeviceLostError) Unwrap() error { return e.Driver }

func (e *DeviceLostError) Error() string {
	var b strings.Builder
	m := e.Meters
	fmt.Fprintf(&b, "%s: %v; allocated %s, active %s, reserved %s", e.Device, e.Driver, m.Allocated, m.Active, m.Reserved)
	writeTop(&b, e.Top)
	return b.String()
}

func (e *LiveError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: closed with %s in %s", e.Device, e.Bytes, liveBlocks(int64(e.Blocks)))
	writeTop(&b, e.Top)
	return b.String()
}

func writeTop(b *strings.Builder, top []TopSite) {
	for i, t := range top {
		separator := ", "
		if i == 0 {
			separator = "; most is held by "
		}
		fmt.Fprintf(b, "%s%s: %s in %s", separator, Headline(t.Stack), t.Bytes, liveBlocks(t.Count))
	}
}

func liveBlocks(n int64) string {
	if n == 1 {
		return "1 live block"
	}
	return fmt.Sprintf("%d live blocks", n)
}

// Headline names a stack by the place in the program that it speaks of, which is
// the innermost frame that is not an operation of the engine:
// "workload.(*Pyramid).Forward (engine/workload/feature_pyramid.go:88)". For a
// block of a backward pass it is the forward site's.
func Headline(stack []snapshot.Frame) string {
	prefix := ""
	if at := slices.Index(stack, backwardOf); at >= 0 {
		prefix, stack = backwardOf.Function+" ", stack[at+1:]
	}
	if len(stack) == 0 {
		return prefix + "a stack that was not recorded"
	}
	f := stack[0]
	if op, _, _ := strings.Cut(f.Function, "."); len(stack) > 1 && (op == "engine" || op == "autodiff") {
		f = stack[1]
	}
	return fmt.Sprintf("%s%s (%s:%d)", prefix, f.Function, f.File, f.Line)
}

// Explain returns err, which the kernels of this device gave, with what the device
// held if it was lost: a *DeviceLostError.
func (d *Device) Explain(err error) error {
	if !errors.Is(err, ErrDeviceLost) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.deviceLost(err)
}

func (d *Device) deviceLost(err error) *DeviceLostError {
	return &DeviceLostError{Device: d.String(), Meters: d.meters(), Top: d.topSites(), Driver: err}
}

// outOfMemory describes the refusal.
func (d *Device) outOfMemory(request int64, refused error) *OutOfMemoryError {
	return &OutOfMemoryError{
		Device:    d.String(),
		Requested: snapshot.Bytes(request),
		Segment:   snapshot.Bytes(leastSegmentFor(round(request))),
		Limit:     d.limit(),
		Meters:    d.meters(),
		Top:       d.topSites(),
		Driver:    refused,
	}
}

func (d *Device) limit() snapshot.Bytes {
	if d.options.Limit > 0 {
		return d.options.Limit
	}
	if c, ok := d.driver.(interface{ Capacity() snapshot.Bytes }); ok {
		return c.Capacity()
	}
	return snapshot.Unknown
}

// topSites returns the sites that hold most, largest first.
func (d *Device) topSites() []TopSite {
	var top []TopSite
	for i, t := range d.live {
		if t.count > 0 {
			top = append(top, TopSite{SiteTotal: SiteTotal{SiteID(i), t.count, t.bytes}})
		}
	}
	slices.SortFunc(top, func(a, b TopSite) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site, b.Site))
	})
	top = top[:min(topSites, len(top))]
	for i := range top {
		top[i].Stack = d.Stack(top[i].Site)
	}
	return top
}
