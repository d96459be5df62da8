// Package rundir writes the folder of a run.
package rundir

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/memdiag/memdiag/snapshot"
	"github.com/memdiag/memdiag/snapshot/native"
)

// Names of files in a run's folder.
const (
	InfoName   = "run.json"
	SeriesName = seriesStem + native.Ending
)

// What names begin with.
const (
	seriesStem   = "series"
	snapshotStem = "snapshot"
	rankMark     = "_rank" // … or a rank's go on with
	afterMark    = "_after"
	childMark    = "_child"
)

// SchemaVersion is the version of run.json.
const SchemaVersion = 1

// SnapshotName is the name of the snapshot after a step: "snapshot_50.memdiag".
func SnapshotName(step int64) string {
	return snapshotStem + "_" + strconv.FormatInt(step, 10) + native.Ending
}

// RankSnapshotName is the name of the snapshot of one of several ranks in the folder: "snapshot_50_rank1.memdiag".
func RankSnapshotName(step int64, rank int) string {
	return ofRank(SnapshotName(step), rank)
}

// RankInfoName is the name of a rank's info if another rank has InfoName: "run_rank1.json".
func RankInfoName(rank int) string { return "run" + RankSuffix(rank) + ".json" }

// RankSuffix ends the names of a rank's files, before their endings: "_rank1".
func RankSuffix(rank int) string { return rankMark + strconv.Itoa(rank) }

// TableName is the file of a run's table, or of one rank's: "host.csv", "host_rank1.csv".
func TableName(name string, rank int) string {
	if rank != snapshot.NoRank {
		name += RankSuffix(rank)
	}
	return name + ".csv"
}

// RankSeriesName is the name of one rank's series: "series_rank1.memdiag".
func RankSeriesName(rank int) string { return ofRank(SeriesName, rank) }

func ofRank(name string, rank int) string {
	return strings.TrimSuffix(name, native.Ending) + RankSuffix(rank) + native.Ending
}

// IsSeriesName reports whether a run keeps a series under this name.
func IsSeriesName(name string) bool {
	if name == SeriesName {
		return true
	}
	rank, ours := strings.CutPrefix(strings.TrimSuffix(name, native.Ending), seriesStem+"_rank")
	n, err := strconv.Atoi(rank)
	return ours && err == nil && name == RankSeriesName(n)
}

// TickOf returns the number of a snapshot that was taken by time, and whether the name is one: 3 for "snapshot_t3_rank1.json". The
// numbers give the order, since the wall clock may have been set.
func TickOf(name string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(name, snapshotStem+"_t")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(rest[:digits])
	rest = rest[digits:]
	return n, ok && err == nil && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, afterMark) || strings.HasPrefix(rest, rankMark) || strings.HasPrefix(rest, childMark))
}

// StepOf is the step after which a snapshot was taken, from its name, and whether it has one: 50 of "snapshot_50_rank1.json".
func StepOf(name string) (step int64, ok bool) {
	rest, ok := strings.CutPrefix(name, snapshotStem+"_")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	step, err := strconv.ParseInt(rest[:digits], 10, 64)
	return step, ok && err == nil
}

// AfterOf is the process's last step, in the name of a snapshot that was taken by time after it: 4 for "snapshot_t3_after4_rank1.json";
// 0 otherwise.
func AfterOf(name string) int64 {
	if _, ok := TickOf(name); !ok {
		return 0
	}
	_, rest, _ := strings.Cut(name, afterMark)
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	step, _ := strconv.ParseInt(rest[:digits], 10, 64) // 0 if there is none
	return step
}

// ChildOf is the number of a child process in a snapshot's name: 2 for "snapshot_t3_child2.json"; 0 otherwise. Children are processes
// that were recorded beside a rank's.
func ChildOf(name string) int {
	if !strings.HasPrefix(name, snapshotStem+"_") {
		return 0
	}
	_, rest, _ := strings.Cut(name, childMark)
	digits, _, _ := strings.Cut(rest, ".")
	n, _ := strconv.Atoi(digits) // 0 if there is none
	return max(0, n)
}

// IsSnapshotName reports whether a run keeps a snapshot under this name, in
// whatever format.
func IsSnapshotName(name string) bool { return strings.HasPrefix(name, snapshotStem+"_") }

// NotEmptyError is a folder for a new run that holds something already.
type NotEmptyError struct {
	Dir string
}

func (e *NotEmptyError) Error() string { return e.Dir + ": the folder is not empty" }

// Hint is the way out.
func (e *NotEmptyError) Hint() string {
	if kept, there := Kept(e.Dir); there {
		return "a recording with --force was begun here and has not ended; it keeps the run before in " + kept + ": choose another folder with -o"
	}
	if _, err := readInfo(filepath.Join(e.Dir, InfoName)); err == nil {
		return "it holds a run: choose another folder with -o, or --force to replace the run"
	}
	return "choose another folder with -o"
}

// WriteError says that a file of a run could not be written, whatever the cause: a folder that disappeared during a recording is not a
// missing input.
type WriteError struct {
	Path string
	Err  error // without the path
}

func (e *WriteError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *WriteError) Unwrap() error { return e.Err }

// cannotWrite names the file by the path that it was to have: errors of the
// system may name a temporary one.
func cannotWrite(path string, err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		err = at.Err
	} else if at, ok := errors.AsType[*os.LinkError](err); ok {
		err = at.Err
	}
	return &WriteError{Path: path, Err: err}
}

// Writer records one run. Whatever happens to the process or the disk, what a
// method has recorded before stays whole: snapshots and run.json come into being
// under their names only when they are on the disk, and the series log keeps
// every point that was written.
//
// One snapshot of each rank may be written while other goroutines append to the
// series.
type Writer struct {
	dir    string
	name   string // of info's file
	info   snapshot.Info
	create func(path string) (file, error)
	kept   string // the folder of the run that this one replaces; "" for none

	mu     sync.Mutex
	series []*os.File // those that were opened
}

// file is what an output is written to; tests put failing ones here.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// createFile makes a temporary file. It replaces a left-over one, and follows no link that somebody else put there.
func createFile(path string) (file, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
}

// Runs are readable by their owner only: they describe a program's files, data and command.
const (
	filePerm   = 0o600
	folderPerm = 0o700
)

// Create makes the folder, with its parents, and writes run.json. A new folder and its files are the owner's alone; the permissions of
// an existing folder stay. An existing folder must be empty, or one that another rank records into; otherwise the error is a
// *NotEmptyError. Failed writes, here or by the Writer, are a *WriteError. The schema version of info is set.
func Create(dir string, info snapshot.Info) (*Writer, error) { return begin(dir, info, false) }

func begin(dir string, info snapshot.Info, beside bool) (*Writer, error) {
	if err := MakeFolder(dir); err != nil {
		return nil, cannotWrite(dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cannotWrite(dir, err)
	}
	if beside {
		entries = nil
	}
	// One that was killed before it had begun has recorded nothing, and may be tried again.
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == temporaryName(InfoName) || e.Name() == temporaryName(RankInfoName(RankOf(e.Name())))
	})
	info.SchemaVersion = SchemaVersion
	w := &Writer{dir: dir, name: InfoName, info: info, create: createFile}
	switch {
	case info.Rank != nil:
		err = w.begin(entries)
	case len(entries) > 0:
		err = &NotEmptyError{Dir: dir}
	default:
		err = w.writeInfo()
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// MakeFolder makes a folder that only its owner can use, for one run or several. Parents get the usual permissions, and an existing
// folder keeps its own.
func MakeFolder(dir string) error {
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil { //nolint:gosec // the user's umask counts
		return err
	}
	if err := os.Mkdir(dir, folderPerm); err == nil || !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.MkdirAll(dir, folderPerm) // it distinguishes a folder from a file
}

// begin writes what the first of several ranks has as run.json, and each other by its
// own name. All may begin at once.
func (w *Writer) begin(entries []os.DirEntry) error {
	rank := *w.info.Rank
	for _, e := range entries {
		if RankOf(e.Name()) == rank {
			return &NotEmptyError{Dir: w.dir}
		}
	}
	w.name = RankInfoName(rank)
	own, first := filepath.Join(w.dir, w.name), filepath.Join(w.dir, InfoName)
	if err := w.writeInfo(); err != nil {
		return err
	}
	if !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return RankOf(e.Name()) < 0 }) {
		switch err := os.Link(own, first); { // it keeps an existing file
		case err == nil:
			w.name = InfoName
			_ = os.Remove(own) // twice the same is no harm
			return nil
		case !errors.Is(err, os.ErrExist):
			_ = os.Remove(own) // a folder without links has one name for it
			w.name = InfoName
			return w.writeInfo()
		}
	}
	var other snapshot.Info
	text, err := os.ReadFile(first)
	if err == nil {
		err = json.Unmarshal(text, &other)
	}
	if err != nil || other.Rank == nil || *other.Rank == rank {
		_ = os.Remove(own) // the error counts
		return &NotEmptyError{Dir: w.dir}
	}
	return nil
}

// RankOf is the rank in the name of a run's file; NoRank if it has none.
func RankOf(name string) int {
	_, after, _ := strings.Cut(name, rankMark)
	digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
	rank, err := strconv.Atoi(after[:digits])
	if err != nil {
		return snapshot.NoRank
	}
	return rank
}

// Rank is the recorded rank, of several; NoRank otherwise.
func (w *Writer) Rank() int {
	if w.info.Rank == nil {
		return snapshot.NoRank
	}
	return *w.info.Rank
}

// Dir returns the folder as Create was given it.
func (w *Writer) Dir() string { return w.dir }

// WriteSnapshot records the snapshot after a step, and returns when it is on the disk. It returns an error for a step that is already
// recorded.
func (w *Writer) WriteSnapshot(step int64, s *snapshot.Snapshot) error {
	return w.writeSnapshot(step, SnapshotName(step), s)
}

// WriteRankSnapshot is WriteSnapshot for a run whose ranks share the folder; the rank is the snapshot's own.
func (w *Writer) WriteRankSnapshot(step int64, s *snapshot.Snapshot) error {
	if s.Rank < 0 {
		return fmt.Errorf("snapshot of step %d: it is of no rank", step)
	}
	return w.writeSnapshot(step, RankSnapshotName(step, s.Rank), s)
}

// WriteTick records the nth snapshot taken by time, whose step is unknown, under the name "snapshot_t3" with an ending; fill writes it,
// in any format. It returns its path when it is on the disk.
func (w *Writer) WriteTick(n int, ending string, fill func(io.Writer) error) (path string, err error) {
	name := snapshotStem + "_t" + strconv.Itoa(n)
	if w.info.Rank != nil {
		name += RankSuffix(*w.info.Rank)
	}
	path = filepath.Join(w.dir, name+ending)
	return path, w.write(path, fill)
}

func (w *Writer) writeSnapshot(step int64, name string, s *snapshot.Snapshot) error {
	if step < 0 {
		return fmt.Errorf("snapshot of step %d: steps count from 0", step)
	}
	path := filepath.Join(w.dir, name)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: already recorded", path)
	}
	return w.write(path, func(out io.Writer) error { return native.Encode(out, s) })
}

// OpenSeries begins the log of counters, once a run. Finish closes it.
func (w *Writer) OpenSeries(devices []snapshot.Device) (*native.SeriesWriter, error) {
	return w.openSeries(SeriesName, devices)
}

// OpenRankSeries is OpenSeries for a run whose ranks share the folder. Call it once per rank.
func (w *Writer) OpenRankSeries(rank int, devices []snapshot.Device) (*native.SeriesWriter, error) {
	if rank < 0 {
		return nil, fmt.Errorf("series of rank %d: ranks count from 0", rank)
	}
	return w.openSeries(RankSeriesName(rank), devices)
}

func (w *Writer) openSeries(name string, devices []snapshot.Device) (*native.SeriesWriter, error) {
	path := filepath.Join(w.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, filePerm)
	if err != nil {
		return nil, cannotWrite(path, err)
	}
	log, err := native.NewSeriesWriter(f, devices)
	if err != nil {
		_ = f.Close()
		_ = os.Remove(path) // of a full disk, all that can be done
		return nil, cannotWrite(path, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.series = append(w.series, f)
	return log, nil
}

// Uses says which versions of packages the program had imported.
func (w *Writer) Uses(packages map[string]string) { w.info.Packages = packages }

// Took notes how many steps a command was seen to take, what memory of it was not
// recorded, what its code is, and whether there are tables of its processes.
func (w *Writer) Took(steps int64, unseen []snapshot.Unseen, code snapshot.Code, followed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.info.Steps, w.info.Unseen, w.info.Code, w.info.Followed = steps, unseen, code, followed
}

// Finish flushes the series logs to the disk and writes into run.json how the run ended, with notes added to those from its creation.
// Call it once, when nobody writes any more. If both times have a monotonic clock, the run's duration is measured with it, even if the
// wall clock was set meanwhile. The run that this one replaces is deleted once the end is on the disk.
func (w *Writer) Finish(exitCode int, at time.Time, notes ...string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var failed error
	for _, f := range w.series {
		failed = cmp.Or(failed, f.Sync(), f.Close())
	}
	if !w.info.Started.IsZero() {
		at = w.info.Started.Add(at.Sub(w.info.Started))
	}
	w.info.Finished, w.info.ExitCode = &at, &exitCode
	w.info.Notes = append(w.info.Notes[:len(w.info.Notes):len(w.info.Notes)], notes...)
	if err := cmp.Or(w.writeInfo(), failed); err != nil || w.kept == "" {
		return err
	}
	return removeKept(w.dir)
}

func (w *Writer) writeInfo() error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false) // commands hold < and > more often than pages hold this file
	if err := e.Encode(w.info.Masked()); err != nil {
		return err
	}
	path := filepath.Join(w.dir, w.name)
	err := w.write(path, func(out io.Writer) error { _, err := out.Write(text.Bytes()); return err })
	if err != nil && text.Len() <= block && writeOver(path, text.Bytes()) == nil {
		return nil
	}
	return err
}

// block is the size of a file that takes no more room on most disks if its bytes change.
const block = 4096

// writeOver writes into a file that is there: a full disk has no room for a second one. On error, the file is as it was.
func writeOver(path string, text []byte) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = f.Write(text); err != nil {
		text = before
		_, _ = f.WriteAt(text, 0) // the first error counts
	}
	return cmp.Or(err, f.Truncate(int64(len(text))), f.Sync(), f.Close())
}

// write brings what fill writes to the disk under a temporary name, and then
// under its own. On error, neither is there, or its own is as it was.
func (w *Writer) write(path string, fill func(io.Writer) error) error {
	temporary := filepath.Join(w.dir, temporaryName(filepath.Base(path)))
	f, err := w.create(temporary)
	if err != nil {
		return cannotWrite(path, err)
	}
	err = fillFile(f, fill)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary)
		return cannotWrite(path, err)
	}
	if err := syncDir(w.dir); err != nil {
		return cannotWrite(path, err)
	}
	return nil
}

// temporaryName begins with a dot, so that readers of the folder ignore the file.
func temporaryName(name string) string { return "." + name + ".tmp" }

func fillFile(f file, fill func(io.Writer) error) error {
	buffered := bufio.NewWriterSize(f, 64<<10)
	err := fill(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	return cmp.Or(err, f.Close())
}

// syncDir makes a rename last. Windows can not sync a folder, and keeps renames
// without that.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	return cmp.Or(err, d.Close())
}
