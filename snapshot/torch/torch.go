// Package torch reads the memory snapshots that PyTorch writes:
// torch.cuda.memory._snapshot() and memory_snapshot(), pickled by Python
// (protocols 0 to 5) or by libtorch's own pickler, inside what torch.save writes, as
// JSON, inside the viewer's HTML page, plain or compressed by gzip or zstd.
//
// Nothing in a file is ever run. The reader streams: trace entries are reduced
// as they pass, so that memory follows the number of blocks and of distinct
// stacks, not the length of the file.
package torch

import (
	"io"

	"github.com/memdiag/memdiag/snapshot"
)

// Options are the choices of Decode; the zero value is the usual one.
type Options struct {
	// Stacks is the table to intern into, so that snapshots of one run share it; nil makes a new one.
	Stacks *snapshot.Stacks
	// MaxUnpacked is what compressed input may unpack to, in bytes; 0 allows
	// 64 MiB and 100 times its size, JSON 256 MiB and 512 times. A block may be had for every 56 bytes of it,
	// or of the file, plus a million.
	MaxUnpacked int64
	// At is the moment in the record whose memory Decode returns. PyTorch records events and, at the end, the state: the events are
	// replayed, and those after the moment are undone. Blocks whose events are lost from the file's ring buffers count as existing from
	// the record's beginning. Each GPU has its own peak; a GPU without a failed request is as at the end. A step and a time are looked
	// up first, so the file is read twice.
	At snapshot.At
	// Timeline has the snapshot contain when each block of the record was allocated and freed.
	Timeline bool
	// Record has the snapshot keep the events of the record themselves, 16 bytes each.
	Record bool
	// Parted: the recorder's own snapshot, which follows PyTorch's in a file of memdiag record, is not in the input. An input
	// that should have it has been cut.
	Parted bool
}

// Decode reads one snapshot of size bytes. The name is used in errors only; they are *snapshot.FormatError. Offsets count from the
// start of the pickle or JSON text if that is compressed or inside an archive.
//
// Inconsistencies that can be read are listed in Notes. Memory is bounded by 4 bytes per object that the pickler memoised, 100 bytes
// per block, the distinct strings and stacks, and some 30 MiB: 2 GB of trace take 130 MiB. Strings, stacks and open tenancies may take
// 64 MiB plus the size of the file, which is 30 times what those of real files take. A tensor that the trace leaves live takes 100
// bytes more if the trace comes before the segments, which no PyTorch writes; else a bit.
func Decode(name string, r io.ReaderAt, size int64, opts Options) (*snapshot.Snapshot, error) {
	var until int64
	if opts.At.Kind == snapshot.AtStep || opts.At.Kind == snapshot.AtTime {
		m, _, err := read(name, r, size, opts, moments{})
		if err != nil {
			return nil, err
		}
		if until, err = m.build.record.until(name, opts.At); err != nil {
			return nil, err
		}
	}
	m, more, err := read(name, r, size, opts, moments{at: opts.At, until: until})
	if err != nil {
		return nil, err
	}
	if m.build.agent && !opts.Parted {
		return nil, m.in.cut()
	}
	if opts.At.Kind != snapshot.AtEnd {
		if err := m.build.rewind(name); err != nil {
			return nil, err
		}
	}
	stacks := opts.Stacks
	if stacks == nil {
		stacks = snapshot.NewStacks()
	}
	s := m.build.snapshot(stacks)
	if more {
		s.Notes = append(s.Notes, "the page embeds more than one snapshot; this is the first")
	}
	return s, nil
}

// read reads the file, and reports whether it must be read again with all dicts kept.
func read(name string, r io.ReaderAt, size int64, opts Options, at moments) (m *machine, more bool, err error) {
	m, more, err = run(name, r, size, opts, at, false)
	if m != nil && m.shared {
		m, more, err = run(name, r, size, opts, at, true)
	}
	return m, more, err
}

// run reads the file once. It reports whether another snapshot follows in it.
func run(name string, r io.ReaderAt, size int64, opts Options, at moments, keep bool) (m *machine, more bool, err error) {
	text, err := open(name, r, size, opts.MaxUnpacked)
	if err != nil {
		return nil, false, err
	}
	defer text.close()
	m = newMachine(text.in)
	defer m.release()
	m.keep, m.quick.off = keep, keep
	m.build.moments.at, m.build.moments.until = at.at, at.until
	if opts.Timeline {
		m.build.lives = make(map[int]*lives)
	}
	if opts.Record {
		m.build.events = make(map[int]*deviceEvents)
	}
	m.build.allow(size, opts.MaxUnpacked)
	if at.at.Kind != snapshot.AtEnd || opts.Timeline || opts.Record {
		m.build.mostTables *= 2 // for the live blocks, and for the earlier ones
	}
	m.in.packed, m.in.lifted = stepsFor(size, text.json), opts.MaxUnpacked
	if text.json {
		err = decodeJSON(m)
	} else {
		err = decodePickle(m)
	}
	if err == nil && text.more == nil { // after a page's snapshot is padding
		err = m.behind()
	}
	return m, err == nil && text.more != nil && text.more(), err
}
