package native

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
)

// The kinds of record of a series log.
const (
	recordDevices byte = 'D' // first, once
	recordSite    byte = 'S' // before the first point that names the site
	recordPoint   byte = 'P'
)

const recordHeaderSize = 5

// SeriesWriter appends a run's counters to a log, point by point. It is not safe
// for concurrent use.
//
// Every point is one call of Write, together with the sites that are new in it:
// whoever is killed between two steps leaves a whole log, and within one, all
// points before. After an error of Write the log ends with what was written
// whole, and each further call returns the same error.
type SeriesWriter struct {
	w       io.Writer
	devices int
	stacks  *snapshot.Stacks // knows which sites were written
	ids     map[snapshot.SeriesSite]int32
	names   dictionary
	pending []byte // records that wait for the next point
	before  pointState
	err     error
}

// dictionary numbers what the log already has. Frames and strings are written at their first occurrence, and as numbers afterwards.
type dictionary struct {
	texts  map[string]uint64
	frames map[snapshot.Frame]uint64
}

// pointState is what a point is written against.
type pointState struct {
	mark   snapshot.Mark
	micro  int64 // Unix microseconds of the last mark with a time
	meters []snapshot.Meters
	count  []int64 // by site
	bytes  []snapshot.Bytes
}

// NewSeriesWriter begins a log: it writes the header and the table of devices. Their meters are the values before the first point.
func NewSeriesWriter(w io.Writer, devices []snapshot.Device) (*SeriesWriter, error) {
	s := &SeriesWriter{
		w:       w,
		devices: len(devices),
		stacks:  snapshot.NewStacks(),
		ids:     make(map[snapshot.SeriesSite]int32),
		names:   dictionary{make(map[string]uint64), make(map[snapshot.Frame]uint64)},
		before:  pointState{meters: make([]snapshot.Meters, len(devices))},
	}
	for i, d := range devices {
		s.before.meters[i] = d.Meters
	}
	b := appendRecord(fileHeader(seriesMagic), recordDevices, func(b []byte) []byte { return appendDevices(b, devices) })
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	return s, nil
}

// AddSite returns the id of the site of this device and stack, innermost frame
// first, for SiteCount.Site. Ids count from 0 in the order of the first calls;
// an equal device and stack have an equal id. A new site is written with the
// next point. No frames name the device's blocks without a stack.
func (s *SeriesWriter) AddSite(device int, frames []snapshot.Frame) (int32, error) {
	if s.err != nil {
		return 0, s.err
	}
	if device < 0 || device >= s.devices {
		return 0, fmt.Errorf("series log: site on device %d of %d", device, s.devices)
	}
	site := snapshot.SeriesSite{Device: device, Stack: s.stacks.InternFrames(frames)}
	if id, ok := s.ids[site]; ok {
		return id, nil
	}
	id := int32(len(s.ids))
	s.ids[site] = id
	s.before.count = append(s.before.count, 0)
	s.before.bytes = append(s.before.bytes, 0)
	// What was interned has its lines brought into range.
	interned := s.stacks.Frames(site.Stack)
	s.pending = appendRecord(s.pending, recordSite, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(device))
		b = binary.AppendUvarint(b, uint64(len(interned)))
		for _, f := range interned {
			b = s.names.appendFrame(b, f)
		}
		return b
	})
	return id, nil
}

// AppendPoint writes one point: its mark, the meters of every device, and the
// sites that hold anything, in any order; counts of a site that is listed
// repeatedly add up. Only what differs from the point before takes space.
func (s *SeriesWriter) AppendPoint(p snapshot.Point) error {
	if s.err != nil {
		return s.err
	}
	if len(p.Meters) != s.devices {
		return fmt.Errorf("series log: meters of %d devices, where the run has %d", len(p.Meters), s.devices)
	}
	changes, err := s.changes(p.Sites)
	if err != nil {
		return err
	}
	b := appendRecord(s.pending, recordPoint, func(b []byte) []byte { return s.appendPoint(b, &p, changes) })
	s.pending = b[:0]
	if n, err := s.w.Write(b); err != nil || n < len(b) {
		s.err = cmp.Or(err, io.ErrShortWrite)
	}
	return s.err
}

// changes lists the sites that hold something else than before, ascending, with
// the differences.
func (s *SeriesWriter) changes(sites []snapshot.SiteCount) ([]snapshot.SiteCount, error) {
	now := make([]snapshot.SiteCount, len(s.ids))
	for _, c := range sites {
		if c.Site < 0 || int(c.Site) >= len(now) {
			return nil, fmt.Errorf("series log: site %d of %d", c.Site, len(now))
		}
		now[c.Site].Count += c.Count
		now[c.Site].Bytes += c.Bytes
	}
	changed := now[:0]
	for id, c := range now {
		d := snapshot.SiteCount{Site: int32(id), Count: c.Count - s.before.count[id], Bytes: c.Bytes - s.before.bytes[id]}
		if d.Count != 0 || d.Bytes != 0 {
			changed = append(changed, d)
		}
		s.before.count[id], s.before.bytes[id] = c.Count, c.Bytes
	}
	return changed, nil
}

func (s *SeriesWriter) appendPoint(b []byte, p *snapshot.Point, changes []snapshot.SiteCount) []byte {
	m, was := &p.Mark, &s.before.mark
	b = binary.AppendVarint(b, m.Step-was.Step)
	b = binary.AppendVarint(b, m.Epoch-was.Epoch)
	b = s.names.appendText(b, m.Phase)
	b = binary.AppendVarint(b, m.BatchElements-was.BatchElements)
	b = binary.AppendVarint(b, m.SequenceLength-was.SequenceLength)
	b = appendTime(b, m.Time, s.before.micro)
	if !m.Time.IsZero() {
		s.before.micro = m.Time.UnixMicro()
	}
	s.before.mark = *m
	for i, meters := range p.Meters {
		b = appendMeters(b, meters, s.before.meters[i])
	}
	copy(s.before.meters, p.Meters)
	b = binary.AppendUvarint(b, uint64(len(changes)))
	next := int32(0)
	for _, c := range changes {
		b = binary.AppendUvarint(b, uint64(c.Site-next))
		b = binary.AppendVarint(b, c.Count)
		b = binary.AppendVarint(b, int64(c.Bytes))
		next = c.Site + 1
	}
	return b
}

// appendText writes n for the nth string of the log, counted from 1, or 0 and
// the string, which is the next one from then on.
func (d *dictionary) appendText(b []byte, s string) []byte {
	if n, ok := d.texts[s]; ok {
		return binary.AppendUvarint(b, n)
	}
	d.texts[s] = uint64(len(d.texts)) + 1
	return appendString(append(b, 0), s)
}

// appendFrame does so for a frame.
func (d *dictionary) appendFrame(b []byte, f snapshot.Frame) []byte {
	if n, ok := d.frames[f]; ok {
		return binary.AppendUvarint(b, n)
	}
	d.frames[f] = uint64(len(d.frames)) + 1
	b = append(b, 0)
	b = d.appendText(b, f.Function)
	b = d.appendText(b, f.File)
	return binary.AppendUvarint(b, uint64(f.Line+1))
}

// appendRecord frames what fill appends.
func appendRecord(b []byte, k byte, fill func(b []byte) []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0, k)
	b = fill(b)
	binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-recordHeaderSize))
	return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[start:]))
}
