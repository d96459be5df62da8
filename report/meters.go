package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// meters compares the allocators' own figures, device by device.
func (p *page) meters(r *diff.Result, reserves []*diff.Reserve) {
	first, last := names(r)
	idle := func(d snapshot.Device) bool {
		before := metersOf(r.First, d)
		return unused(d.Meters) && (before == nil || unused(*before))
	}
	for _, d := range r.Last.Devices {
		if idle(d) {
			continue
		}
		p.line("")
		p.line(p.paint.bold(deviceTitle(d)))
		before := metersOf(r.First, d)
		var rows [][]string
		for _, m := range meterList(d, before) {
			if liveOnly(r.Last, d) && !m.ofLive {
				continue
			}
			a, change := "?", "?"
			if before != nil {
				a = known(m.of(*before))
				if m.of(*before) != snapshot.Unknown && m.value != snapshot.Unknown {
					change = signed(m.value - m.of(*before))
				}
			}
			rows = append(rows, []string{m.name, a, known(m.value), change})
		}
		p.table([]column{{"", false}, {first, true}, {last, true}, {"change", true}}, rows)
	}
	p.unused(r.Last.Devices, idle)
	for _, e := range reserves {
		p.reserve(e)
	}
}

// steady says how much the meters of each device vary after warm-up.
func (p *page) steady(r *diff.Result) {
	bands := r.Steady()
	if len(bands) == 0 {
		return
	}
	p.line("")
	for _, s := range bands {
		p.prose("", "  ", steadyText(&s))
	}
}

func steadyText(s *diff.Steadiness) string {
	peak := ""
	if s.Peak.High > 0 {
		peak = fmt.Sprintf(", highest peak so far %s", bandText(s.Peak))
	}
	return fmt.Sprintf("after warm-up, %s: live %s%s, reserved %s, in the last three quarters of the run (%s)",
		deviceName(s.Device), bandText(s.Live), peak, bandText(s.Reserved), glue(count(int64(s.Points), "point")))
}

// bandText is "25.0 MiB to 25.5 MiB (±1.0 %)".
func bandText(b diff.Band) string {
	const percent = 100
	if b.Low == b.High {
		return glue(b.Low.String())
	}
	return fmt.Sprintf("%s to %s %s", glue(b.Low.String()), glue(b.High.String()), glue(fmt.Sprintf("(±%.1f %%)", percent*b.Spread())))
}

// bandsJSON is how much a device's memory varies after warm-up, in bytes.
type bandsJSON struct {
	Device   string    `json:"device"`
	Points   int       `json:"points"`
	Live     bandJSON  `json:"live"`
	Reserved bandJSON  `json:"reserved"`
	Peak     *bandJSON `json:"highest_peak_so_far,omitempty"`
}

type bandJSON struct {
	Low  int64 `json:"low_bytes"`
	High int64 `json:"high_bytes"`
}

func bandsOf(r *diff.Result) (out []bandsJSON) {
	band := func(b diff.Band) bandJSON { return bandJSON{int64(b.Low), int64(b.High)} }
	for _, s := range r.Steady() {
		j := bandsJSON{Device: deviceName(s.Device), Points: s.Points, Live: band(s.Live), Reserved: band(s.Reserved)}
		if s.Peak.High > 0 {
			peak := band(s.Peak)
			j.Peak = &peak
		}
		out = append(out, j)
	}
	return out
}

// reserve says what grew by itself, who holds it and how to fix it.
func (p *page) reserve(e *diff.Reserve) {
	p.line("")
	p.prose("", "  ", upperFirst(e.String())+".")
	for _, fact := range reserveFacts(e) {
		p.labelled(fact.Label, fact.Text)
	}
}

// unused reports whether all known meters are zero.
func unused(m snapshot.Meters) bool {
	m.Driver = max(m.Driver, 0)
	return m == snapshot.Meters{}
}

// unused names the devices that have nothing else to report.
func (p *page) unused(devices []snapshot.Device, idle func(snapshot.Device) bool) {
	var names []string
	for i := 0; i < len(devices); i++ {
		if !idle(devices[i]) || devices[i].Kind.InProcess() || devices[i].Kind.Unsized() {
			continue
		}
		last := i
		for last+1 < len(devices) && idle(devices[last+1]) && devices[last+1].Kind == devices[i].Kind && devices[last+1].Index == devices[last].Index+1 {
			last++
		}
		if last < i+2 { // a range of two is no shorter
			names = append(names, deviceName(devices[i]))
			continue
		}
		names = append(names, deviceName(devices[i])+" to "+deviceName(devices[last]))
		i = last
	}
	if len(names) > 0 {
		p.line("")
		p.prose("", "  ", "no memory in use: "+strings.Join(names, ", "))
	}
}

func deviceTitle(d snapshot.Device) string {
	title := deviceName(d)
	if d.Name != "" {
		title += " " + brief(d.Name)
	}
	if d.Limit > 0 {
		title += ", limit " + d.Limit.String()
	}
	return title
}

// deviceOf finds the same device in another snapshot; nil if it is missing.
func deviceOf(s *snapshot.Snapshot, d snapshot.Device) *snapshot.Device {
	for i := range s.Devices {
		if s.Devices[i].Kind == d.Kind && s.Devices[i].Index == d.Index {
			return &s.Devices[i]
		}
	}
	return nil
}

// metersOf are the same device's meters in another snapshot; nil if it is missing.
func metersOf(s *snapshot.Snapshot, d snapshot.Device) *snapshot.Meters {
	if other := deviceOf(s, d); other != nil {
		return &other.Meters
	}
	return nil
}

// meter is one of the five figures.
type meter struct {
	name   string
	ofLive bool // shown even if the file has only live memory
	of     func(snapshot.Meters) snapshot.Bytes
	value  snapshot.Bytes
}

// meterList are a device's meters. The machine's own memory has no caching allocator like a GPU's. Meters that were not read, or that
// equal the allocated bytes, are left out for it, unless the earlier meters (if not nil) differ there.
func meterList(d snapshot.Device, before *snapshot.Meters) []meter {
	m := d.Meters
	list := []meter{
		{name: "requested", ofLive: true, of: func(m snapshot.Meters) snapshot.Bytes { return m.Requested }},
		{name: "allocated", ofLive: true, of: func(m snapshot.Meters) snapshot.Bytes { return m.Allocated }},
		{name: "active", of: func(m snapshot.Meters) snapshot.Bytes { return m.Active }},
		{name: "reserved", of: func(m snapshot.Meters) snapshot.Bytes { return m.Reserved }},
		{name: outermost(d), of: func(m snapshot.Meters) snapshot.Bytes { return m.Driver }},
	}
	for i := range list {
		list[i].value = list[i].of(m)
	}
	if !inRAM(d) {
		return list
	}
	if d.Kind == snapshot.Process {
		list[3].name = "heap" // malloc's heap, including its free memory
	}
	return slices.DeleteFunc(list, func(one meter) bool {
		dull := func(m snapshot.Meters) bool {
			if d.Kind == snapshot.Process && one.name == "allocated" && m.Allocated == 0 {
				return true // every process has some memory, so its malloc gives no figures, as with musl
			}
			return one.of(m) == snapshot.Unknown || one.name != "allocated" && one.of(m) == m.Allocated
		}
		return dull(m) && (before == nil || dull(*before))
	})
}

// inRAM reports whether a device is the machine's own memory.
func inRAM(d snapshot.Device) bool {
	return d.Kind.InProcess() || d.Kind == snapshot.Process || d.Kind == snapshot.SharedMemory
}

// outermost names the figure that does not come from the allocator: a GPU's driver figure, or the resident memory of the process.
func outermost(d snapshot.Device) string {
	if inRAM(d) {
		return "RSS"
	}
	return "driver"
}

// known is a size, or "?" if it is unknown.
func known(b snapshot.Bytes) string {
	if b == snapshot.Unknown {
		return "?"
	}
	return b.String()
}
