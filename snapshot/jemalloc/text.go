package jemalloc

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const textMagic = "heap profile: "

// DetectText reports whether a file that unpacks to something that begins with head is
// a heap profile as text.
func DetectText(head []byte) bool { return bytes.HasPrefix(head, []byte(textMagic)) }

// DecodeText reads one profile of size bytes as totals by stack: of gperftools, of jemalloc before version 4, or of Go with debug=1.
// Frames are names and lines for Go, and otherwise places in binaries as in Decode; a profile with neither is an error. The name is
// used in errors only; they are *snapshot.FormatError.
func DecodeText(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	d := textDecoder{decoder: decoder{symbols: opts.Symbols}}
	if err := d.pass(name, r, size, opts); err != nil { // the mappings come last
		return nil, err
	}
	if len(d.maps) == 0 && !d.isNamed {
		err := d.in.Fail("a heap profile as text that tells addresses, and neither names nor binaries")
		err.Offset = 0
		err.Hint = "go tool pprof -proto PROGRAM FILE > NAME.pb.gz names them; Go's /debug/pprof/heap without debug=1 has names"
		return nil, err
	}
	slices.SortStableFunc(d.maps, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
	d.reading = true
	if err := d.pass(name, r, size, opts); err != nil {
		return nil, err
	}
	var notes []string
	if d.unmapped {
		notes = append(notes, unmapped)
	}
	if d.nameless && !d.resolved {
		notes = append(notes, nameless)
	}
	if d.sum < d.total {
		notes = append(notes, fmt.Sprintf("its stacks hold %s of the %s that were live: the rest is missing", snapshot.Bytes(d.sum), snapshot.Bytes(d.total)))
	}
	out := d.out.Snapshot(d.producer, notes...)
	totals.Sampled(out, d.period)
	return out, nil
}

// textDecoder has the stack and the figures of the row that was read last, until the
// next one: Go's names follow a row.
type textDecoder struct {
	decoder
	producer string
	isNamed  bool
	names    []snapshot.FrameID
	row      [2]int64 // blocks and bytes
}

func (d *textDecoder) pass(name string, r io.ReaderAt, size int64, opts totals.Options) error {
	in, err := d.open(name, r, size, opts)
	if err != nil {
		return err
	}
	defer in.Close()
	first := true
	if err := in.Lines(func(line []byte) error {
		switch {
		case first:
			first = false
			return d.header(line)
		case d.mapped && !d.reading:
			return d.mapping(line)
		case bytes.Equal(line, []byte("MAPPED_LIBRARIES:")):
			d.mapped = true
		case bytes.HasPrefix(line, []byte("#\t0x")):
			d.isNamed = true
			if d.reading {
				return d.named(line)
			}
		case d.mapped || !d.reading || bytes.HasPrefix(line, []byte("#")) || len(bytes.TrimSpace(line)) == 0:
		default:
			if err := d.add(); err != nil {
				return err
			}
			return d.stackLine(line)
		}
		return nil
	}); err != nil {
		return err
	}
	return d.add()
}

// header reads "heap profile: 2: 20 [5: 50] @ heap_v2/524288".
func (d *textDecoder) header(line []byte) error {
	line = line[:min(len(line), 200)]
	figures, kind, _ := strings.Cut(strings.TrimPrefix(string(line), textMagic), "@")
	kind, period, _ := strings.Cut(strings.TrimSpace(kind), "/")
	known := true
	every := int64(1) // bytes to a sample, of Go's figure
	switch kind {
	case "heapprofile":
		d.producer, period = "gperftools", "1"
	case "heap_v2":
		d.producer = "gperftools or jemalloc"
	case "heap":
		d.producer, every = "Go heap profile", 2
	default:
		known = false
	}
	n, err := strconv.ParseInt(period, 10, 62)
	if !known || err != nil || n < 1 {
		return d.in.Fail("a heap profile as text of a kind that memdiag does not read: %.80q", line)
	}
	d.period = max(n/every, 1)
	total, ok := live(figures)
	if !ok {
		return d.in.Fail("%.40q is no count of blocks and bytes", line)
	}
	d.total = total[1]
	return nil
}

// stackLine reads "  2: 20 [ 5: 50] @ 0x7f… 0x55…", innermost first.
func (d *textDecoder) stackLine(line []byte) error {
	at := bytes.IndexByte(line, '@')
	if at < 0 {
		return d.in.Fail("%.40q is no stack of a heap profile", line)
	}
	const steps = 20
	if err := d.in.Work(steps); err != nil {
		return err
	}
	row, ok := live(string(line[:min(at, 200)]))
	if !ok {
		return d.in.Fail("%.40q is no count of blocks and bytes", line)
	}
	d.row, d.names = row, d.names[:0]
	d.sum += row[1]
	if d.isNamed {
		d.stack, d.has = d.stack[:0], true // the names say the same
		return nil
	}
	return d.addresses(line[at:])
}

// live reads the figures before the brackets, which have what was ever allocated.
func live(text string) (figures [2]int64, ok bool) {
	text, _, _ = strings.Cut(text, "[")
	blocks, size, _ := strings.Cut(text, ":")
	var err1, err2 error
	figures[0], err1 = strconv.ParseInt(strings.TrimSpace(blocks), 10, 63)
	figures[1], err2 = strconv.ParseInt(strings.TrimSpace(size), 10, 63)
	return figures, err1 == nil && err2 == nil && figures[0] >= 0 && figures[1] >= 0
}

// named reads what Go writes of a frame, "#	0x4d96de	main.alloc+0x5e		/t/leak.go:5"; of
// some there is no more than the address.
func (d *textDecoder) named(line []byte) error {
	const steps = 8
	if err := d.in.Work(steps + len(line)/steps); err != nil {
		return err
	}
	f := snapshot.Frame{Line: -1}
	if parts := strings.FieldsFunc(string(line), func(r rune) bool { return r == '\t' }); len(parts) == 4 {
		f.Function, f.File = parts[2], parts[3]
		if i := strings.LastIndexByte(f.Function, '+'); i > 0 {
			f.Function = f.Function[:i]
		}
		at := strings.LastIndexByte(f.File, ':')
		if n, err := strconv.ParseUint(f.File[at+1:], 10, 31); at >= 0 && err == nil && n > 0 {
			f.File, f.Line = f.File[:at], int(n)
		}
	}
	id, err := d.out.Frame(f)
	if err == nil && len(d.names) <= totals.MaxDepth {
		d.names = append(d.names, id)
	}
	return err
}

// add adds the row that was read last.
func (d *textDecoder) add() error {
	if !d.has {
		return nil
	}
	d.has = false
	stack := d.stack
	if d.isNamed {
		stack = d.names
	}
	id, err := d.out.Stack(stack)
	if err != nil {
		return err
	}
	count, size := scale(d.row[0], d.row[1], d.period)
	return d.out.Add(d.device, id, count, size)
}
