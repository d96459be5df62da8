package memray

import (
	"bytes"
	"cmp"
	"errors"
	"html"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/jsoncut"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// title begins the title of each page of memray's; which report it is follows.
const title = "<title>memray - "

// maxValue bounds a text of a page in bytes: C++ names reach tens of thousands.
const maxValue = 1 << 20

const csvHint = "memray transform csv --leaks RECORDING gives a table that memdiag reads"

// DetectPage reports whether a file that unpacks to something that begins with
// head is a page of memray's.
func DetectPage(head []byte) bool { return bytes.Contains(head, []byte(title)) }

// DecodePage reads a page of size bytes that "memray flamegraph" or "memray table"
// wrote, as totals by stack; of a table's stacks the page has the innermost frame
// only. The name appears in errors only; they are *snapshot.FormatError.
func DecodePage(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const ofTable, ofFlamegraph = 8, 16 // steps a byte of a compressed file: real ones ask for 4 and 16
	in.Pace(ofTable)
	p := page{Scanner: jsoncut.Scanner{In: in, Max: maxValue, What: "page of memray's"}, out: totals.New(in, opts)}
	if p.device, err = p.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
		return nil, err
	}
	if _, err := p.through(title); err != nil {
		return nil, p.end(err)
	}
	report, err := in.Line()
	if err != nil {
		return nil, p.end(err)
	}
	note := "the page is of what was live at the peak"
	if bytes.Contains(report, []byte("memory leaks")) {
		note = "the page is of what was never freed"
	}
	p.callersBelow = bytes.Contains(report, []byte("inverted"))
	p.overTime = bytes.Contains(report, []byte("temporal"))
	read := p.table
	switch {
	case bytes.Contains(report, []byte("table report")):
		note += ", and of each stack it has the line that allocated only"
	case bytes.Contains(report, []byte("flamegraph report")):
		in.Pace(ofFlamegraph)
		read = p.flamegraph
	default:
		return nil, p.refuse("a page of memray's that is neither a flamegraph nor a table")
	}
	const before16 = "const data = "
	mark, err := p.through("packed_data = ", before16)
	if err != nil {
		return nil, p.end(err)
	}
	if err := read(mark == before16); err != nil {
		return nil, err
	}
	return p.out.Snapshot("memray", note), nil
}

// page is the state of reading a page.
type page struct {
	jsoncut.Scanner
	out    *totals.Builder
	device int

	overTime     bool // nodes have no figures, but intervals have, as --temporal has it
	callersBelow bool // the nodes below a node are its callers, as --inverted has it

	nodes map[string]*bounded.List[int64] // a value for each node of a flamegraph
	above bounded.List[int64]             // the nodes that nodes are called from
	texts bounded.List[string]            // that nodes name by their places
	place map[string]int64                // indices of texts, if nodes have texts instead of indices

	intervals bounded.List[interval]
	peaks     bounded.List[int64] // bytes, of each of memray's snapshots; none with --leaks
}

// interval is blocks of a node that were allocated before one of memray's snapshots and
// freed before another.
type interval struct{ born, freed, node, count, bytes int64 }

// never is when blocks were freed that live at the end.
const never = math.MaxInt64

func (p *page) refuse(reason string) error {
	err := p.In.Fail("%s", reason)
	err.Hint = csvHint
	return err
}

func (p *page) end(err error) error {
	if errors.Is(err, io.EOF) {
		return p.In.Cut()
	}
	return err
}

// through skips everything up to the end of one of the marks, which it returns. The first character of each mark must occur in it only
// once. It returns io.EOF if there is no mark.
func (p *page) through(marks ...string) (string, error) {
	seen := make([]int, len(marks))
	for {
		b, err := p.In.Ahead()
		if err != nil {
			return "", err
		}
		n, found := len(b), ""
		const perStep = 2 // bytes
		if err := p.In.Work(n / perStep); err != nil {
			return "", err
		}
		for i := 0; i < len(b) && found == ""; i++ {
			for m, mark := range marks {
				if b[i] == mark[seen[m]] {
					seen[m]++
				} else if seen[m] = 0; b[i] == mark[0] {
					seen[m] = 1
				}
				if seen[m] == len(mark) {
					n, found = i+1, mark
					break
				}
			}
		}
		if err := p.In.Skip(uint64(n)); err != nil || found != "" {
			return found, err
		}
	}
}

// text is one with what HTML writes otherwise undone: pages have it escaped twice.
func (p *page) text() (string, error) {
	text, err := p.Text()
	if err == nil {
		const steps = 4
		err = p.In.Work(steps * strings.Count(text, "&"))
	}
	return html.UnescapeString(text), err
}

// table reads rows; each has a frame written "train at leak.py:18".
func (p *page) table(bool) error {
	return p.List(func() error {
		var count, size int64
		text, named := "", false
		err := p.Object(func(key string) (err error) {
			switch key {
			case "n_allocations":
				count, err = p.Int()
			case "size":
				size, err = p.Int()
			case "stack_trace":
				named = true
				text, err = p.text()
			default:
				err = p.Pass()
			}
			return err
		})
		if err == nil && !named {
			err = p.In.Fail("a row without a stack_trace")
		}
		if err != nil {
			return err
		}
		frame, err := p.out.Frame(rowFrame(text))
		if err != nil {
			return err
		}
		id, err := p.out.Stack([]snapshot.FrameID{frame})
		if err != nil {
			return err
		}
		return p.out.Add(p.device, id, count, size)
	})
}

// rowFrame reads "train at leak.py:18".
func rowFrame(text string) snapshot.Frame {
	function, place, _ := strings.Cut(text, " at ")
	f := snapshot.Frame{Function: function, File: place, Line: -1}
	if at := strings.LastIndexByte(place, ':'); at >= 0 {
		if line, err := strconv.ParseUint(place[at+1:], 10, 31); err == nil {
			f.File = place[:at]
			if line > 0 {
				f.Line = int(line)
			}
		}
	}
	return f
}

// The columns of a flamegraph's nodes that are read; figures of a node have those
// of the nodes below it in them, but for those of intervals.
const (
	nodeFunction = "function"
	nodeFile     = "filename"
	nodeLine     = "lineno"
	nodeBytes    = "value"
	nodeCount    = "n_allocations"
)

func (p *page) flamegraph(isTree bool) error {
	p.nodes = make(map[string]*bounded.List[int64])
	for _, column := range []string{nodeFunction, nodeFile, nodeLine, nodeBytes, nodeCount} {
		p.nodes[column] = new(bounded.List[int64])
	}
	if isTree {
		return p.tree()
	}
	err := p.Object(func(key string) error {
		switch key {
		case "nodes":
			return p.Object(p.column)
		case "strings":
			return p.List(p.addText)
		case "intervals":
			return p.List(p.addInterval)
		case "high_water_mark_by_snapshot":
			return p.addPeaks()
		}
		return p.Pass()
	})
	if err != nil {
		return err
	}
	if p.overTime {
		if err := p.sumIntervals(); err != nil {
			return err
		}
	}
	for column, values := range p.nodes {
		if values.Len() != p.above.Len() {
			return p.In.Fail("%d nodes, and %d values of %s", p.above.Len(), values.Len(), column)
		}
	}
	return p.addNodes()
}

func (p *page) addText() error {
	text, err := p.text()
	if err != nil {
		return err
	}
	const entry = 24 // a text's, and what collecting garbage leaves of them
	if err := p.In.Charge(entry + len(text)); err != nil {
		return err
	}
	p.texts.Append(text)
	return nil
}

// cell is what a value of a column takes.
const cell = 8

func (p *page) column(key string) error {
	if key == "children" {
		return p.children()
	}
	values, ok := p.nodes[key]
	if !ok {
		return p.Pass()
	}
	return p.List(func() error {
		n, err := p.Int()
		if err != nil {
			return err
		}
		values.Append(n)
		return p.In.Charge(cell)
	})
}

// children reads the list of children of each node. They come later in the list of nodes, so there are no cycles.
func (p *page) children() error {
	const none = -1
	node := int64(-1)
	return p.List(func() error {
		if node++; node == int64(p.above.Len()) {
			if node > 0 {
				return p.In.Fail("node %d is below none", node)
			}
			p.above.Append(none)
		}
		return p.List(func() error {
			child, err := p.Int()
			if err != nil {
				return err
			}
			if child <= node {
				return p.In.Fail("node %d below node %d", child, node)
			}
			for int64(p.above.Len()) <= child {
				if err := p.In.Charge(cell); err != nil {
					return err
				}
				p.above.Append(none)
			}
			if *p.above.At(int(child)) != none {
				return p.In.Fail("node %d is below two others", child)
			}
			*p.above.At(int(child)) = node
			return nil
		})
	})
}

// addInterval reads one interval, a list of five numbers; the second is null if the blocks live at the end.
func (p *page) addInterval() error {
	numbers, n := [5]int64{}, 0
	err := p.List(func() (err error) {
		if n == len(numbers) {
			return p.In.Fail("an interval of more than %d numbers", n)
		}
		raw, err := p.Value(true)
		switch {
		case err != nil:
			return err
		case n == 1 && jsoncut.IsNull(raw):
			numbers[n] = never
		case jsoncut.IsNull(raw), !jsoncut.ReadInt(raw, &numbers[n], 64):
			return p.In.Fail("%.40q where a whole number should be", raw)
		}
		n++
		return nil
	})
	if err == nil && n < len(numbers) {
		err = p.In.Fail("an interval of %d numbers", n)
	}
	if err != nil {
		return err
	}
	p.intervals.Append(interval{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]})
	return p.In.Charge(len(numbers) * cell)
}

// addPeaks reads the largest number of bytes up to each of memray's snapshots, or null.
func (p *page) addPeaks() error {
	if c, err := p.Next(); err != nil || c != '[' {
		return cmp.Or(err, p.Pass())
	}
	return p.List(func() error {
		n, err := p.Int()
		if err != nil {
			return err
		}
		p.peaks.Append(n)
		return p.In.Charge(cell)
	})
}

// sumIntervals gives each node what was live of it at the peak, or at the end.
func (p *page) sumIntervals() error {
	if err := p.In.Charge(2 * cell * p.above.Len()); err != nil {
		return err
	}
	size, count := p.nodes[nodeBytes], p.nodes[nodeCount]
	for size.Len() < p.above.Len() {
		size.Append(0)
		count.Append(0)
	}
	at := int64(0)
	for i := range p.peaks.Len() {
		if *p.peaks.At(i) > *p.peaks.At(int(at)) {
			at = int64(i)
		}
	}
	if p.peaks.Len() == 0 {
		at = never - 1
	}
	for i := range p.intervals.Len() {
		v := p.intervals.At(i)
		if v.node < 0 || v.node >= int64(p.above.Len()) {
			return p.In.Fail("an interval of node %d of %d", v.node, p.above.Len())
		}
		if v.born > at || v.freed <= at {
			continue
		}
		const most = math.MaxInt64 / 4 // so that sums of two stay in range
		bytes, blocks := size.At(int(v.node)), count.At(int(v.node))
		if v.bytes < 0 || v.count < 0 || v.bytes > most-*bytes || v.count > most-*blocks {
			return p.In.Fail("an interval of %d bytes in %d blocks", v.bytes, v.count)
		}
		*bytes += v.bytes
		*blocks += v.count
	}
	return nil
}

// addNodes adds what each node has beyond those below it.
func (p *page) addNodes() error {
	size, count := p.nodes[nodeBytes], p.nodes[nodeCount]
	frames := make([]snapshot.FrameID, p.above.Len())
	if err := p.In.Charge(cell * len(frames)); err != nil {
		return err
	}
	for i := range frames {
		if i == 0 {
			continue // the root, which is no frame
		}
		above := int(*p.above.At(i))
		if above < 0 {
			return p.In.Fail("node %d is below none", i)
		}
		if !p.overTime {
			*size.At(above) -= *size.At(i)
			*count.At(above) -= *count.At(i)
		}
		f, err := p.frame(i)
		if err != nil {
			return err
		}
		if frames[i], err = p.out.Frame(f); err != nil {
			return err
		}
	}
	var stack []snapshot.FrameID
	for i := range frames {
		if *size.At(i) == 0 && *count.At(i) == 0 {
			continue
		}
		stack = stack[:0]
		for at := i; at > 0 && len(stack) <= totals.MaxDepth; at = int(*p.above.At(at)) {
			stack = append(stack, frames[at])
		}
		if err := p.In.Work(len(stack)); err != nil {
			return err
		}
		if p.callersBelow {
			slices.Reverse(stack)
		}
		id, err := p.out.Stack(stack)
		if err != nil {
			return err
		}
		if err := p.out.Add(p.device, id, *count.At(i), *size.At(i)); err != nil {
			return err
		}
	}
	return nil
}

func (p *page) frame(node int) (f snapshot.Frame, err error) {
	if f.Function, err = p.named(nodeFunction, node); err != nil {
		return f, err
	}
	if f.File, err = p.named(nodeFile, node); err != nil {
		return f, err
	}
	f.Line = -1
	if line := *p.nodes[nodeLine].At(node); line > 0 && line < 1<<31 {
		f.Line = int(line)
	}
	return f, nil
}

// named is the text that a node has in a column.
func (p *page) named(column string, node int) (string, error) {
	place := *p.nodes[column].At(node)
	if place < 0 || place >= int64(p.texts.Len()) {
		return "", p.In.Fail("node %d has text %d of %d as its %s", node, place, p.texts.Len(), column)
	}
	return *p.texts.At(int(place)), nil
}
