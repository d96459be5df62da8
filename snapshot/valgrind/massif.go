// Package valgrind reads the files of valgrind's heap profilers: from massif's files the last snapshot with bytes by stack, from DHAT's
// the memory live at the end.
package valgrind

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// DetectMassif reports whether a file that unpacks to something that begins with head
// is massif's.
func DetectMassif(head []byte) bool {
	return bytes.HasPrefix(head, []byte("desc:")) && bytes.Contains(head, []byte("\ncmd:")) && bytes.Contains(head, []byte("\ntime_unit:"))
}

// DecodeMassif reads the last snapshot with a tree among those in a file of size bytes,
// as totals by stack; massif does not count blocks. The name appears in errors
// only; they are *snapshot.FormatError.
func DecodeMassif(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	d := massif{}
	if err := d.pass(name, r, size, opts); err != nil {
		return nil, err
	}
	// Which tree is the last is known only at the end, so a second pass reads that tree.
	d.wanted, d.trees = d.trees, 0
	if err := d.pass(name, r, size, opts); err != nil {
		return nil, err
	}
	return d.snapshot(), nil
}

type massif struct {
	in     *bounded.Input
	out    *totals.Builder // nil in the first pass
	wanted int             // tree to read; 0 for none yet
	trees  int             // seen
	unit   string          // of time
	now    figures         // of the snapshot that is being read
	taken  figures         // of the one that has the wanted tree
	last   figures
	peak   int64
	device int
	path   []node
}

type figures struct {
	time, heap, extra, stacks int64
	isPeak                    bool
}

// node is a line of a tree whose children are being read.
type node struct {
	frame    snapshot.FrameID
	isRoot   bool
	bytes    int64 // less those of the children so far
	children int   // still to come
}

func (d *massif) pass(name string, r io.ReaderAt, size int64, opts totals.Options) error {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return err
	}
	defer in.Close()
	const steps = 12 // a byte of a compressed file: real ones ask for 11, with both readings
	in.Pace(steps)
	if d.wanted > 0 {
		in.After(d.in)
	}
	d.in = in
	if d.wanted > 0 {
		d.out = totals.New(in, opts)
		if d.device, err = d.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
			return err
		}
	}
	snapshots, open := 0, false // open until the tree of the last one
	if err := in.Lines(func(line []byte) error {
		key, value, ok := strings.Cut(string(line[:min(len(line), 256)]), "=")
		switch {
		case bytes.HasPrefix(line, []byte("desc: xtree")):
			err := in.Fail("a tree of --xtree-memory, whose snapshots are figures of other kinds")
			err.Hint = "valgrind --tool=massif --detailed-freq=1 --fullpath-after= PROGRAM, or --tool=dhat, gives a profile that memdiag reads"
			return err
		case bytes.HasPrefix(line, []byte("time_unit:")):
			d.unit = strings.TrimSpace(string(line[len("time_unit:"):min(len(line), 32)]))
		case bytes.HasPrefix(line, []byte(" ")), len(line) > 1 && line[0] == 'n' && line[1] >= '0' && line[1] <= '9':
			return in.Fail("a line of a tree has more callers than it tells")
		case !ok:
		case key == "snapshot":
			const steps = 12 // for all lines of its figures
			if err := in.Work(steps); err != nil {
				return err
			}
			snapshots, open = snapshots+1, true
			d.now = figures{}
		case key == "time":
			return d.number(value, &d.now.time)
		case key == "mem_heap_B":
			err := d.number(value, &d.now.heap)
			d.peak, d.last = max(d.peak, d.now.heap), d.now
			return err
		case key == "mem_heap_extra_B":
			err := d.number(value, &d.now.extra)
			d.last = d.now
			return err
		case key == "mem_stacks_B":
			return d.number(value, &d.now.stacks)
		case key == "heap_tree":
			open = false
			if value != "empty" {
				d.now.isPeak = value == "peak"
				return d.tree()
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if open {
		return in.Cut()
	}
	if d.trees == 0 {
		err := in.Fail("none of %d snapshots tells bytes by stack", snapshots)
		err.Hint = "run massif with --detailed-freq=1"
		return err
	}
	return nil
}

func (d *massif) number(text string, into *int64) error {
	v, err := strconv.ParseUint(text, 10, 62)
	if err != nil {
		return d.in.Fail("%.40q is no number of bytes or time", text)
	}
	*into = int64(v)
	return nil
}

// tree reads the lines of one tree: "n2: 4096 0x1091DB: train (leak.c:22)". Each is a caller of the nearest line above that is indented
// by one less, and begins with the number of its own callers.
func (d *massif) tree() error {
	d.trees++
	d.taken = d.now
	d.path = d.path[:0]
	for {
		line, err := d.in.Line()
		if errors.Is(err, io.EOF) {
			return d.in.Cut()
		}
		if err != nil {
			return err
		}
		n, what, err := d.node(line)
		if err != nil {
			return err
		}
		if depth := len(line) - len(bytes.TrimLeft(line, " ")); depth != len(d.path) {
			return d.in.Fail("a line of the tree is indented by %d where %d belong", depth, len(d.path))
		}
		if err := d.push(n, what); err != nil {
			return err
		}
		for len(d.path) > 0 && d.path[len(d.path)-1].children == 0 {
			if err := d.pop(); err != nil {
				return err
			}
		}
		if len(d.path) == 0 {
			return nil
		}
	}
}

func (d *massif) node(line []byte) (n node, what string, err error) {
	const steps, perStep = 12, 8 // and bytes
	if err := d.in.Work(steps + len(line)/perStep); err != nil {
		return n, "", err
	}
	text := strings.TrimLeft(string(line), " ")
	head, rest, ok := strings.Cut(text, ": ")
	size, what, _ := strings.Cut(rest, " ")
	children, childrenErr := strconv.ParseUint(strings.TrimPrefix(head, "n"), 10, 31)
	count, sizeErr := strconv.ParseUint(size, 10, 62)
	if !ok || !strings.HasPrefix(head, "n") || childrenErr != nil || sizeErr != nil {
		return n, "", d.in.Fail("%.40q is no line of a tree", text)
	}
	return node{bytes: int64(count), children: int(children), isRoot: len(d.path) == 0}, what, nil
}

// maxTree bounds the depth of a tree: valgrind's own limit is 500 callers.
const maxTree = 4096

func (d *massif) push(n node, what string) error {
	if len(d.path) >= maxTree {
		return d.in.Fail("a tree deeper than %d", maxTree)
	}
	if len(d.path) > 0 {
		caller := &d.path[len(d.path)-1]
		caller.children--
		caller.bytes -= n.bytes
		if caller.bytes < 0 {
			return d.in.Fail("callers hold more bytes than what they call")
		}
	}
	if d.trees == d.wanted && !n.isRoot {
		var err error
		if n.frame, err = d.out.Frame(frameOf(what)); err != nil {
			return err
		}
	}
	d.path = append(d.path, n)
	return nil
}

// pop adds what a line holds that no caller of it explains.
func (d *massif) pop() error {
	n := len(d.path)
	own := d.path[n-1].bytes
	if d.trees == d.wanted && own > 0 {
		var stack []snapshot.FrameID
		for _, p := range d.path[1:] {
			stack = append(stack, p.frame)
		}
		id, err := d.out.Stack(stack)
		if err != nil {
			return err
		}
		if err := d.out.Add(d.device, id, 0, own); err != nil {
			return err
		}
	}
	d.path = d.path[:n-1]
	return nil
}

func (d *massif) snapshot() *snapshot.Snapshot {
	unit := map[string]string{"i": "instructions", "ms": "ms", "B": "bytes allocated"}[d.unit]
	if unit == "" {
		unit = "units"
	}
	which := "the last snapshot with stacks"
	if d.taken.isPeak {
		which += ", the peak"
	}
	notes := []string{
		"massif counts no blocks",
		fmt.Sprintf("%s, taken at %s %s of %s; in its last of all %s were live, at most %s",
			which, snapshot.Grouped(d.taken.time), unit, snapshot.Grouped(d.last.time), snapshot.Bytes(d.last.heap), snapshot.Bytes(d.peak)),
	}
	if d.taken.stacks > 0 {
		notes = append(notes, fmt.Sprintf("the stacks of its threads, %s, are not in it", snapshot.Bytes(d.taken.stacks)))
	}
	s := d.out.Snapshot("massif", notes...)
	m := &s.Devices[0].Meters
	m.Allocated += snapshot.Bytes(d.taken.extra) // headers and rounding of malloc
	m.Active, m.Reserved = m.Allocated, m.Allocated
	return s
}
