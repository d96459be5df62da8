package heaptrack

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// The sections of heaptrack_print's text: the first is read, and what follows
// the last.
const (
	leaksTitle     = "MEMORY LEAKS"
	temporaryTitle = "MOST TEMPORARY ALLOCATIONS"
	figuresBegin   = "total runtime: "
)

// DetectPrinted reports whether a file that unpacks to something that begins with head
// is what heaptrack_print writes.
func DetectPrinted(head []byte) bool {
	return bytes.HasPrefix(head, []byte(`reading file "`)) && bytes.Contains(head, []byte("\nDebuggee command was: "))
}

// DecodePrinted reads the leaks in a text of size bytes that heaptrack_print wrote, as totals by stack. The name is used in errors
// only; they are *snapshot.FormatError.
//
// The text counts calls, including those whose block was freed, and not blocks. Bytes are rounded, to at most five digits.
func DecodePrinted(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const steps = 4 // a byte of a compressed file: real ones ask for 1
	in.Pace(steps)
	p := printed{in: in, out: totals.New(in, opts)}
	if p.device, err = p.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
		return nil, err
	}
	if err := in.Lines(func(line []byte) error { return p.line(string(line)) }); err != nil {
		return nil, err
	}
	switch {
	case !p.found:
		err := in.Fail("a text of heaptrack_print without leaks")
		err.Hint = "heaptrack_print --print-leaks 1 RECORDING, or give memdiag the recording itself"
		return nil, err
	case !p.ended || p.leaked == "": // it is below all lists
		return nil, in.Cut()
	}
	return p.out.Snapshot("heaptrack", p.notes()...), nil
}

// printed is what reading keeps from line to line.
type printed struct {
	in     *bounded.Input
	out    *totals.Builder
	device int

	found, ended bool // the section of the leaks
	listed       int64
	peak, leaked string

	bytes  int64              // that wait for the end of their stack
	stack  []snapshot.FrameID // innermost first
	place  int                // how many of its frames the stacks below share
	below  bool               // a stack below the place is read
	frame  snapshot.Frame     // that waits for the end of its lines
	open   bool               // there is one
	indent int                // of names; -1 before the first
}

func (p *printed) line(line string) error {
	switch {
	case line == leaksTitle:
		p.found = true
		return nil
	case p.found && !p.ended && (line == temporaryTitle || strings.HasPrefix(line, figuresBegin)):
		p.ended = true
		return p.endStack()
	case p.found && !p.ended:
		return p.leak(line)
	}
	if strings.HasPrefix(line, "reading diff file ") {
		err := p.in.Fail("a difference of two recordings")
		err.Hint = "give memdiag the two recordings: memdiag diff OLD NEW"
		return err
	}
	if peak, ok := strings.CutPrefix(line, "peak heap memory consumption: "); ok {
		p.peak = peak
	} else if leaked, ok := strings.CutPrefix(line, "total memory leaked: "); ok {
		p.leaked = leaked
	}
	return nil
}

// leak reads a line such as
//
//	53.21M leaked over 128 calls from
//	leak
//	  at ./leak.c:6
//	  in /home/me/leak
//	52.43M leaked over 50 calls from:
//	    main
//	      at ./leak.c:10
//	  and 780.27K from 14 other places
//
// With --merge-backtraces 0 all frames stand below the first line.
func (p *printed) leak(line string) error {
	size, _, isLeak := strings.Cut(line, " leaked over ")
	rest, isRest := strings.CutPrefix(line, "  and ")
	switch {
	case line == "":
		return nil
	case isLeak && strings.HasSuffix(line, " calls from"):
		if err := p.endStack(); err != nil {
			return err
		}
		p.below, p.place = false, 0
	case isLeak && strings.HasSuffix(line, " calls from:"):
		if !p.below { // what the place holds, its callers hold
			if err := p.endFrame(); err != nil {
				return err
			}
			p.below, p.place, p.bytes = true, len(p.stack), 0
		}
		if err := p.endStack(); err != nil {
			return err
		}
	case isRest && strings.HasSuffix(line, " other places"):
		if err := p.endStack(); err != nil {
			return err
		}
		size, _, _ = strings.Cut(rest, " ")
	default:
		return p.part(line)
	}
	p.stack, p.indent = p.stack[:p.place], -1
	var ok bool
	if p.bytes, ok = parseSize(size); !ok {
		return p.in.Fail("%.40q where a number of bytes should be", size)
	}
	return nil
}

// part reads a line of a frame: its name, or below that "at ./leak.c:23" or "in
// /home/me/leak".
func (p *printed) part(line string) error {
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	if p.indent < 0 {
		p.indent = indent
	}
	if indent == p.indent {
		if err := p.endFrame(); err != nil {
			return err
		}
		p.frame, p.open = snapshot.Frame{Function: rusts(text), Line: -1}, true
		return nil
	}
	at, isPlace := strings.CutPrefix(text, "at ")
	module, isModule := strings.CutPrefix(text, "in ")
	switch {
	case indent != p.indent+2 || !isPlace && !isModule || !p.open:
		return p.in.Fail("%.40q is no line of a stack", line)
	case isModule && strings.HasPrefix(p.frame.Function, "0x"):
		p.frame.Function = noSymbol + path.Base(module)
	case isPlace:
		colon := strings.LastIndexByte(at, ':')
		number, err := strconv.ParseUint(at[colon+1:], 10, 31)
		if colon < 0 || err != nil {
			return p.in.Fail("%.40q is no line of a file", at)
		}
		p.frame.File = at[:colon]
		if number > 0 {
			p.frame.Line = int(number)
		}
	}
	return nil
}

func (p *printed) endFrame() error {
	if !p.open {
		return nil
	}
	p.open = false
	if len(p.stack) > totals.MaxDepth {
		return nil
	}
	id, err := p.out.Frame(p.frame)
	p.stack = append(p.stack, id)
	return err
}

func (p *printed) endStack() error {
	if err := p.endFrame(); err != nil {
		return err
	}
	id, err := p.out.Stack(p.stack)
	if err != nil {
		return err
	}
	p.listed += p.bytes
	return p.out.Add(p.device, id, 0, p.bytes)
}

func (p *printed) notes() []string {
	out := []string{
		"heaptrack_print counts calls, not blocks that are live",
		"bytes are rounded, to hundredths of a kB or MB",
	}
	if total, ok := parseSize(p.leaked); ok && p.listed < total-total/100 {
		out = append(out, fmt.Sprintf("the text lists %s of the %s that were live: heaptrack_print -n and -s list more",
			snapshot.Bytes(p.listed), snapshot.Bytes(total)))
	}
	if peak, ok := parseSize(p.peak); ok {
		out = append(out, p.out.Ended("recording ended", snapshot.Bytes(peak))...)
	}
	return out
}

// parseSize reads "300.00K", which is of thousands, or "12B".
func parseSize(text string) (int64, bool) {
	digits := strings.TrimRight(text, "BKMGTP")
	unit := strings.TrimSuffix(text[len(digits):], "B")
	scale := 1.0
	if unit != "" {
		scale = math.Pow10(3 * (1 + strings.Index("KMGTP", unit)))
	}
	v, err := strconv.ParseFloat(digits, 64)
	if v *= scale; err != nil || len(unit) > 1 || !(math.Abs(v) < 1<<60) {
		return 0, false
	}
	return int64(math.Round(v)), true
}
