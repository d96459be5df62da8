package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/memdiag/memdiag/diff"
	"github.com/memdiag/memdiag/snapshot"
)

// leakSites are the sites whose verdict is leak, by device and stack hash.
type leakSites map[string]struct{}

func leaksOf(r *diff.Result) leakSites {
	sites := make(leakSites)
	for _, f := range withVerdict(r, diff.Leak) {
		for _, row := range f.Rows {
			sites[siteName(row.Device, row.Hash)] = struct{}{}
		}
	}
	return sites
}

func (l leakSites) has(d snapshot.Device, hash snapshot.Hash) bool {
	_, ok := l[siteName(d, hash)]
	return ok
}

// rows marks the live blocks of s that belong to the sites.
func (l leakSites) rows(s *snapshot.Snapshot) []bool {
	leaking := make([]bool, s.Blocks.Len())
	if len(l) == 0 {
		return leaking
	}
	for _, site := range s.Sites() {
		if !l.has(s.Devices[site.Device], site.Hash) {
			continue
		}
		for _, row := range site.Rows {
			leaking[row] = true
		}
	}
	return leaking
}

// deviceView shows where a device's memory is.
type deviceView struct {
	Title  string
	Live   string // in place of the others, if the file has live memory only
	Meters []meterView
	Parts  []partView
	Free   string
	Pins   []string
}

type meterView struct{ Name, First, Last, Change string }

type partView struct {
	Name, Bytes, Share string
	Start, Width       float64 // of 100
}

// deviceViews describes the snapshot, compared with an earlier one unless that is nil.
func deviceViews(first, s *snapshot.Snapshot) []deviceView {
	shapes := shapesOf(s)
	var out []deviceView
	for i, d := range s.Devices {
		if unused(d.Meters) {
			continue
		}
		v := deviceView{Title: deviceTitle(d)}
		if liveOnly(s, d) {
			v.Live = strings.ReplaceAll(liveOnlyText(d.Meters), noBreak, " ")
			out = append(out, v)
			continue
		}
		var before *snapshot.Meters
		if first != nil {
			before = metersOf(first, d)
		}
		for _, m := range meterList(d, before) {
			row := meterView{m.name, "?", known(m.value), "?"}
			if before != nil {
				row.First = known(m.of(*before))
				if m.of(*before) != snapshot.Unknown && m.value != snapshot.Unknown {
					row.Change = signed(m.value - m.of(*before))
				}
			}
			v.Meters = append(v.Meters, row)
		}
		whole := d.Meters.Reserved
		if d.Meters.Driver != snapshot.Unknown {
			whole = d.Meters.Driver
		}
		at := 0.0
		for _, p := range shownParts(d, shapes[i].parts) {
			width := 0.0
			if p.bytes > 0 && whole > 0 {
				width = min(100*float64(p.bytes)/float64(whole), 100-at)
			}
			v.Parts = append(v.Parts, partView{p.name, p.bytes.String(), share(p.bytes, whole), at, width})
			at += width
		}
		f := shapes[i].fragments
		if f.freeBlocks > 0 {
			v.Free = fmt.Sprintf("%s are free in %s, the largest %s; emptying the cache frees %s in %s",
				f.free, count(int64(f.freeBlocks), "block"), f.largestFree, f.empty, count(int64(f.emptySegments), "segment"))
		}
		for _, pin := range f.pins[:min(len(f.pins), 5)] {
			where := "blocks without a stack"
			if pin.stack != snapshot.NoStack {
				where = whereOf(s.Stacks.Frames(pin.stack), "").text()
			}
			v.Pins = append(v.Pins, strings.ReplaceAll(count(int64(pin.segments), "segment")+" of "+pin.bytes.String()+" pinned by "+where, noBreak, " "))
		}
		out = append(out, v)
	}
	return out
}

// mapView is a device's reserved memory as cells, one segment after the other. Each segment begins a new cell.
type mapView struct {
	Device        string
	Width, Height int
	Layers        []mapLayer
	Scale         string // what a row represents
	Segments      string
}

type mapLayer struct {
	Class, Name, Bytes string
	Path               string // of the cells
}

// Cells of a segment map.
const (
	mapColumns = 80
	mapCells   = 2400
	// fewestCells is the size of the smallest map that is worth showing.
	fewestCells = 20
	cellSize    = 10
)

// mapClasses are the classes of a cell or a block; on a tie the first one wins, worst first.
var mapClasses = []struct{ class, name string }{
	{"leak", "leaking"}, {"live", "live"}, {"pending", "freed, a stream still uses it"}, {"free", "cached, free for reuse"},
}

func mapViews(s *snapshot.Snapshot, leaks leakSites) []mapView {
	leaking := leaks.rows(s)
	var out []mapView
	for d := range s.Devices {
		if v, ok := mapViewOf(s, d, leaking); ok {
			out = append(out, v)
		}
	}
	return out
}

func mapViewOf(s *snapshot.Snapshot, device int, leaking []bool) (mapView, bool) {
	var segments []*snapshot.Segment
	var reserved snapshot.Bytes
	for i := range s.Segments {
		seg := &s.Segments[i]
		if seg.Device == device && seg.Size > 0 && seg.NumBlocks > 0 && seg.Address != 0 && lies(s, seg) {
			segments = append(segments, seg)
			reserved += seg.Size
		}
	}
	if len(segments) == 0 {
		return mapView{}, false
	}
	// If there are more segments than cells, the largest are drawn.
	left := 0
	if len(segments) > mapCells/2 {
		slices.SortStableFunc(segments, func(a, b *snapshot.Segment) int { return cmp.Compare(b.Size, a.Size) })
		left = len(segments) - mapCells/2
		segments = segments[:mapCells/2]
		slices.SortFunc(segments, func(a, b *snapshot.Segment) int { return cmp.Compare(a.Address, b.Address) })
	}
	cell := cellBytes(segments)
	var sums [4]snapshot.Bytes
	var cells []int // class of each
	for _, seg := range segments {
		cells = append(cells, cellsOf(s, seg, cell, leaking, &sums)...)
	}
	paths := make([]strings.Builder, len(mapClasses))
	for from := 0; from < len(cells); {
		to := from + 1
		for to < len(cells) && to%mapColumns != 0 && cells[to] == cells[from] {
			to++
		}
		width := (to - from) * cellSize
		fmt.Fprintf(&paths[cells[from]], "M%d %dh%dv%dh-%dz", from%mapColumns*cellSize, from/mapColumns*cellSize, width, cellSize-2, width)
		from = to
	}
	if len(cells) < fewestCells {
		return mapView{}, false
	}
	v := mapView{
		Device: deviceName(s.Devices[device]), Width: mapColumns * cellSize, Height: (len(cells) + mapColumns - 1) / mapColumns * cellSize,
		Scale: "a row is " + (mapColumns * cell).String(), Segments: count(int64(len(segments)), "segment") + ", " + reserved.String() + " reserved",
	}
	if left > 0 {
		v.Segments += fmt.Sprintf("; %s not drawn", count(int64(left), "smaller segment"))
	}
	for i, c := range mapClasses {
		if sums[i] == 0 {
			continue
		}
		v.Layers = append(v.Layers, mapLayer{c.class, c.name, sums[i].String(), paths[i].String()})
	}
	return v, true
}

// lies reports whether most blocks of a segment are within it. A recorder that does not know segments puts all blocks of a device into
// one, wherever they are.
func lies(s *snapshot.Snapshot, seg *snapshot.Segment) bool {
	within := 0
	for b := seg.FirstBlock; b < seg.FirstBlock+seg.NumBlocks; b++ {
		if at := s.Blocks.Address[b]; at >= seg.Address && at-seg.Address < uint64(seg.Size) {
			within++
		}
	}
	return 2*within > seg.NumBlocks
}

// cellBytes is the smallest power of two, from 512 bytes on, with which the segments need at most mapCells cells.
func cellBytes(segments []*snapshot.Segment) snapshot.Bytes {
	for cell := snapshot.Bytes(512); ; cell *= 2 {
		n := snapshot.Bytes(0)
		for _, seg := range segments {
			n += (seg.Size + cell - 1) / cell
		}
		if n <= mapCells || cell >= 1<<60 {
			return cell
		}
	}
}

// cellsOf returns for each cell of a segment the class of most of its bytes, and adds all bytes to the sums by class.
func cellsOf(s *snapshot.Snapshot, seg *snapshot.Segment, cell snapshot.Bytes, leaking []bool, sums *[4]snapshot.Bytes) []int {
	n := int((seg.Size + cell - 1) / cell)
	shares := make([][4]snapshot.Bytes, n)
	for b := seg.FirstBlock; b < seg.FirstBlock+seg.NumBlocks; b++ {
		class := 3
		switch {
		case s.Blocks.State[b] == snapshot.Live && leaking[b]:
			class = 0
		case s.Blocks.State[b] == snapshot.Live:
			class = 1
		case s.Blocks.State[b] == snapshot.Pending:
			class = 2
		}
		from := snapshot.Bytes(s.Blocks.Address[b] - seg.Address)
		to := from + s.Blocks.Size[b]
		sums[class] += s.Blocks.Size[b]
		if from < 0 || to < from || to > seg.Size {
			continue // a file that breaks its format
		}
		for at := from / cell; at <= (to-1)/cell && to > from; at++ {
			shares[at][class] += min(to, (at+1)*cell) - max(from, at*cell)
		}
	}
	cells := make([]int, n)
	for i := range shares {
		best := 3
		for class := 3; class >= 0; class-- {
			if shares[i][class] >= shares[i][best] && shares[i][class] > 0 {
				best = class
			}
		}
		cells[i] = best
	}
	return cells
}
