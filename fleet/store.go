package fleet

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/memdiag/memdiag/fleet/clickhouse"
	"github.com/memdiag/memdiag/fleet/parquet"
)

// A fleet is a folder: memdiag-fleet.txt, a folder a day, and in it a folder for each run with one
// file for each table. A folder appears by one rename, whole. Several runs of a day may be merged
// into one folder, by Compact.

// markName is the file by which a folder is known to be a fleet.
const markName = "memdiag-fleet.txt"

const (
	ending   = ".parquet"
	tempStem = ".memdiag-"
	merged   = "merged-"
	day      = "2006-01-02"
)

var (
	dayName  = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)
	partName = regexp.MustCompile(`^(merged-)?[0-9a-zA-Z]{8,40}$`)
)

// Store is a fleet's folder.
type Store struct {
	Dir   string
	Parts []*Part // by day, then name
}

// Part is a folder of tables, of one run or several.
type Part struct {
	Day, Name string
	Bytes     int64
	Runs      []Run // that count from this part

	dir string
	all bool        // all of its runs do
	was os.FileInfo // the folder, before it was read

	server *server // instead of the folder
}

// Run is a row of the table runs.
type Run struct {
	ID       string    `json:"run"`
	Name     string    `json:"name"`
	Path     string    `json:"path,omitempty"`
	Added    time.Time `json:"added"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Status   string    `json:"status"`
	ExitCode int64     `json:"exit_code"`
	Command  string    `json:"command,omitempty"`
	Workload string    `json:"workload,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Library  string    `json:"library,omitempty"`
	Ranks    int64     `json:"ranks"`
	Hosts    int64     `json:"hosts"`
	GPUs     int64     `json:"gpus"`
	Steps    int64     `json:"steps"`
	Seconds  float64   `json:"seconds"`
	Verdict  string    `json:"verdict"`
	Leaks    int64     `json:"leaks"`
	Live     int64     `json:"live_bytes"`
	Growth   int64     `json:"growth_bytes"`

	push int64 // on a server
}

// When is when a run began, or was added: what it is stored under.
func (r *Run) When() time.Time { return began(micros(r.Started), micros(r.Added)) }

// NoFleetError is a folder that is no fleet.
type NoFleetError struct{ Dir string }

func (e *NoFleetError) Error() string { return e.Dir + ": there is no fleet in this folder" }

// Hint is the way out.
func (e *NoFleetError) Hint() string {
	return "memdiag fleet add RUN --fleet " + e.Dir + " begins one; --fleet or MEMDIAG_FLEET names another folder"
}

// URLError says that an object store's or server's address was given instead of a folder.
type URLError struct{ URL string }

func (e *URLError) Error() string {
	return secret.ReplaceAllString(e.URL, "$1") + ": a fleet is a folder; memdiag opens no URL"
}

// Hint is the way out.
func (e *URLError) Hint() string {
	if strings.HasPrefix(e.URL, clickhouse.Scheme) {
		return "memdiag fleet push --to copies a fleet's folder to a ClickHouse server, and add, leaks and others take its address as --fleet"
	}
	return "keep the fleet in a folder, and copy that to the store, as by aws s3 sync: docs/fleet.md tells how"
}

var (
	address = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://`)
	// secret matches the user and password of a URL.
	secret = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://)[^/]*@`)
)

// CheckName refuses a URL, for which a folder of that name would be made.
func CheckName(dir string) error {
	if address.MatchString(dir) {
		return &URLError{dir}
	}
	return nil
}

// VersionError is a fleet, or a file in it, of another version.
type VersionError struct{ Path, Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("%s: version %q of the tables; this memdiag knows %d", e.Path, e.Version, Version)
}

// Hint is the way out.
func (e *VersionError) Hint() string {
	return "take the memdiag that wrote it, or add its runs to a new fleet"
}

// Init makes a folder a fleet, if it is none. It must be empty or new.
func Init(dir string) error {
	if err := checkMark(dir); err == nil || !errors.As(err, new(*NoFleetError)) {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), tempStem) && e.Name() != markName {
			return &fs.PathError{Op: "init", Path: dir, Err: errors.New("it has files and is no fleet; a fleet needs a folder of its own")}
		}
	}
	temporary := filepath.Join(dir, tempStem+rand.Text())
	if err := writeSynced(temporary, []byte(fmt.Sprintf("memdiag fleet, tables of version %d; https://github.com/memdiag/memdiag/blob/main/docs/fleet-tables.md explains them\n", Version))); err != nil {
		return err
	}
	if err := os.Rename(temporary, filepath.Join(dir, markName)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func checkMark(dir string) error {
	if err := CheckName(dir); err != nil {
		return err
	}
	mark := filepath.Join(dir, markName)
	info, err := os.Stat(mark)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // to open a pipe would wait for its writer
		return &NoFleetError{dir}
	}
	if err != nil {
		return err
	}
	f, err := os.Open(mark)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	text := make([]byte, 200)
	n, _ := f.Read(text) // an empty file has no version
	version := 0
	if _, err := fmt.Sscanf(string(text[:n]), "memdiag fleet, tables of version %d;", &version); err != nil || version != Version {
		return &VersionError{f.Name(), strconv.Itoa(version)}
	}
	return nil
}

// OpenStore reads which runs a fleet has. What cannot be read is an error that names the file.
func OpenStore(dir string) (*Store, error) { return openStore(dir, "") }

// Runs are all runs, newest first.
func (s *Store) Runs() []Run {
	var out []Run
	for _, p := range s.Parts {
		out = append(out, p.Runs...)
	}
	slices.SortStableFunc(out, func(a, b Run) int { return cmp.Or(b.When().Compare(a.When()), cmp.Compare(a.ID, b.ID)) })
	return out
}

// Bytes is what all tables take.
func (s *Store) Bytes() (sum int64) {
	for _, p := range s.Parts {
		sum += p.Bytes
	}
	return sum
}

// dayOf is the day that a run is stored under.
func dayOf(t Tables) string {
	runs := t["runs"].Columns
	return began(runs[4].Ints[0], runs[3].Ints[0]).Format(day)
}

// began is when a run began, unless the clock was off: then, when it was added. Both are microseconds.
func began(started, added int64) time.Time {
	if started > added || started < time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro() {
		started = added
	}
	return time.UnixMicro(started).UTC()
}

// Earlier is what a fleet had of a run that is added again.
type Earlier struct {
	Commit       string
	Ranks, Steps int64
}

// keepCommit gives a run that is added again the commit that it had, if this time none is known: who adds it again
// by hand need not know what CI knew.
func (t Tables) keepCommit(before Earlier) {
	if commit := &t["runs"].Columns[10].Texts[0]; *commit == "" {
		*commit = before.Commit
	}
}

// Less says what a replaced run has less than before, as with a folder that was copied in part; "" for nothing.
func (t Tables) Less(before Earlier) string {
	ranks, steps := t["runs"].Columns[13].Ints[0], t["runs"].Columns[16].Ints[0]
	switch {
	case ranks < before.Ranks:
		return fmt.Sprintf("the fleet had %s of it", plural(int(before.Ranks), "rank"))
	case steps < before.Steps:
		return fmt.Sprintf("the fleet had it up to step %d, now %d", before.Steps, steps)
	}
	return ""
}

// Add stores the tables of one run, replacing the run's earlier state in the fleet, and returns what that state had. The run is stored
// completely or not at all. If two add it at the same time, the later one counts.
func Add(dir string, t Tables) (before Earlier, err error) {
	if err := Init(dir); err != nil {
		return before, err
	}
	id := t["runs"].Columns[0].Texts[0]
	s, err := openStore(dir, id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else another process is replacing it, too
		return before, err
	}
	if s != nil {
		for _, r := range s.Runs() {
			if r.ID == id {
				before = Earlier{r.Commit, r.Ranks, r.Steps}
			}
		}
		t.keepCommit(before)
	}
	temporary, err := writePart(dir, t)
	if err != nil {
		return before, err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	place := filepath.Join(dir, dayOf(t), id)
	if err := putInPlace(temporary, place); err != nil {
		return before, err
	}
	if s == nil {
		return before, nil
	}
	return before, s.forget(id, place)
}

// putInPlace gives a part its name; an existing part with that name is deleted.
func putInPlace(temporary, place string) error {
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(filepath.Dir(place))); err != nil {
		return err
	}
	for try := 0; ; try++ {
		err := os.Rename(temporary, place)
		if err == nil {
			return syncFolder(filepath.Dir(place))
		}
		if _, there := os.Stat(place); there != nil || try == 10 {
			return err
		}
		// temporary then holds what was there before, which the caller removes.
		if err = exchange(temporary, place); err == nil {
			return syncFolder(filepath.Dir(place))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// forget removes what the fleet has of a run elsewhere than in place.
func (s *Store) forget(id, place string) error {
	for _, p := range s.Parts {
		if p.dir == place || !slices.ContainsFunc(p.Runs, func(r Run) bool { return r.ID == id }) {
			continue
		}
		if len(p.Runs) == 1 {
			if err := p.remove(); err != nil {
				return err
			}
			continue
		}
		rest, err := readParts([]*Part{p}, id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has merged it; what was added last counts
		}
		if errors.As(err, new(*parquet.FormatError)) {
			continue // its other runs cannot be kept without their files
		}
		if err != nil {
			return err
		}
		temporary, err := writePart(s.Dir, rest)
		if err != nil {
			return err
		}
		err = putInPlace(temporary, p.dir)
		_ = os.RemoveAll(temporary)
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a folder in one step, then its files; but not one that another process has put in its place since it was read.
func (p *Part) remove() error {
	if !p.stays() {
		return nil // another process was first, or has put another one there
	}
	gone := filepath.Join(filepath.Dir(filepath.Dir(p.dir)), tempStem+rand.Text())
	if err := os.Rename(p.dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process was first
		}
		return err
	}
	if now, err := os.Stat(gone); err == nil && !os.SameFile(now, p.was) && os.Rename(gone, p.dir) == nil {
		return nil
	}
	return os.RemoveAll(gone)
}

// writePart writes all tables into a temporary folder.
func writePart(dir string, t Tables) (temporary string, err error) {
	temporary = filepath.Join(dir, tempStem+rand.Text())
	if err := os.Mkdir(temporary, 0o777); err != nil {
		return temporary, err
	}
	for i := range Schema {
		name := Schema[i].Name
		var b bytes.Buffer
		if err := parquet.Write(&b, t[name].Columns, notes()); err != nil {
			return temporary, err
		}
		if err := writeSynced(filepath.Join(temporary, name+ending), b.Bytes()); err != nil {
			_ = os.RemoveAll(temporary)
			return temporary, err
		}
	}
	return temporary, syncFolder(temporary)
}

func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // a full disk may have room for a name, but not for the content
	}
	return err
}

// syncFolder has a folder's names on the disk. Some file systems cannot, and say so.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = f.Sync()
	return f.Close()
}
