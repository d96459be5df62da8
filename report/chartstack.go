package report

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// siteColours distinguish bands that are no leaks. The blue of reserved memory is not among them.
var siteColours = [...]color.NRGBA{rgb(0x56b4e9), rgb(0x009e73), rgb(0xe69f00), rgb(0xcc79a7), rgb(0x6a51a3), rgb(0x8c6d31), rgb(0xf0e442), rgb(0x117733)}

// stacker divides the allocated bytes of one device into bands.
type stacker struct {
	r      *diff.Result
	device int // index into the series' devices
	among  []axisPoint
	rest   []float64 // what is not in a band yet
}

func (s *stacker) band(c color.NRGBA, strong bool) band {
	return band{colour: c, strong: strong, y: make([]float64, len(s.among))}
}

// take moves a row's bytes from the rest to a band.
func (s *stacker) take(b *band, row *diff.Row) {
	site := s.r.Series.Site(row)
	if site == nil {
		return
	}
	for j, at := range s.among {
		// The site's counters and the device's meters may be read at slightly different moments. The stack must still not rise above
		// the meter.
		y := min(at.of(func(mark int) snapshot.Bytes { return site.Bytes[mark] }), s.rest[j])
		b.y[j] += y
		s.rest[j] -= y
	}
}

// holds reports whether a device's memory is part of the picture: it is the drawn device, or is in the drawn process. Python's heap is
// excluded, since most of it is in arenas that do not come from malloc.
func (s *stacker) holds(device int) bool {
	all := s.r.Series.Devices
	return device == s.device || all[s.device].Kind == snapshot.Process && all[device].Kind.InProcess() && all[device].Kind != snapshot.PythonHeap
}

// here lists the rows of the device.
func (s *stacker) here() []*diff.Row {
	var rows []*diff.Row
	for i := range s.r.Rows {
		row := &s.r.Rows[i]
		if site := s.r.Series.Site(row); site != nil && s.holds(site.Device) {
			rows = append(rows, row)
		}
	}
	return rows
}

// stack sets the bands. The lowest is the memory in none of the others.
func (c *chart) stack(r *diff.Result, by Stacking, device int, among []axisPoint, allocated []float64) {
	s := &stacker{r: r, device: device, among: among, rest: slices.Clone(allocated)}
	var bands []band
	switch {
	case by == StackSites:
		bands = s.sites()
	case by == StackOwners:
		bands = s.owners()
	case s.r.Comparable:
		bands = s.leaks(c.size)
		if grown := s.unexplained(c.size); grown != nil {
			bands = append(bands, *grown)
		}
	}
	if later := s.later(); later != nil {
		bands = append(bands, *later)
	}
	name := "all other allocations"
	if len(bands) == 0 {
		name = "allocated"
	}
	last := snapshot.FormatBytes(s.rest[len(s.rest)-1])
	c.bands = append([]band{{name: name, notes: []string{last}, colour: restColour, y: s.rest}}, bands...)
}

// later is memory after the last snapshot, known from counters alone; nil for none.
func (s *stacker) later() *band {
	end := slices.IndexFunc(s.among, func(at axisPoint) bool { return at.after })
	if end <= 0 {
		return nil
	}
	if slices.Max(s.rest[end:]) <= s.rest[end-1] {
		return nil
	}
	b := s.band(axisColour, false)
	for j := end; j < len(s.rest); j++ {
		b.y[j] = max(0, s.rest[j]-s.rest[end-1])
		s.rest[j] -= b.y[j]
	}
	b.name, b.notes = "after the last snapshot", []string{snapshot.FormatBytes(b.y[len(b.y)-1])}
	return &b
}

// leaks makes a band for each of the first leaks and possible leaks, and below them one band for all further leaks.
func (s *stacker) leaks(size float64) []band {
	var grown []band
	var rows []*diff.Row // of grown
	more := s.band(moreColour, true)
	leaks, rate := 0, diff.Rate{}
	for i := range s.r.Findings {
		f := &s.r.Findings[i]
		site := s.r.Series.Site(f.Rows[0])
		if site == nil || !s.holds(site.Device) || f.Verdict != diff.Leak && f.Verdict != diff.Inconclusive {
			continue
		}
		if site.Device != s.device && float64(f.After().Bytes) < visibleShare*s.rest[len(s.rest)-1] {
			continue
		}
		switch {
		case len(grown) < len(leakColours):
			b := s.band(leakColours[len(grown)], f.Verdict == diff.Leak)
			for _, row := range f.Rows {
				s.take(&b, row)
			}
			b.name, b.notes = shortPlace(f.Rows[0], f.Headline), []string{fmt.Sprintf("%s: %s", f.Verdict, bytesRate(f.Rate))}
			if text := interval(readable(f.Rate).Bytes, snapshot.FormatBytes); text != "" {
				b.notes = append(b.notes, "("+text+")")
			}
			if (f.Rate.Unit == s.r.Series.Axis.Unit || inBatches(s.r)) && !moreBehind(f) {
				slope := multiplied(f.Rate.Bytes, size)
				b.slope = &slope
			}
			grown, rows = append(grown, b), append(rows, f.Rows[0])
		case f.Verdict == diff.Leak:
			for _, row := range f.Rows {
				s.take(&more, row)
			}
			leaks++
			rate.Unit, rate.Bytes.Value = f.Rate.Unit, rate.Bytes.Value+f.Rate.Bytes.Value
		}
	}
	nameApart(grown, rows)
	if leaks > 0 {
		more.name, more.notes = count(int64(leaks), "more leak"), []string{bytesRate(rate)}
		grown = append([]band{more}, grown...)
	}
	return grown
}

// beyondStacks is the name and the rate of the process's growth beyond recorded memory: nodes of a graph or items of a container that
// leak, or memory of unknown use. The name is "" if there is no such growth.
func beyondStacks(r *diff.Result) (name string, rate diff.Rate) {
	if e := r.ProcessGrowth(); e != nil {
		return "beyond recorded stacks", e.Rate
	}
	for _, f := range withVerdict(r, diff.Leak) {
		switch {
		case f.Nodes != nil && ofNodes(f):
			return "autograd graph", f.Rate
		case ofItems(f), moreBehind(f) && itemsBehind(f):
			return brief(f.Holder.Path), f.Rate
		case f.Nodes != nil && moreBehind(f):
			return "graph behind " + shortPlace(f.Rows[0], f.Headline), f.Rate
		}
	}
	return "", diff.Rate{}
}

// unexplained is the band of the process's growth beyond recorded memory after warm-up, from its minimum on. It is nil if another
// device is drawn or there is no such growth.
func (s *stacker) unexplained(size float64) *band {
	name, rate := beyondStacks(s.r)
	all := s.r.Series
	process, beyond := all.Unrecorded()
	if name == "" || s.device != process || len(beyond) <= all.WarmUp() {
		return nil
	}
	b := s.band(leakColours[0], false)
	// What came before the minimum was freed, so growth begins there. The judge does the same.
	from := all.WarmUp()
	base := slices.Min(beyond[from:])
	from += slices.Index(beyond[from:], base)
	for j, at := range s.among {
		b.y[j] = min(at.of(func(mark int) snapshot.Bytes {
			if mark < from {
				return 0
			}
			return snapshot.Bytes(beyond[mark] - base)
		}), s.rest[j])
		s.rest[j] -= b.y[j]
	}
	b.name, b.notes = name, []string{"process: " + bytesRate(rate)}
	if text := interval(readable(rate).Bytes, snapshot.FormatBytes); text != "" {
		b.notes = append(b.notes, "("+text+")")
	}
	if rate.Unit == all.Axis.Unit {
		slope := multiplied(rate.Bytes, size)
		b.slope = &slope
	}
	return &b
}

// nameApart distinguishes bands of equal names. Each band belongs to a row.
func nameApart(bands []band, rows []*diff.Row) {
	names := make([]string, len(bands))
	for i := range bands {
		names[i] = bands[i].name
	}
	for i, from := range callsApart(names, rows) {
		bands[i].from = from
	}
}

// visibleShare is how much of all live bytes a site's band needs to be seen.
const visibleShare = 0.01

// sites makes bands of the rows that hold most at the end, the largest lowest.
func (s *stacker) sites() []band {
	rows := s.here()
	slices.SortStableFunc(rows, func(a, b *diff.Row) int { return cmp.Compare(b.After.Bytes, a.After.Bytes) })
	verdicts, named := verdictsOf(s.r), headsOf(s.r.Findings)
	var bands []band
	var all snapshot.Bytes
	for _, row := range rows {
		all += row.After.Bytes
	}
	for i, row := range rows[:min(len(rows), len(siteColours))] {
		if i > 0 && float64(row.After.Bytes) < visibleShare*float64(all) {
			break
		}
		b := s.band(siteColours[i], verdicts[row] == diff.Leak)
		s.take(&b, row)
		b.name, b.notes = shortPlace(row, named.of(row.Device, row.Hash, row.Frames)), []string{row.After.Bytes.String()}
		if b.strong {
			b.name += " (leak)"
		}
		bands = append(bands, b)
	}
	nameApart(bands, rows[:len(bands)])
	return bands
}

// owners groups the rows by the owners that hold a reference on them at the end.
func (s *stacker) owners() []band {
	var bands []band
	at := make(map[string]int)
	for _, row := range s.here() {
		name := strings.Join(row.Owners.Names(), ", ")
		if name == "" {
			continue // owners unknown: part of the rest
		}
		i, ok := at[name]
		if !ok {
			i = len(bands)
			at[name] = i
			b := s.band(siteColours[i%len(siteColours)], false)
			b.name = "held by " + name
			bands = append(bands, b)
		}
		s.take(&bands[i], row)
	}
	for i := range bands {
		bands[i].notes = []string{snapshot.FormatBytes(bands[i].y[len(bands[i].y)-1])}
	}
	end := len(s.among) - 1
	slices.SortStableFunc(bands, func(a, b band) int { return cmp.Compare(b.y[end], a.y[end]) })
	return bands
}
