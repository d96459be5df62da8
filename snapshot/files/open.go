// Package files opens snapshot files and run folders of any format that memdiag
// reads.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/agent"
	"github.com/memdiag/memdiag/snapshot/bounded"
	"github.com/memdiag/memdiag/snapshot/converted"
	"github.com/memdiag/memdiag/snapshot/heaptrack"
	"github.com/memdiag/memdiag/snapshot/jemalloc"
	"github.com/memdiag/memdiag/snapshot/kineto"
	"github.com/memdiag/memdiag/snapshot/memray"
	"github.com/memdiag/memdiag/snapshot/native"
	"github.com/memdiag/memdiag/snapshot/pprofio"
	"github.com/memdiag/memdiag/snapshot/symbols"
	"github.com/memdiag/memdiag/snapshot/torch"
	"github.com/memdiag/memdiag/snapshot/totals"
	"github.com/memdiag/memdiag/snapshot/tracemalloc"
	"github.com/memdiag/memdiag/snapshot/valgrind"
)

// InputError is a name or a folder in which the requested input was not found. It wraps fs.ErrNotExist if nothing with the name exists.
type InputError struct {
	Reason string // one line, with the name in it
	hint   string
	err    error
}

func (e *InputError) Error() string { return e.Reason }

// Hint is the way out, or "".
func (e *InputError) Hint() string { return e.hint }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.err }

// format is one that memdiag reads.
type format struct {
	detect func(head, inside []byte) bool // by the file's beginning, and by what that unpacks to
	decode func(name string, r io.ReaderAt, size int64, into shared) (*snapshot.Snapshot, error)
}

// shared is the state for reading the snapshots of one run.
type shared struct {
	totals.Options
	native   *native.Reader // into the same table
	at       snapshot.At
	timeline bool
	record   bool
}

func (o Opener) newShared() shared {
	stacks := snapshot.NewStacks()
	ours := native.NewReader(stacks)
	ours.MaxMemory = int64(o.MaxUnpacked)
	return shared{Options: totals.Options{Stacks: stacks, MaxUnpacked: int64(o.MaxUnpacked), Symbols: o.Symbols}, native: ours}
}

// headSize is how many bytes of a file are needed to detect its format.
const headSize = max(torch.DetectLen, bounded.HeadLen)

// formats are asked in this order, those that are sure of themselves first: any
// pickle may be one of PyTorch's.
func formats() []format {
	return []format{
		{detect: stored(native.Detect), decode: sane(decodeNative)},
		{detect: unpacked(agent.Detect), decode: profile(agent.Decode)},
		{detect: unpacked(converted.Detect), decode: sane(profile(converted.Decode))}, // its keys are like PyTorch's
		{detect: unpacked(tracemalloc.Detect), decode: profile(tracemalloc.Decode)},
		{detect: unpacked(kineto.Detect), decode: profile(kineto.Decode)},
		{detect: stored(torch.Detect), decode: decodeTorch},
		{detect: unpacked(memray.Detect), decode: profile(memray.Decode)},
		{detect: unpacked(memray.DetectPage), decode: profile(memray.DecodePage)},
		{detect: unpacked(heaptrack.Detect), decode: profile(heaptrack.Decode)},
		{detect: unpacked(heaptrack.DetectPrinted), decode: profile(heaptrack.DecodePrinted)},
		{detect: unpacked(valgrind.DetectMassif), decode: profile(valgrind.DecodeMassif)},
		{detect: unpacked(valgrind.DetectDHAT), decode: profile(valgrind.DecodeDHAT)},
		{detect: unpacked(jemalloc.Detect), decode: profile(jemalloc.Decode)},
		{detect: unpacked(jemalloc.DetectText), decode: profile(jemalloc.DecodeText)},
		{detect: unpacked(pprofio.Detect), decode: profile(pprofio.Decode)},
	}
}

// stored asks about the file's beginning.
func stored(detect func([]byte) bool) func(head, _ []byte) bool {
	return func(head, _ []byte) bool { return detect(head) }
}

// unpacked asks about what the file's beginning unpacks to.
func unpacked(detect func([]byte) bool) func(_, inside []byte) bool {
	return func(_, inside []byte) bool { return detect(inside) }
}

// profile makes a decoder from one that takes the common options.
func profile(decode func(name string, r io.ReaderAt, size int64, opts totals.Options) (*snapshot.Snapshot, error)) func(string, io.ReaderAt, int64, shared) (*snapshot.Snapshot, error) {
	return func(name string, r io.ReaderAt, size int64, into shared) (*snapshot.Snapshot, error) {
		return decode(name, r, size, into.Options)
	}
}

// decodeNative has bounds of its own: sections say what they unpack to.
func decodeNative(name string, r io.ReaderAt, size int64, into shared) (*snapshot.Snapshot, error) {
	return into.native.Decode(name, r, size)
}

// sane refuses what memdiag cannot have written.
func sane(decode func(string, io.ReaderAt, int64, shared) (*snapshot.Snapshot, error)) func(string, io.ReaderAt, int64, shared) (*snapshot.Snapshot, error) {
	return func(name string, r io.ReaderAt, size int64, into shared) (*snapshot.Snapshot, error) {
		s, err := decode(name, r, size, into)
		if err != nil {
			return nil, err
		}
		if reason := absurd(s); reason != "" {
			return nil, &snapshot.FormatError{File: name, Reason: reason, Hint: "memdiag did not record this: the file was edited or is damaged"}
		}
		return s, nil
	}
}

// maxStep is more steps than any training takes. Up to it a float64 has each.
const maxStep = 1 << 53

// maxLive is more than all blocks of a process can take: an address has 48 bits, or on a
// few machines 57. No sum or difference of some overflows.
const maxLive = 1 << 57

// maxDevices is more than the devices of all ranks that share a machine.
const maxDevices = 4096

// impossible says which figure no snapshot of any format has; "" for none.
func impossible(s *snapshot.Snapshot) string {
	if len(s.Devices) > maxDevices {
		return fmt.Sprintf("it has %d devices, which no machine has", len(s.Devices))
	}
	if step := s.Mark.Step; step < snapshot.NoStep || step > maxStep {
		return fmt.Sprintf("it tells step %d, which no training has", step)
	}
	for _, t := range []time.Time{s.Mark.Time, s.History.First, s.History.Last} {
		if year := t.Year(); year < 0 || year > 9999 { // JSON cannot represent it
			return fmt.Sprintf("it tells of the year %d", year)
		}
	}
	var total uint64
	for i, size := range s.Blocks.Size {
		if total += uint64(max(size, s.Blocks.Requested[i], 0)); total > maxLive {
			return "its blocks add up to more than 128 PiB, which no process has"
		}
	}
	return ""
}

// absurd says which figure of a snapshot of ours no memory has; "" for none.
func absurd(s *snapshot.Snapshot) string {
	blocks := int64(0)
	for i, size := range s.Blocks.Size {
		asked, count := s.Blocks.Requested[i], s.Blocks.CountOf(i)
		if size < 0 || asked < 0 || count < 0 {
			return fmt.Sprintf("row %d of the blocks has %d of %d bytes, %d of them requested", i, count, size, asked)
		}
		if blocks += count; count > maxLive || blocks > maxLive {
			return "it has more than 2^57 blocks"
		}
		if len(s.Blocks.BirthStep) > 0 && s.Mark.Step != snapshot.NoStep && s.Blocks.BirthStep[i] > s.Mark.Step {
			return fmt.Sprintf("row %d of the blocks was born at step %d, after the snapshot's own, %d", i, s.Blocks.BirthStep[i], s.Mark.Step)
		}
	}
	return ""
}

// decodeTorch reads PyTorch's snapshot, and what the recorder has appended to it.
func decodeTorch(name string, r io.ReaderAt, size int64, into shared) (*snapshot.Snapshot, error) {
	text := agent.Behind(r, size)
	opts := torch.Options{Stacks: into.Stacks, MaxUnpacked: into.MaxUnpacked, At: into.at, Timeline: into.timeline, Record: into.record, Parted: text != nil}
	if text == nil {
		return torch.Decode(name, r, size, opts)
	}
	s, err := torch.Decode(name, r, size-text.Size()-agent.FooterLen, opts)
	if err == nil && into.at.Kind == snapshot.AtEnd {
		err = agent.AddTo(s, name, text, into.MaxUnpacked)
	}
	return s, err
}

// Opener opens snapshots and runs; the zero value has the usual bounds, which the
// functions of this package have too.
type Opener struct {
	// MaxUnpacked is what a compressed file may unpack to, and what the tables of
	// a profile may take; 0 for 64 MiB and a multiple of the file's size.
	MaxUnpacked snapshot.Bytes
	// Symbols names the addresses of profiles that have nothing else; nil for none.
	Symbols *symbols.Table
	// Reading, unless nil, is called before each of several files is read; the first is number 1.
	Reading func(path string, at, of int)
	// Progress, unless nil, is called while a file is read, with how far into its
	// bytes that has come.
	Progress func(path string, done, size int64)
	// At is the moment within a snapshot's record that Open shows.
	At snapshot.At
	// Timeline has Open return when each block in a snapshot's record was allocated and freed.
	Timeline bool
	// Record has Open keep the events of a snapshot's record.
	Record bool
}

func (o Opener) reading(path string, at, of int) {
	if o.Reading != nil {
		o.Reading(path, at, of)
	}
}

// Open reads the snapshot at path; the content decides the format. Step and rank are taken from the name if the content has none.
// Errors in the content are *snapshot.FormatError.
func (o Opener) Open(path string) (*snapshot.Snapshot, error) {
	into := o.newShared()
	into.at, into.timeline, into.record = o.At, o.Timeline, o.Record
	s, err := o.openInto(path, into)
	if err != nil {
		return nil, err
	}
	if o.At != (snapshot.At{}) && s.Moment == nil {
		return nil, &snapshot.FormatError{File: path, Reason: fmt.Sprintf("it has no history of allocations, so what was live at %s is unknown", o.At), Hint: "PyTorch's snapshots have one; without --at the file is shown as it is"}
	}
	if o.Timeline && len(s.Timelines) == 0 {
		return nil, &snapshot.FormatError{File: path, Reason: "it has no history of allocations", Hint: "PyTorch's snapshots have one, if torch.cuda.memory._record_memory_history() was called"}
	}
	step, rank := newNamePatterns().read(filepath.ToSlash(path))
	if s.Rank == snapshot.NoRank {
		s.Rank = rank
	}
	setSteps([]opened{{snapshot: s, name: path, step: step}})
	return s, nil
}

// Open is Opener.Open with the usual bounds.
func Open(path string) (*snapshot.Snapshot, error) { return Opener{}.Open(path) }

// decode reads a file of a known format.
func (o Opener) decode(path string, f *source, into shared) (*snapshot.Snapshot, error) {
	var file io.ReaderAt = f.file
	if o.Progress != nil {
		file = &watched{ReaderAt: f.file, progress: func(done int64) { o.Progress(path, done, f.size) }}
	}
	s, err := f.format.decode(path, file, f.size, into)
	if err != nil {
		return nil, err
	}
	if reason := impossible(s); reason != "" {
		return nil, &snapshot.FormatError{File: path, Reason: reason, Hint: "the file was edited or is damaged, or what wrote it counts something else"}
	}
	// Files that some profilers leave when their program is killed have no end mark.
	if now, err := f.file.Stat(); err == nil && now.Size() < f.size {
		return nil, &snapshot.FormatError{File: path, Offset: now.Size(), Reason: "the file became shorter while it was read", Hint: "read it again once it is complete"}
	}
	return s, nil
}

// watched is a file that reports each read.
type watched struct {
	io.ReaderAt
	progress func(done int64)
}

// ReadAt implements io.ReaderAt.
func (w *watched) ReadAt(p []byte, offset int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, offset)
	w.progress(offset + int64(n))
	return n, err
}

// source is an open file with its detected format.
type source struct {
	file   *os.File
	size   int64
	head   []byte
	format *format // nil if unknown
}

func (s *source) close() { _ = s.file.Close() } // it was only read

func openFile(path string) (*source, error) {
	file, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	s := &source{file: file, size: size, head: make([]byte, min(headSize, size))}
	if _, err := file.ReadAt(s.head, 0); err != nil && !errors.Is(err, io.EOF) {
		s.close()
		return nil, err
	}
	inside := bounded.Head(s.head)
	for _, f := range formats() {
		if f.detect(s.head, inside) {
			s.format = &f
			break
		}
	}
	return s, nil
}

// isRuined reports whether a file is an incomplete snapshot.
func (s *source) isRuined() bool {
	return s.isZeros() || s.isCutOff() || strings.HasSuffix(s.file.Name(), native.Ending) && !native.DetectSeries(s.head)
}

// isZeros reports whether a file is empty or only has zero bytes: a full disk leaves an empty file, and a machine crash one of zeros.
func (s *source) isZeros() bool { return len(bytes.Trim(s.head, "\x00")) == 0 }

// isCutOff reports whether nothing of a compressed file can be unpacked.
func (s *source) isCutOff() bool {
	return bounded.IsCompressed(s.head) && len(bounded.Head(s.head)) == 0
}

// unknown is the error for a file of no format that is read.
func (s *source) unknown() error {
	e := &snapshot.FormatError{
		File:   s.file.Name(),
		Offset: snapshot.NoOffset,
		Reason: "not a snapshot in a format that memdiag reads",
		Hint:   "memdiag reads its own files, PyTorch's memory snapshots, and profiles of JAX, Go, memray, heaptrack and others: memdiag help formats",
	}
	switch {
	case s.size == 0:
		e.Reason, e.Hint = "an empty file", ""
		if n, _ := s.file.Read(make([]byte, 1)); n > 0 {
			e.Reason, e.Hint = "a file without a size, such as those of the kernel below /proc", "copy it to a regular file first"
		}
	case s.isZeros():
		e.Reason, e.Hint = "only zeros, no snapshot", "the machine failed while it was written; take it again"
	case s.isCutOff():
		e.Reason = "a compressed file that ends before anything of it can be unpacked"
		e.Hint = "the writer was stopped, or the copy is incomplete"
	case native.DetectSeries(s.head):
		e.Reason = "the counters of a run, not a snapshot"
		e.Hint = "name its folder"
	case strings.HasSuffix(s.file.Name(), ".py"):
		e.Reason = "a program, not a run"
		e.Hint = "memdiag record -- python " + filepath.Base(s.file.Name()) + " makes a run of it"
	}
	if other := s.other(); other != nil {
		return other
	}
	return e
}

// other is the error for a file that another known tool writes; nil for other files.
func (s *source) other() *snapshot.FormatError {
	inside := bounded.Head(s.head)
	for _, o := range others {
		if bytes.Contains(inside[:min(len(inside), o.within)], []byte(o.text)) {
			what := o.what
			if what == mprof {
				what += mprofSizes(io.NewSectionReader(s.file, 0, s.size))
			}
			return &snapshot.FormatError{File: s.file.Name(), Offset: snapshot.NoOffset, Reason: what, Hint: o.hint}
		}
	}
	return nil
}

const (
	memrayRecording = "a recording of memray, which only memray reads"

	memrayHint   = "memray transform csv --leaks RECORDING gives a table that memdiag reads"
	valgrindHint = "valgrind --tool=dhat --fullpath-after= PROGRAM, at two lengths of the run or more, gives profiles that memdiag reads"
	unpackHint   = "unpack it first; memdiag itself unpacks gzip and zstd"

	goroutines = "stacks of Go's goroutines, not of its heap"
	goHint     = "take /debug/pprof/heap in place of /debug/pprof/goroutine"

	mprof     = "the size of a process over time, as mprof writes it, which has no stacks"
	mprofHint = "memdiag record -o my-run -- python program.py records the same with the lines that allocate"

	xplane     = "a trace of XLA's profiler (XPlane), which has no snapshot of memory"
	xplaneHint = `jax.profiler.save_device_memory_profile("step_50.prof") gives a profile that memdiag reads`

	rawTimeline  = "lists of numbers, such as torch.profiler's memory timeline, which has no stacks"
	timelineHint = `export_chrome_trace("trace_50.json.gz") of the same profiler, with_stack=True, gives a trace that memdiag reads`

	// gperftoolsCPU are the first three words of its head: 0, how many words follow, and 0.
	gperftoolsCPU = "\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
)

// others are what tools write that memdiag does not read, by a text at the beginning, and what
// gives a file that it reads.
var others = []struct {
	text       string
	within     int // bytes of the beginning that are searched
	what, hint string
}{
	{"\x89MDSNAP\n", 8, "a snapshot of memdiag's that was compressed once more: it is compressed inside already", "unpack it first"},
	{"\x1f\x8b", 2, "compressed twice", unpackHint},
	{"\x28\xb5\x2f\xfd", 4, "compressed twice", unpackHint},
	{"PK\x03\x04", 4, "a zip archive; memdiag reads those that torch.save wrote, if gzip or zstd did not compress them", "unpack it first"},
	{"\n# strings: 0\n", 14, "a recording of heaptrack with nothing in it: the program ended before heaptrack wrote", "let it run longer, or end by exit instead of _Exit"},
	{"version https://git-lfs", 23, "a pointer of Git LFS, in place of the file", "git lfs pull fetches the file"},
	{"CMDLINE ", 8, mprof, mprofHint},
	{"MEM ", 4, mprof, mprofHint},
	{"/host:", 64, xplane, xplaneHint},
	{"/device:", 64, xplane, xplaneHint},
	{"Task Environment", 64, xplane, xplaneHint},
	{"[[-1", 4, rawTimeline, timelineHint},
	{"SQLite format 3\x00", 16, "a database, such as nsys exports, which has no snapshot of memory", `torch.cuda.memory._dump_snapshot("snapshot_50.pickle") of PyTorch, or memdiag record, gives one`},
	{"memray", 6, memrayRecording, memrayHint},
	{"memray\x00", 64, memrayRecording, memrayHint}, // after the head of lz4
	{`{"version": 0, "costs": [`, 25, "memray's graph for gprof2dot, which has neither lines nor counts", memrayHint},
	{"speedscope.app/file-format-schema", 100, "stacks for speedscope, without the number of blocks", "give memdiag the profiler's own file; of memray: " + memrayHint},
	{`"total_num_allocations"`, 64, "memray's statistics, which have no stacks", memrayHint},
	{"Memcheck, a memory error detector", 512, "a report of valgrind's memcheck, which is no profile", valgrindHint},
	{"ms_print arguments:", 1024, "what ms_print prints of massif's file", "give memdiag the file itself"},
	{"# callgrind format", 18, "a tree of valgrind's, which has no stacks", valgrindHint},
	{"goroutine profile: total ", 25, goroutines, goHint},
	{"goroutine ", 10, goroutines, goHint},
	{gperftoolsCPU, len(gperftoolsCPU), "a profile of processor time, as gperftools and old versions of Go write it", "take one of the heap: HEAPPROFILE of gperftools, /debug/pprof/heap of Go"},
	{`{"meta":{"categories":[`, 23, "a profile of processor time, as Firefox's profiler shows it", "DHAT, heaptrack or jemalloc profile the heap"},
	{"[[1", 3, rawTimeline, timelineHint},
	{`"traceEvents"`, 4096, "a trace of time, such as jax.profiler writes, without memory events", `jax.profiler.save_device_memory_profile("step_50.prof") gives a profile of JAX's memory; of PyTorch, profile_memory=True and export_chrome_trace`},
	{"\xfd7zXZ\x00", 6, "compressed by xz", unpackHint},
	{"BZh", 3, "compressed by bzip2", unpackHint},
}

func notThere(reason, hint string) error {
	return &InputError{Reason: reason, hint: hint, err: fs.ErrNotExist}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// regular is isRegular for an entry of a folder, which usually needs no further call.
func regular(entry fs.DirEntry, path string) bool {
	return entry.Type().IsRegular() || entry.Type()&fs.ModeSymlink != 0 && isRegular(path)
}

// some lists the first names and how many more there are.
func some(names []string) string {
	const shown = 8
	text := ""
	for i, n := range names {
		if i == shown {
			return fmt.Sprintf("%s and %d more", text, len(names)-shown)
		}
		if i > 0 {
			text += ", "
		}
		text += n
	}
	return text
}
