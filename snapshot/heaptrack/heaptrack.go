// Package heaptrack reads the files that heaptrack writes: what a process had
// allocated and not freed when recording ended.
package heaptrack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// The versions of the file format that are read: 1 (heaptrack 1.0) writes strings
// to the end of the line, 3 (1.4) with their length. Before 1, frees name
// addresses.
const oldest, newest = 1, 3

// Detect reports whether a file that unpacks to something that begins with head
// is heaptrack's.
func Detect(head []byte) bool {
	var tool, file uint64
	line, _, ok := bytes.Cut(head, []byte("\n"))
	return ok && len(line) < 64 && bytes.HasPrefix(line, []byte("v ")) && scan(line[2:], &tool, &file) == 2 && tool >= 0x10000
}

// Decode reads one recording of size bytes as totals by stack of the memory that is live at its end. The name is used in errors only;
// they are *snapshot.FormatError. A truncated recording is read up to its end, with a note.
//
// Events are reduced as they are read: memory use depends on the number of distinct stacks and sizes, not on the length of the
// recording.
func Decode(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const steps = 4 // a byte of a compressed file: real ones ask for 1, and loops for no more than is free
	in.Pace(steps)
	d := decoder{in: in}
	if err := d.header(); err != nil {
		return nil, err
	}
	if err := in.Lines(func(line []byte) error {
		if err := d.line(line); err != nil {
			return err
		}
		return d.events()
	}); err != nil && !in.Torn() {
		return nil, err
	}
	return d.snapshot(totals.New(in, opts))
}

// decoder holds the tables of a recording; indices in the file count from 1, but
// for those of allocations.
type decoder struct {
	in          *bounded.Input
	sized       bool // strings have a length
	strings     bounded.List[string]
	pointers    bounded.List[pointer]
	frames      bounded.List[frame] // of pointers, innermost first
	traces      bounded.List[trace]
	allocations bounded.List[allocation]
	fields      []uint64 // of a line; kept for its room
	millis      uint64   // since the recording began
	seen        int64    // events
	lost        int64    // frees without a recorded allocation
	live, peak  int64    // bytes
	ended       bool
	figured     bool // after the last event are heaptrack's figures of the process
}

// pointer is an address of code, and which are its frames.
type pointer struct {
	module       uint64
	first, count uint32
}

// frame is a place in the code, texts by their numbers.
type frame struct{ function, file, line uint32 }

// trace is a call and the trace of its caller.
type trace struct{ pointer, parent uint32 }

// allocation sums all blocks of one size and trace.
type allocation struct {
	size, trace uint64
	live        int64
}

// maxSize bounds a block in bytes and maxLive all of them, so that sums stay in range, and
// maxRows each of the tables, so that 32 bits number its rows.
const (
	maxSize = 1 << 50
	maxLive = 1 << 61
	maxRows = 1 << 31
)

func (d *decoder) header() error {
	line, err := d.in.Line()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var tool, file uint64
	if !bytes.HasPrefix(line, []byte("v ")) || scan(line[2:], &tool, &file) < 1 {
		return d.in.Fail("not a recording of heaptrack")
	}
	if file < oldest || file > newest {
		return d.in.Fail("version %d of heaptrack's format; memdiag reads %d to %d", file, oldest, newest)
	}
	d.sized = file >= 3
	return nil
}

func (d *decoder) line(line []byte) error {
	if len(line) < 2 || line[1] != ' ' {
		return nil // a comment, or an empty line
	}
	rest := line[2:]
	switch line[0] {
	case '#': // heaptrack's last words, which it writes of a program that was killed too
		d.ended = d.ended || bytes.HasPrefix(rest, []byte("strings: "))
	case '+', '-':
		var i uint64
		if scan(rest, &i) != 1 {
			return d.in.Fail("an event without its allocation")
		}
		return d.event(line[0] == '+', i)
	case 's':
		return d.text(rest)
	case 'i':
		return d.pointer(rest)
	case 't':
		return d.trace(rest)
	case 'a':
		return d.allocation(rest)
	case 'R':
		d.figured = true
	case 'c':
		var v uint64
		if scan(rest, &v) == 1 {
			d.millis = max(d.millis, v)
		}
	case 'm':
		err := d.in.Fail("raw data of heaptrack, without names of functions")
		err.Hint = "zstd -dc < RAW | heaptrack_interpret > FILE adds them, which Debian has in /usr/lib/heaptrack/libexec; heaptrack without --raw does so itself"
		return err
	}
	return nil // command line, memory pages, suppressions and what newer versions add
}

// events passes over the lines of events that are ahead in whole, "+ 1f" or "- 1f", up to
// one that needs a second look. Of a long recording nearly all lines are such, and Line
// takes four times as long for each.
func (d *decoder) events() error {
	ahead, err := d.in.Ahead()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	n := 0
	for d.live < maxLive/2 {
		const longest = len("+ 12345678\n")
		line := ahead[n:]
		if len(line) < longest || line[0] != '+' && line[0] != '-' || line[1] != ' ' {
			break
		}
		i, at := uint64(0), 2
		for ; at < longest && digit(line[at]) != noDigit; at++ {
			i = i<<4 | uint64(digit(line[at]))
		}
		if at == 2 || at == longest || line[at] != '\n' || i >= uint64(d.allocations.Len()) {
			break
		}
		if err := d.event(line[0] == '+', i); err != nil {
			return err
		}
		n += at + 1
	}
	return d.in.Skip(uint64(n))
}

func (d *decoder) event(born bool, i uint64) error {
	if i >= uint64(d.allocations.Len()) {
		return d.in.Fail("an event of allocation %d of %d", i, d.allocations.Len())
	}
	a := d.allocations.At(int(i))
	d.seen++
	d.figured = false
	if !born {
		// A recording that was attached to a running process has frees without their allocations.
		if a.live == 0 {
			d.lost++
			return nil
		}
		a.live--
		d.live -= int64(a.size)
		return nil
	}
	a.live++
	d.live += int64(a.size)
	if d.live > maxLive {
		return d.in.Fail("more than 2^61 bytes are live")
	}
	d.peak = max(d.peak, d.live)
	return nil
}

func (d *decoder) text(rest []byte) error {
	if d.sized {
		var n uint64
		digits, text, _ := bytes.Cut(rest, []byte(" "))
		if scan(digits, &n) != 1 || n != uint64(len(text)) {
			return d.in.Fail("a text of %d bytes that says otherwise", len(text))
		}
		rest = text
	}
	d.strings.Append(string(rest))
	return d.in.Charge(32 + len(rest))
}

func (d *decoder) pointer(rest []byte) error {
	fields := d.fields[:0]
	for len(rest) > 0 {
		var v uint64
		if scan(rest, &v) != 1 {
			return d.in.Fail("a frame with a field that is no hexadecimal number")
		}
		fields = append(fields, v)
		_, rest, _ = bytes.Cut(rest, []byte(" "))
	}
	d.fields = fields
	if len(fields) < 2 {
		return d.in.Fail("an address without a module")
	}
	if d.pointers.Len() >= maxRows || d.frames.Len() >= maxRows {
		return d.in.Fail("more than %d addresses or frames", maxRows)
	}
	// The address itself differs from process to process.
	p := pointer{module: fields[1], first: uint32(d.frames.Len())}
	for fields = fields[2:]; len(fields) >= 3; fields = fields[3:] {
		d.frames.Append(frame{index(fields[0]), index(fields[1]), index(fields[2])})
	}
	p.count = uint32(d.frames.Len()) - p.first
	if p.count == 0 && len(fields) > 0 { // without debug information
		fields = append(fields, 0)
		d.frames.Append(frame{function: index(fields[0]), file: index(fields[1])})
		p.count = 1
	}
	d.pointers.Append(p)
	return d.in.Charge(24 + 16*int(p.count))
}

// index is a number of a text or line as a frame has it; there are fewer than 2^32.
func index(v uint64) uint32 { return uint32(min(v, 1<<32-1)) }

func (d *decoder) trace(rest []byte) error {
	var pointer, parent uint64
	if scan(rest, &pointer, &parent) != 2 {
		return d.in.Fail("a trace of less than two numbers")
	}
	// Callers come first, so that no trace can be its own caller.
	if parent > uint64(d.traces.Len()) || pointer > uint64(d.pointers.Len()) {
		return d.in.Fail("trace %d refers to what comes later", d.traces.Len()+1)
	}
	if d.traces.Len() >= maxRows {
		return d.in.Fail("more than %d traces", maxRows)
	}
	d.traces.Append(trace{uint32(pointer), uint32(parent)})
	return d.in.Charge(12)
}

func (d *decoder) allocation(rest []byte) error {
	var a allocation
	if scan(rest, &a.size, &a.trace) != 2 {
		return d.in.Fail("an allocation of less than two numbers")
	}
	if a.trace > uint64(d.traces.Len()) || a.size > maxSize {
		return d.in.Fail("an allocation of %d bytes by trace %d of %d", a.size, a.trace, d.traces.Len())
	}
	d.allocations.Append(a)
	return d.in.Charge(32)
}

func (d *decoder) snapshot(out *totals.Builder) (*snapshot.Snapshot, error) {
	device, err := out.Device(snapshot.CPU, 0, "host heap")
	if err != nil {
		return nil, err
	}
	w := walker{decoder: d, out: out, frames: make([][]snapshot.FrameID, d.pointers.Len()), stacks: make(map[uint64]snapshot.StackID)}
	for i := range d.allocations.Len() {
		a := *d.allocations.At(i)
		if a.live == 0 {
			continue
		}
		id, ok := w.stacks[a.trace]
		if !ok {
			if id, err = w.stackOf(a.trace); err != nil {
				return nil, err
			}
		}
		if err := out.Add(device, id, a.live, a.live*int64(a.size)); err != nil {
			return nil, err
		}
	}
	notes := out.Ended("recording ended, "+duration(d.millis)+" after it began", snapshot.Bytes(d.peak))
	switch {
	case !d.ended:
		notes = append(notes, "the recording has no end: heaptrack was stopped, or the copy is not complete")
	case !d.figured && d.seen > 0:
		notes = append(notes, "the recording ends with an event, and not with heaptrack's last figures: where the program ended by _exit or a signal, the last few hundred events are missing")
	}
	s := out.Snapshot("heaptrack", notes...)
	s.History = snapshot.History{Events: d.seen, LostFrees: d.lost}
	return s, nil
}

func duration(millis uint64) string { return fmt.Sprintf("%.1f s", float64(millis)/1000) }

// walker makes stacks of traces.
type walker struct {
	*decoder
	out    *totals.Builder
	frames [][]snapshot.FrameID        // by pointer, innermost first
	stacks map[uint64]snapshot.StackID // by trace
	stack  []snapshot.FrameID
}

func (w *walker) stackOf(from uint64) (snapshot.StackID, error) {
	w.stack = w.stack[:0]
	var t trace
	for at := from; at != 0 && len(w.stack) <= totals.MaxDepth; at = uint64(t.parent) {
		t = *w.traces.At(int(at - 1))
		if t.pointer == 0 { // which heaptrack does not write, and no frame bounds
			const steps = 4
			if err := w.in.Work(steps); err != nil {
				return 0, err
			}
			continue
		}
		frames := &w.frames[t.pointer-1]
		if *frames == nil {
			var err error
			if *frames, err = w.resolve(w.out, w.pointers.At(int(t.pointer-1))); err != nil {
				return 0, err
			}
		}
		w.stack = append(w.stack, (*frames)[:min(len(*frames), totals.MaxDepth+1-len(w.stack))]...)
	}
	id, err := w.out.Stack(w.stack)
	if err != nil {
		return 0, err
	}
	w.stacks[from] = id
	const entry = 40 // of the map
	return id, w.in.Charge(entry)
}

// noSymbol begins the name of a frame in a module that has no symbols.
const noSymbol = "<no symbol> "

// resolve returns the frames at an address, innermost first, or its module if it has no symbol.
func (d *decoder) resolve(out *totals.Builder, p *pointer) ([]snapshot.FrameID, error) {
	ids := make([]snapshot.FrameID, max(p.count, 1))
	for i := range ids {
		var f frame
		if p.count > 0 {
			f = *d.frames.At(int(p.first) + i)
		}
		at := snapshot.Frame{Function: rusts(d.name(uint64(f.function))), File: d.name(uint64(f.file)), Line: int(min(f.line, 1<<31))}
		if at.Function == "" {
			module := d.name(p.module)
			at.Function = strings.TrimSpace(noSymbol + module[strings.LastIndexByte(module, '/')+1:])
		}
		if at.Line == 0 {
			at.Line = -1
		}
		var err error
		if ids[i], err = out.Frame(at); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

func (d *decoder) name(i uint64) string {
	if i == 0 || i > uint64(d.strings.Len()) {
		return ""
	}
	return *d.strings.At(int(i - 1))
}

// scan reads hexadecimal numbers, each ended by a space or the end, and returns
// how many it read.
func scan(b []byte, into ...*uint64) int {
	for n, v := range into {
		*v = 0
		digits := 0
		for ; digits < len(b) && b[digits] != ' '; digits++ {
			c := digit(b[digits])
			if c == noDigit {
				return n
			}
			*v = *v<<4 | uint64(c)
		}
		if digits == 0 || digits > 16 {
			return n
		}
		b = b[min(digits+1, len(b)):]
	}
	return len(into)
}

// noDigit is the value of a character that is no digit.
const noDigit = 16

// digit is the value of a hexadecimal digit.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return noDigit
}
