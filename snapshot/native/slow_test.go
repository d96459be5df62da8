package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/memdiag/memdiag/snapshot"
)

// The twins: decoders written from docs/format.md alone, one value after the
// other, without limits on memory or care for speed. A fault is a panic.

type slow struct{ *bytes.Reader }

func must(ok bool, why string) {
	if !ok {
		panic(errors.New(why))
	}
}

func (r slow) u() uint64 {
	v, err := binary.ReadUvarint(r)
	must(err == nil, "uvarint")
	return v
}

func (r slow) i() int64 {
	v, err := binary.ReadVarint(r)
	must(err == nil, "varint")
	return v
}

func (r slow) b() byte {
	v, err := r.ReadByte()
	must(err == nil, "byte")
	return v
}

func (r slow) flag() bool {
	b := r.b()
	must(b < 2, "flag")
	return b == 1
}

func (r slow) n(each int) int {
	n := r.u()
	must(n <= uint64(r.Len()/each), "count")
	return int(n)
}

func (r slow) text() string {
	b := make([]byte, r.n(1))
	_, err := io.ReadFull(r, b)
	must(err == nil, "text")
	return string(b)
}

func (r slow) time(base int64) time.Time {
	if !r.flag() {
		return time.Time{}
	}
	return time.UnixMicro(base + r.i()).UTC()
}

func (r slow) meters(m *snapshot.Meters) {
	m.Requested += snapshot.Bytes(r.i())
	m.Allocated += snapshot.Bytes(r.i())
	m.Active += snapshot.Bytes(r.i())
	m.Reserved += snapshot.Bytes(r.i())
	m.Driver += snapshot.Bytes(r.i())
}

func (r slow) devices() []snapshot.Device {
	devices := make([]snapshot.Device, r.n(9))
	for k := range devices {
		d := &devices[k]
		d.Kind = snapshot.DeviceKind(r.text())
		d.Index = int(r.i())
		d.Name = r.text()
		d.Limit = snapshot.Bytes(r.i())
		r.meters(&d.Meters)
	}
	return devices
}

func slowHeader(data []byte, magic string) {
	must(len(data) >= 16 && string(data[:8]) == magic, "magic")
	must(uint32(xxhash.Sum64(data[:12])) == binary.LittleEndian.Uint32(data[12:]), "header checksum")
	must(binary.LittleEndian.Uint16(data[8:]) == 1, "major version")
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
}

func slowDecode(data []byte) (s *snapshot.Snapshot, err error) {
	defer recovered(&err)
	slowHeader(data, "\x89MDSNAP\n")
	s = &snapshot.Snapshot{Stacks: snapshot.NewStacks()}
	stacks := []snapshot.StackID{snapshot.NoStack}
	var unknown []string
	order := []string{"META", "SCNT", "DEVS", "STKS", "SEGS", "BLKS", "BSTP", "BTIM", "BEVT", "OWNR", "CTGY", "CNTS", "HOLD", "HIST", "PROC", "SMPL", "NOTE", "END."}
	optional := map[string]bool{"SCNT": true, "BSTP": true, "BTIM": true, "BEVT": true, "OWNR": true, "CTGY": true, "CNTS": true, "PROC": true, "SMPL": true}
	count := uint64(0)
	for data = data[16:]; ; count++ {
		must(len(data) >= 32, "section header")
		name := string(data[:4])
		how := binary.LittleEndian.Uint32(data[4:])
		stored, raw := binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])
		must(stored <= uint64(len(data)-32), "section length")
		must(xxhash.Sum64(data[:24+stored]) == binary.LittleEndian.Uint64(data[24+stored:]), "section checksum")
		content := data[24 : 24+stored]
		data = data[32+stored:]
		at := -1
		for k, o := range order {
			if o == name {
				at = k
			}
		}
		if at < 0 {
			unknown = append(unknown, name)
			continue
		}
		for order[0] != name {
			must(optional[order[0]], "section order")
			order = order[1:]
			must(len(order) > 0, "section order")
		}
		order = order[1:]
		must(how <= 1, "codec")
		if how == 1 {
			must(raw <= 4<<20+16*stored, "unpack limit")
			z, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(64<<20))
			must(err == nil, "zstd")
			content, err = z.DecodeAll(content, nil)
			z.Close()
			must(err == nil, "zstd")
		}
		must(raw == uint64(len(content)), "raw length")
		r := slow{bytes.NewReader(content)}
		if name == "END." {
			must(r.u() == count && r.Len() == 0 && len(data) == 0, "end")
			break
		}
		slowSection(name, r, s, &stacks)
		must(r.Len() == 0, "bytes left in section")
	}
	s.HoldRequests()
	s.Notes = append(s.Notes, unknown...)
	return s, nil
}

func slowSection(name string, r slow, s *snapshot.Snapshot, stacks *[]snapshot.StackID) {
	b := &s.Blocks
	stack := func() snapshot.StackID {
		n := r.u()
		must(n < uint64(len(*stacks)), "stack number")
		return (*stacks)[n]
	}
	switch name {
	case "META":
		s.Mark.Step, s.Mark.Epoch, s.Mark.Phase = r.i(), r.i(), r.text()
		s.Mark.BatchElements, s.Mark.SequenceLength, s.Mark.Time = r.i(), r.i(), r.time(0)
		s.Rank, s.Producer = int(r.i()), r.text()
	case "DEVS":
		s.Devices = r.devices()
	case "STKS":
		texts := make([]string, r.n(1))
		for k := range texts {
			texts[k] = r.text()
		}
		frames := make([]snapshot.Frame, r.n(3))
		for k := range frames {
			function, file, line := r.u(), r.u(), r.u()
			must(function < uint64(len(texts)) && file < uint64(len(texts)) && line <= 1<<31, "frame")
			frames[k] = snapshot.Frame{Function: texts[function], File: texts[file], Line: int(line) - 1}
		}
		for range r.n(2) {
			var list []snapshot.Frame
			for range r.n(1) {
				n := r.u()
				must(n < uint64(len(frames)), "frame number")
				list = append(list, frames[n])
			}
			must(len(list) > 0, "empty stack")
			*stacks = append(*stacks, s.Stacks.InternFrames(list))
		}
	case "SEGS":
		row := uint64(0)
		for range r.n(9) {
			device := r.u()
			must(device < uint64(len(s.Devices)), "device")
			g := snapshot.Segment{Device: int(device), Address: r.u(), Size: snapshot.Bytes(r.i()), Stream: r.u()}
			g.Pool = snapshot.Pool(r.b())
			must(g.Pool <= 1, "pool")
			g.Private, g.Expandable, g.Stack = r.text(), r.flag(), stack()
			n := r.u()
			must(n < 1<<31 && row+n < 1<<31, "rows")
			g.FirstBlock, g.NumBlocks = int(row), int(n)
			row += n
			s.Segments = append(s.Segments, g)
		}
	case "BLKS":
		n := r.n(5)
		rows := 0
		for _, g := range s.Segments {
			rows += g.NumBlocks
		}
		must(rows == n, "rows of segments")
		for k, g := range s.Segments {
			for range g.NumBlocks {
				b.Segment = append(b.Segment, int32(k))
			}
		}
		differences := make([]int64, n)
		for k := range differences {
			differences[k] = r.i()
		}
		end := uint64(0)
		for k := range n {
			size := r.i()
			b.Size = append(b.Size, snapshot.Bytes(size))
			b.Address = append(b.Address, end+uint64(differences[k]))
			end = b.Address[k] + uint64(size)
		}
		for range n {
			state := r.b()
			must(state <= 2, "state")
			b.State = append(b.State, snapshot.State(state))
		}
		for k := range n {
			likely := b.Size[k]
			if b.State[k] == snapshot.Free {
				likely = 0
			}
			b.Requested = append(b.Requested, likely-snapshot.Bytes(r.i()))
		}
		for range n {
			b.Stack = append(b.Stack, stack())
		}
	case "BSTP":
		b.BirthStep = r.sums(len(b.Size))
	case "BTIM":
		b.BirthTime = r.sums(len(b.Size))
	case "BEVT":
		b.BirthEvent = r.sums(len(b.Size))
	case "OWNR":
		b.Owners = make([]snapshot.Owners, len(b.Size))
		for k := range b.Owners {
			b.Owners[k] = snapshot.Owners(r.b())
		}
	case "CTGY":
		for range b.Size {
			category := r.b()
			if int(category) >= snapshot.Categories {
				panic("no such category")
			}
			b.Category = append(b.Category, snapshot.Category(category))
		}
		if b.Category == nil {
			b.Category = []snapshot.Category{}
		}
	case "SCNT":
		s.Mark.StepCounted = true
	case "CNTS":
		b.Count = r.sums(len(b.Size))
	case "HOLD":
		for range r.n(4) {
			s.Holders = append(s.Holders, snapshot.Holder{Stack: stack(), Path: r.text(), Kind: r.text(), Items: int(r.i())})
		}
	case "HIST":
		s.History.Events, s.History.First, s.History.Last, s.History.LostFrees = r.i(), r.time(0), r.time(0), r.i()
	case "PROC":
		s.History.Process = r.text()
	case "SMPL":
		s.SamplePeriod = snapshot.Bytes(r.i())
	case "NOTE":
		for range r.n(1) {
			s.Notes = append(s.Notes, r.text())
		}
	}
}

func (r slow) sums(n int) []int64 {
	column, sum := make([]int64, n), int64(0)
	for k := range column {
		sum += r.i()
		column[k] = sum
	}
	return column
}

// slowSeries reads all records of a log that is whole; torn says whether bytes
// were left over.
func slowSeries(data []byte) (s *snapshot.Series, torn bool, err error) {
	defer recovered(&err)
	slowHeader(data, "\x89MDSERI\n")
	s = &snapshot.Series{Stacks: snapshot.NewStacks()}
	var texts []string
	var frames []snapshot.Frame
	var mark snapshot.Mark
	var micro int64
	var held []snapshot.SiteCount
	table := false
	for data = data[16:]; len(data) > 0; {
		length := 0
		if len(data) >= 5 {
			length = int(binary.LittleEndian.Uint32(data))
		}
		if len(data) < 13+length || xxhash.Sum64(data[:5+length]) != binary.LittleEndian.Uint64(data[5+length:]) {
			torn = true
			break
		}
		k, r := data[4], slow{bytes.NewReader(data[5 : 5+length])}
		data = data[13+length:]
		text := func() string {
			n := r.u()
			must(n <= uint64(len(texts)), "string number")
			if n == 0 {
				texts = append(texts, r.text())
				n = uint64(len(texts))
			}
			return texts[n-1]
		}
		must(table || k == 'D', "table of devices first")
		switch k {
		case 'D':
			must(!table, "second table")
			table = true
			s.Devices = r.devices()
		case 'S':
			device := r.u()
			must(device < uint64(len(s.Devices)), "device")
			var list []snapshot.Frame
			for range r.n(1) {
				n := r.u()
				must(n <= uint64(len(frames)), "frame number")
				if n == 0 {
					f := snapshot.Frame{Function: text(), File: text()}
					line := r.u()
					must(line <= 1<<31, "line")
					f.Line = int(line) - 1
					frames = append(frames, f)
					n = uint64(len(frames))
				}
				list = append(list, frames[n-1])
			}
			s.Sites = append(s.Sites, snapshot.SeriesSite{Device: int(device), Stack: s.Stacks.InternFrames(list)})
			held = append(held, snapshot.SiteCount{Site: int32(len(held))})
		case 'P':
			mark.Step += r.i()
			mark.Epoch += r.i()
			mark.Phase = text()
			mark.BatchElements += r.i()
			mark.SequenceLength += r.i()
			if mark.Time = r.time(micro); !mark.Time.IsZero() {
				micro = mark.Time.UnixMicro()
			}
			p := snapshot.Point{Mark: mark}
			for d := range s.Devices {
				r.meters(&s.Devices[d].Meters)
				p.Meters = append(p.Meters, s.Devices[d].Meters)
			}
			next := uint64(0)
			for range r.n(3) {
				skip := r.u()
				must(skip < uint64(len(held))-next, "site")
				next += skip
				held[next].Count += r.i()
				held[next].Bytes += snapshot.Bytes(r.i())
				next++
			}
			for _, h := range held {
				if h.Count != 0 || h.Bytes != 0 {
					p.Sites = append(p.Sites, h)
				}
			}
			s.Points = append(s.Points, p)
		default:
			continue
		}
		must(r.Len() == 0, "bytes left in record")
	}
	return s, torn, nil
}
