package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/memdiag/memdiag/snapshot"
)

// errTorn is a record that was not written to its end.
var errTorn = errors.New("torn record")

// DecodeSeries reads a series log of size bytes; name is used in errors and notes. If the writer was killed, the log is read up to its
// last complete record, and a note says how much was lost. At most 4 Mi counts (96 MiB) are kept: a longer log loses every second
// point, evenly, until it fits, and a note says so. The last point is always kept. Errors are *snapshot.FormatError.
func DecodeSeries(name string, r io.ReaderAt, size int64) (*snapshot.Series, []string, error) {
	return readSeries(name, r, size, maxCounts)
}

func readSeries(name string, r io.ReaderAt, size int64, room int) (*snapshot.Series, []string, error) {
	minor, err := readFileHeader(name, r, size, seriesMagic, "series log")
	if err != nil {
		return nil, nil, err
	}
	d := &seriesDecoder{
		stream: recordStream{name: name, r: r, size: size, offset: fileHeaderSize, memory: maxMemory(size)},
		series: &snapshot.Series{Stacks: snapshot.NewStacks()},
		stride: 1, room: room,
	}
	unknown := 0
	for d.stream.offset < size {
		k, c, err := d.stream.next()
		if errors.Is(err, errTorn) {
			d.notes = append(d.notes, fmt.Sprintf("%s: byte %d: the last %d bytes are no whole record; its writer was stopped in the middle of a step", name, d.stream.offset, size-d.stream.offset))
			break
		}
		if err != nil {
			return nil, nil, err
		}
		if !d.read(k, c) {
			unknown++
			continue
		}
		if err := c.end(); err != nil {
			return nil, nil, err
		}
	}
	if unknown > 0 {
		d.notes = append(d.notes, fmt.Sprintf("%s: %d records of format version %d.%d are not known to this memdiag and were passed over", name, unknown, majorVersion, minor))
	}
	d.finish()
	return d.series, d.notes, nil
}

// maxCounts bounds the cost of reading a short log of a run with many sites: a point of 30 bytes can represent thousands of counts.
const maxCounts = 4 << 20

type seriesDecoder struct {
	stream   recordStream
	series   *snapshot.Series
	texts    []string
	frames   []snapshot.FrameID
	before   pointState
	live     []int32 // sites that the last point kept, and those changed since
	isLive   []bool  // by site: it is in live
	points   int     // read, kept or not
	missing  bool    // the last point that was read is not among those kept
	counts   int     // cost of the points that are kept
	stride   int     // one point in this many is kept
	room     int     // for points, in counts
	hasTable bool
	notes    []string
}

func (d *seriesDecoder) read(k byte, c *cursor) (known bool) {
	switch {
	case k != recordDevices && !d.hasTable:
		c.fail("a record of kind %q before the table of devices", k)
	case k == recordDevices && d.hasTable:
		c.fail("a second table of devices")
	case k == recordDevices:
		d.hasTable = true
		d.series.Devices = readDevices(c)
		d.before.meters = make([]snapshot.Meters, len(d.series.Devices))
		for i, device := range d.series.Devices {
			d.before.meters[i] = device.Meters
		}
	case k == recordSite:
		d.readSite(c)
	case k == recordPoint:
		d.readPoint(c)
	default:
		return false
	}
	return true
}

func (d *seriesDecoder) readSite(c *cursor) {
	device := c.index("device", len(d.series.Devices))
	c.charge(stackMemory)
	frames := make([]snapshot.FrameID, c.count("frames", 1, 4))
	for i := range frames {
		frames[i] = d.readFrame(c)
	}
	if c.err != nil {
		return
	}
	d.series.Sites = append(d.series.Sites, snapshot.SeriesSite{Device: device, Stack: d.series.Stacks.Intern(frames)})
	d.before.count = append(d.before.count, 0)
	d.before.bytes = append(d.before.bytes, 0)
	d.isLive = append(d.isLive, false)
}

func (d *seriesDecoder) readText(c *cursor) string {
	if n := c.index("string", len(d.texts)+1); n > 0 {
		return d.texts[n-1]
	}
	s := c.string()
	c.charge(textMemory)
	d.texts = append(d.texts, s)
	return s
}

func (d *seriesDecoder) readFrame(c *cursor) snapshot.FrameID {
	if n := c.index("frame", len(d.frames)+1); n > 0 {
		return d.frames[n-1]
	}
	function, file := d.readText(c), d.readText(c)
	c.charge(frameMemory)
	id := d.series.Stacks.Frame(snapshot.Frame{Function: function, File: file, Line: c.line()})
	d.frames = append(d.frames, id)
	return id
}

func (d *seriesDecoder) readPoint(c *cursor) {
	was := &d.before.mark
	m := snapshot.Mark{
		Step: was.Step + c.varint(), Epoch: was.Epoch + c.varint(), Phase: d.readText(c),
		BatchElements: was.BatchElements + c.varint(), SequenceLength: was.SequenceLength + c.varint(),
		Time: c.time(d.before.micro),
	}
	for i := range d.before.meters {
		d.before.meters[i] = readMeters(c, d.before.meters[i])
	}
	next := 0
	for range c.count("changed sites", 3, 0) {
		site := c.uvarint()
		if c.err == nil && site >= uint64(len(d.before.count)-next) {
			c.fail("site %d after %d of %d", site, next, len(d.before.count))
		}
		if c.err != nil {
			return
		}
		next += int(site)
		d.before.count[next] += c.varint()
		d.before.bytes[next] += c.bytesValue()
		if !d.isLive[next] {
			d.isLive[next] = true
			d.live = append(d.live, int32(next))
		}
		next++
	}
	if c.err != nil {
		return
	}
	d.before.mark = m
	if !m.Time.IsZero() {
		d.before.micro = m.Time.UnixMicro()
	}
	d.missing = d.points%d.stride != 0
	if !d.missing {
		d.keep()
		for d.counts > d.room && len(d.series.Points) > 2 {
			d.thin()
		}
	}
	d.points++
}

// keep appends the current state as a point. It skips sites that held nothing at the previous point: a log may have a million sites,
// and as many points.
func (d *seriesDecoder) keep() {
	p := snapshot.Point{Mark: d.before.mark, Meters: slices.Clone(d.before.meters)}
	d.live = slices.DeleteFunc(d.live, func(id int32) bool {
		d.isLive[id] = d.before.count[id] != 0 || d.before.bytes[id] != 0
		return !d.isLive[id]
	})
	slices.Sort(d.live)
	if len(d.live) > 0 {
		p.Sites = make([]snapshot.SiteCount, len(d.live))
	}
	for i, id := range d.live {
		p.Sites[i] = snapshot.SiteCount{Site: id, Count: d.before.count[id], Bytes: d.before.bytes[id]}
	}
	d.series.Points = append(d.series.Points, p)
	d.counts += cost(&p)
}

// cost is a point's size in counts of 24 bytes, what comparing makes of it included.
func cost(p *snapshot.Point) int {
	return 16 + 4*len(p.Meters) + len(p.Sites)
}

// thin drops every second point; the first stays.
func (d *seriesDecoder) thin() {
	d.missing = len(d.series.Points)%2 == 0
	kept := d.series.Points[:0]
	d.counts = 0
	for i := 0; i < len(d.series.Points); i += 2 {
		kept = append(kept, d.series.Points[i])
		d.counts += cost(&d.series.Points[i])
	}
	clear(d.series.Points[len(kept):])
	d.series.Points = kept
	d.stride *= 2
}

// finish brings the devices up to the last point, which is kept in any case.
func (d *seriesDecoder) finish() {
	if d.missing {
		d.keep()
	}
	for i := range d.series.Devices {
		d.series.Devices[i].Meters = d.before.meters[i]
	}
	if d.stride > 1 {
		d.notes = append(d.notes, fmt.Sprintf("%s: of %d points, every %dth was read, to bound memory", d.stream.name, d.points, d.stride))
	}
}

// recordStream hands out the records of a log, reading it in pieces.
type recordStream struct {
	name   string
	r      io.ReaderAt
	size   int64
	offset int64 // of the next record
	memory int64 // bytes that sites may still ask for
	piece  []byte
	from   int64 // offset of piece in the file
}

// pieceSize is how much of a log is read at once.
const pieceSize = 256 << 10

// next returns the next record's kind and content, valid until the next call, or errTorn if the rest is no complete record.
func (s *recordStream) next() (byte, *cursor, error) {
	head, err := s.bytes(recordHeaderSize)
	if err != nil {
		return 0, nil, err
	}
	length := int64(binary.LittleEndian.Uint32(head))
	record, err := s.bytes(recordHeaderSize + length + checksumSize)
	if err != nil {
		return 0, nil, err
	}
	end := recordHeaderSize + length
	if xxhash.Sum64(record[:end]) != binary.LittleEndian.Uint64(record[end:]) {
		return 0, nil, errTorn
	}
	c := &cursor{
		file: s.name, where: "a record", offset: s.offset + recordHeaderSize,
		data: record[recordHeaderSize:end:end], room: &s.memory,
	}
	s.offset += int64(len(record))
	return record[4], c, nil
}

// bytes returns the n bytes at the offset.
func (s *recordStream) bytes(n int64) ([]byte, error) {
	if n > s.size-s.offset {
		return nil, errTorn
	}
	if skip := s.offset - s.from; skip+n > int64(len(s.piece)) {
		s.piece = slices.Grow(s.piece[:0], int(max(n, min(pieceSize, s.size-s.offset))))
		s.piece = s.piece[:max(n, min(pieceSize, s.size-s.offset))]
		s.from = s.offset
		if err := readAt(s.name, s.r, s.piece, s.offset); err != nil {
			return nil, err
		}
	}
	return s.piece[s.offset-s.from:][:n], nil
}
