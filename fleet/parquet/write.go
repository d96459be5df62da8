package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"
)

// Write writes a table: columns of equal length, with notes in the file's footer.
func Write(w io.Writer, columns []Column, notes map[string]string) error {
	f, err := NewWriter(w, columns)
	if err != nil {
		return err
	}
	if err := f.Append(columns); err != nil {
		return err
	}
	return f.Close(notes)
}

// Writer writes a table in parts.
type Writer struct {
	w      io.Writer
	pack   *zstd.Encoder
	at     int64
	schema []Column
	rows   int64
	groups []group
	buffer []byte
}

// group is a row group: what the footer says of it.
type group struct {
	rows   int64
	chunks []chunk
}

// chunk is the part of a column in a row group.
type chunk struct {
	kind              Kind
	name              string
	codec             int64
	values            int64
	packed, unpacked  int64
	dictionary, pages int64 // offsets in the file; dictionary is 0 for none
}

// NewWriter begins a file of columns with these names and kinds.
func NewWriter(w io.Writer, schema []Column) (*Writer, error) {
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	f := &Writer{w: w, pack: pack, schema: schema}
	err = f.put([]byte(magic))
	return f, err
}

func (f *Writer) put(b []byte) error {
	n, err := f.w.Write(b)
	f.at += int64(n)
	return err
}

// Append writes more rows, in row groups.
func (f *Writer) Append(columns []Column) error {
	n := 0
	for i := range columns {
		if i == 0 {
			n = columns[i].Len()
		}
		if columns[i].Len() != n || columns[i].Name != f.schema[i].Name || columns[i].Kind != f.schema[i].Kind {
			return fmt.Errorf("column %s does not fit the table", columns[i].Name)
		}
	}
	for from := 0; from < n; {
		to := from + fitting(columns, from, min(n, from+groupRows))
		g := group{rows: int64(to - from)}
		for i := range columns {
			c, err := f.chunk(&columns[i], from, to)
			if err != nil {
				return err
			}
			g.chunks = append(g.chunks, c)
		}
		f.groups = append(f.groups, g)
		f.rows += g.rows
		from = to
	}
	return nil
}

// fitting is how many rows from one on, to another at most, have texts that fit into pages.
func fitting(columns []Column, from, to int) int {
	for i := range columns {
		bytes := 0
		for row := from; row < to && columns[i].Kind == Text; row++ {
			if bytes += 4 + len(columns[i].Texts[row]); bytes > maxPage/2 {
				to = max(row, from+1)
			}
		}
	}
	return to - from
}

// chunk writes a column's dictionary, if it has one, and its page.
func (f *Writer) chunk(c *Column, from, to int) (chunk, error) {
	out := chunk{kind: c.Kind, name: c.Name, codec: codecZstd, values: int64(to - from)}
	begin := f.at
	page := f.buffer[:0]
	encoding := int64(encodingPlain)
	dictionary, places := entriesOf(c, from, to)
	if places != nil {
		entries := f.buffer[:0]
		for _, e := range dictionary {
			entries = append(entries, e...)
		}
		out.dictionary = f.at
		if err := f.page(&out, entries, pageDictionary, len(dictionary), encodingPlain); err != nil {
			return out, err
		}
		page, encoding = appendHybrid(page, places, len(dictionary)), encodingDictionary
	} else {
		page = appendPlain(page, c, from, to)
	}
	out.pages = f.at
	err := f.page(&out, page, pageData, to-from, encoding)
	out.packed = f.at - begin
	f.buffer = page
	return out, err
}

func appendPlain(out []byte, c *Column, from, to int) []byte {
	switch c.Kind {
	case Text:
		for _, t := range c.Texts[from:to] {
			out = appendText(out, t)
		}
	case Float:
		for _, v := range c.Floats[from:to] {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		}
	default:
		for _, v := range c.Ints[from:to] {
			out = binary.LittleEndian.AppendUint64(out, uint64(v))
		}
	}
	return out
}

func appendText(out []byte, t string) []byte {
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(t))), t...)
}

// entriesOf are a column's distinct values, encoded, and an index into them for each row; nil if a dictionary would save nothing.
func entriesOf(c *Column, from, to int) (entries [][]byte, places []uint32) {
	limit := max((to-from)/2, 1)
	places = make([]uint32, to-from)
	switch c.Kind {
	case Text:
		at := make(map[string]uint32)
		for i, t := range c.Texts[from:to] {
			p, ok := at[t]
			if !ok {
				p = uint32(len(entries))
				at[t] = p
				entries = append(entries, appendText(nil, t))
			}
			places[i] = p
		}
	default:
		at := make(map[uint64]uint32)
		for i := range places {
			var v uint64
			if c.Kind == Float {
				v = math.Float64bits(c.Floats[from+i])
			} else {
				v = uint64(c.Ints[from+i])
			}
			p, ok := at[v]
			if !ok {
				if len(entries) >= limit || len(entries) >= 1<<16 {
					return nil, nil
				}
				p = uint32(len(entries))
				at[v] = p
				entries = append(entries, binary.LittleEndian.AppendUint64(nil, v))
			}
			places[i] = p
		}
	}
	return entries, places
}

// page writes a page with its header.
func (f *Writer) page(c *chunk, body []byte, kind int64, values int, encoding int64) error {
	if len(body) > maxPage {
		return fmt.Errorf("column %s: a page of %d bytes, more than %d", c.name, len(body), maxPage)
	}
	packed := f.pack.EncodeAll(body, nil)
	var e encoder
	e.open()
	e.i32(1, kind)
	e.i32(2, int64(len(body)))
	e.i32(3, int64(len(packed)))
	if kind == pageDictionary {
		e.field(7, thriftStruct)
		e.open()
		e.i32(1, int64(values))
		e.i32(2, encoding)
		e.close()
	} else {
		e.field(5, thriftStruct)
		e.open()
		e.i32(1, int64(values))
		e.i32(2, encoding)
		e.i32(3, encodingRLE)
		e.i32(4, encodingRLE)
		e.close()
	}
	e.close()
	c.unpacked += int64(len(e.out) + len(body))
	if err := f.put(e.out); err != nil {
		return err
	}
	return f.put(packed)
}

// Close writes the footer. It does not close what the Writer writes to.
func (f *Writer) Close(notes map[string]string) error {
	var e encoder
	e.open()
	e.i32(1, 1)
	e.list(2, thriftStruct, len(f.schema)+1)
	e.open()
	e.text(4, "row")
	e.i32(5, int64(len(f.schema)))
	e.close()
	for i := range f.schema {
		c := &f.schema[i]
		e.open()
		e.i32(1, physical(c.Kind))
		e.i32(3, 0) // required
		e.text(4, c.Name)
		switch c.Kind {
		case Text:
			e.i32(6, convertedUTF8)
		case Time:
			e.i32(6, convertedMicros)
		}
		e.close()
	}
	e.i64(3, f.rows)
	e.list(4, thriftStruct, len(f.groups))
	for _, g := range f.groups {
		g.encode(&e)
	}
	keys := sortedKeys(notes)
	e.list(5, thriftStruct, len(keys))
	for _, k := range keys {
		e.open()
		e.text(1, k)
		e.text(2, notes[k])
		e.close()
	}
	e.text(6, "memdiag")
	e.close()
	footer := binary.LittleEndian.AppendUint32(e.out, uint32(len(e.out)))
	return f.put(append(footer, magic...))
}

func (g *group) encode(e *encoder) {
	total := int64(0)
	e.open()
	e.list(1, thriftStruct, len(g.chunks))
	for i := range g.chunks {
		c := &g.chunks[i]
		total += c.unpacked
		e.open()
		e.i64(2, 0)
		e.field(3, thriftStruct)
		e.open()
		e.i32(1, physical(c.kind))
		used := []int64{encodingPlain}
		if c.dictionary > 0 {
			used = []int64{encodingPlain, encodingDictionary}
		}
		e.list(2, thriftI32, len(used))
		for _, u := range used {
			e.varint(u)
		}
		e.list(3, thriftBinary, 1)
		e.bare(c.name)
		e.i32(4, c.codec)
		e.i64(5, c.values)
		e.i64(6, c.unpacked)
		e.i64(7, c.packed)
		e.i64(9, c.pages)
		if c.dictionary > 0 {
			e.i64(11, c.dictionary)
		}
		e.close()
		e.close()
	}
	e.i64(2, total)
	e.i64(3, g.rows)
	e.close()
}

func physical(k Kind) int64 {
	switch k {
	case Text:
		return typeByteArray
	case Float:
		return typeDouble
	}
	return typeInt64
}
