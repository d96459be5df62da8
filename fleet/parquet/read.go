package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// File is an open file. Its methods may be called from several goroutines.
type File struct {
	Path   string
	Rows   int64
	Schema []Column // names and kinds, without values
	Notes  map[string]string

	in     io.ReaderAt
	size   int64
	groups []group
	closer io.Closer
}

// Open opens a file and reads its footer.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return nil, &FormatError{path, 0, "no regular file"}
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err = in.Stat(); err != nil { // another may have taken its place
		_ = in.Close()
		return nil, err
	}
	f, err := NewFile(path, in, info.Size())
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	f.closer = in
	return f, nil
}

// Close closes a file that was opened by Open.
func (f *File) Close() error { return f.closer.Close() }

// NewFile reads the footer of a file.
func NewFile(path string, in io.ReaderAt, size int64) (*File, error) {
	f := &File{Path: path, in: in, size: size, Notes: make(map[string]string)}
	var tail [8]byte
	if size < int64(len(magic)+len(tail)) {
		return nil, f.fault(size, "too short for a Parquet file")
	}
	if _, err := in.ReadAt(tail[:], size-8); err != nil {
		return nil, err
	}
	if string(tail[4:]) != magic {
		return nil, f.fault(size-4, "it does not end as a Parquet file does")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 || n > maxFooter {
		return nil, f.fault(size-8, fmt.Sprintf("a footer of %d bytes", n))
	}
	footer := make([]byte, n)
	if _, err := in.ReadAt(footer, size-8-n); err != nil {
		return nil, err
	}
	d := &decoder{in: footer}
	f.decode(d)
	if d.err != nil {
		return nil, f.fault(size-8-n, d.err.Error())
	}
	if reason := f.check(); reason != "" {
		return nil, f.fault(size-8-n, reason)
	}
	return f, nil
}

func (f *File) fault(at int64, reason string) error { return &FormatError{f.Path, at, reason} }

// decode reads the footer.
func (f *File) decode(d *decoder) {
	elements, chunks := -1, 0
	d.each(func(id int16, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			_, n := d.list()
			for range n {
				c, ok := decodeElement(d)
				if elements++; elements == 0 {
					continue // the table itself
				}
				if !ok || elements > maxColumns {
					d.fail()
				}
				f.Schema = append(f.Schema, c)
				if d.err != nil {
					return
				}
			}
		case id == 3 && kind == thriftI64:
			f.Rows = d.int()
		case id == 4 && kind == thriftList:
			_, n := d.list()
			if n > maxGroups-len(f.groups) {
				d.fail()
			}
			for range n {
				g := decodeGroup(d)
				if chunks += len(g.chunks); chunks > maxChunks {
					d.fail()
				}
				f.groups = append(f.groups, g)
				if d.err != nil {
					return
				}
			}
		case id == 5 && kind == thriftList:
			_, n := d.list()
			for range n {
				key, value := "", ""
				d.each(func(id int16, kind byte) {
					switch {
					case id == 1 && kind == thriftBinary:
						key = d.text()
					case id == 2 && kind == thriftBinary:
						value = d.text()
					default:
						d.skip(kind)
					}
				})
				f.Notes[key] = value
				if d.err != nil {
					return
				}
			}
		default:
			d.skip(kind)
		}
	})
}

// decodeElement decodes a column's description. ok is false for a kind of column that is not read.
func decodeElement(d *decoder) (c Column, ok bool) {
	physical, repetition, converted := int64(-1), int64(0), int64(-1)
	d.each(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			physical = d.int()
		case id == 3 && kind == thriftI32:
			repetition = d.int()
		case id == 4 && kind == thriftBinary:
			c.Name = d.text()
		case id == 6 && kind == thriftI32:
			converted = d.int()
		default:
			d.skip(kind)
		}
	})
	switch {
	case physical == typeByteArray:
		c.Kind = Text
	case physical == typeDouble:
		c.Kind = Float
	case physical == typeInt64 && converted == convertedMicros:
		c.Kind = Time
	case physical == typeInt64:
		c.Kind = Int
	default:
		return c, false
	}
	return c, repetition == 0
}

func decodeGroup(d *decoder) (g group) {
	d.each(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftList:
			_, n := d.list()
			if n > maxColumns-len(g.chunks) {
				d.fail()
			}
			for range n {
				g.chunks = append(g.chunks, decodeChunk(d))
				if d.err != nil {
					return
				}
			}
		case id == 3 && kind == thriftI64:
			g.rows = d.int()
		default:
			d.skip(kind)
		}
	})
	return g
}

func decodeChunk(d *decoder) (c chunk) {
	d.each(func(id int16, kind byte) {
		if id != 3 || kind != thriftStruct {
			d.skip(kind)
			return
		}
		d.each(func(id int16, kind byte) {
			number := kind == thriftI64 || kind == thriftI32
			switch {
			case id == 4 && number:
				c.codec = d.int()
			case id == 5 && number:
				c.values = d.int()
			case id == 7 && number:
				c.packed = d.int()
			case id == 9 && number:
				c.pages = d.int()
			case id == 11 && number:
				c.dictionary = d.int()
			default:
				d.skip(kind)
			}
		})
	})
	return c
}

// check says what of the footer cannot be, or "".
func (f *File) check() string {
	sum := int64(0)
	for _, g := range f.groups {
		if g.rows < 0 || g.rows > maxRows {
			return fmt.Sprintf("a row group of %d rows; %d is the most", g.rows, maxRows)
		}
		if len(g.chunks) != len(f.Schema) {
			return "a row group without all columns"
		}
		sum += g.rows
		for _, c := range g.chunks {
			begin := c.begin()
			if begin < int64(len(magic)) || c.packed < 0 || begin > f.size || c.packed > f.size-begin || c.values != g.rows || c.pages < begin || c.pages > begin+c.packed {
				return "a column that lies outside the file"
			}
			if c.codec != codecZstd && c.codec != codecNone {
				return fmt.Sprintf("a column packed by codec %d; zstd is read", c.codec)
			}
		}
	}
	if sum != f.Rows {
		return fmt.Sprintf("%d rows in row groups, %d in all", sum, f.Rows)
	}
	if f.Rows > maxRows && f.Rows/maxRatio > f.size {
		return fmt.Sprintf("%d rows in %d bytes", f.Rows, f.size)
	}
	return ""
}

func (c *chunk) begin() int64 {
	if c.dictionary > 0 {
		return min(c.dictionary, c.pages)
	}
	return c.pages
}

// Groups is the number of row groups.
func (f *File) Groups() int { return len(f.groups) }

// GroupRows is the number of rows in a row group.
func (f *File) GroupRows(g int) int { return int(f.groups[g].rows) }

// Find is the place of a column of this kind, or -1.
func (f *File) Find(name string, kind Kind) int {
	return slices.IndexFunc(f.Schema, func(c Column) bool { return c.Name == name && c.Kind == kind })
}

// Values are one column of one row group. Text, and numbers that repeat, are stored as distinct values with an index per row.
type Values struct {
	Texts  []string  // distinct, of Text
	Ints   []int64   // for Int and Time: one per row, or the distinct values if Places is set
	Floats []float64 // for Float: one per row, or the distinct values if Places is set
	Places []uint32  // an index per row; nil if the values are per row
}

// Text is the value of a row.
func (v *Values) Text(row int) string { return v.Texts[v.place(row)] }

// Int is the value of a row.
func (v *Values) Int(row int) int64 { return v.Ints[v.place(row)] }

// Float is the value of a row.
func (v *Values) Float(row int) float64 { return v.Floats[v.place(row)] }

func (v *Values) place(row int) int {
	if v.Places == nil {
		return row
	}
	return int(v.Places[row])
}

// unpackers have buffers of their own, which are used again.
var unpackers = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		return nil
	}
	return d
}}

// Read reads a column of a row group.
func (f *File) Read(g, column int) (*Values, error) {
	c := &f.groups[g].chunks[column]
	rows := int(c.values)
	begin := c.begin()
	raw := make([]byte, c.packed)
	if _, err := f.in.ReadAt(raw, begin); err != nil {
		return nil, err
	}
	out := &Values{}
	var parts []*Values
	read, entries, has := 0, 0, false
	for at := 0; read < rows; {
		h, n, body, err := f.page(raw[at:], c.codec)
		if err != nil {
			return nil, f.fault(begin+int64(at), err.Error())
		}
		at += n
		switch {
		case h.kind == pageDictionary && !has && h.encoding == encodingPlain || h.kind == pageDictionary && !has && h.encoding == encodingOldDictionary:
			has, entries = true, h.values
			err = out.plain(body, f.Schema[column].Kind, h.values)
		case h.kind == pageData && h.values > rows-read:
			err = fmt.Errorf("more values than the row group has rows")
		case h.kind == pageData && h.encoding == encodingPlain:
			v := &Values{}
			err = v.plain(body, f.Schema[column].Kind, h.values)
			parts, read = append(parts, v), read+h.values
		case h.kind == pageData && has && (h.encoding == encodingDictionary || h.encoding == encodingOldDictionary):
			v := &Values{Places: make([]uint32, h.values)}
			err = decodeHybrid(body, v.Places, entries)
			parts, read = append(parts, v), read+h.values
		default:
			err = fmt.Errorf("a page of kind %d and encoding %d, which is not read", h.kind, h.encoding)
		}
		if err != nil {
			return nil, f.fault(begin+int64(at-n), err.Error())
		}
	}
	return out.join(parts, f.Schema[column].Kind), nil
}

// join puts pages together. Text always has places.
func (v *Values) join(parts []*Values, kind Kind) *Values {
	if len(parts) == 1 && parts[0].Places != nil {
		v.Places = parts[0].Places
		return v
	}
	if len(parts) == 1 && kind != Text {
		return parts[0]
	}
	all := &Values{}
	for _, p := range parts {
		switch {
		case p.Places == nil:
			all.Texts, all.Ints, all.Floats = append(all.Texts, p.Texts...), append(all.Ints, p.Ints...), append(all.Floats, p.Floats...)
		case kind == Text:
			for _, at := range p.Places {
				all.Texts = append(all.Texts, v.Texts[at])
			}
		case kind == Float:
			for _, at := range p.Places {
				all.Floats = append(all.Floats, v.Floats[at])
			}
		default:
			for _, at := range p.Places {
				all.Ints = append(all.Ints, v.Ints[at])
			}
		}
	}
	return all
}

func (v *Values) plain(body []byte, kind Kind, n int) error {
	if kind != Text && len(body) < 8*n || kind == Text && len(body) < 4*n {
		return fmt.Errorf("%d values in %d bytes", n, len(body))
	}
	switch kind {
	case Text:
		v.Texts = make([]string, n)
		for i := range v.Texts {
			if len(body) < 4 {
				return fmt.Errorf("a text is cut short")
			}
			size := int(binary.LittleEndian.Uint32(body))
			if size > len(body)-4 {
				return fmt.Errorf("a text of %d bytes", size)
			}
			v.Texts[i] = string(body[4 : 4+size])
			body = body[4+size:]
		}
	case Float:
		v.Floats = make([]float64, n)
		for i := range v.Floats {
			v.Floats[i] = math.Float64frombits(binary.LittleEndian.Uint64(body[8*i:]))
		}
	default:
		v.Ints = make([]int64, n)
		for i := range v.Ints {
			v.Ints[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
		}
	}
	return nil
}

// pageHead is what a page's header says.
type pageHead struct {
	kind, encoding int64
	values         int
}

// page reads a page with its header. n is the number of bytes of both, and body is unpacked.
func (f *File) page(in []byte, codec int64) (h pageHead, n int, body []byte, err error) {
	d := &decoder{in: in}
	unpacked, packed, values := int64(-1), int64(-1), int64(-1)
	d.each(func(id int16, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = d.int()
		case id == 2 && kind == thriftI32:
			unpacked = d.int()
		case id == 3 && kind == thriftI32:
			packed = d.int()
		case (id == 5 || id == 7) && kind == thriftStruct:
			d.each(func(id int16, kind byte) {
				switch {
				case id == 1 && kind == thriftI32:
					values = d.int()
				case id == 2 && kind == thriftI32:
					h.encoding = d.int()
				default:
					d.skip(kind)
				}
			})
		default:
			d.skip(kind)
		}
	})
	switch {
	case d.err != nil:
		return h, 0, nil, d.err
	case packed < 0 || packed > int64(len(in)-d.at):
		return h, 0, nil, fmt.Errorf("a page of %d bytes, where %d are left", packed, len(in)-d.at)
	case unpacked < 0 || unpacked > maxPage:
		return h, 0, nil, fmt.Errorf("a page of %d bytes unpacked; %d is the most", unpacked, maxPage)
	case values < 0 || values > maxRows || values == 0 && h.kind == pageData:
		return h, 0, nil, fmt.Errorf("a page of %d values", values)
	}
	h.values = int(values)
	body = in[d.at : d.at+int(packed)]
	n = d.at + int(packed)
	if codec == codecZstd {
		if body, err = unzstd(body, int(unpacked)); err != nil {
			return h, 0, nil, err
		}
	}
	if int64(len(body)) != unpacked {
		return h, 0, nil, fmt.Errorf("a page of %d bytes unpacked, where its header says %d", len(body), unpacked)
	}
	return h, n, body, nil
}

// unzstd does not trust the sizes in a page's header: the output grows as data arrives, up to maxPage.
func unzstd(packed []byte, hint int) ([]byte, error) {
	d, ok := unpackers.Get().(*zstd.Decoder)
	if !ok {
		return nil, fmt.Errorf("zstd cannot begin")
	}
	defer unpackers.Put(d)
	// 1,100 is more than zstd packs anything.
	return d.DecodeAll(packed, make([]byte, 0, min(hint, 64<<10+1100*len(packed))))
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
