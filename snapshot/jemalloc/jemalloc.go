// Package jemalloc reads heap profiles as text: jemalloc's, and those in the form that it
// had before and shared with gperftools and Go.
package jemalloc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/symbols"
	"github.com/memdiag/memdiag/snapshot/totals"
)

const magic = "heap_v2/"

// Detect reports whether a file that unpacks to something that begins with head
// is a heap profile of jemalloc 4 or later.
func Detect(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }

// Decode reads one profile of size bytes as totals by stack. jemalloc samples;
// counts and bytes are scaled up to estimates, as its own jeprof does. Dumps have
// addresses only: a frame is named by the binary and the place in it,
// "libfoo.so+0x1234", which is the same in every process that runs it. The name
// appears in errors only; they are *snapshot.FormatError.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	d := decoder{symbols: opts.Symbols}
	if err := d.pass(name, r, size, opts); err != nil { // the mappings come last
		return nil, err
	}
	slices.SortStableFunc(d.maps, func(a, b mapping) int { return cmp.Compare(a.start, b.start) })
	d.reading = true
	if err := d.pass(name, r, size, opts); err != nil {
		return nil, err
	}
	var notes []string
	switch {
	case !d.mapped:
		notes = append(notes, "the profile lists no binaries, so that addresses cannot be told apart: it is cut, or the system has no /proc")
	case d.unmapped:
		notes = append(notes, unmapped)
	}
	if d.nameless && !d.resolved {
		notes = append(notes, nameless)
	}
	out := d.out.Snapshot("jemalloc", notes...)
	totals.Sampled(out, d.period)
	return out, nil
}

const nameless = "frames are addresses in binaries: --symbols BINARY names those of a binary of the same name that was not stripped"

const unmapped = "some addresses lie in no binary that the profile lists: they cannot be told apart"

type decoder struct {
	in       *bounded.Input
	out      *totals.Builder
	symbols  *symbols.Table
	reading  bool // the second pass: maps are known
	period   int64
	maps     []mapping
	device   int
	stack    []snapshot.FrameID
	has      bool // stack is one that waits for its figures
	mapped   bool // the line above the maps was read
	unmapped bool
	nameless bool  // some frames are places in binaries
	resolved bool  // symbols gave others their names
	total    int64 // bytes of all stacks, which the profile has before them; -1 until it is read
	sum      int64 // and as they add up
}

// mapping is a piece of a binary in memory, start <= address < end.
type mapping struct {
	start, end, offset uint64
	file               string
}

// open begins a pass. The caller closes the input.
func (d *decoder) open(name string, r io.ReaderAt, size int64, opts totals.Options) (*bounded.Input, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	const steps = 4 // a byte of a compressed file: real ones ask for 2
	in.Pace(steps)
	if d.reading {
		in.After(d.in)
		d.out = totals.New(in, opts)
		if d.device, err = d.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
			in.Close()
			return nil, err
		}
	}
	d.in, d.mapped = in, false
	return in, nil
}

func (d *decoder) pass(name string, r io.ReaderAt, size int64, opts totals.Options) error {
	in, err := d.open(name, r, size, opts)
	if err != nil {
		return err
	}
	defer in.Close()
	line, err := in.Line()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	period, ok := strings.CutPrefix(string(line[:min(len(line), 40)]), magic)
	if d.period, err = strconv.ParseInt(period, 10, 63); !ok || err != nil || d.period < 1 {
		return in.Fail("not a heap profile of jemalloc: it begins with %.40q", line)
	}
	d.total = -1
	if err := in.Lines(func(line []byte) error {
		switch {
		case d.mapped && !d.reading:
			return d.mapping(line)
		case bytes.Equal(line, []byte("MAPPED_LIBRARIES:")):
			d.mapped = true
		case d.mapped || !d.reading:
		case bytes.HasPrefix(line, []byte("@")):
			return d.addresses(line)
		case bytes.HasPrefix(line, []byte("  t*: ")):
			return d.figures(line)
		}
		return nil
	}); err != nil {
		return err
	}
	// Sampled figures are corrected stack by stack, so that they do not add up to the total.
	if d.has || d.period == 1 && d.sum < d.total {
		return in.Cut()
	}
	return nil
}

// mapping reads a line in the format of /proc/PID/maps. Lines without a file are ignored.
func (d *decoder) mapping(line []byte) error {
	const most = 200 // bytes before the file's name, and some of it
	f := bytes.Fields(line[:min(len(line), most)])
	if len(f) < 6 || f[5][0] != '/' {
		return nil
	}
	from, to, ok := bytes.Cut(f[0], []byte("-"))
	start, err1 := strconv.ParseUint(string(from), 16, 64)
	end, err2 := strconv.ParseUint(string(to), 16, 64)
	offset, err3 := strconv.ParseUint(string(f[2]), 16, 64)
	if !ok || err1 != nil || err2 != nil || err3 != nil {
		return d.in.Fail("%.40q is no line of a map", line)
	}
	file := string(line[bytes.IndexByte(line, '/'):])
	d.maps = append(d.maps, mapping{start, end, offset, file})
	const entry = 256 // in a slice that grows; Linux allows 65,530 a process
	return d.in.Charge(entry + len(file))
}

// addresses reads "@ 0x7f… 0x55…", innermost first.
func (d *decoder) addresses(line []byte) error {
	d.stack, d.has = d.stack[:0], true
	for field := range bytes.FieldsSeq(line[1:]) {
		if len(d.stack) > totals.MaxDepth {
			break
		}
		address, err := strconv.ParseUint(strings.TrimPrefix(string(field), "0x"), 16, 64)
		if err != nil {
			return d.in.Fail("%.40q is no address", field)
		}
		for _, f := range d.framesAt(address) {
			frame, err := d.out.Frame(f)
			if err != nil {
				return err
			}
			d.stack = append(d.stack, frame)
		}
	}
	return nil
}

// framesAt are those of a return address, innermost first. It lies after the call: the byte before it is
// of the call's line, and jeprof looks that up, too.
func (d *decoder) framesAt(address uint64) []snapshot.Frame {
	address -= min(address, 1)
	i, exact := slices.BinarySearchFunc(d.maps, address, func(m mapping, a uint64) int { return cmp.Compare(m.start, a) })
	if !exact {
		i--
	}
	if i < 0 || address >= d.maps[i].end {
		d.unmapped = true
		return []snapshot.Frame{{Function: "<no binary>", Line: -1}}
	}
	m := d.maps[i]
	offset := address - m.start + m.offset
	if frames := d.symbols.Frames(m.file, offset); len(frames) > 0 {
		d.resolved = true
		return frames
	}
	d.nameless = true
	return []snapshot.Frame{{Function: fmt.Sprintf("%s+%#x", path.Base(m.file), offset), File: m.file, Line: -1}}
}

// figures reads "  t*: 10: 102400 [0: 0]": live blocks and bytes of all threads,
// and in brackets those ever allocated.
func (d *decoder) figures(line []byte) error {
	const steps = 20 // for both lines
	if err := d.in.Work(steps); err != nil {
		return err
	}
	f := strings.Fields(string(line[:min(len(line), 200)]))
	if len(f) < 3 {
		return d.in.Fail("%.40q is no count of blocks and bytes", line)
	}
	count, err1 := strconv.ParseInt(strings.TrimSuffix(f[1], ":"), 10, 64)
	size, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil || count < 0 || size < 0 {
		return d.in.Fail("%.40q is no count of blocks and bytes", line)
	}
	if !d.has {
		if d.total < 0 {
			d.total = size
		}
		return nil
	}
	d.has = false
	d.sum += size
	id, err := d.out.Stack(d.stack)
	if err != nil {
		return err
	}
	count, size = scale(count, size, d.period)
	return d.out.Add(d.device, id, count, size)
}

// scale estimates what a sample represents. An allocation of n bytes is sampled with probability 1-exp(-n/period); like jeprof, it
// takes the mean size as n.
func scale(count, size, period int64) (int64, int64) {
	if count == 0 || size == 0 || period <= 1 {
		return count, size
	}
	factor := 1 / (1 - math.Exp(-float64(size)/float64(count)/float64(period)))
	up := func(v int64) int64 { return int64(min(math.Round(float64(v)*factor), math.MaxInt64/4)) }
	return up(count), up(size)
}
