package valgrind

import (
	"bytes"
	"io"
	"path"
	"strings"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/jsoncut"
	"github.com/memdiag/memdiag/snapshot/totals"
)

// DetectDHAT reports whether a file that unpacks to something that begins with head is
// of DHAT, valgrind's or Rust's crate dhat's.
func DetectDHAT(head []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(head), []byte("{"))
	return ok && bytes.HasPrefix(bytes.TrimSpace(rest), []byte(`"dhatFileVersion"`))
}

// dhatVersion is the one of the format that is read; valgrind 3.17 began it.
const dhatVersion = 2

// maxText bounds a name in bytes: those of C++ reach tens of thousands.
const maxText = 1 << 20

// DecodeDHAT reads a file of size bytes as totals by stack of the memory that was live when the program ended. The name is used in
// errors only; they are *snapshot.FormatError.
func DecodeDHAT(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error) {
	in, err := bounded.Open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const steps = 8 // a byte of a compressed file: real ones ask for 7
	in.Pace(steps)
	d := dhat{Scanner: jsoncut.Scanner{In: in, Max: maxText, What: "file of DHAT"}, out: totals.New(in, opts)}
	if d.device, err = d.out.Device(snapshot.CPU, 0, "host heap"); err != nil {
		return nil, err
	}
	if err := d.Object(d.member); err != nil {
		return nil, err
	}
	if d.version != dhatVersion {
		return nil, in.Fail("version %d of DHAT's format; memdiag reads %d", d.version, dhatVersion)
	}
	if err := in.Finish(); err != nil {
		return nil, err
	}
	if err := d.add(); err != nil {
		return nil, err
	}
	return d.out.Snapshot("DHAT", d.out.Ended("the program ended", snapshot.Bytes(d.peak))...), nil
}

// dhat is the content of a file: what sites hold. Their places come later in the file.
type dhat struct {
	jsoncut.Scanner
	out    *totals.Builder
	device int

	version int64
	peak    int64 // bytes
	sites   bounded.List[site]
	calls   bounded.List[uint32] // of sites, innermost first
	places  bounded.List[string]
	frames  []placed // by place
}

// site is a stack, with its live memory at the end.
type site struct {
	bytes, blocks int64
	first, depth  int // of calls
}

// placed is the frame of a place, once it was made.
type placed struct {
	id    snapshot.FrameID
	known bool
	// wrapper is true for the profiler's own malloc, which is no place of the program.
	wrapper bool
}

func (d *dhat) member(key string) error {
	switch key {
	case "dhatFileVersion":
		var err error
		d.version, err = d.Int()
		return err
	case "mode":
		mode, err := d.Text()
		if err == nil && mode != "heap" && mode != "rust-heap" {
			refusal := d.In.Fail("DHAT's profile of mode %.20q, which tells no live bytes", mode)
			refusal.Hint = "run valgrind --tool=dhat without --mode"
			return refusal
		}
		return err
	case "pps":
		return d.List(d.site)
	case "ftbl":
		return d.List(d.place)
	}
	return d.Pass()
}

func (d *dhat) site() error {
	s := site{first: d.calls.Len()}
	err := d.Object(func(key string) (err error) {
		switch key {
		case "eb":
			s.bytes, err = d.Int()
		case "ebk":
			s.blocks, err = d.Int()
		case "gb":
			var atPeak int64
			if atPeak, err = d.Int(); atPeak > 0 && atPeak < 1<<50 {
				d.peak += atPeak
			}
		case "fs":
			err = d.List(d.call)
		default:
			err = d.Pass()
		}
		return err
	})
	if err != nil {
		return err
	}
	s.depth = d.calls.Len() - s.first
	d.sites.Append(s)
	const entry = 32
	return d.In.Charge(entry)
}

func (d *dhat) call() error {
	place, err := d.Int()
	if err != nil {
		return err
	}
	if place < 0 || place >= 1<<31 {
		return d.In.Fail("a frame at place %d", place)
	}
	d.calls.Append(uint32(place))
	const entry = 4
	return d.In.Charge(entry)
}

func (d *dhat) place() error {
	text, err := d.Text()
	if err != nil {
		return err
	}
	d.places.Append(text)
	const entry = 32 // with its frame
	return d.In.Charge(entry + len(text))
}

// add adds up what sites hold.
func (d *dhat) add() error {
	d.frames = make([]placed, d.places.Len())
	var stack []snapshot.FrameID
	for i := range d.sites.Len() {
		s := d.sites.At(i)
		stack = stack[:0]
		for at := s.first; at < s.first+s.depth && len(stack) <= totals.MaxDepth; at++ {
			f, err := d.frame(int(*d.calls.At(at)))
			if err != nil {
				return err
			}
			if !f.wrapper || len(stack) > 0 {
				stack = append(stack, f.id)
			}
		}
		id, err := d.out.Stack(stack)
		if err != nil {
			return err
		}
		if err := d.out.Add(d.device, id, s.blocks, s.bytes); err != nil {
			return err
		}
	}
	return nil
}

func (d *dhat) frame(place int) (placed, error) {
	if place >= len(d.frames) {
		return placed{}, d.In.Fail("a frame at place %d of %d", place, len(d.frames))
	}
	f := &d.frames[place]
	if f.known {
		return *f, nil
	}
	at := frameOf(*d.places.At(place))
	id, err := d.out.Frame(at)
	wrapper := strings.HasPrefix(path.Base(at.File), "vgpreload_") || strings.HasPrefix(at.Function, "<dhat::Alloc as ")
	*f = placed{id, true, wrapper}
	return *f, err
}
